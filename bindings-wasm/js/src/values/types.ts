import type {
  AuditLogsArguments,
  Dimension,
  QueryArguments,
  Window,
  WindowCounts,
} from "./declared.js";
import type { Signal } from "./host.js";

export type {
  Api,
  Attempt,
  ClockDifference,
  CountName,
  Deltas,
  Dimension,
  Limits,
  Metric,
  Notes,
  Presence,
  RankBy,
  Rates,
  Reconciliation,
  Shares,
  Tolerance,
  Window,
} from "./declared.js";

/** A group-by field of event_ingestion, which has no `reason` (service reference 4.5). */
export type IngestionDimension = Exclude<Dimension, "reason">;

/** Any JSON value, for bodies whose shape the service reference does not show. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** An access token from your own source. */
export interface AccessToken {
  /** The token itself, without `Bearer`. */
  readonly accessToken: string;
  /** Its remaining lifetime in seconds; if unknown, a cautious default is used. */
  readonly expiresIn?: number | undefined;
}

/** The query of both metrics calls (service reference 4.4 and 4.5). */
export interface MetricsQuery<D extends Dimension, G extends D = D>
  extends Grouped<QueryArguments, D, G> {}

/** Which page of the audit logs to list (service reference 4.2). */
export interface AuditLogsQuery extends AuditLogsArguments {}

/** Arguments that name dimensions: `D` are the dimensions to request, `G` the dimensions to keep. */
export type Grouped<A, D extends Dimension, G extends D = D> = Omit<A, "dimensions" | "groupBy"> & {
  /** One to four different dimensions to request from the service. */
  readonly dimensions: readonly D[];
  /**
   * The dimensions to keep while the response streams in, in this order; `[]` gives one grand
   * total. By default, all are kept. Memory grows with the number of kept groups, not with the
   * response.
   */
  readonly groupBy?: readonly G[] | undefined;
};

/** How an exchange failed. `not_sent` means that nothing of the request was sent. */
export type ExchangeFailure = "network" | "stale" | "timeout" | "hidden" | "not_sent";

/** A way to stop waiting for a call. */
export interface Abortable {
  /**
   * When it aborts, the call ends and rejects with the signal's reason, even while it waits for one of your
   * functions, such as `onProgress` or the `save` of a checkpoint. Of your functions, `deadlineMs` limits only
   * `accessToken` and `fetch`.
   */
  readonly signal?: Signal | undefined;
}

/** The part of the standard `fetch` that a client uses. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>;

/** The options of a request with {@link Fetch}. */
export interface FetchInit {
  readonly method: string;
  readonly headers: [string, string][];
  readonly body?: Uint8Array<ArrayBuffer>;
  readonly redirect: "manual";
  readonly cache: "no-store";
  /** `same-origin` for a client without tokens: its server recognizes the visitor by a cookie. */
  readonly credentials: "omit" | "same-origin";
  readonly signal: Signal;
}

/** What {@link Fetch} returns: a `Response`. A polyfill may lack the optional parts. */
export interface FetchResponse {
  readonly status: number;
  readonly type?: string;
  readonly redirected?: boolean;
  /** A `Headers` of an old host, or of old types, may have only `forEach`. */
  readonly headers:
    | Iterable<[string, string]>
    | { forEach(each: (value: string, name: string) => void): void };
  readonly body?: unknown;
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** The progress of a collect, in windows, after a call for one of them has ended. */
export interface Progress extends WindowCounts {
  /** The window of the call: the collect has read, split, postponed or given it up, or only tested the service with it. */
  readonly window: Window;
  /** How many milliseconds the collect has taken so far. */
  readonly elapsedMs: number;
}

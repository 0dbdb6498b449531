import type { ErrorCode } from "./error.js";

/** A group-by field of the Event Metrics API (service reference 2.4). */
export type Dimension = "event_name" | "write_key" | "integration" | "reason";

/** A group-by field of event_ingestion, which has no `reason` (service reference 4.5). */
export type IngestionDimension = Exclude<Dimension, "reason">;

/** Which counts were asked for: an analytics endpoint (service reference 4.4 and 4.5). */
export type Metric = "event_delivery" | "event_ingestion";

/** The name of one of the three counts (service reference 2.3). */
export type CountName = "success" | "errors" | "filtered";

/** The API that a token is for: tokens of one are not valid for the other (service reference 5). */
export type Api = "control" | "orchestration";

/**
 * What part of the events were delivered, failed and were filtered: each from 0 to 1.
 *
 * A rate of no events is `null`: never 0, never 1, never NaN. Each is the number nearest to the
 * exact quotient. It is 0 only if its count is 0. It is 1 only if no other event is in its
 * denominator, as long as that is below 2^54. The service's reference shows no rates; the
 * definitions are ours.
 */
export interface Rates {
  /** `success / (success + errors)`: of the events that were to be sent. */
  readonly delivery: number | null;
  /** `errors / (success + errors)`: of the events that were to be sent. */
  readonly error: number | null;
  /** `filtered / (success + errors + filtered)`: of all events. */
  readonly filter: number | null;
}

/** The count after minus the count before, for each of the three: exact, and negative if it fell. */
export interface Deltas {
  /** The change of events delivered. */
  readonly success: bigint;
  /** The change of events not sent due to an error. */
  readonly errors: bigint;
  /** The change of events filtered. */
  readonly filtered: bigint;
}

/**
 * What part of the change of each total a group causes: its delta divided by the total's.
 *
 * A share is negative for a group that moves against the total, and above 1 where other groups do.
 * Of a total that did not change there is no share: `null`, never 0, infinite or NaN. Each is the
 * number nearest to the exact quotient.
 */
export interface Shares {
  /** The part of the change of events delivered. */
  readonly success: number | null;
  /** The part of the change of events not sent due to an error. */
  readonly errors: number | null;
  /** The part of the change of events filtered. */
  readonly filtered: number | null;
}

/**
 * Which of two tables has a group: `both`, only the one after (`new`), or only the one before
 * (`vanished`). A group whose counts are 0 is there.
 */
export type Presence = "both" | "new" | "vanished";

/** A length of time that divides a UTC day: digits and a unit, such as `5m`, `15m`, `1h`, `1d`. */
export type TimeStep = `${bigint}${"s" | "m" | "h" | "d"}`;

/** A half-open window `[start, end)` in UTC. */
export interface Window {
  /** The first instant inside, as ISO 8601 that ends in `Z`. */
  readonly start: string;
  /** The first instant after, as ISO 8601 that ends in `Z`. */
  readonly end: string;
}

/**
 * Whether the totals that the service reports are the sums of its counts. The numbers of an
 * unbalanced one are the reported total minus the sum, and may be negative. After a filter there
 * is nothing to compare with: `unavailable`.
 */
export type Reconciliation =
  | { readonly verdict: "balanced" }
  | { readonly verdict: "unavailable" }
  | ({ readonly verdict: "unbalanced" } & Deltas);

/** What was let pass because the caller asked for tolerance: see {@link Tolerance}. */
export interface Notes {
  /** Entries whose combination of dimension values stood in the response before. */
  readonly repeatedCombinations: bigint;
  /** Dimension values that were `null`, and were read as empty strings. */
  readonly nullDimensions: bigint;
}

/**
 * What of a response to let pass, as the API is Beta. `repeated_combination`: counts of a
 * combination that stands twice are added up. `null_dimension`: a `null` is an empty string.
 * What was let pass is counted in {@link Notes}.
 */
export type Tolerance = "repeated_combination" | "null_dimension";

/** The most that a response may hold; more is an error. Every limit has a cautious default. */
export interface Limits {
  /** How deep arrays and objects may nest (`depth_limit`). */
  readonly depth?: number | undefined;
  /** The length of a string, in bytes (`string_limit`). */
  readonly stringBytes?: number | undefined;
  /** The keys of one object (`key_limit`). */
  readonly keys?: number | undefined;
  /** The length of a body, in bytes (`body_limit`). */
  readonly bodyBytes?: number | undefined;
  /** The rows of the table (`group_limit`). */
  readonly groups?: number | undefined;
}

/** What the host's two clocks say at one moment. */
export interface Now {
  /** Milliseconds since any fixed moment, never running backwards. */
  readonly monotonicMs: number;
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  readonly unixMs: number;
}

/** Any JSON value, for bodies whose shape the service reference does not show. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** An access token that the host got elsewhere. */
export interface AccessToken {
  /** The token itself, without `Bearer`. */
  readonly accessToken: string;
  /** Its remaining lifetime in seconds; if unknown, a cautious default is used. */
  readonly expiresIn?: number | undefined;
}

/** What both metrics calls ask for (service reference 4.4 and 4.5). */
export interface MetricsQuery<D extends Dimension, G extends D = D> {
  /** The first instant of the window: a `Date`, or ISO 8601 that ends in `Z`. */
  readonly start: Date | string;
  /** The first instant after the window: a `Date`, or ISO 8601 that ends in `Z`. */
  readonly end: Date | string;
  /** One to four different dimensions to ask the service for. */
  readonly dimensions: readonly D[];
  /**
   * Those of the dimensions to keep while the response streams in, in this order; `[]` for one
   * grand total. Without it, all. Memory grows with what is kept, not with the response.
   */
  readonly groupBy?: readonly G[] | undefined;
}

/** Which page of the audit logs to list (service reference 4.2). */
export interface AuditLogsQuery {
  /** The number of the page, at least 1. */
  readonly page?: number | undefined;
  /** How many records a page has, at least 1. */
  readonly perPage?: number | undefined;
}

/** One request of a call, good or not, once it has ended. It holds no secret. */
export interface Attempt {
  /** What was asked: the token endpoint of an API, or an endpoint of the API. */
  readonly target: "token" | Metric | "audit_logs";
  /** The window that the call is about; none for audit logs. */
  readonly window?: Window;
  /** Which request of the call to that target it was, from 1. */
  readonly number: number;
  /** The status, if there was one. */
  readonly status?: number;
  /** What was wrong; nothing if it was good. */
  readonly code?: ErrorCode;
  /** After how many milliseconds the call will try again, at the earliest; nothing if it won't. */
  readonly waitMs?: number;
}

/** A way to stop waiting for a call. */
export interface Abortable {
  /** When it aborts, the call ends and rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The part of the standard `fetch` that is used. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>;

/** What {@link Fetch} is called with. */
export interface FetchInit {
  readonly method: string;
  readonly headers: [string, string][];
  readonly body?: Uint8Array<ArrayBuffer>;
  readonly redirect: "manual";
  readonly cache: "no-store";
  readonly credentials: "omit";
  readonly signal: AbortSignal;
}

/** What {@link Fetch} answers: a `Response`, of which a polyfill may lack the optional parts. */
export interface FetchResponse {
  readonly status: number;
  readonly type?: string;
  readonly redirected?: boolean;
  /** A `Headers` of an old host, or of old types, may have no more than `forEach`. */
  readonly headers:
    | Iterable<[string, string]>
    | { forEach(each: (value: string, name: string) => void): void };
  readonly body?: unknown;
  arrayBuffer(): Promise<ArrayBuffer>;
}

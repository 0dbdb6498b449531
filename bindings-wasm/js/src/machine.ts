import type { CoreMachine } from "../wasm/tallyfold_wasm.js";
import { Call } from "./call.js";
import { Collect, type CollectQuery, type DimensionOf } from "./collect.js";
import { Follow, type FollowQuery } from "./follow.js";
import { Handle } from "./handle.js";
import { isBrowser } from "./host.js";
import { Probe, type ProbeQuery } from "./probe.js";
import { type CountTable, coreOf } from "./table.js";
import type {
  AuditLogsQuery,
  Dimension,
  IngestionDimension,
  Json,
  Limits,
  Metric,
  MetricsQuery,
  Tolerance,
} from "./types.js";
import { core } from "./wasm.js";

/** What a {@link Machine} has to know; {@link ClientOptions} says what each means. */
export interface MachineOptions {
  /**
   * The base address of the customer's own deployment, for the Control API and the Event Metrics
   * API: `{cluster_endpoint}` of the service reference. https, or http on this machine.
   */
  readonly clusterEndpoint?: string | undefined;
  /** The client id issued to the organization. */
  readonly clientId?: string | undefined;
  /**
   * The client secret issued to the organization. In a browser, where every visitor could read
   * it, it is refused (`secret_in_browser`): give `accessToken`.
   */
  readonly clientSecret?: string | undefined;
  /** The audience identifier of the Control API (service reference 4.3). */
  readonly controlAudience?: string | undefined;
  /** The base address of the Orchestration API: `{base_url}` of the service reference. */
  readonly baseUrl?: string | undefined;
  /** The address of the authorization server: `{auth_url}` of the service reference. */
  readonly authUrl?: string | undefined;
  /** The audience identifier of the Orchestration API (service reference 4.1). */
  readonly orchestrationAudience?: string | undefined;
  /** Lets a browser hold the client secret. Only for pages that nobody else can open. */
  readonly dangerouslyAllowBrowser?: boolean | undefined;
  /** Lets tokens and secrets travel as plain text, also to other machines. */
  readonly dangerouslyAllowHttp?: boolean | undefined;
  /** The lifetime in seconds of a token that comes without one. */
  readonly defaultTokenLifetime?: number | undefined;
  /** The most that a response may hold. */
  readonly limits?: Limits | undefined;
  /** What of a response to let pass, as the API is Beta. */
  readonly tolerate?: readonly Tolerance[] | undefined;
  /**
   * How often one call is tried again at most, after statuses 408, 429, 500, 502, 503 and 504, a
   * broken exchange or one that took too long: 3 unless told otherwise, 0 for never. All calls of a
   * client share a budget of retries, so that a service that is down is not asked much more than usual.
   */
  readonly maxRetries?: number | undefined;
  /**
   * The most milliseconds to wait for what the service asks for with `Retry-After`: 60,000 unless told
   * otherwise, below 2^31. Where it asks for more, the call ends with `retry_later`. A browser shows that
   * header of another origin only if the service lets it (`Access-Control-Expose-Headers`).
   */
  readonly longestRetryWaitMs?: number | undefined;
  /**
   * How many milliseconds one exchange may take, its body included; a call may need up to four, and
   * one more for each retry. 30,000 unless told otherwise; `Infinity` for no limit.
   */
  readonly timeoutMs?: number | undefined;
}

/** What a {@link Machine} has to know of its host. */
interface HostOptions {
  /** Whether the host will answer `provideToken`, in place of a client secret. */
  readonly hostTokens?: boolean | undefined;
  /** Whether visitors can read what it holds, also where that does not show. */
  readonly inBrowser?: boolean | undefined;
}

/** @internal Names of what is read by whoever drives a machine, so that the core knows them. */
export interface HostNames {
  /** In the query of every call. */
  readonly call: readonly string[];
  /** In that of a collect. */
  readonly collect: readonly string[];
}

/**
 * A client without I/O and without a clock, which {@link Client} drives and any other HTTP stack
 * can: it says what to send and when, reads the bytes that come back, and keeps the tokens.
 *
 * @example
 * const call = machine.eventDelivery({ start, end, dimensions: ["integration"] });
 * for (let step = call.step(); step.type !== "done"; step = call.step()) {
 *   if (step.type === "wait") await new Promise((resolve) => setTimeout(resolve, step.ms));
 *   if (step.type !== "send") continue;
 *   const { status, headers, body } = await exchange(step.request);
 *   if (call.head(status, headers)) {
 *     for await (const chunk of body) call.chunk(chunk);
 *     call.end();
 *   }
 * }
 * const table = call.output();
 */
export class Machine {
  readonly #core: Handle<CoreMachine>;
  readonly #names: HostNames;

  /**
   * @param options Addresses, credentials and audiences of the APIs in use; or `hostTokens` in place of a client
   * secret; and `inBrowser`.
   * @throws {@link TallyfoldError} of kind `config`, with the name of the argument.
   */
  constructor(options: MachineOptions & HostOptions);
  /** @internal */
  constructor(options: MachineOptions & HostOptions, names: HostNames);
  constructor(options: MachineOptions & HostOptions, names: HostNames = { call: [], collect: [] }) {
    const inBrowser = isBrowser() || options?.inBrowser;
    this.#core = new Handle(new (core().CoreMachine)({ ...options, inBrowser }));
    this.#names = names;
  }

  /** Begins a call of event_delivery (service reference 4.4). */
  eventDelivery<const D extends Dimension, const G extends D = D>(
    query: MetricsQuery<D, G>,
  ): Call<CountTable<G>> {
    return Call.of(this.#core.object.eventDelivery(query, this.#others()));
  }

  /** Begins a call of event_ingestion (service reference 4.5). */
  eventIngestion<const D extends IngestionDimension, const G extends D = D>(
    query: MetricsQuery<D, G>,
  ): Call<CountTable<G>> {
    return Call.of(this.#core.object.eventIngestion(query, this.#others()));
  }

  /** Begins a listing of audit logs (service reference 4.2). */
  auditLogs(query: AuditLogsQuery = {}): Call<Json> {
    return Call.of(this.#core.object.auditLogs(query, this.#others()));
  }

  /** Begins to collect a long range: see {@link Client.collect}. */
  collect<const M extends Metric, const D extends DimensionOf<M>, const G extends D = D>(
    query: CollectQuery<M, D, G>,
  ): Collect<G> {
    const { have } = query ?? {};
    const held = have && coreOf("have", have).copy();
    return Collect.of(this.#core.object.collect(query, held, this.#others("have", ...this.#names.collect)));
  }

  /** Begins to follow windows as they close: see {@link Client.follow}. */
  follow<const M extends Metric, const D extends DimensionOf<M>, const G extends D = D>(
    query: FollowQuery<M, D, G>,
  ): Follow<G> {
    return Follow.of(this.#core.object.follow(query, this.#others()));
  }

  /** Begins to probe the service's windows: see {@link Client.probeAdditivity}. */
  probeAdditivity<const M extends Metric, const D extends DimensionOf<M>>(
    query: ProbeQuery<M, D>,
  ): Probe<D> {
    return Probe.of(this.#core.object.probeAdditivity(query, this.#others()));
  }

  /** @internal How many milliseconds an exchange may take; infinite if there is no limit. */
  get timeoutMs(): number {
    return this.#core.object.timeoutMs();
  }

  /** Another number whenever a token was gained or lost, or its fetching ended. */
  get tokenEpoch(): bigint {
    return this.#core.object.tokenEpoch();
  }

  #others(...own: string[]): string[] {
    return [...this.#names.call, ...own];
  }

  /** Frees the memory now. Calls that it began can still be driven. */
  [Symbol.dispose](): void {
    this.#core.release();
  }
}

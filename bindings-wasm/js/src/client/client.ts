import type { Call } from "../calls/call.js";
import { Driver, type DriverOptions } from "../calls/driver.js";
import type { CollectQuery, DimensionOf } from "../ranges/collect.js";
import { type CollectOptions, CollectRun } from "../ranges/collect_run.js";
import type { FollowQuery } from "../ranges/follow.js";
import type { Additivity, ProbeQuery } from "../ranges/probe.js";
import { Following, type FollowOptions } from "../ranges/revisions.js";
import type { CountTable } from "../tables/table.js";
import { copied, fieldsOf, OPTIONS, optionalSignal, own } from "../values/input.js";
import type {
  Abortable,
  Api,
  AuditLogsQuery,
  Dimension,
  IngestionDimension,
  Json,
  Metric,
  MetricsQuery,
} from "../values/types.js";
import { type Environment, fromEnvironment, processEnv } from "./environment.js";
import { Machine, type MachineOptions } from "./machine.js";

/** The options that the client handles itself: in every query, in a collect's, and in a follow's. */
const OF_CALL: "signal"[] = ["signal"];
const OF_COLLECT = ["onProgress", "checkpoint", "progress"];
const OF_FOLLOW = ["onFailure", "once"];

/** The options of a {@link Client}. You may leave out the arguments of an API that you don't use. */
export interface ClientOptions extends MachineOptions, DriverOptions {}

/**
 * A client of both APIs. It fetches, keeps and renews tokens as needed, follows no redirects, and checks every
 * response to its last byte.
 *
 * If a call fails, it rejects with a {@link TallyfoldError}; if its signal aborts, it rejects with the signal's
 * reason. Calls may run at the same time; they share one token and one token request.
 *
 * The first client compiles the WebAssembly in this package. In a page, this happens off the main thread, and the
 * first call waits for it. If the page has a content security policy, the policy must allow `'wasm-unsafe-eval'`
 * for scripts.
 *
 * @example
 * const client = new Client({
 *   clusterEndpoint: "https://cluster.example",
 *   clientId: process.env.CLIENT_ID,
 *   clientSecret: process.env.CLIENT_SECRET,
 *   controlAudience: "https://control.example",
 * });
 * const table = await client.eventDelivery({
 *   start: new Date(Date.now() - 15 * 60_000),
 *   end: new Date(),
 *   dimensions: ["integration", "reason"],
 * });
 */
export class Client {
  readonly #machine: Machine;
  readonly #driver: Driver;

  /**
   * @throws {@link TallyfoldError} of kind `config`, with the name of the argument. In a browser,
   * `secret_in_browser` for a client secret.
   */
  constructor(options: ClientOptions) {
    const given = fieldsOf("options", options, OPTIONS);
    const { accessToken, fetch, onAttempt, now, ...rest } = given;
    const hostTokens = (accessToken ?? undefined) !== undefined;
    this.#machine = new Machine({ ...rest, hostTokens }, OF_CALL, OF_COLLECT, OF_FOLLOW);
    const tokenless = given.tokenless === true;
    this.#driver = new Driver({ accessToken, fetch, onAttempt, now }, this.#machine, tokenless);
  }

  /**
   * Makes a client with the addresses and credentials in environment variables, in Node, Deno and Bun. The
   * variables are `TALLYFOLD_CLUSTER_ENDPOINT`, `TALLYFOLD_CLIENT_ID`, `TALLYFOLD_CLIENT_SECRET` and
   * `TALLYFOLD_CONTROL_AUDIENCE`; for the Orchestration API, `TALLYFOLD_BASE_URL`, `TALLYFOLD_AUTH_URL` and
   * `TALLYFOLD_ORCHESTRATION_AUDIENCE`. An empty variable counts as missing.
   *
   * @param options The options of the client, which override variables; and `env`, an object to read instead of
   * `process.env`.
   * @throws {@link TallyfoldError} with the names of all missing variables.
   * @example
   * const client = Client.fromEnv({ timeoutMs: 10_000 });
   */
  static fromEnv(options: ClientOptions & { readonly env?: Environment | undefined } = {}): Client {
    const { env = processEnv(), ...rest } = fieldsOf("options", options, OPTIONS);
    const given = own(rest);
    const hasSource = (given.accessToken ?? undefined) !== undefined;
    // Bundlers rename a class that refers to itself by name.
    return fromEnvironment(own(env), given, hasSource, (all) => new this(all));
  }

  /**
   * Reads the event delivery counts of a window (service reference 4.4): delivered, failed and filtered events, by
   * one to four dimensions. Windows of 5 to 15 minutes keep responses small.
   *
   * @example
   * const table = await client.eventDelivery({
   *   start: "2026-01-01T00:00:00Z",
   *   end: "2026-01-01T00:15:00Z",
   *   dimensions: ["integration", "reason"],
   *   groupBy: ["integration"],
   *   signal: AbortSignal.timeout(60_000),
   * });
   */
  async eventDelivery<const D extends Dimension, const G extends D = D>(
    query: MetricsQuery<D, G> & Abortable,
  ): Promise<CountTable<G>> {
    return await this.#run((own) => this.#machine.eventDelivery(own), query);
  }

  /**
   * Reads the event ingestion counts of a window (service reference 4.5). There is no dimension `reason`.
   *
   * @example
   * const { totals } = await client.eventIngestion({ start, end, dimensions: ["write_key"] });
   */
  async eventIngestion<const D extends IngestionDimension, const G extends D = D>(
    query: MetricsQuery<D, G> & Abortable,
  ): Promise<CountTable<G>> {
    return await this.#run((own) => this.#machine.eventIngestion(own), query);
  }

  /**
   * Reads a page of the audit logs (service reference 4.2). The reference does not show the response, so the method
   * returns the parsed JSON as the service sends it. Numbers are JavaScript numbers: an integer beyond 2^53 is
   * rounded, and an integer beyond the largest number is an error (`invalid_json`).
   *
   * @example
   * const page = await client.auditLogs({ page: 1, perPage: 50 });
   */
  async auditLogs(query: AuditLogsQuery & Abortable = {}): Promise<Json> {
    return await this.#run((own) => this.#machine.auditLogs(own), query);
  }

  /**
   * Returns a valid access token for one API, and its remaining lifetime in seconds. The `accessToken` function of
   * another client may return this object: use it in a server that hands out tokens to web apps. The client returns
   * the token that it uses itself, and fetches a new one only when needed, once for all concurrent calls.
   *
   * No other method reveals a token. Protect it like a password, and give it only to people who may see everything
   * that it gives access to.
   *
   * @example
   * const { accessToken, expiresIn } = await client.token("control");
   */
  async token(
    api: Api,
    options: Abortable = {},
  ): Promise<{ readonly accessToken: string; readonly expiresIn: number }> {
    const given = fieldsOf("options", options, OPTIONS, OF_CALL);
    return await this.#run(() => this.#machine.token(api), given);
  }

  /**
   * Reads a long range in many windows, several at a time, and adds them up into one table.
   *
   * If the response for a window is too large or too slow, the collect reads the window again as two halves. If a
   * window fails, the collect still reads the other windows; then the promise rejects with an error that has the
   * `partial` table, the `gaps` and the `failures`. To read only the gaps, call the method again with that table as
   * `have`, or with the same `checkpoint`. The collect starts no more windows after failed authentication, a status
   * 403, a redirect or `retry_later`, after its deadline, after eight failed windows in a row, or if the counts take
   * more than `memoryLimit`.
   *
   * If the service is down, all calls pause, and one call at a time is tried. All calls resume when the service
   * answers: see `patienceMs`.
   *
   * The collect also ends when its `signal` aborts, when one of your functions throws, or when the `checkpoint`
   * can't be written. Then all calls end, and the promise rejects with the signal's reason or the error. A later
   * collect with the same checkpoint doesn't read the stored windows again.
   *
   * @example
   * const range = { start: "2026-01-01T00:00:00Z", end: "2026-01-02T00:00:00Z" };
   * const table = await client.collect({
   *   ...range,
   *   metric: "event_delivery",
   *   dimensions: ["integration", "reason"],
   *   window: "15m",
   *   onProgress: ({ done, planned }) => console.log(`${done} of ${planned}`),
   * });
   */
  async collect<const M extends Metric, const D extends DimensionOf<M>, const G extends D = D>(
    query: CollectQuery<M, D, G> & CollectOptions,
  ): Promise<CountTable<G>> {
    const own = copied(query);
    if (this.#machine.compiling) await this.#machine.compiling;
    const collect = this.#machine.collect<M, D, G>(own);
    try {
      return await new CollectRun(collect, this.#driver, own).run();
    } finally {
      collect[Symbol.dispose]();
    }
  }

  /**
   * Reads windows as they close, and again while their counts may change. The method returns an async iterator,
   * which yields a {@link Revision} after each reading of a window, until the window is settled. A running sum of
   * all `changes` is always the sum of the newest counts of all windows. The iteration ends when all windows up to
   * `end` are settled, or when you leave the `for await` loop; with `once`, it ends when nothing is due any more.
   * If its `signal` aborts, it rejects with the signal's reason.
   *
   * @throws {@link TallyfoldError} of kind `config`, with the name of the argument.
   * @example
   * let errors = 0n;
   * const revisions = client.follow({ ...query, metric: "event_delivery", window: "5m" });
   * for await (const { window, changes } of revisions) {
   *   errors += changes.totalDelta.errors;
   *   console.log(window.start, errors);
   * }
   */
  follow<const M extends Metric, const D extends DimensionOf<M>, const G extends D = D>(
    query: FollowQuery<M, D, G> & FollowOptions,
  ): Following<G> {
    return new Following(() => this.#machine.follow<M, D, G>(query), this.#driver, query);
  }

  /**
   * Tests with three calls whether the service's windows are half-open, which its reference does not specify.
   * Choose a window so old that no late events arrive.
   *
   * @example
   * const middle = "2026-01-01T00:05:00Z";
   * const edges = { start: "2026-01-01T00:00:00Z", middle, end: "2026-01-01T00:10:00Z" };
   * const { verdict, difference } = await client.probeAdditivity({
   *   ...edges,
   *   metric: "event_delivery",
   *   dimensions: ["integration"],
   * });
   */
  async probeAdditivity<const M extends Metric, const D extends DimensionOf<M>>(
    query: ProbeQuery<M, D> & Abortable,
  ): Promise<Additivity<D>> {
    const own = copied(query);
    if (this.#machine.compiling) await this.#machine.compiling;
    const signal = optionalSignal(own.signal);
    const probe = this.#machine.probeAdditivity<M, D>(own);
    try {
      for (let step = probe.next(); step.type === "drive"; step = probe.next()) {
        const { task, call } = step;
        await this.#driver.run(call, signal, () => probe.settle(task, call));
      }
      return probe.finish();
    } finally {
      probe[Symbol.dispose]();
    }
  }

  /** @internal For a server for web apps. */
  parts(): { readonly machine: Machine; readonly driver: Driver } {
    return { machine: this.#machine, driver: this.#driver };
  }

  /** Frees tokens and memory now. Calls under way still run to their end. */
  [Symbol.dispose](): void {
    this.#machine[Symbol.dispose]();
  }

  async #run<Q extends Abortable, T>(begin: (own: Q) => Call<T>, query: Q): Promise<T> {
    const own = copied(query);
    if (this.#machine.compiling) await this.#machine.compiling;
    const signal = optionalSignal(own.signal);
    const call = begin(own);
    return this.#driver.run(call, signal, () => call.output());
  }
}

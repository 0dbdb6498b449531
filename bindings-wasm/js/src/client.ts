import type { Call } from "./call.js";
import type { CollectQuery, DimensionOf } from "./collect.js";
import { Collecting, type CollectOptions } from "./collecting.js";
import { Driver, type DriverOptions } from "./driver.js";
import type { FollowQuery } from "./follow.js";
import { Following } from "./following.js";
import { optionalSignal } from "./input.js";
import { Machine, type MachineOptions } from "./machine.js";
import type { Additivity, ProbeQuery } from "./probe.js";
import type { CountTable } from "./table.js";
import type {
  Abortable,
  AuditLogsQuery,
  Dimension,
  IngestionDimension,
  Json,
  Metric,
  MetricsQuery,
} from "./types.js";

/** What a client reads by itself: of every query, and of that of a collect. */
const OF_CALL = ["signal"];
const OF_COLLECT = ["onProgress", "checkpoint", "progress"];

/** What a {@link Client} has to know. Name what you use: either API works without the other's. */
export interface ClientOptions extends MachineOptions, DriverOptions {}

/**
 * The caller's side of both APIs: fetches tokens as they are needed, shares them between calls,
 * follows no redirect, and checks every response to its last byte.
 *
 * Every call rejects with a {@link TallyfoldError}, or with the reason of the signal that aborted
 * it. Calls may run at the same time: they share one token, and one request for it.
 *
 * The first call, or the making of the first client, compiles the WebAssembly inside this package:
 * a page with a content security policy has to allow `'wasm-unsafe-eval'` for scripts.
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
    const { accessToken, fetch, onAttempt, now, ...rest } = options ?? {};
    const hostTokens = (accessToken ?? undefined) !== undefined;
    this.#machine = new Machine({ ...rest, hostTokens }, OF_CALL, OF_COLLECT);
    this.#driver = new Driver({ accessToken, fetch, onAttempt, now }, this.#machine.timeoutMs);
  }

  /**
   * Counts of event delivery in a window (service reference 4.4): delivered, dropped and filtered
   * events, by one to four dimensions. Windows of 5 to 15 minutes keep responses small.
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
    return this.#run(this.#machine.eventDelivery(query), query.signal);
  }

  /**
   * Counts of event ingestion in a window (service reference 4.5), which has no `reason`.
   *
   * @example
   * const { totals } = await client.eventIngestion({ start, end, dimensions: ["write_key"] });
   */
  async eventIngestion<const D extends IngestionDimension, const G extends D = D>(
    query: MetricsQuery<D, G> & Abortable,
  ): Promise<CountTable<G>> {
    return this.#run(this.#machine.eventIngestion(query), query.signal);
  }

  /**
   * A page of the audit logs (service reference 4.2). The reference does not show the shape of
   * the listing, so it is handed over as it is. Numbers are JavaScript's: an integer beyond 2^53 is rounded, and one
   * beyond the largest number is an error (`invalid_json`).
   *
   * @example
   * const page = await client.auditLogs({ page: 1, perPage: 50 });
   */
  async auditLogs(query: AuditLogsQuery & Abortable = {}): Promise<Json> {
    return this.#run(this.#machine.auditLogs(query), query.signal);
  }

  /**
   * Counts of a long range, read window by window, several at a time, and added up to one table.
   *
   * A window whose response is too large or too slow is read again as two halves. One that fails leaves the
   * others: the promise rejects when they have been read, with an error that carries the `partial` table, the
   * `gaps` and the `failures`. To go on, call it again with that table as `have`, or with the same `checkpoint`:
   * only the gaps are read then. Failed authentication, 403, a redirect and `retry_later` end it at once, and
   * so do eight windows that fail in a row.
   *
   * What ends it otherwise (its `signal`, what a function of yours throws, a `checkpoint` that can't be
   * written) ends all calls under way. It rejects with just that; what was stored by then is not read again.
   *
   * @example
   * const january = { start: "2026-01-01T00:00:00Z", end: "2026-01-02T00:00:00Z" };
   * const table = await client.collect({
   *   ...january,
   *   metric: "event_delivery",
   *   dimensions: ["integration", "reason"],
   *   window: "15m",
   *   onProgress: ({ done, planned }) => console.log(`${done} of ${planned}`),
   * });
   */
  async collect<const M extends Metric, const D extends DimensionOf<M>, const G extends D = D>(
    query: CollectQuery<M, D, G> & CollectOptions,
  ): Promise<CountTable<G>> {
    const collect = this.#machine.collect<M, D, G>(query);
    try {
      return await new Collecting(collect, this.#driver, query).run();
    } finally {
      collect[Symbol.dispose]();
    }
  }

  /**
   * Windows as they close, each as a {@link Revision}, and again as late events change them: a running sum of
   * all `changes` is always the sum of the newest counts of every window. It ends when all windows up to
   * `end` are settled, with its `signal`, or with the `for await` loop.
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
    query: FollowQuery<M, D, G> & Abortable,
  ): Following<G> {
    return new Following(this.#machine.follow<M, D, G>(query), this.#driver, query.signal);
  }

  /**
   * Whether the service's windows are half-open, which its reference does not say: three calls find out. The
   * time should be so long ago that no late events come while it is read.
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
    const probe = this.#machine.probeAdditivity<M, D>(query);
    const signal = optionalSignal(query.signal);
    for (let step = probe.next(); step.type === "drive"; step = probe.next()) {
      const { task, call } = step;
      try {
        await this.#driver.drive(call, signal);
        probe.settle(task, call);
      } finally {
        this.#driver.close(call);
      }
    }
    return probe.finish();
  }

  /** Frees tokens and memory now. Calls under way come to their end. */
  [Symbol.dispose](): void {
    this.#machine[Symbol.dispose]();
  }

  async #run<T>(call: Call<T>, signal: AbortSignal | undefined): Promise<T> {
    try {
      await this.#driver.drive(call, optionalSignal(signal));
      return call.output();
    } finally {
      this.#driver.close(call);
    }
  }
}

import type { CoreExport, CoreLedger } from "../../wasm/tallyfold_export.js";
import { reading } from "../files/origins.js";
import { Handle } from "../loading/handle.js";
import type { Revision } from "../ranges/follow.js";
import { revised } from "../tables/transfer.js";
import type { ExportArguments, PushReport } from "../values/declared.js";
import { invalidArgument, outOfOrder } from "../values/error.js";
import { fieldsOf, flatHeaders, OPTIONS, optionalFlag, own } from "../values/input.js";
import { clocks } from "../values/time.js";
import { warning } from "../values/warning.js";
import { exportCore, withOptions } from "./exporting.js";
import { type PushOptions, pushed, pushNames } from "./push.js";
import { checkStore, type Store, stored } from "./store.js";

/** What counters are called: as in {@link ExportOptions}. */
export interface CounterOptions extends Pick<ExportArguments, "labels" | "name"> {}

/** The options of {@link Ledger.push}: the options of {@link push}, whose `format` is `"otlp"` or `"otlp-json"`. */
export interface LedgerPushOptions extends Omit<PushOptions, "finished" | "onFinished"> {}

/** The options of {@link Ledger.add}. */
export interface LedgerAddOptions {
  /**
   * Whether windows before the revision may be missing: the totals don't have their counts then. Set it for the first
   * revision after a time whose counts can't be read any more. A window that can't be read for days needs no gap: it is
   * added when it can.
   */
  readonly allowGap?: boolean | null;
}

/** A running total that never goes down, for each set of labels. */
export interface Counter {
  /** Its name, without the `_total` that text formats add. */
  readonly name: string;
  /** What it counts. */
  readonly help: string;
  /** The names of its labels. */
  readonly labelNames: readonly string[];
  /** Its value for each group. */
  readonly values: readonly {
    readonly labels: { readonly [name: string]: string };
    readonly value: bigint;
  }[];
}

/** A registry of `prom-client`. */
export interface PromRegistry {
  registerMetric(metric: never): unknown;
}

/**
 * Running totals of settled windows, by group: counters, which never go down. A scrape reads them as {@link
 * Ledger.openmetrics}, and {@link Ledger.push} sends them as cumulative sums of OTLP.
 *
 * {@link Client.follow} gives each window's last revision once, as settled, and only that is added. The document, {@link
 * Ledger.save}, holds the totals and the state of the follow together. It is stored with each revision, before anyone sees
 * the new totals: so a process that is ended at any moment, and resumes with the document and its state, counts nothing
 * twice, loses nothing, and never shows less than it has shown. Only one process at a time may use a document: see {@link
 * Store}. A process that is given an older document counts on from there, and Prometheus sees the counters reset: `increase`
 * and `rate` then count the totals of that document once more.
 *
 * @example
 * const ledger = new Ledger(await load());
 * ledger.register(register); // The registry of prom-client
 * const revisions = client.follow({
 *   ...query,
 *   metric: "event_delivery",
 *   window: "15m",
 *   state: ledger.state,
 * });
 * for await (const revision of revisions) {
 *   await ledger.add(revision, revisions.state(), store);
 * }
 */
export class Ledger {
  #core: Handle<CoreLedger>;
  /** What was stored last. */
  #document: string | null;
  #isAdding = false;
  #isPushing = false;
  /** The end of the last attempt to store a document. */
  #stored: Promise<unknown> = Promise.resolve();
  /** Registries that wait for the names of the counters, which come with the first revision. */
  #waiting: (() => boolean)[] = [];

  /**
   * @param saved What {@link Ledger.save} gave; without it, the ledger is empty.
   * @throws {@link TallyfoldError} with code `invalid_checkpoint` for a document that is torn or was changed.
   */
  constructor(saved?: string | null) {
    const read = (): CoreLedger => new (exportCore().CoreLedger)(saved, Date.now());
    this.#core = new Handle(reading(saved, read));
    this.#document = saved ?? null;
  }

  /**
   * Takes a revision, and the state of its follow after it. The counts are added if the window is settled. When a total
   * becomes larger than 2^53, which Prometheus rounds, there is an `InexactCountWarning`.
   *
   * @param store Stores the new document, and is awaited. Only then the ledger shows the new totals; if this throws, or
   * its promise is rejected, the ledger is unchanged.
   * @throws {@link TallyfoldError} with code `incompatible_tables` for counts by other dimensions or of another metric,
   * `overlapping_coverage` for a settled window that was added before, `sum_overflow`, `invalid_argument` for an empty
   * state, `invalid_checkpoint` for one that was torn or changed, or if `store` finds another document, and `out_of_order` if a window was skipped, with its time, or while another revision is being
   * stored; the ledger is unchanged then.
   */
  async add(
    revision: Revision,
    state: string,
    store: Store,
    options: LedgerAddOptions = {},
  ): Promise<void> {
    if (typeof state !== "string") {
      throw invalidArgument("state", "want the state of the follow: revisions.state()");
    }
    checkStore(store);
    const { allowGap } = fieldsOf("options", options, OPTIONS);
    const mayHaveGap = optionalFlag("allowGap", allowGap) ?? false;
    if (this.#isAdding) throw outOfOrder("another revision is being stored; await add first");
    const rows = revised(exportCore(), revision);
    const { settled, clockAheadMs = 0 } = revision;
    let inexact: string | undefined;
    this.#isAdding = true;
    try {
      await this.#become((core) => {
        const next = core.added(rows, settled, state, mayHaveGap, clockAheadMs, Date.now());
        inexact = core.inexact() === undefined ? next.inexact() : undefined;
        return [next, undefined];
      }, store);
    } finally {
      this.#isAdding = false;
    }
    if (inexact !== undefined) warning("InexactCountWarning", inexact);
    if (!this.#core.released) this.#registerWaiting();
  }

  /**
   * Sends the totals as cumulative sums of OTLP, which receivers take that refuse deltas.
   *
   * Each sum begins when the ledger did, and has the time of now: by this machine's clock, or by the service's if the last
   * revision has shown that this machine's is ahead. It is a millisecond more than before if the clock was set back. Both
   * are stored before anything is sent. So it may be sent any number of times and is never in doubt; after an
   * error, the next push makes up for it. Push after each revision that is settled, and at least every few minutes,
   * because Prometheus forgets a sum after five. A revision may be added meanwhile.
   *
   * @param store Stores the new document, and is awaited, as of {@link Ledger.add}.
   * @throws what {@link push} throws, and {@link TallyfoldError} with code `out_of_order` while another push of this ledger
   * is under way, and `invalid_checkpoint` if the clock is more than five minutes behind the last push.
   * @example
   * const labels = { cluster: "production" };
   * await ledger.push({ format: "otlp", url: "https://otlp.example/v1/metrics", labels }, store);
   */
  async push(options: LedgerPushOptions, store: Store): Promise<PushReport> {
    checkStore(store);
    if (this.#isPushing) throw outOfOrder("another push is under way; await it first");
    this.#isPushing = true;
    try {
      const { unixMs } = clocks(own(options).now)();
      const totals = await this.#become((core) => {
        const next = core.stamped(unixMs);
        const make = (...given: [object, string[], number]): CoreExport => next.totals(...given);
        return [next, withOptions(options, pushNames(), make)];
      }, store);
      return await pushed(totals, options);
    } finally {
      this.#isPushing = false;
    }
  }

  /** Stores the totals that are made; only then they are this ledger's own. One document is stored after the other. */
  #become<T>(make: (core: CoreLedger) => [CoreLedger, T], store: Store): Promise<T> {
    const became = this.#stored.then(async () => {
      const core = this.#core;
      const [made, other] = make(core.object);
      const next = new Handle(made);
      try {
        this.#document = await stored(store, next.object.toJson(), this.#document);
        // The ledger may have been disposed of meanwhile.
        if (!core.released) this.#core = next;
      } finally {
        (this.#core === next ? core : next).release();
      }
      return other;
    });
    this.#stored = became.catch(() => {});
    return became;
  }

  /** The revision is stored by now, so nothing that a registry says may fail its `add`. */
  #registerWaiting(): void {
    this.#waiting = this.#waiting.filter((register) => {
      try {
        return !register();
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        warning(
          "CountersLeftOutWarning",
          `a registry does not show all counters of a ledger: ${why}`,
        );
        return false;
      }
    });
  }

  /** The document to store, with the totals and the state of the follow: JSON without any secret. */
  save(): string {
    return this.#core.object.toJson();
  }

  /** The state of the follow after the last revision that was added, for its option `state`. */
  get state(): string | undefined {
    return this.#core.object.state();
  }

  /** The end of the newest window that was added. */
  get settledUntil(): string | undefined {
    return this.#core.object.settledUntil();
  }

  /** The totals as counters; none before the first revision. */
  counters(options: CounterOptions = {}): Counter[] {
    const { labels, name } = fieldsOf("options", options, OPTIONS);
    const counters: CoreCounter[] = this.#core.object.counters(flatHeaders(labels), name);
    return counters.map((counter) => ({
      name: counter.name,
      help: counter.help,
      labelNames: counter.labels,
      values: counter.samples.map(([values, value]) => ({
        labels: Object.fromEntries(counter.labels.map((label, at) => [label, values[at] ?? ""])),
        value,
      })),
    }));
  }

  /**
   * The totals as OpenMetrics text, for a scrape, with the end of the newest window that was added.
   *
   * @example
   * response.setHeader("content-type", ledger.mediaType);
   * response.end(ledger.openmetrics({ labels: { cluster: "production" } }));
   */
  openmetrics(options: CounterOptions = {}): string {
    const { labels, name } = fieldsOf("options", options, OPTIONS);
    return this.#core.object.openmetrics(flatHeaders(labels), name);
  }

  /** What to say in `Content-Type` of {@link Ledger.openmetrics}. */
  get mediaType(): string {
    return exportCore().CoreLedger.mediaType();
  }

  /**
   * Has a registry of `prom-client` show the totals in each scrape, as numbers, which are those that Prometheus stores:
   * exact up to 2^53. If the ledger is empty, the counters are there from its first revision on. If the registry then
   * refuses one, because it has another metric of that name, a `CountersLeftOutWarning` says so, as notes of an export
   * do.
   *
   * @throws what the registry throws, if the ledger has counters.
   * @example
   * import { register } from "prom-client";
   *
   * ledger.register(register, { labels: { cluster: "production" } });
   */
  register(registry: PromRegistry, options: CounterOptions = {}): void {
    if (typeof registry?.registerMetric !== "function") {
      throw invalidArgument("registry", "want a Registry of prom-client");
    }
    const register = (): boolean => {
      const counters = this.counters(options);
      for (const [position, counter] of counters.entries()) {
        const values = () =>
          (this.counters(options)[position]?.values ?? []).map(({ labels, value }) => ({
            labels,
            value: Number(value),
          }));
        registry.registerMetric(metric(counter, values) as never);
      }
      return counters.length > 0;
    };
    if (!register()) this.#waiting.push(register);
  }

  /** Frees the memory now. */
  [Symbol.dispose](): void {
    this.#core.release();
  }
}

interface CoreCounter {
  readonly name: string;
  readonly help: string;
  readonly labels: string[];
  /** The values of the labels, and the count. */
  readonly samples: [string[], bigint][];
}

/** What a registry of `prom-client` asks of a metric. */
function metric({ name, help, labelNames }: Counter, values: () => unknown[]): object {
  const fixed = { help, type: "counter", aggregator: "sum", labelNames };
  const metric = {
    ...fixed,
    // The registry changes it as its format wants it.
    name: `${name}_total`,
    get: async () => ({ ...fixed, name: metric.name, values: values() }),
    /** What is settled stays. */
    reset: () => {},
  };
  return metric;
}

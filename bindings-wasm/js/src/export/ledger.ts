import type { CoreExport, CoreLedger } from "../../wasm/tallyfold_export.js";
import { reading } from "../files/origins.js";
import { awaited } from "../http/abort.js";
import { Handle } from "../loading/handle.js";
import type { Revision } from "../ranges/follow.js";
import { clocks } from "../values/clocks.js";
import type { ExportArguments, PushReport } from "../values/declared.js";
import { invalidArgument, outOfOrder } from "../values/error.js";
import {
  fieldsOf,
  flatHeaders,
  OPTIONS,
  optionalFlag,
  optionalSignal,
  own,
  pairsOf,
} from "../values/input.js";
import { warning } from "../values/runtime.js";
import { exportCore, withOptions } from "./exporting.js";
import { type PushOptions, pushed, pushNames } from "./push.js";
import { checkStore, type Store, stored } from "./store.js";
import { revised } from "./transfer.js";

/** The names and labels of counters, as in {@link ExportOptions}. */
export interface CounterOptions extends Pick<ExportArguments, "labels" | "name"> {}

/** The options of {@link Ledger.push}: the options of {@link push}, whose `format` is `"otlp"` or `"otlp-json"`. */
export interface LedgerPushOptions extends Omit<PushOptions, "finished" | "onFinished"> {}

/** The options of {@link Ledger.add}. */
export interface LedgerAddOptions {
  /**
   * Whether windows before the revision may be missing. The totals then lack their counts. Set it for the first
   * revision after a time whose counts can't be read any more. It isn't needed for a window that can't be read for
   * days: the window is added once it can be read.
   */
  readonly allowGap?: boolean | null;
}

/** A running total that never decreases, for each set of labels. */
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
 * Running totals of settled windows, by group. They are counters that never decrease. A scrape reads the totals as
 * {@link Ledger.openmetrics}, and {@link Ledger.push} sends them as cumulative sums of OTLP.
 *
 * {@link Client.follow} yields each window once as settled, in the window's last revision, and the ledger adds only
 * these revisions. The document of the ledger, {@link Ledger.save}, contains the totals together with the state of
 * the follow. The ledger stores it with each revision, before a scrape can see the new totals. So if the process is
 * killed at any moment, and another one resumes with the document and its state, it counts nothing twice and loses
 * nothing, and no scrape sees a counter decrease. Only one process at a time may use a document: see {@link Store}.
 * Don't restore an older document, because the ledger can't recognize it. Prometheus would see the counters reset,
 * and `increase` and `rate` would count the totals of that document once more.
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
  /** The document that was loaded or stored last; `null` if there is none. */
  #document: string | null;
  #isAdding = false;
  #isPushing = false;
  /** Resolves when the last attempt to store a document has ended. An aborted push does not wait for it. */
  #stored: Promise<unknown> = Promise.resolve();
  /** Functions that register the counters. They wait for the first revision, which has the names of the counters. */
  #waiting: (() => boolean)[] = [];

  /**
   * @param saved The result of {@link Ledger.save}; without it, the ledger is empty.
   * @throws {@link TallyfoldError} with code `invalid_checkpoint` for a document that is incomplete or was changed.
   */
  constructor(saved?: string | null) {
    const read = (): CoreLedger => new (exportCore().CoreLedger)(saved, Date.now());
    this.#core = new Handle(reading(saved, read));
    this.#document = saved ?? null;
  }

  /**
   * Stores a revision, and the state of its follow after it: `revisions.state()`. The counts are added if the
   * window is settled. If a total becomes larger than 2^53, which Prometheus rounds, the ledger issues an
   * `InexactCountWarning`.
   *
   * @param store A function that stores the new document. The ledger awaits it, and only then shows the new totals.
   * If the function throws or rejects, the ledger is unchanged.
   * @throws {@link TallyfoldError} with code `incompatible_tables` for counts with other dimensions, or of another
   * metric, cluster or client; `overlapping_coverage` for a settled window that was added before; `sum_overflow`;
   * `invalid_argument` for an empty state; `invalid_checkpoint` for a state that is incomplete or was changed, or if
   * `store` finds another document; `out_of_order` if a window was skipped, with its time, if a revision with the same
   * state was added before, or while another revision is being stored. The ledger is unchanged then.
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
    const { allowGap } = fieldsOf("options", options, OPTIONS, ["allowGap"]);
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
   * Sends the totals as cumulative sums of OTLP, for destinations that refuse deltas.
   *
   * Each sum has the start of the ledger and the current time: this machine's time, or the service's time if the
   * last revision has shown that this machine's clock is ahead. If the clock was set back, the time is a
   * millisecond after the time of the previous push. Totals and time are stored before anything is sent. So the
   * totals may be sent any number of times, and are never in doubt; after an error, the next push sends the current totals.
   * Push after each settled revision, and at least every few minutes, because Prometheus forgets a sum after five
   * minutes. You may add a revision during a push. If the signal aborts, the push ends at once, even during `store`; the
   * next push or revision waits until the document is stored.
   *
   * @param store A function that stores the new document, as for {@link Ledger.add}.
   * @throws The errors of {@link push}; {@link TallyfoldError} with code `out_of_order` while another push of this
   * ledger is under way; with `invalid_checkpoint` if the clock is more than five minutes behind the last push, or if
   * `store` finds another document.
   * @example
   * const labels = { cluster: "production" };
   * await ledger.push({ format: "otlp", url: "https://otlp.example/v1/metrics", labels }, store);
   */
  async push(options: LedgerPushOptions, store: Store): Promise<PushReport> {
    checkStore(store);
    const { signal: given, now } = own(options);
    const signal = optionalSignal(given);
    if (this.#isPushing) throw outOfOrder("another push is under way; await it first");
    this.#isPushing = true;
    try {
      const { unixMs } = clocks(now)();
      const totals = this.#become((core) => {
        signal?.throwIfAborted();
        const next = core.stamped(unixMs);
        const make = (...given: [object, string[], number]): CoreExport => next.totals(...given);
        return [next, withOptions(options, pushNames(), make)];
      }, store);
      // After an abort, `pushed` only frees the totals, once they are stored.
      return await awaited(
        totals.then((all) => pushed(all, options)),
        signal,
      );
    } finally {
      this.#isPushing = false;
    }
  }

  /** Makes and stores new totals, and only then makes them the totals of this ledger. Stores one document at a time. */
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

  /** Registers the counters. The revision is already stored, so an error of a registry must not make `add` fail. */
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

  /** The document to store, with the totals and the state of the follow: JSON without secrets. */
  save(): string {
    return this.#core.object.toJson();
  }

  /** The state of the follow after the last stored revision: pass it to {@link Client.follow} as `state`. */
  get state(): string | undefined {
    return this.#core.object.state();
  }

  /** The end of the newest window that was added. */
  get settledUntil(): string | undefined {
    return this.#core.object.settledUntil();
  }

  /** The totals as counters. There are none before the first revision. */
  counters(options: CounterOptions = {}): Counter[] {
    const { labels, name } = fieldsOf("options", options, OPTIONS, COUNTERS);
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
    const { labels, name } = fieldsOf("options", options, OPTIONS, COUNTERS);
    return this.#core.object.openmetrics(flatHeaders(labels), name);
  }

  /** The media type of {@link Ledger.openmetrics}, for `Content-Type`. */
  get mediaType(): string {
    return exportCore().CoreLedger.mediaType();
  }

  /**
   * Adds the totals, and the end of the newest window, to a registry of `prom-client`, which shows their current values in each
   * scrape. Totals are numbers, as Prometheus stores them: exact up to 2^53. If the ledger is empty, the registry gets the counters
   * with the first revision. If it then refuses a counter, because it has another metric with that name, the ledger
   * issues a `CountersLeftOutWarning`.
   *
   * @throws The error of the registry, if the ledger already has counters.
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
        registry.registerMetric(counterMetric(counter, values) as never);
      }
      const [first] = counters;
      if (first) registry.registerMetric(untilMetric(first, options, this) as never);
      return first !== undefined;
    };
    if (!register()) this.#waiting.push(register);
  }

  /** Frees the memory now. */
  [Symbol.dispose](): void {
    this.#core.release();
  }
}

/** The names of {@link CounterOptions}. */
const COUNTERS: (keyof CounterOptions)[] = ["labels", "name"];

interface CoreCounter {
  readonly name: string;
  readonly help: string;
  readonly labels: string[];
  /** The values of the labels, and the count. */
  readonly samples: [string[], bigint][];
}

/** A counter, as a registry of `prom-client` expects it. */
function counterMetric({ name, help, labelNames }: Counter, values: () => unknown[]): object {
  const fixed = { help, type: "counter", aggregator: "sum", labelNames };
  const metric = {
    ...fixed,
    // The registry changes the name to suit its format.
    name: `${name}_total`,
    get: async () => ({ ...fixed, name: metric.name, values: values() }),
    /** Does nothing, because the totals never decrease. */
    reset: () => {},
  };
  return metric;
}

/** The gauge with the end of the newest window of a ledger, as in the OpenMetrics text. */
function untilMetric(counter: Counter, options: CounterOptions, ledger: Ledger): object {
  const pairs = pairsOf((flatHeaders(options?.labels) ?? []) as string[]);
  const labels = Object.fromEntries(pairs.filter(([, value]) => value !== ""));
  const gauge = {
    name: counter.name.replace(/_[a-z]+_settled_events$/, "_settled_until_seconds"),
    help: "End of the newest window in the totals, in seconds since 1970",
    type: "gauge",
    aggregator: "max",
    labelNames: Object.keys(labels),
  };
  const value = (): number => Date.parse(ledger.settledUntil ?? "") / 1000;
  return {
    ...gauge,
    get: async () => ({ ...gauge, values: [{ labels, value: value() }] }),
    /** Does nothing, because the end never decreases. */
    reset: () => {},
  };
}

import type { CoreExport, CoreOutbox } from "../../wasm/tallyfold_export.js";
import { reading } from "../files/origins.js";
import { awaited } from "../http/abort.js";
import { Handle } from "../loading/handle.js";
import type { Revision } from "../ranges/follow.js";
import type { ExportFormat, PushReport } from "../values/declared.js";
import { invalidArgument, outOfOrder, TallyfoldError } from "../values/error.js";
import { fieldsOf, OPTIONS, optionalSignal, own } from "../values/input.js";
import { exportCore, withOptions } from "./exporting.js";
import { type PushOptions, pushed, pushNames } from "./push.js";
import { checkStore, type Store, stored } from "./store.js";
import { changed } from "./transfer.js";

/** The options of {@link Outbox.push}: the options of {@link push}, without the options that the outbox sets itself. */
export type OutboxOptions = Omit<PushOptions, "format" | "finished" | "onFinished">;

/**
 * Sends the revisions of a {@link Client.follow} to another system, and keeps unsent revisions in a document.
 *
 * The document contains the state of the follow together with the revision to send. So if the process is killed at
 * any moment, and another one resumes with the document, it loses no revision, and sends none with another number.
 *
 * @example
 * const url = "https://influx.example/write?db=counts";
 * const outbox = new Outbox(await load(), { format: "influx", store });
 * await outbox.push({ url }); // What an earlier process did not send
 * const revisions = client.follow({
 *   ...query,
 *   metric: "event_delivery",
 *   window: "15m",
 *   state: outbox.state,
 * });
 * for await (const revision of revisions) {
 *   await outbox.put(revision, revisions.state());
 *   await outbox.push({ url });
 * }
 */
export class Outbox {
  #core: Handle<CoreOutbox>;
  readonly #format: ExportFormat;
  readonly #store: Store;
  /** The document that was loaded or stored last; `null` if there is none. */
  #document: string | null;
  #isBusy = false;
  /** Resolves when the last attempt to store a document has ended. An aborted push does not wait for it. */
  #stored: Promise<unknown> = Promise.resolve();

  /**
   * @param saved The document that was stored last; without it, the outbox is empty.
   * @param options The format of all messages, and a function that stores the document. The outbox awaits it.
   * @throws {@link TallyfoldError} with code `invalid_checkpoint` for a document that is incomplete or was changed,
   * and `invalid_argument` if the pending revision has another format.
   */
  constructor(
    saved: string | null | undefined,
    options: { readonly format: ExportFormat; readonly store: Store },
  ) {
    const given = fieldsOf("options", options, OPTIONS, ["format", "store"]);
    const { format, store } = given as typeof options;
    checkStore(store);
    this.#core = new Handle(reading(saved, () => new (exportCore().CoreOutbox)(saved)));
    this.#format = format;
    this.#store = store;
    this.#document = saved ?? null;
    // Refuses a wrong format.
    this.#core.object.finished(format);
  }

  /** The state of the follow after the last revision that was put: pass it to {@link Client.follow} as `state`. */
  get state(): string | undefined {
    return this.#core.object.state();
  }

  /** Whether a revision is pending: the next push sends it. */
  get isPending(): boolean {
    return this.#core.object.finished(this.#format) !== undefined;
  }

  /**
   * Stores a revision, and the state of its follow after it: `revisions.state()`. Put in every revision, even if it
   * changes no count.
   *
   * @throws {@link TallyfoldError} with code `out_of_order` if another revision is pending (push it first), if the
   * revision was put in before, if another one was skipped (resume the follow from {@link state}), and while another
   * `put`, push or `drop` is under way; `incompatible_tables` for counts of another cluster or client;
   * `invalid_argument` for an empty state; `invalid_checkpoint` for a state that is incomplete or was changed, or if
   * `store` finds another document. If the revision can't be stored, the outbox is unchanged.
   */
  async put(revision: Revision, state: string): Promise<void> {
    if (typeof state !== "string") {
      throw invalidArgument("state", "want the state of the follow: revisions.state()");
    }
    await this.#alone(undefined, () => {
      const { rows, revision: number } = changed(exportCore(), revision);
      return this.#become(this.#core.object.put(rows, number, state, this.#format));
    });
  }

  /**
   * Sends the pending revision. Returns `undefined` if there is nothing to report. After an error, the revision is
   * still pending: push again to resume, or {@link Outbox.drop} it. If the signal aborts, the push ends at once, even
   * during `store`; what follows waits until the document is stored.
   *
   * If an earlier push was killed or aborted while it sent samples that are sent at most once, `unsure` of the
   * report is their number, even if nothing is pending any more. The document keeps this number until a push has
   * returned it in a report, or has thrown an error with such a report.
   *
   * @throws The errors of {@link push}, and {@link TallyfoldError} with code `out_of_order` while another `put`,
   * push or `drop` is under way.
   */
  async push(options: OutboxOptions): Promise<PushReport | undefined> {
    const signal = optionalSignal(own(options).signal);
    return this.#alone(signal, () => this.#push(options, signal));
  }

  /**
   * Drops the pending revision: it is not sent any more. The next push still reports samples that an earlier push
   * left in doubt. Throws `out_of_order` while another `put`, push or `drop` is under way.
   */
  async drop(): Promise<void> {
    await this.#alone(undefined, () => this.#clear());
  }

  /** Frees the memory now. */
  [Symbol.dispose](): void {
    this.#core.release();
  }

  /** Runs one action at a time. Two pushes would send the same samples, and one would drop a revision that was put in later. */
  async #alone<T>(signal: AbortSignal | undefined, act: () => Promise<T>): Promise<T> {
    if (this.#isBusy) throw outOfOrder("another put, push or drop is under way; await it first");
    this.#isBusy = true;
    try {
      await awaited(this.#stored, signal);
      return await act();
    } finally {
      this.#isBusy = false;
    }
  }

  async #push(
    options: OutboxOptions,
    signal: AbortSignal | undefined,
  ): Promise<PushReport | undefined> {
    const core = this.#core.object;
    const all = { ...options, format: this.#format, finished: core.finished(this.#format) };
    const inDoubt = core.inDoubt();
    const store = (samples: bigint, doubtful: bigint): Promise<void> =>
      this.#become(this.#core.object.finish(samples, doubtful));
    const make = (...given: [object, string[], number]): CoreExport | undefined =>
      core.pending(...given);
    const pending = withOptions(all, pushNames(), make);
    if (pending === undefined) {
      if (inDoubt === 0n) return undefined;
      await this.#acknowledge(inDoubt, signal);
      return { messages: 0n, samples: 0n, bytes: 0n, retries: 0n, unsure: inDoubt, rejected: [] };
    }
    let report: PushReport;
    try {
      report = await pushed(pending, all, { inDoubt, store });
    } catch (error) {
      if (TallyfoldError.is(error)) await this.#acknowledge(error.report?.unsure, signal);
      throw error;
    }
    await awaited(this.#clear(), signal);
    await this.#acknowledge(report.unsure, signal);
    return report;
  }

  /** Stores that the caller gets a report with this number of samples in doubt. */
  async #acknowledge(unsure: bigint | undefined, signal: AbortSignal | undefined): Promise<void> {
    if (!unsure || this.#core.released) return;
    // If this can't be stored, the next push reports the samples again. After an abort, the caller still gets the report.
    await awaited(this.#become(this.#core.object.acknowledge(unsure)), signal).catch(() => {});
  }

  #clear(): Promise<void> {
    return this.#become(this.#core.object.clear());
  }

  /** Stores a new content, and only then makes it the content of this outbox. */
  #become(core: CoreOutbox): Promise<void> {
    const became = this.#storing(core);
    this.#stored = became.catch(() => {});
    return became;
  }

  async #storing(core: CoreOutbox): Promise<void> {
    const next = new Handle(core);
    try {
      this.#document = await stored(this.#store, core.toJson(), this.#document);
    } catch (error) {
      next.release();
      throw error;
    }
    // It may have been disposed of meanwhile.
    if (this.#core.released) return next.release();
    this.#core.release();
    this.#core = next;
  }
}

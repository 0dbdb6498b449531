import type { CoreProbe } from "../../wasm/tallyfold_wasm.js";
import { Call } from "../calls/call.js";
import { Handle } from "../loading/handle.js";
import { Comparison } from "../tables/comparison.js";
import { CountTable } from "../tables/table.js";
import type { AdditivityVerdict, ProbeArguments } from "../values/declared.js";
import type { Dimension, Metric } from "../values/types.js";
import type { CollectStep, DimensionOf } from "./collect.js";

/** What to probe: the counts between three timestamps. */
export interface ProbeQuery<M extends Metric, D extends DimensionOf<M>>
  extends Omit<ProbeArguments, "metric" | "dimensions"> {
  /** The endpoint of the counts. */
  readonly metric: M;
  /** One to four different dimensions to request from the service. */
  readonly dimensions: readonly D[];
}

/** The result of a probe. */
export interface Additivity<D extends Dimension | undefined = Dimension | undefined> {
  /** Whether the counts of the halves add up to the counts of the whole. */
  readonly verdict: AdditivityVerdict;
  /** The counts of the whole. */
  readonly whole: CountTable<D>;
  /** Compares the whole (before) with the sum of its halves (after). */
  readonly difference: Comparison<D>;
}

/**
 * Tests whether the service's windows are half-open, which its reference does not specify, with one call for a
 * whole window and one call for each half. It does no I/O: {@link Client.probeAdditivity} drives a `Probe`, and
 * {@link Machine.probeAdditivity} returns one. Choose a window so old that no late events arrive.
 *
 * @example
 * const probe = machine.probeAdditivity({
 *   metric: "event_delivery",
 *   start: "2026-01-01T00:00:00Z",
 *   middle: "2026-01-01T00:05:00Z",
 *   end: "2026-01-01T00:10:00Z",
 *   dimensions: ["integration"],
 * });
 * for (let step = probe.next(); step.type === "drive"; step = probe.next()) {
 *   await drive(step.call);
 *   probe.settle(step.task, step.call);
 *   step.call.close();
 * }
 * const { verdict } = probe.finish();
 */
export class Probe<D extends Dimension | undefined = Dimension | undefined> {
  readonly #core: Handle<CoreProbe>;

  private constructor(probe: CoreProbe) {
    this.#core = new Handle(probe);
  }

  /** @internal */
  static of<D extends Dimension | undefined>(probe: CoreProbe): Probe<D> {
    // Bundlers rename a class that refers to itself by name.
    return new this(probe);
  }

  /** Returns the next step. */
  next(): CollectStep<D> {
    return Call.ofStep(this.#core.object.step());
  }

  /**
   * Reports the result of a call. If the call has not ended, a later step returns it again.
   *
   * @throws {@link TallyfoldError}: the call's final error, or `out_of_order`.
   */
  settle(task: number, call: Call<CountTable<D>>): void {
    this.#core.object.settle(task, Call.coreOf(call));
  }

  /**
   * Compares the three readings.
   *
   * @throws {@link TallyfoldError}: the error of a call, `sum_overflow`, or `out_of_order` before the last call was
   * settled.
   */
  finish(): Additivity<D> {
    const { verdict, whole, difference } = this.#core.object.finish();
    return { verdict, whole: CountTable.of(whole), difference: Comparison.of(difference) };
  }

  /** Frees the memory now. */
  [Symbol.dispose](): void {
    this.#core.release();
  }
}

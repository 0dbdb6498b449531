import type { CoreCollect } from "../../wasm/tallyfold_wasm.js";
import { Call, type DriveStep } from "../calls/call.js";
import { Handle } from "../loading/handle.js";
import { core } from "../loading/library.js";
import { CountTable } from "../tables/table.js";
import { now } from "../values/clocks.js";
import type { CollectArguments, WindowCounts } from "../values/declared.js";
import { hide, invalidArgument, TallyfoldError } from "../values/error.js";
import { bytes } from "../values/input.js";
import type { Now } from "../values/time.js";
import type { Dimension, Grouped, IngestionDimension, Metric, Window } from "../values/types.js";

// Not in the class itself, because tables throw errors, so error.ts can't import tables.
declare module "../values/error.js" {
  interface TallyfoldError {
    /**
     * For an error of {@link Client.collect}: the counts of all windows that were read, if any. To read only the
     * gaps, collect again with this table as `have`.
     */
    readonly partial: CountTable | undefined;
  }
}

/** The dimensions that a metric has (service reference 2.4). */
export type DimensionOf<M extends Metric> = M extends "event_ingestion"
  ? IngestionDimension
  : Dimension;

/** The options that collecting and following a range have in common. */
export type RangeQuery<M extends Metric, D extends DimensionOf<M>, G extends D = D> = Pick<
  CollectQuery<M, D, G>,
  "metric" | "start" | "dimensions" | "groupBy" | "settleMs"
>;

/** What to collect. */
export interface CollectQuery<M extends Metric, D extends DimensionOf<M>, G extends D = D>
  extends Grouped<Omit<CollectArguments, "metric" | "concurrency">, D, G> {
  /** The endpoint of the counts. */
  readonly metric: M;
  /**
   * A table that already covers a part of the range, such as the `partial` of an error. The collect reads only the
   * gaps of this table, and its provisional windows. Windows that are not entirely in the range are ignored.
   */
  readonly have?: CountTable | undefined;
}

/** What a worker of a {@link Collect} must do next. */
export type CollectStep<D extends Dimension | undefined = Dimension | undefined> =
  | DriveStep<CountTable<D>>
  | {
      /** Nothing can be started until another call has been settled. Get the next step then. */
      readonly type: "idle";
    }
  | {
      /** There is nothing left to do. */
      readonly type: "done";
    };

/** What became of a window when its call was settled. */
export type Settled =
  | {
      /**
       * Its counts are kept. They are provisional if the window was read so early that they may
       * still change.
       */
      readonly type: "kept";
      readonly provisional: boolean;
    }
  | {
      /** The response was too large or too slow: the two halves of the window are read next. */
      readonly type: "halved";
    }
  | {
      /** The window has failed, with the call's final error. */
      readonly type: "failed";
      readonly error: TallyfoldError;
    }
  | {
      /** The window will be read again, because its call had not ended. */
      readonly type: "givenBack";
    }
  | {
      /**
       * The memory limit left too little room for its table. If other tables were read at the same time, the window will
       * be read again, alone; otherwise the collect ends with `memory_limit`.
       */
      readonly type: "tooLarge";
    }
  | {
      /** The service counts as down: the window will be read again once it is back. */
      readonly type: "postponed";
    }
  | {
      /** The call belonged to the probe, or only tested whether the service is back. */
      readonly type: "probed";
    };

/** A part of a collect's state. Store it under its name and replace what was stored there. */
export interface Segment {
  /** The name, such as `segment-00003.json`. */
  readonly name: string;
  /** The document. It contains no secret, no token and no address. */
  readonly json: string;
}

/**
 * The name of the segment with a number, counted from 0.
 *
 * @example
 * segmentName(3); // "segment-00003.json"
 */
export function segmentName(number: number): string {
  if (!Number.isInteger(number) || number < 0 || number >= 2 ** 32) {
    throw invalidArgument("number", "want a whole number from 0 to 4294967295");
  }
  return core().segmentName(number);
}

/**
 * Reads a long range window by window, without I/O. {@link Client.collect} drives a `Collect`, and {@link
 * Machine.collect} returns one. Any number of workers share it: each gets the next step, drives the call to its
 * end, and settles the call. A window that fails does not end the collect. A window whose response is too large or
 * too slow is read again as two halves.
 *
 * @example
 * const collect = machine.collect({ metric: "event_delivery", start, end, dimensions: ["reason"] });
 * for (let step = collect.next(); step.type === "drive"; step = collect.next()) {
 *   await drive(step.call);
 *   collect.settle(step.task, step.call);
 *   step.call.close();
 * }
 * const table = collect.finish();
 */
export class Collect<D extends Dimension | undefined = Dimension | undefined> {
  readonly #core: Handle<CoreCollect>;

  private constructor(collect: CoreCollect) {
    this.#core = new Handle(collect);
  }

  /** @internal */
  static of<D extends Dimension | undefined>(collect: CoreCollect): Collect<D> {
    // Bundlers rename a class that refers to itself by name.
    return new this(collect);
  }

  /**
   * Returns the next step.
   *
   * @param at The time of both clocks; by default, the time of this host's clocks.
   */
  next(at: Now = now()): CollectStep<D> {
    return Call.ofStep(this.#core.object.next(at));
  }

  /**
   * Reports the result of a call. If the call has not ended, its window will be read again.
   *
   * @param task The number that came with the call.
   * @throws {@link TallyfoldError} with code `out_of_order` for a task that is not under way. A call's own error is
   * not thrown but returned.
   */
  settle(task: number, call: Call<CountTable<D>>, at: Now = now()): Settled {
    return this.#core.object.settle(task, Call.coreOf(call), at);
  }

  /** @internal How many windows to read at the same time. */
  get concurrency(): number {
    return this.#core.object.concurrency();
  }

  /** How many windows are planned, done, failed and under way. */
  get progress(): WindowCounts {
    return this.#core.object.progress();
  }

  /**
   * The windows whose counts may still change, because they were read early. The table includes
   * them.
   */
  get provisional(): Window[] {
    return this.#core.object.provisional();
  }

  /**
   * The table of all windows. It covers the whole range, or the part that was requested.
   *
   * @throws {@link TallyfoldError} with `partial`, `gaps` and `failures`, if windows are missing. You may call this
   * method at any time, even if you don't drive the collect to its end.
   */
  finish(): CountTable<D> {
    const { table, error, partial, gaps, failures } = this.#core.object.finish();
    if (table !== undefined) return CountTable.of(table);
    throw ended(error, { partial: partial && CountTable.of(partial), gaps, failures });
  }

  /**
   * The next segment to store, with the counts that were read since the previous one; `undefined` if there is none.
   * Call this method after each `settle`, until it returns `undefined`. Counts from `have` are not stored.
   */
  unsaved(): Segment | undefined {
    const [name, json] = this.#core.object.unsaved() ?? [];
    return name === undefined || json === undefined ? undefined : { name, json };
  }

  /** The name of the stored segment to {@link load} next. */
  wanted(): string {
    return this.#core.object.wanted();
  }

  /**
   * Loads the stored segment with the name {@link wanted}. Load segments before the first step, until there is no
   * segment with that name. Their windows are not read again, except provisional ones.
   *
   * @param name The segment's name, or a place that ends in it, such as a path. Errors contain it.
   * @throws {@link TallyfoldError} with code `invalid_checkpoint`, and the JSON path or byte offset, for a segment
   * that is incomplete, was changed, or belongs to another query; `invalid_argument` for any other name;
   * `out_of_order` after the first step. The collect is unchanged then.
   */
  load(name: string, json: string | Uint8Array): void {
    this.#core.object.load(name, encoded(json));
  }

  /** Frees the memory now. You can still drive calls that the collect has begun. */
  [Symbol.dispose](): void {
    this.#core.release();
  }
}

function encoded(json: string | Uint8Array): Uint8Array {
  return typeof json === "string" ? new TextEncoder().encode(json) : bytes("json", json);
}

/**
 * The error of a whole collect. It is a copy, because the window's own error must not change.
 */
function ended(
  error: TallyfoldError,
  rest: Pick<TallyfoldError, "partial" | "gaps" | "failures">,
): TallyfoldError {
  const own = TallyfoldError.of({ ...error, message: error.message });
  // Not enumerable, because a long list of windows in every log would hide the message.
  hide(own, rest);
  return own;
}

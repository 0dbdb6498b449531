import type { CoreCollect } from "../wasm/tallyfold_wasm.js";
import { Call, type DriveStep } from "./call.js";
import { now } from "./clock.js";
import type { CollectArguments, WindowCounts } from "./declared.js";
import { ended, type TallyfoldError } from "./error.js";
import { Handle } from "./handle.js";
import { bytes } from "./input.js";
import { CountTable } from "./table.js";
import type { Dimension, Grouped, IngestionDimension, Metric, Now, Window } from "./types.js";
import { core } from "./wasm.js";

/** The dimensions that a metric has (service reference 2.4). */
export type DimensionOf<M extends Metric> = M extends "event_ingestion"
  ? IngestionDimension
  : Dimension;

/** What a long range is asked for with, whether all at once or as it comes. */
export type RangeQuery<M extends Metric, D extends DimensionOf<M>, G extends D = D> = Pick<
  CollectQuery<M, D, G>,
  "metric" | "start" | "dimensions" | "groupBy" | "settleMs"
>;

/** What to collect. */
export interface CollectQuery<M extends Metric, D extends DimensionOf<M>, G extends D = D>
  extends Grouped<Omit<CollectArguments, "metric" | "concurrency">, D, G> {
  /** Which counts. */
  readonly metric: M;
  /**
   * A table that holds some of the range already, such as the `partial` of an error: only its gaps are
   * read. Windows of it that are outside of what is collected are left out.
   */
  readonly have?: CountTable | undefined;
}

/** What a worker of a {@link Collect} is to do next. */
export type CollectStep<D extends Dimension | undefined = Dimension | undefined> =
  | DriveStep<CountTable<D>>
  | {
      /** Nothing can be started while other calls are under way: ask again when one is settled. */
      readonly type: "idle";
    }
  | {
      /** All that can be done is done. */
      readonly type: "done";
    };

/** What became of a window when its call was settled. */
export type Settled =
  | {
      /** Its counts are kept; provisionally, if it was read so early that they may still change. */
      readonly type: "kept";
      readonly provisional: boolean;
    }
  | {
      /** The response was too large or too slow: its halves come next. */
      readonly type: "halved";
    }
  | {
      /** It has failed, with the call's final error. */
      readonly type: "failed";
      readonly error: TallyfoldError;
    }
  | {
      /** The call had not ended, and the window is to be read again. */
      readonly type: "givenBack";
    }
  | {
      /** The call was one of the probe's. */
      readonly type: "probed";
    };

/** A part of a collect's state, to be stored under its name: in place of what was there. */
export interface Segment {
  /** Such as `segment-00003.json`. */
  readonly name: string;
  /** The document. It holds no secret, no token and no address. */
  readonly json: string;
}

/**
 * The name of the segment of that number, counted from 0.
 *
 * @example
 * segmentName(3); // "segment-00003.json"
 */
export function segmentName(number: number): string {
  return core().segmentName(number);
}

/**
 * A long range without I/O, which {@link Client.collect} drives: each worker asks for the next step,
 * drives the call, and settles it. A window that fails does not end it, and one whose response is too
 * large or too slow is tried again as two halves. {@link Machine.collect} makes it.
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

  /** What to do next. @param at What the clocks say; by default, those of this host. */
  next(at: Now = now()): CollectStep<D> {
    return Call.ofStep(this.#core.object.next(at));
  }

  /**
   * Takes what a call gave that has ended. One that has not gives its window back, to be read again.
   *
   * @param task The number that came with the call.
   * @throws {@link TallyfoldError} with code `out_of_order` for a task that is not under way. A call's
   * own error is not thrown: it is in what is returned.
   */
  settle(task: number, call: Call<CountTable<D>>, at: Now = now()): Settled {
    return this.#core.object.settle(task, Call.coreOf(call), at);
  }

  /** @internal How many windows are to be read at the same time. */
  get concurrency(): number {
    return this.#core.object.concurrency();
  }

  /** How far it is. */
  get progress(): WindowCounts {
    return this.#core.object.progress();
  }

  /** The windows whose counts may still change, because they were read early. They count all the same. */
  get provisional(): Window[] {
    return this.#core.object.provisional();
  }

  /**
   * The table of all windows. Its coverage is the range, or the part of it.
   *
   * @throws {@link TallyfoldError} that carries `partial`, `gaps` and `failures`. It can be asked for at any
   * time, also of a collect that was given up.
   */
  finish(): CountTable<D> {
    const { table, error, partial, gaps, failures } = this.#core.object.finish();
    if (table !== undefined) return CountTable.of(table);
    throw ended(error, { partial: partial && CountTable.of(partial), gaps, failures });
  }

  /**
   * The next segment to store, with what was read since the last one was given; `undefined` if there is
   * none. To be asked for after each settling until there is none. What `have` had is not stored.
   */
  unsaved(): Segment | undefined {
    const [name, json] = this.#core.object.unsaved() ?? [];
    return name === undefined || json === undefined ? undefined : { name, json };
  }

  /**
   * Takes up a stored segment. They are to be loaded before the first step, one after the other, from
   * `segmentName(0)` on until there is none. What they hold is not read again, but for provisional windows.
   *
   * @throws {@link TallyfoldError} with code `invalid_checkpoint`, and the JSON path or byte offset, for
   * what is torn, was changed, or is of another query. Nothing has changed then.
   */
  load(name: string, json: string | Uint8Array): void {
    this.#core.object.load(name, encoded(json));
  }

  /** Frees the memory now. Calls that it gave can still be driven. */
  [Symbol.dispose](): void {
    this.#core.release();
  }
}

function encoded(json: string | Uint8Array): Uint8Array {
  return typeof json === "string" ? new TextEncoder().encode(json) : bytes("json", json);
}

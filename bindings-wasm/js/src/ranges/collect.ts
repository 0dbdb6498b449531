import type { CoreCollect } from "../../wasm/tallyfold_wasm.js";
import { Call, type DriveStep } from "../client/call.js";
import { Handle } from "../loading/handle.js";
import { core } from "../loading/library.js";
import { CountTable } from "../tables/table.js";
import type { CollectArguments, WindowCounts } from "../values/declared.js";
import { ended, invalidArgument, type TallyfoldError } from "../values/error.js";
import { bytes } from "../values/input.js";
import type { Now } from "../values/time.js";
import { now } from "../values/time.js";
import type { Dimension, Grouped, IngestionDimension, Metric, Window } from "../values/types.js";

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
  /** Which counts. */
  readonly metric: M;
  /**
   * A table that covers a part of the range already, such as the `partial` of an error: only its
   * gaps are read, and the windows that are provisional in it. Windows that lie outside of the range, or partly,
   * are ignored.
   */
  readonly have?: CountTable | undefined;
}

/** What a worker of a {@link Collect} must do next. */
export type CollectStep<D extends Dimension | undefined = Dimension | undefined> =
  | DriveStep<CountTable<D>>
  | {
      /** Nothing can be started until another call is settled: ask again then. */
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
      /** It has failed, with the call's final error. */
      readonly type: "failed";
      readonly error: TallyfoldError;
    }
  | {
      /** The call had not ended: the window will be read again. */
      readonly type: "givenBack";
    }
  | {
      /** The service counts as down: the window will be read again once it is back. */
      readonly type: "postponed";
    }
  | {
      /** The call was one of the probe's, or one that only tested whether the service is back. */
      readonly type: "probed";
    };

/** A part of a collect's state. Store it under its name and replace what was stored there. */
export interface Segment {
  /** Such as `segment-00003.json`. */
  readonly name: string;
  /** The document. It holds no secret, no token and no address. */
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
 * Reads a long range without I/O; {@link Client.collect} drives one, and {@link Machine.collect}
 * makes one. Each worker asks for the next step, drives the call, and settles it. A window that
 * fails does not end the collect; a window whose response is too large or too slow is read again as
 * two halves.
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

  /** What to do next. @param at The time of both clocks; by default, of this host's clocks. */
  next(at: Now = now()): CollectStep<D> {
    return Call.ofStep(this.#core.object.next(at));
  }

  /**
   * Takes the result of a call. If the call has not ended, its window will be read again.
   *
   * @param task The number that came with the call.
   * @throws {@link TallyfoldError} with code `out_of_order` for a task that is not under way. A
   * call's own error is not thrown but returned.
   */
  settle(task: number, call: Call<CountTable<D>>, at: Now = now()): Settled {
    return this.#core.object.settle(task, Call.coreOf(call), at);
  }

  /** @internal How many windows are to be read at the same time. */
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
   * @throws {@link TallyfoldError} that carries `partial`, `gaps` and `failures`. It may be called
   * at any time, also for a collect that is not driven any further.
   */
  finish(): CountTable<D> {
    const { table, error, partial, gaps, failures } = this.#core.object.finish();
    if (table !== undefined) return CountTable.of(table);
    throw ended(error, { partial: partial && CountTable.of(partial), gaps, failures });
  }

  /**
   * The next segment to store, with what was read since the previous one; `undefined` if there is
   * none. Call this after each settling, until it returns `undefined`. Counts from `have` are not
   * stored.
   */
  unsaved(): Segment | undefined {
    const [name, json] = this.#core.object.unsaved() ?? [];
    return name === undefined || json === undefined ? undefined : { name, json };
  }

  /** The name of the stored segment that {@link load} wants next. */
  wanted(): string {
    return this.#core.object.wanted();
  }

  /**
   * Loads the stored segment that is {@link wanted} next. Load segments before the first step, until
   * the wanted one is not there. Their windows are not read again, except provisional ones.
   *
   * @param name The segment's name, or a place, such as a path, that ends in it, which errors then tell.
   * @throws {@link TallyfoldError} with code `invalid_checkpoint`, and the JSON path or byte
   * offset, for a segment that is incomplete, was changed, or belongs to another query. The collect
   * is unchanged then.
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

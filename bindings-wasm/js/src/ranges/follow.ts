import type { CoreFollow } from "../../wasm/tallyfold_wasm.js";
import { Call, type DriveStep } from "../calls/call.js";
import { Handle } from "../loading/handle.js";
import { Comparison } from "../tables/comparison.js";
import { CountTable } from "../tables/table.js";
import { now } from "../values/clocks.js";
import type { FollowArguments } from "../values/declared.js";
import type { Now } from "../values/time.js";
import type { Dimension, Grouped, Metric, Window } from "../values/types.js";
import type { DimensionOf } from "./collect.js";

/** What to follow. */
export interface FollowQuery<M extends Metric, D extends DimensionOf<M>, G extends D = D>
  extends Grouped<Omit<FollowArguments, "metric">, D, G> {
  /** The endpoint of the counts. */
  readonly metric: M;
}

/** The newest counts of a window. */
export interface Revision<D extends Dimension | undefined = Dimension | undefined> {
  /** The window. */
  readonly window: Window;
  /** Its newest counts. */
  readonly table: CountTable<D>;
  /** How the counts differ from the window's previous revision. The first revision is compared with no counts. */
  readonly changes: Comparison<D>;
  /** Whether this is the window's last revision: the window is not read again. */
  readonly settled: boolean;
  /**
   * How many revisions of the window came before this one, including revisions of earlier follows from whose
   * `state` this follow resumed: 0 for the first. No two revisions of a window have the same number.
   */
  readonly number: number;
  /**
   * How many milliseconds this machine's clock was ahead of the service's clock when the window was read; 0 if it
   * was not ahead, or if no response had a `Date`.
   */
  readonly clockAheadMs: number;
}

/** What the driver of a {@link Follow} must do next. */
export type FollowStep<D extends Dimension | undefined = Dimension | undefined> =
  | DriveStep<CountTable<D>>
  | {
      /** There is nothing to read for this many milliseconds: at least 1, at most a day. */
      readonly type: "wait";
      readonly ms: number;
    }
  | {
      /** All windows up to the end are settled. */
      readonly type: "done";
    };

/**
 * Reads windows as they close, and again while their counts may change, without I/O. {@link Client.follow} drives a
 * `Follow`, and {@link Machine.follow} returns one.
 *
 * A window is settled, and forgotten, once it was read `settleMs` or more after its end. With
 * `settleWhenUnchanged`, it is also settled once all readings were equal for at least the window's length; events
 * that arrive later are missed. The wall clock decides when a window closes.
 *
 * @example
 * const follow = machine.follow({ ...query, metric: "event_delivery", window: "15m" });
 * for (let step = follow.next(); step.type === "drive"; step = follow.next()) {
 *   await drive(step.call);
 *   const revision = follow.settle(step.task, step.call);
 *   console.log(revision?.changes.totalDelta.success);
 *   step.call.close();
 * }
 */
export class Follow<D extends Dimension | undefined = Dimension | undefined> {
  readonly #core: Handle<CoreFollow>;

  private constructor(follow: CoreFollow) {
    this.#core = new Handle(follow);
  }

  /** @internal */
  static of<D extends Dimension | undefined>(follow: CoreFollow): Follow<D> {
    // Bundlers rename a class that refers to itself by name.
    return new this(follow);
  }

  /**
   * Returns the next step.
   *
   * @param at The time of both clocks; by default, the time of this host's clocks.
   * @throws {@link TallyfoldError} with code `invalid_checkpoint` if the `state` of the query is from the future.
   */
  next(at: Now = now()): FollowStep<D> {
    return Call.ofStep(this.#core.object.next(at));
  }

  /**
   * Reports the result of a call, and returns a revision of its window. If the call has not ended, the method
   * returns `undefined`, and the window is read again at once. The method also returns `undefined`, and the window
   * is read again later, if the window had not ended by the `Date` of the response, or if the service counts as
   * down. In the last case, `waitingMs` is a number.
   *
   * @throws {@link TallyfoldError}: the call's final error, after which its window is read again later;
   * `out_of_order` for a task that is not under way.
   */
  settle(task: number, call: Call<CountTable<D>>, at: Now = now()): Revision<D> | undefined {
    const revision = this.#core.object.settle(task, Call.coreOf(call), at);
    if (revision === undefined) return undefined;
    const { table, changes } = revision;
    return { ...revision, table: CountTable.of(table), changes: Comparison.of(changes) };
  }

  /**
   * While the follow waits for a service that is down: how many milliseconds it waits before the
   * next try, counted from when a call was last settled. Otherwise `undefined`.
   */
  get waitingMs(): number | undefined {
    return this.#core.object.waitingMs();
  }

  /**
   * The position of the follow, as JSON: pass it as `state` to a later follow of the same query, which resumes
   * after the revisions that were returned so far.
   */
  state(): string {
    return this.#core.object.state();
  }

  /** The windows that were read, or are being read, and are not settled. */
  get provisional(): Window[] {
    return this.#core.object.provisional();
  }

  /** Frees the memory now. You can still drive calls that the follow has begun. */
  [Symbol.dispose](): void {
    this.#core.release();
  }
}

import type { CorePlan } from "../../wasm/tallyfold_wasm.js";
import { Handle } from "../loading/handle.js";
import { core } from "../loading/library.js";
import type { PlanArguments } from "../values/declared.js";
import { type Inspect, inspectSymbol, shown } from "../values/printing.js";
import type { Window } from "../values/types.js";

/** A range, and the step that cuts it into windows. */
export interface PlanOptions extends PlanArguments {}

/**
 * A long range as windows in chronological order. It is cut at the edges of a step, so the first and the last
 * window may be shorter. A plan stores no windows: each window is computed when you request it.
 *
 * @example
 * const plan = new Plan({ start: "2026-01-01T00:00:00Z", end: "2026-04-01T00:00:00Z", window: "15m" });
 * const [first] = plan.part(2, 4); // of the third of four workers
 */
export class Plan implements Iterable<Window> {
  readonly #core: Handle<CorePlan>;

  /** @throws {@link TallyfoldError} of kind `config`, with the name of the argument. */
  constructor(options: PlanOptions);
  /** @internal */
  constructor(part: PlanPart);
  constructor(options: PlanOptions | PlanPart) {
    const plan = options instanceof PlanPart ? options.core : new (core().CorePlan)(options);
    this.#core = new Handle(plan);
  }

  /** The number of windows. */
  get length(): number {
    return this.#core.object.length();
  }

  /**
   * The window at a position, counted from 0; a negative position counts from the end. `undefined` if there is no
   * such window.
   */
  at(index: number): Window | undefined {
    const place = Math.trunc(index) || 0;
    const position = place < 0 ? place + this.length : place;
    return position < 0 ? undefined : this.#core.object.at(position);
  }

  /** The windows in chronological order. */
  *[Symbol.iterator](): IterableIterator<Window> {
    for (let index = 0; index < this.length; index++) yield this.at(index) as Window;
  }

  /**
   * One of `of` parts, counted from 0. The window at position `i` belongs to part `i % of`, so the parts together
   * are the whole plan and have no window in common. A part can be cut into parts, too.
   *
   * @throws {@link TallyfoldError} with code `invalid_argument`, unless `index` is below `of`.
   */
  part(index: number, of: number): Plan {
    return planOf(this.#core.object.part({ index, of }));
  }

  /** Frees the memory now. */
  [Symbol.dispose](): void {
    this.#core.release();
  }

  /** @internal */
  [inspectSymbol](_depth: number, options: object, inspect: Inspect): string {
    return shown("Plan", this.#core.released, () => {
      const { length } = this;
      return inspect({ length, first: this.at(0), last: this.at(-1) }, options);
    });
  }
}

/** The argument for a plan that is a part of another plan. */
class PlanPart {
  readonly core: CorePlan;

  constructor(core: CorePlan) {
    this.core = core;
  }
}

/** This is outside of the class, because bundlers rename a class that refers to itself by name. */
function planOf(core: CorePlan): Plan {
  return new Plan(new PlanPart(core));
}

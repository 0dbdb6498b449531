import type { CorePlan } from "../../wasm/tallyfold_wasm.js";
import { Handle } from "../loading/handle.js";
import { core } from "../loading/library.js";
import type { PlanArguments } from "../values/declared.js";
import { type Inspect, inspectSymbol, shown } from "../values/printing.js";
import type { Window } from "../values/types.js";

/** A range, and the step that it is cut by. */
export interface PlanOptions extends PlanArguments {}

/**
 * A long range as windows, in the order of time: cut at the edges of a step, so that the first and
 * the last one may be shorter. It stores no windows: each is computed when it is requested.
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

  /** How many windows. */
  get length(): number {
    return this.#core.object.length();
  }

  /** The window at a position, from 0; a negative one counts from the end. `undefined` outside. */
  at(index: number): Window | undefined {
    const place = Math.trunc(index) || 0;
    const position = place < 0 ? place + this.length : place;
    return position < 0 ? undefined : this.#core.object.at(position);
  }

  /** The windows in the order of time. */
  *[Symbol.iterator](): IterableIterator<Window> {
    for (let index = 0; index < this.length; index++) yield this.at(index) as Window;
  }

  /**
   * One of `of` parts, counted from 0, that have no window in common and together are this plan: the window
   * at position `i` belongs to part `i % of`. A part may be cut into parts.
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

/** What a plan is made of that is a part of another one. */
class PlanPart {
  readonly core: CorePlan;

  constructor(core: CorePlan) {
    this.core = core;
  }
}

/** Outside of the class, which keeps its name in bundles as long as it does not name itself. */
function planOf(core: CorePlan): Plan {
  return new Plan(new PlanPart(core));
}

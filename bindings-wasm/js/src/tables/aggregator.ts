import type {
  CoreAggregator,
  CoreAggregatorPlan,
  CoreCountTable,
  Glue,
} from "../../wasm/tallyfold_wasm.js";
import { Handle } from "../loading/handle.js";
import { core, stage } from "../loading/library.js";
import type { AggregatorArguments } from "../values/declared.js";
import { bytes, own } from "../values/input.js";
import type { Dimension, Grouped } from "../values/types.js";
import { CountTable, kept } from "./table.js";

/** What an {@link Aggregator} must know about the response that it reads. */
export interface AggregatorOptions<D extends Dimension, G extends D = D>
  extends Grouped<AggregatorArguments, D, G> {}

/**
 * Parses and aggregates the bytes of a metrics response (service reference 2.2) into a table, as they arrive, in
 * chunks of any size. It stores no more than a part of one entry of the response, so memory grows with groups, not
 * with bytes.
 *
 * After an error, every further call throws the same error.
 *
 * @example
 * const aggregator = new Aggregator({ dimensions: ["integration"] });
 * for await (const chunk of createReadStream("body.json")) aggregator.push(chunk);
 * const table = aggregator.finish();
 */
export class Aggregator<D extends Dimension, G extends D = D> {
  readonly #core: Handle<CoreAggregator>;

  /**
   * @param options The dimensions of the response, and how to read it.
   * @throws {@link TallyfoldError} of kind `config`.
   */
  constructor(options: AggregatorOptions<D, G>) {
    this.#core = new Handle(planned(options));
  }

  /**
   * Reads the next bytes of the body.
   *
   * @throws {@link TallyfoldError} of kind `response`, with path and offset, as soon as the bytes can't be the
   * start of a valid response.
   */
  push(chunk: Uint8Array): void {
    const core = this.#core.object;
    stage(bytes("chunk", chunk), (length) => core.push(length) || core.fail());
  }

  /**
   * Ends the body, and returns its table, once.
   *
   * @throws {@link TallyfoldError} of kind `response`, such as `truncated_body`.
   */
  finish(): CountTable<G> {
    const core = this.#core.object;
    const table = core.finish();
    if (table === undefined) core.fail();
    return CountTable.of(table as CoreCountTable);
  }

  /** Frees the memory now. The table stays valid. */
  [Symbol.dispose](): void {
    this.#core.release();
    kept.aggregator ??= this;
  }
}

/**
 * Plans, in a tree with one level for each name. It contains only plans that the core has accepted. So its size is limited:
 * both `dimensions` and `groupBy` are ordered selections of at most four names.
 */
interface Branch {
  readonly next: Map<unknown, Branch>;
  plan?: CoreAggregatorPlan;
}

let plans: Branch = { next: new Map() };
/** The glue of the instance that has the plans. They end with it. */
let plansOf: Glue | undefined;

/** The level between the names of `dimensions` and the names of `groupBy`, if there is a `groupBy`. */
const GROUP_BY = Symbol("groupBy");

/**
 * Makes an aggregator of the core. Checking options takes as long as reading a small body, so
 * options that only name dimensions are checked once.
 */
function planned(options: Grouped<AggregatorArguments, Dimension>): CoreAggregator {
  const { dimensions, groupBy, metric, window, limits, tolerate } = own(options);
  const glue = core();
  if (plansOf !== glue) {
    plansOf = glue;
    plans = { next: new Map() };
  }
  const isUsual = (metric ?? window ?? limits ?? tolerate ?? undefined) === undefined;
  const known = isUsual ? find(dimensions, groupBy) : undefined;
  if (known) return known.aggregator();
  // Copied, because the caller may change the arrays after they were checked.
  const names = { dimensions: copy(dimensions), groupBy: copy(groupBy) };
  const rest = { metric, window, limits, tolerate };
  const plan = new glue.CoreAggregatorPlan({ ...names, ...rest });
  const aggregator = plan.aggregator();
  if (isUsual)
    branch(names.dimensions as unknown[], names.groupBy as unknown[] | undefined | null).plan =
      plan;
  return aggregator;
}

function find(dimensions: unknown, groupBy: unknown): CoreAggregatorPlan | undefined {
  if (!Array.isArray(dimensions)) return undefined;
  let at = after(plans, dimensions);
  if (groupBy !== undefined && groupBy !== null) {
    if (!Array.isArray(groupBy)) return undefined;
    at = after(at?.next.get(GROUP_BY), groupBy);
  }
  return at?.plan;
}

function after(from: Branch | undefined, names: unknown[]): Branch | undefined {
  let at = from;
  for (let name = 0; name < names.length; name++) at = at?.next.get(names[name]);
  return at;
}

function branch(dimensions: unknown[], groupBy: unknown[] | undefined | null): Branch {
  let at = plans;
  for (const name of groupBy ? [...dimensions, GROUP_BY, ...groupBy] : dimensions) {
    const next = at.next.get(name) ?? { next: new Map() };
    at.next.set(name, next);
    at = next;
  }
  return at;
}

function copy<T>(names: T): T {
  return Array.isArray(names) ? ([...names] as T) : names;
}

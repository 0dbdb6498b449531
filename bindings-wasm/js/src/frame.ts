import { Handle } from "./handle.js";
import { fieldsOf } from "./input.js";
import { type Inspect, shown } from "./inspect.js";
import type { CountName, Dimension, Metric } from "./types.js";

/** What the core's tables, series and comparisons have in common. */
interface CoreFrame {
  dimensions(): unknown;
  metric(): string | undefined;
  length(): number;
  top(options: unknown): Uint32Array;
  toJson(): string;
  free(): void;
}

/**
 * Rows of counts by dimension values: what a {@link CountTable}, a {@link Series} and a {@link
 * Comparison} have in common. It does not change, and stays valid when the object that it was made
 * from is disposed of.
 */
export abstract class Frame<D extends Dimension | undefined, R, J> implements Iterable<R> {
  readonly #core: Handle<CoreFrame>;
  readonly #rows: (core: never, positions?: Uint32Array) => IterableIterator<R>;

  /** @internal @param rows Makes the rows at some positions, or all. */
  constructor(
    core: CoreFrame,
    rows: (core: never, positions?: Uint32Array) => IterableIterator<R>,
  ) {
    this.#core = new Handle(core);
    this.#rows = rows;
  }

  /** @internal The core's object of a frame; `undefined` for any other value. */
  static coreOf(frame: unknown): unknown {
    const isFrame = typeof frame === "object" && frame !== null && #core in frame;
    return isFrame ? frame.#core.object : undefined;
  }

  /** @internal What an inspector shows. */
  static inspected<F extends Frame<Dimension | undefined, unknown, unknown>>(
    name: string,
    frame: F,
    properties: readonly (keyof F)[],
    [options, inspect]: [object, Inspect],
  ): string {
    return shown(name, frame.#core.released, () => {
      const all = properties.map((property) => [property, frame[property]]);
      return inspect(Object.fromEntries(all), options);
    });
  }

  /** The names of the dimensions, in sorting order. */
  get dimensions(): (D & Dimension)[] {
    return this.#core.object.dimensions() as (D & Dimension)[];
  }

  /** The endpoint that the counts are from; `undefined` if an {@link Aggregator} was not told. */
  get metric(): Metric | undefined {
    return this.#core.object.metric() as Metric | undefined;
  }

  /** How many rows. */
  get length(): number {
    return this.#core.object.length();
  }

  /** The rows in sorted order. */
  [Symbol.iterator](): IterableIterator<R> {
    return this.#rows(this.#core.object as never);
  }

  /**
   * The `n` rows with the highest counts, highest first; equal counts in sorted order. Those of a
   * {@link Comparison} are ranked by how much the count changed, up or down.
   *
   * @param n At most how many rows.
   * @param options By which count to rank: `errors` unless told otherwise.
   * @throws {@link TallyfoldError} with code `invalid_argument` for any other name or number.
   * @example
   * const [worst] = table.groupBy("integration").top(1);
   */
  top(n: number, options: { readonly by?: CountName | undefined } = {}): R[] {
    const core = this.#core.object;
    const given = fieldsOf("options", options, 'want an object, such as { by: "success" }');
    return [...this.#rows(core as never, core.top({ ...given, n }))];
  }

  /**
   * A JSON value with counts as strings of digits, and deltas as strings of digits with a `-` if
   * they are negative. {@link CountTable.fromJSON} reads a table back; a series or a comparison
   * can't be read back.
   *
   * @example
   * localStorage.setItem("yesterday", JSON.stringify(table));
   */
  toJSON(): J {
    return JSON.parse(this.#core.object.toJson()) as J;
  }

  /** Frees the memory now. Objects that were made from it stay valid. */
  [Symbol.dispose](): void {
    this.#core.release();
  }
}

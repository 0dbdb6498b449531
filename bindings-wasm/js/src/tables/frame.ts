import { Handle } from "../loading/handle.js";
import { fieldsOf } from "../values/input.js";
import { bare, type Inspect, shown } from "../values/printing.js";
import type { Dimension, Metric, RankBy } from "../values/types.js";

/** What the core's tables, series and comparisons have in common. */
interface CoreFrame {
  dimensions(): unknown;
  metric(): string | undefined;
  length(): number;
  top(options: unknown): Uint32Array;
  toJson(): string;
  free(): void;
}

/** The symbol under which a frame has its JSON. All copies of this package in a program share it. */
const contentSymbol = Symbol.for("tallyfold.content");

/** The properties of a row that are values. */
export type Values<R> = Omit<R, "rates" | "toJSON">;

/** How many rows an inspector shows. */
const SHOWN = 20;

/** A row as an inspector shows it: the values of the dimensions next to the other values. */
function line(row: unknown): object {
  const { dimensions, ...others } = bare(row) as { dimensions: object };
  return { ...dimensions, ...others };
}

type AnyFrame = Frame<Dimension | undefined, unknown, unknown>;

const ROWS: PropertyDescriptor & ThisType<AnyFrame> = {
  get() {
    return Array.from(this, bare);
  },
};

/** `assert.deepStrictEqual` and similar functions compare this. */
const CONTENT: PropertyDescriptor & ThisType<AnyFrame> = {
  enumerable: true,
  get() {
    return this.toJSON();
  },
};

/** Makes the error of `structuredClone` helpful: a symbol can't be cloned, and the error quotes it. */
const CLONE: PropertyDescriptor = {
  enumerable: true,
  get: () => Symbol.for("a tallyfold table: send its toJSON() or its rows instead"),
};

/**
 * Rows of counts by dimension values: what a {@link CountTable}, a {@link Series} and a {@link Comparison} have in
 * common. It is immutable, and stays valid when the object that it was made from is disposed of.
 */
export abstract class Frame<D extends Dimension | undefined, R, J> implements Iterable<R> {
  readonly #core: Handle<CoreFrame>;
  readonly #rows: (core: never, positions?: Uint32Array) => IterableIterator<R>;

  /**
   * All rows as plain objects that contain only values, which a React server component can pass on, and a browser's
   * console shows. Each access makes new objects. For JSON, pass {@link digits}.
   *
   * @example
   * const text = JSON.stringify(table.rows, digits);
   * const copies = structuredClone(table.groupBy("integration").rows);
   */
  declare readonly rows: Values<R>[];

  /** @internal @param rows Makes the rows at the given positions, or all rows. */
  constructor(
    core: CoreFrame,
    rows: (core: never, positions?: Uint32Array) => IterableIterator<R>,
  ) {
    this.#core = new Handle(core);
    this.#rows = rows;
    // Own properties, because consoles, comparisons and clones ignore inherited ones.
    Object.defineProperty(this, "rows", ROWS);
    Object.defineProperty(this, "clone", CLONE);
    Object.defineProperty(this, contentSymbol, CONTENT);
  }

  /** @internal The JSON of a frame, also from another copy of this package; `undefined` for any other value. */
  static contentOf(value: unknown): { readonly format: string } | undefined {
    const has = typeof value === "object" && value !== null && contentSymbol in value;
    return has ? (value[contentSymbol] as { format: string }) : undefined;
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
      const positions = Uint32Array.from(
        { length: Math.min(SHOWN, frame.length) },
        (_, row) => row,
      );
      const rows = Array.from(frame.#rows(frame.#core.object as never, positions), line);
      const title = frame.length > SHOWN ? `first ${SHOWN} rows` : "rows";
      return inspect({ ...Object.fromEntries(all), [title]: rows }, { ...options, depth: null });
    });
  }

  /** The names of the dimensions, in the order in which they sort the rows. */
  get dimensions(): (D & Dimension)[] {
    return this.#core.object.dimensions() as (D & Dimension)[];
  }

  /** The endpoint of the counts; `undefined` if an {@link Aggregator} made the table without a metric. */
  get metric(): Metric | undefined {
    return this.#core.object.metric() as Metric | undefined;
  }

  /** The number of rows. */
  get length(): number {
    return this.#core.object.length();
  }

  /**
   * Whether another object is of the same kind and has the same content: rows, windows, metric, filter, the
   * reported totals, and everything else that {@link toJSON} contains. The other object may come from another copy
   * of this package.
   *
   * @example
   * const isUnchanged = table.equals(CountTable.fromJSON(JSON.stringify(table)));
   */
  equals(other: unknown): boolean {
    const content = this.toJSON();
    // The core writes equal content as equal JSON.
    return JSON.stringify(content) === JSON.stringify(Frame.contentOf(other));
  }

  /** The rows in sorted order. */
  [Symbol.iterator](): IterableIterator<R> {
    return this.#rows(this.#core.object as never);
  }

  /**
   * The `n` rows with the highest count or rate, highest first; rows of equal rank in sorted order. In a {@link
   * Comparison}, the rows whose count or rate changed most, up or down.
   *
   * @param n The maximum number of rows.
   * @param options The count or rate to rank by. Default: `errors`.
   * @throws {@link TallyfoldError} with code `invalid_argument` for any other name or number.
   * @example
   * const [worst] = table.groupBy("integration").top(1);
   */
  top(n: number, options: { readonly by?: RankBy | undefined } = {}): R[] {
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

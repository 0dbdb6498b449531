import type { CoreCountTable } from "../wasm/tallyfold_wasm.js";
import { invalidArgument } from "./error.js";
import { Handle } from "./handle.js";
import { type Inspect, inspectSymbol } from "./inspect.js";
import type {
  CountName,
  Counts,
  Dimension,
  Metric,
  Notes,
  Reconciliation,
  Window,
} from "./types.js";
import { core } from "./wasm.js";

/**
 * Something per dimension. Where it is not known which dimensions there are, each may be missing:
 * `undefined` among `D` says so.
 */
type PerDimension<D extends Dimension | undefined, T> = [D] extends [Dimension]
  ? { readonly [N in D]: T }
  : { readonly [N in Dimension]?: T };

/** One combination of dimension values and its counts. */
export interface Row<D extends Dimension | undefined = Dimension | undefined> extends Counts {
  /** The value of each dimension of the table. */
  readonly dimensions: PerDimension<D, string>;
}

/** A dimension's column: the value of row `i` is `dictionary[ids[i]]`. */
export interface DictionaryColumn {
  /** The distinct values. */
  readonly dictionary: string[];
  /** Per row, the place of its value in the dictionary. */
  readonly ids: Uint32Array<ArrayBuffer>;
}

/** A table as columns of equal length: one per dimension, by its name, and one per count. */
export type Columns<D extends Dimension | undefined = Dimension | undefined> = PerDimension<
  D,
  DictionaryColumn
> & {
  readonly [N in CountName]: BigUint64Array<ArrayBuffer>;
};

/** Counts in JSON: strings of digits, as no JSON number holds them exactly. */
export type SavedCounts = { [N in CountName]: string };

/** A table as JSON: what {@link CountTable.toJSON} gives, and Python's `to_json` too. */
export interface SavedTable {
  format: string;
  metric: Metric | null;
  dimensions: Dimension[];
  filter: { dimension: Dimension; values: string[] }[];
  totals: SavedCounts;
  windows: {
    start: string;
    end: string;
    reported: SavedCounts | null;
    notes: { repeated_combinations: number; null_dimensions: number };
    rows: ({ values: string[] } & SavedCounts)[];
  }[];
}

/**
 * Counts by dimension values, of one response or of several that were merged.
 *
 * `D` is its dimensions. `CountTable` without it is a table of whatever dimensions, each of which
 * its rows may lack; every other table is one of these too.
 *
 * A table does not change: its methods make new ones, which live on when it is disposed of. Rows
 * are sorted by their dimension values (by UTF-8 bytes, in the order of `dimensions`). Counts are
 * `bigint`, exact to 2^64 - 1.
 *
 * Its memory is freed when the garbage collector finds it, or at the end of a `using` block. The
 * collector does its part between turns of the event loop: a long synchronous loop that makes
 * tables needs `using`, or it runs out of WebAssembly's 4 GB (`RuntimeError: unreachable`).
 *
 * @example
 * const table = await client.eventDelivery({ start, end, dimensions: ["integration", "reason"] });
 * for (const { dimensions, errors } of table.groupBy("integration").top(5, { by: "errors" })) {
 *   console.log(dimensions.integration, errors);
 * }
 */
export class CountTable<D extends Dimension | undefined = Dimension | undefined>
  implements Iterable<Row<D>>
{
  readonly #core: Handle<CoreCountTable>;

  private constructor(table: CoreCountTable) {
    this.#core = new Handle(table);
  }

  /** @internal */
  static of<D extends Dimension | undefined>(table: CoreCountTable): CountTable<D> {
    // Bundlers rename a class that refers to itself by name.
    return new this(table);
  }

  /**
   * Reads what {@link CountTable.toJSON} gave, as an object or as text, here or in Python's
   * `to_json`, and checks that it still adds up. Which dimensions it has is not known before,
   * unless you do: `CountTable.fromJSON<"reason">(saved)`.
   *
   * @throws {@link TallyfoldError} with code `invalid_table`, and the path or offset.
   * @example
   * const table = CountTable.fromJSON(localStorage.getItem("yesterday") ?? "");
   */
  static fromJSON<D extends Dimension | undefined = Dimension | undefined>(
    json: SavedTable | string,
  ): CountTable<D> {
    const text = typeof json === "string" ? json : JSON.stringify(json);
    return made(core().CoreCountTable.fromJson(text));
  }

  /** Untyped callers may hand over anything. */
  #isTable(value: unknown): boolean {
    return typeof value === "object" && value !== null && #core in value;
  }

  /** The names of the dimensions, in sorting order. */
  get dimensions(): (D & Dimension)[] {
    return this.#core.object.dimensions();
  }

  /** The endpoint that the counts are from; `undefined` if an {@link Aggregator} was not told. */
  get metric(): Metric | undefined {
    return this.#core.object.metric() as Metric | undefined;
  }

  /** The sum of all rows. */
  get totals(): Counts {
    return this.#core.object.totals();
  }

  /**
   * `totalDelivered`, `totalErrors` and `totalFiltered` as the service reported them (service
   * reference 2.2), added up over all windows; `undefined` for a filtered table, and where a sum
   * is above 2^64 - 1.
   */
  get reported(): Counts | undefined {
    return this.#core.object.reported();
  }

  /** Whether the reported totals are the sums of the counts. A difference is not an error. */
  get reconciliation(): Reconciliation {
    return this.#core.object.reconciliation();
  }

  /** What the counts cover: sorted windows, with those that meet joined. */
  get coverage(): Window[] {
    return this.#core.object.coverage();
  }

  /** The window of each response in the table, sorted. */
  get windows(): Window[] {
    return this.#core.object.windows();
  }

  /** What was let pass because the caller asked for tolerance. */
  get notes(): Notes {
    return this.#core.object.notes();
  }

  /** How many rows. */
  get length(): number {
    return this.#core.object.length();
  }

  /** The rows in sorted order. */
  *[Symbol.iterator](): IterableIterator<Row<D>> {
    const names = this.dimensions;
    const columns = this.columns();
    for (let index = 0; index < columns.success.length; index++) {
      const value = ({ dictionary, ids }: DictionaryColumn) => dictionary[ids[index] as number];
      const dimensions = Object.fromEntries(names.map((name) => [name, value(columns[name])]));
      yield {
        dimensions: dimensions as Row<D>["dimensions"],
        success: columns.success[index] as bigint,
        errors: columns.errors[index] as bigint,
        filtered: columns.filtered[index] as bigint,
      };
    }
  }

  /** Adds all rows up to one. */
  groupBy(): CountTable<never>;
  /**
   * Adds rows up by some of the dimensions, in the given order.
   *
   * @throws {@link TallyfoldError} with code `unknown_dimension` or `repeated_dimension`.
   * @example
   * const perDestination = table.groupBy("integration");
   */
  groupBy<const G>(...names: (G & D & Dimension)[]): CountTable<G & Dimension>;
  // `G` stands alone, since with `G extends D` no table would be a `CountTable` of whatever dimensions.
  groupBy(...names: string[]): unknown {
    return made(this.#core.object.groupBy(names));
  }

  /**
   * Keeps the rows whose value is, for each dimension named, the wanted one or among the wanted.
   * The new table has no reported totals, and is merged only with tables that were filtered alike.
   *
   * @throws {@link TallyfoldError} with code `unknown_dimension` for one that the table lacks.
   * @example
   * const blocked = table.filter({ reason: ["consent", "quota"], integration: "warehouse" });
   */
  filter(
    wanted: { readonly [N in D & Dimension]?: string | readonly string[] | undefined },
  ): CountTable<D> {
    return made(this.#core.object.filter(wanted));
  }

  /**
   * The `n` rows with the highest counts, highest first; equal counts in sorted order.
   *
   * @param n At most how many rows.
   * @param options By which count to rank: `errors` unless told otherwise.
   * @throws {@link TallyfoldError} with code `invalid_argument` for any other name or number.
   * @example
   * const [worst] = table.groupBy("integration").top(1);
   */
  top(n: number, options: { readonly by?: CountName | undefined } = {}): Row<D>[] {
    const table = this.#core.object;
    return table.top(n, options.by ?? "errors").map((index) => table.row(index) as Row<D>);
  }

  /**
   * Adds up the counts of another time with these. The order of merging makes no difference.
   *
   * With `replace`, windows of this table that overlap the other's make room for it; each such
   * window must lie inside what the other covers.
   *
   * @throws {@link TallyfoldError} with code `overlapping_coverage`, `incompatible_tables` or
   * `sum_overflow`.
   * @example
   * const hour = quarters.reduce((sum, quarter) => sum.merge(quarter));
   */
  merge(
    other: CountTable<D>,
    options: { readonly replace?: boolean | undefined } = {},
  ): CountTable<D> {
    if (!this.#isTable(other)) throw invalidArgument("other", "want a CountTable");
    return made(this.#core.object.merge(other.#core.object, options.replace ?? false));
  }

  /**
   * The table as columns: copies, which the caller may keep, change or transfer.
   *
   * @example
   * const { integration, errors } = table.groupBy("integration").columns();
   * chart(integration.dictionary, errors);
   */
  columns(): Columns<D> {
    const table = this.#core.object;
    const columns: DictionaryColumn[] = table.dimensionColumns();
    return {
      ...Object.fromEntries(this.dimensions.map((name, index) => [name, columns[index]])),
      success: table.success(),
      errors: table.errors(),
      filtered: table.filtered(),
    } as Columns<D>;
  }

  /**
   * The table as a JSON value with every count as a string of digits; exact to read back.
   *
   * @example
   * localStorage.setItem("yesterday", JSON.stringify(table));
   */
  toJSON(): SavedTable {
    return JSON.parse(this.#core.object.toJson()) as SavedTable;
  }

  /** Frees the table's memory now. Tables made from it live on. */
  [Symbol.dispose](): void {
    this.#core.release();
  }

  /** @internal */
  [inspectSymbol](_depth: number, options: object, inspect: Inspect): string {
    if (this.#core.released) return "CountTable (disposed of)";
    const { dimensions, metric, length, coverage, totals, reconciliation } = this;
    const summary = { dimensions, metric, length, coverage, totals, reconciliation };
    return `CountTable ${inspect(summary, options)}`;
  }
}

/** Outside of the class, which keeps its name in bundles as long as it does not name itself. */
function made<D extends Dimension | undefined>(table: CoreCountTable): CountTable<D> {
  return CountTable.of(table);
}

import type { CoreComparison, CoreCountTable } from "../wasm/tallyfold_wasm.js";
import {
  type CountColumns,
  countColumns,
  type DictionaryColumn,
  dimensionColumns,
  named,
  type PerDimension,
  type RateColumns,
  rateColumns,
  valuesAt,
} from "./columns.js";
import { type Counts, countsOf, ratesOf } from "./counts.js";
import { invalidArgument } from "./error.js";
import { Handle } from "./handle.js";
import { timed } from "./input.js";
import { type Inspect, inspectSymbol } from "./inspect.js";
import { Series } from "./series.js";
import { kept } from "./shapes.js";
import type {
  CountName,
  Dimension,
  Metric,
  Notes,
  Rates,
  Reconciliation,
  TimeStep,
  Window,
} from "./types.js";
import { core } from "./wasm.js";

/** One combination of dimension values and its counts. */
export class Row<D extends Dimension | undefined = Dimension | undefined> {
  /** The value of each dimension of the table. */
  readonly dimensions: PerDimension<D, string>;
  /** Events delivered. */
  readonly success: bigint;
  /** Events not sent due to an error. */
  readonly errors: bigint;
  /** Events filtered from the stream due to playbook, pipeline or compliance filters. */
  readonly filtered: bigint;

  /** @internal */
  constructor(
    dimensions: PerDimension<D, string>,
    success: bigint,
    errors: bigint,
    filtered: bigint,
  ) {
    this.dimensions = dimensions;
    this.success = success;
    this.errors = errors;
    this.filtered = filtered;
  }

  /** The rates of these counts. A getter: a copy of the properties has none. */
  get rates(): Rates {
    return ratesOf(this);
  }
}

/** A table as columns of equal length: one per dimension, by its name, and one per count. */
export type Columns<D extends Dimension | undefined = Dimension | undefined> = PerDimension<
  D,
  DictionaryColumn
> &
  CountColumns;

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

  /**
   * Adds any number of tables up at once, in any order. They must be of one metric, with the same dimensions,
   * filtered alike, and no two may cover the same time.
   *
   * @throws {@link TallyfoldError} with code `missing_argument` without any table, `overlapping_coverage`,
   * `incompatible_tables` or `sum_overflow`.
   * @example
   * const hour = CountTable.mergeAll(quarters);
   */
  static mergeAll<D extends Dimension | undefined>(tables: Iterable<CountTable<D>>): CountTable<D> {
    if (typeof tables?.[Symbol.iterator] !== "function") {
      throw invalidArgument("tables", "want an iterable of tables");
    }
    const all = Array.from(tables, (table) => coreOf("tables", table));
    return made(core().CoreCountTable.mergeAll(all.map((table) => table.copy())));
  }

  /** @internal The core's table; untyped callers may hand over anything. */
  static coreOf(argument: string, value: unknown): CoreCountTable {
    if (typeof value === "object" && value !== null && #core in value) return value.#core.object;
    throw invalidArgument(argument, "want a CountTable");
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
    return countsOf(this.#core.object.totals());
  }

  /**
   * `totalDelivered`, `totalErrors` and `totalFiltered` as the service reported them (service
   * reference 2.2), added up over all windows; `undefined` for a filtered table, and where a sum
   * is above 2^64 - 1.
   */
  get reported(): Counts | undefined {
    const reported = this.#core.object.reported();
    return reported && countsOf(reported);
  }

  /** Whether the reported totals are the sums of the counts. A difference is not an error. */
  get reconciliation(): Reconciliation {
    return this.#core.object.reconciliation();
  }

  /** What the counts cover: sorted windows, with those that meet joined. */
  get coverage(): Window[] {
    return this.#core.object.coverage();
  }

  /**
   * What of a range the counts do not cover, sorted; unless told otherwise, of the time from the first
   * window's start to the last one's end.
   *
   * @throws {@link TallyfoldError} with code `invalid_timestamp` or `invalid_window`.
   * @example
   * const missing = table.gaps({ start: "2026-01-01T00:00:00Z", end: "2026-01-02T00:00:00Z" });
   */
  gaps(
    range?: { readonly start: Date | string; readonly end: Date | string } | undefined,
  ): Window[] {
    return this.#core.object.gaps(timed(range, ["start", "end"]));
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
    const core = this.#core.object;
    const [names, columns] = [this.dimensions, core.dimensionColumns()];
    const { success, errors, filtered } = countColumns(core.countColumns());
    for (let row = 0; row < success.length; row++) {
      yield new Row(
        valuesAt<D>(names, columns, row),
        success[row] as bigint,
        errors[row] as bigint,
        filtered[row] as bigint,
      );
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
    const names = this.dimensions;
    const rows: (string | bigint)[][] = this.#core.object.top(n, options.by ?? "errors");
    return rows.map((cells) => {
      const [success, errors, filtered] = cells.slice(names.length) as [bigint, bigint, bigint];
      const dimensions = named(names, (at) => cells[at]) as PerDimension<D, string>;
      return new Row(dimensions, success, errors, filtered);
    });
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
    const table = coreOf("other", other);
    return made(this.#core.object.merge(table, options.replace ?? false));
  }

  /**
   * The counts by window. Without a step, each response keeps its own window. With one, each is
   * added to the step of the UTC day that it lies in.
   *
   * @param step Seconds, minutes, hours or a day that divide a day into equal steps, the first of
   * which starts at midnight: `5m`, `15m`, `1h`, `1d`.
   * @throws {@link TallyfoldError} with code `invalid_argument` for any other step, and
   * `unaligned_window` for a window that reaches over the edge of a step, as counts can't be cut.
   * @example
   * const perHour = table.byWindow("1h");
   * const { delivery } = perHour.rates();
   */
  byWindow(step?: TimeStep | undefined): Series<D> {
    return Series.of(this.#core.object.byWindow(step));
  }

  /**
   * The table as columns: copies, which the caller may keep, change or transfer.
   *
   * @example
   * const { integration, errors } = table.groupBy("integration").columns();
   * chart(integration.dictionary, errors);
   */
  columns(): Columns<D> {
    const core = this.#core.object;
    return {
      ...dimensionColumns<D>(this.dimensions, core.dimensionColumns()),
      ...countColumns(core.countColumns()),
    };
  }

  /** The rates of each row as columns. Where a row has no rate there is NaN, and `null` in rows. */
  rates(): RateColumns {
    return rateColumns(this.#core.object.rates());
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
    kept.table ??= this;
  }

  /** @internal */
  [inspectSymbol](_depth: number, options: object, inspect: Inspect): string {
    if (this.#core.released) return "CountTable (disposed of)";
    const { dimensions, metric, length, coverage, totals, reconciliation } = this;
    const summary = { dimensions, metric, length, coverage, totals, reconciliation };
    return `CountTable ${inspect(summary, options)}`;
  }
}

/** @internal What changed from one table to another. */
export function compareTables(before: unknown, after: unknown): CoreComparison {
  return coreOf("before", before).compare(coreOf("after", after));
}

/** Outside of the class, as is {@link made}. */
function coreOf(argument: string, value: unknown): CoreCountTable {
  return CountTable.coreOf(argument, value);
}

/** Outside of the class, which keeps its name in bundles as long as it does not name itself. */
function made<D extends Dimension | undefined>(table: CoreCountTable): CountTable<D> {
  return CountTable.of(table);
}

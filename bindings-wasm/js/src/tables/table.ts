import type { CoreCountTable } from "../../wasm/tallyfold_wasm.js";
import { used } from "../loading/handle.js";
import { core } from "../loading/library.js";
import { midnights } from "../values/clocks.js";
import { invalidArgument } from "../values/error.js";
import { fieldsOf } from "../values/input.js";
import { exact, type Inspect, inspectSymbol } from "../values/printing.js";
import type { TimeRange, TimeStep } from "../values/time.js";
import type { Dimension, Metric, Notes, Reconciliation, Window } from "../values/types.js";
import {
  type CountColumns,
  type DictionaryColumn,
  type NumberColumns,
  numbersOf,
  type PerDimension,
  type RateColumns,
  valuesAt,
} from "./columns.js";
import { type Counts, countsOf, type Row, rowOf, type SavedCounts } from "./counts.js";
import { Frame } from "./frame.js";
import { Series } from "./series.js";

/** A table as columns of equal length: one per dimension, by its name, and one per count. */
export type Columns<D extends Dimension | undefined = Dimension | undefined> = PerDimension<
  D,
  DictionaryColumn
> &
  CountColumns;

/** A table as JSON: the result of {@link CountTable.toJSON}, and of Python's `to_json`. */
export interface SavedTable {
  format: string;
  /** A checksum of everything else. */
  digest?: string;
  metric: Metric | null;
  dimensions: Dimension[];
  filter: { dimension: Dimension; values: string[] }[];
  /** Which cluster and client the counts belong to, if it is known. */
  identity?: string;
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
 * Counts by dimension values, from one response or from several merged responses.
 *
 * The type parameter `D` is its dimensions. `CountTable` without it has unknown dimensions, and its rows may lack
 * any of them; every table can be assigned to this type.
 *
 * A table is immutable: its methods return new tables, which stay valid when the table is disposed of. Rows are
 * sorted by their dimension values (by UTF-8 bytes, in the order of `dimensions`). Counts are `bigint`, exact to
 * 2^64 - 1.
 *
 * Its memory is freed by the garbage collector, or at the end of a `using` block. The garbage collector frees
 * tables only between turns of the event loop, so a long synchronous loop that makes tables needs `using`.
 * Otherwise, it runs out of WebAssembly's 4 GB (`out_of_memory`), and all tables are lost.
 *
 * @example
 * const table = await client.eventDelivery({ start, end, dimensions: ["integration", "reason"] });
 * for (const { dimensions, errors } of table.groupBy("integration").top(5, { by: "errors" })) {
 *   console.log(dimensions.integration, errors);
 * }
 */
export class CountTable<D extends Dimension | undefined = Dimension | undefined> extends Frame<
  D,
  Row<D>,
  SavedTable
> {
  private constructor(table: CoreCountTable) {
    super(table, rowsOf<D>);
  }

  /** @internal */
  static of<D extends Dimension | undefined>(table: CoreCountTable): CountTable<D> {
    // Not in the class itself, because bundlers rename a class that refers to itself by name.
    return new this(table);
  }

  /**
   * Reads a table from the JSON of {@link CountTable.toJSON} or of Python's `to_json`, as an object or as text, and
   * checks that its counts add up. TypeScript does not know its dimensions; if you know them, name them:
   * `CountTable.fromJSON<"reason">(saved)`.
   *
   * @throws {@link TallyfoldError} with code `invalid_table`, and the path or offset.
   * @example
   * const table = CountTable.fromJSON(localStorage.getItem("yesterday") ?? "");
   */
  static fromJSON<D extends Dimension | undefined = Dimension | undefined>(
    json: SavedTable | string,
  ): CountTable<D> {
    return made(core().CoreCountTable.fromJson(textOf(json)));
  }

  /**
   * Adds up any number of tables at once, in any order. They must have the same metric, dimensions and filter, and
   * no two may cover the same time.
   *
   * @throws {@link TallyfoldError} with code `missing_argument` without any table, `overlapping_coverage`,
   * `incompatible_tables` or `sum_overflow`.
   * @example
   * const hour = CountTable.mergeAll(quarters);
   */
  static mergeAll<D extends Dimension | undefined>(tables: Iterable<CountTable<D>>): CountTable<D> {
    return made(core().CoreCountTable.mergeAll(copies(tables)));
  }

  /**
   * Adds up the counts of several clusters or clients for the same time. The label becomes the `identity` of the
   * sum. `merge` and `mergeAll` refuse tables of different clusters, so that you don't mix them by mistake.
   *
   * @throws {@link TallyfoldError} with code `missing_argument` without any table; `incompatible_tables`, also for
   * two tables of the same cluster and client, and for a table that lacks time that another one covers;
   * `sum_overflow`.
   * @example
   * const both = CountTable.combine([eu, us], "all clusters");
   */
  static combine<D extends Dimension | undefined>(
    tables: Iterable<CountTable<D>>,
    label: string,
  ): CountTable<D> {
    return made(core().CoreCountTable.combine(copies(tables), label));
  }

  /**
   * The `identity` of the client that read the counts. `undefined` if it is not known, as for a table of an {@link
   * Aggregator}.
   */
  get identity(): string | undefined {
    return own(this).identity();
  }

  /** The sum of all rows. */
  get totals(): Counts {
    return countsOf(own(this).totals());
  }

  /**
   * `totalDelivered`, `totalErrors` and `totalFiltered` as the service reported them (service
   * reference 2.2), added up over all windows; `undefined` for a filtered table, or if a sum is
   * above 2^64 - 1.
   */
  get reported(): Counts | undefined {
    const reported = own(this).reported();
    return reported && countsOf(reported);
  }

  /** Whether the reported totals are the sums of the counts. A difference is not an error. */
  get reconciliation(): Reconciliation {
    return exact(own(this).reconciliation() as Reconciliation);
  }

  /** The time that the counts cover: sorted windows; adjacent windows are joined. */
  get coverage(): Window[] {
    return own(this).coverage();
  }

  /**
   * The parts of a range that the counts do not cover, sorted. By default, the range is from the
   * first window's start to the last window's end.
   *
   * @throws {@link TallyfoldError} with code `invalid_timestamp` or `invalid_window`.
   * @example
   * const missing = table.gaps({ start: "2026-01-01T00:00:00Z", end: "2026-01-02T00:00:00Z" });
   */
  gaps(range?: TimeRange | undefined): Window[] {
    return own(this).gaps(range);
  }

  /** The window of each response in the table, sorted. */
  get windows(): Window[] {
    return own(this).windows();
  }

  /**
   * The windows whose counts may still change, sorted. They were read less than an hour after their end, or less
   * than the `settleMs` of the collect or follow. A table of an {@link Aggregator} has no such windows, because an
   * aggregator has no clock.
   */
  get provisional(): Window[] {
    return own(this).provisional();
  }

  /** How many deviations were tolerated, as the option `tolerate` allows. */
  get notes(): Notes {
    return exact(own(this).notes() as Notes);
  }

  /** Adds up all rows into one. */
  groupBy(): CountTable<never>;
  /**
   * Adds up rows by some of the dimensions, in the given order.
   *
   * @throws {@link TallyfoldError} with code `unknown_dimension` or `repeated_dimension`.
   * @example
   * const perDestination = table.groupBy("integration");
   */
  groupBy<const G>(...names: (G & D & Dimension)[]): CountTable<G & Dimension>;
  // `G` does not extend `D`, because then no table could be assigned to `CountTable` without a type
  // parameter.
  groupBy(...names: string[]): unknown {
    if (names.some(Array.isArray)) {
      throw invalidArgument("groupBy", 'want names, not an array: groupBy("integration")');
    }
    return made(own(this).groupBy(names));
  }

  /**
   * Keeps the rows that have the given value, or one of the given values, in each named dimension. The new table
   * has no reported totals, and can be merged only with tables that were filtered by the same values.
   *
   * @throws {@link TallyfoldError} with code `unknown_dimension` for a dimension that the table lacks.
   * @example
   * const blocked = table.filter({ reason: ["consent", "quota"], integration: "warehouse" });
   */
  filter(
    wanted: { readonly [N in D & Dimension]?: string | readonly string[] | undefined },
  ): CountTable<D> {
    return made(own(this).filter(wanted));
  }

  /**
   * Adds the counts of another table, which covers another time. The order of merging makes no difference.
   *
   * With `replace`, windows of the other table replace overlapping windows of this table; each replaced window must
   * lie within the time that the other table covers.
   *
   * @throws {@link TallyfoldError} with code `overlapping_coverage`, `incompatible_tables` or `sum_overflow`.
   * @example
   * const hour = quarters.reduce((sum, quarter) => sum.merge(quarter));
   */
  merge(
    other: CountTable<D>,
    options: { readonly replace?: boolean | undefined } = {},
  ): CountTable<D> {
    const table = coreOf("other", other);
    return made(own(this).merge(table, fieldsOf("options", options, MERGING, ["replace"]).replace));
  }

  /**
   * The counts by window. Without a step, each response keeps its own window. With a step, each response is added
   * to the step of the UTC day in which its window lies.
   *
   * @param step A length that divides the UTC day into equal steps from midnight on, in seconds, minutes, hours or
   * days: `5m`, `15m`, `1h`, `1d`.
   * @param options `zone`, for the step `1d`, is the name of a time zone: days begin at midnight there. When its
   * clocks change, a day has 23 or 25 hours.
   * @throws {@link TallyfoldError} with code `invalid_argument` for any other step and for an unknown zone, and
   * `unaligned_window` for a window that crosses the edge of a step, because its counts can't be split.
   * @example
   * const perHour = table.byWindow("1h");
   * const { delivery } = perHour.rates();
   * const perDay = table.byWindow("1d", { zone: "America/New_York" });
   */
  byWindow(
    step?: TimeStep | undefined,
    options: { readonly zone?: string | undefined } = {},
  ): Series<D> {
    const zone = fieldsOf("options", options, ZONED, ["zone"]).zone ?? undefined;
    return seriesOf(own(this), step, zone, (range) => own(this).between(range));
  }

  /**
   * The counts of the windows that lie in a range.
   *
   * @throws {@link TallyfoldError} with code `unaligned_window` for a window that is only partly in the range, because its
   * counts can't be split, and `invalid_window` if no window lies in it.
   * @example
   * const quarter = table.between({ start: "2026-01-01T00:00:00Z", end: "2026-01-01T00:15:00Z" });
   */
  between(range: TimeRange): CountTable<D> {
    return made(own(this).between(range));
  }

  /**
   * The table as columns: copies, which you may keep, change or transfer.
   *
   * @example
   * const { integration, errors } = table.groupBy("integration").columns();
   * chart(integration.dictionary, errors);
   */
  columns(): Columns<D> {
    return own(this).columns() as Columns<D>;
  }

  /**
   * The counts as plain numbers, for chart libraries.
   *
   * @throws {@link TallyfoldError} with code `count_overflow` for a count above 2^53, up to which numbers are
   * exact.
   * @example
   * const byIntegration = table.groupBy("integration");
   * chart(byIntegration.rows.map((row) => row.dimensions.integration), byIntegration.numbers().errors);
   */
  numbers(): NumberColumns {
    return numbersOf(own(this).columns());
  }

  /** The rates of each row as columns. NaN means that there is no rate; in rows, that is `null`. */
  rates(): RateColumns {
    return own(this).fractions() as RateColumns;
  }

  /** Frees the table's memory now. Tables made from it stay valid. */
  override [Symbol.dispose](): void {
    super[Symbol.dispose]();
    kept.table ??= this;
  }

  /** @internal */
  [inspectSymbol](_depth: number, options: object, inspect: Inspect): string {
    return Frame.inspected("CountTable", this, INSPECTED, [options, inspect]);
  }
}

const INSPECTED = [
  "dimensions",
  "metric",
  "length",
  "coverage",
  "totals",
  "reconciliation",
] as const;

/** @internal The core's table. It checks the value, because untyped callers may pass anything. */
export function coreOf(argument: string, value: unknown): CoreCountTable {
  if (value instanceof CountTable) return own(value);
  // A table of another copy of this package, such as the CommonJS one, is in another memory.
  const content = Frame.contentOf(value);
  if (content?.format.startsWith("tallyfold-table/")) {
    return core().CoreCountTable.fromJson(JSON.stringify(content));
  }
  throw invalidArgument(argument, "want a CountTable");
}

const MERGING = "want an object, such as { replace: true }";
const ZONED = 'want an object, such as { zone: "America/New_York" }';

function own(table: CountTable): CoreCountTable {
  return Frame.coreOf(table) as CoreCountTable;
}

function copies<D extends Dimension | undefined>(
  tables: Iterable<CountTable<D>>,
): CoreCountTable[] {
  if (typeof tables?.[Symbol.iterator] !== "function") {
    throw invalidArgument("tables", "want an iterable of tables");
  }
  const all = Array.from(tables, (table) => coreOf("tables", table));
  return all.map((table) => table.copy());
}

// Outside of the class: a class that refers to itself by name is renamed by bundlers.
function made<D extends Dimension | undefined>(table: CoreCountTable): CountTable<D> {
  return CountTable.of(table);
}

/** @param between Returns a new table of the windows that lie in a range. */
function seriesOf<D extends Dimension | undefined>(
  table: CoreCountTable,
  step: TimeStep | undefined,
  zone: string | undefined,
  between: (range: TimeRange) => CoreCountTable,
): Series<D> {
  const days = zone === undefined ? undefined : [zone, ...midnights(zone, table.windows())];
  return Series.of(table.byWindow(step, days), zone, (range) =>
    used(between(range), (part) =>
      seriesOf(part, step, zone, (inner) => used(between(range), (part) => part.between(inner))),
    ),
  );
}

function* rowsOf<D extends Dimension | undefined>(
  core: CoreCountTable,
  positions?: Uint32Array,
): IterableIterator<Row<D>> {
  const names = core.dimensions();
  const columns = core.columns(positions);
  for (let row = 0; row < columns.success.length; row++) {
    const dimensions = valuesAt<D>(names, columns, row);
    yield rowOf({ dimensions }, columns, row) as Row<D>;
  }
}

/**
 * @internal One released object of each short-lived class. It uses no memory of the core.
 *
 * V8 discards compiled code when the last object of a class that the code was compiled for is garbage-collected. Without
 * these objects, it would compile the code that reads a body again after each garbage collection, and a body of 1 kB
 * would take 1.6 times as long.
 */
export const kept: { aggregator?: object; table?: object } = {};

/** The text of a saved table. */
function textOf(json: unknown): string {
  const wanted = "want a saved table, as text or as an object";
  if (typeof json === "string") return json;
  if (typeof json !== "object" || json === null) throw invalidArgument("json", wanted);
  try {
    return JSON.stringify(json);
  } catch {
    // For example rows, because JSON can't represent their counts.
    throw invalidArgument("json", wanted);
  }
}

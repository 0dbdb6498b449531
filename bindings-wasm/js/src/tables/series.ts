import type { CoreSeries } from "../../wasm/tallyfold_wasm.js";
import { used } from "../loading/handle.js";
import { type Inspect, inspectSymbol } from "../values/printing.js";
import type { TimeRange, TimeStep } from "../values/time.js";
import type { Dimension, Metric, Window } from "../values/types.js";
import {
  type CountColumns,
  type DictionaryColumn,
  type NumberColumns,
  numbersOf,
  type PerDimension,
  type RateColumns,
  valueAt,
  valuesAt,
} from "./columns.js";
import { type Counts, countsOf, type Row, rowOf, type SavedCounts } from "./counts.js";
import { Frame } from "./frame.js";

/** A window of a {@link Series}: a step, or the window of a response if the series has no step. */
export interface SeriesWindow extends Window {
  /** Whether the table covers all of the window. If not, its counts cover only a part of it. */
  readonly complete: boolean;
  /**
   * Whether its counts may still change, because a response in it was read early: see {@link
   * CountTable.provisional}.
   */
  readonly provisional: boolean;
}

/** One combination of dimension values in one window, and its counts: a plain object like {@link Row}. */
export interface SeriesRow<D extends Dimension | undefined = Dimension | undefined> extends Row<D> {
  /** The window. */
  readonly window: SeriesWindow;
  /** Whether the window is complete and not provisional, so that its counts no longer change. */
  readonly settled: boolean;
  /** The row with counts as strings of digits, for `JSON.stringify`. */
  toJSON(): ReturnType<Row<D>["toJSON"]> & { window: SeriesWindow; settled: boolean };
}

/**
 * A series as columns of equal length: the window, one per dimension, by its name, and one per
 * count.
 */
export type SeriesColumns<D extends Dimension | undefined = Dimension | undefined> = PerDimension<
  D,
  DictionaryColumn
> &
  CountColumns & { readonly window: DictionaryColumn<SeriesWindow> };

/** A series as JSON: the result of {@link Series.toJSON}, and of Python's `to_json`. */
export interface SeriesReport {
  format: string;
  metric: Metric | null;
  dimensions: Dimension[];
  filter: { dimension: Dimension; values: string[] }[];
  step: TimeStep | null;
  /** The time zone, if the windows are days of a zone; otherwise left out. */
  zone?: string;
  totals: SavedCounts;
  windows: {
    start: string;
    end: string;
    complete: boolean;
    /** `true`, or left out. */
    provisional?: true;
    rows: ({ values: string[] } & SavedCounts)[];
  }[];
}

/**
 * A table's counts in chronological order: one row for each window and combination of dimension values. {@link
 * CountTable.byWindow} returns it, and it stays valid when the table is disposed of.
 *
 * A series is immutable. Its rows are sorted by window, then by their dimension values (by UTF-8 bytes, in the
 * order of `dimensions`). Counts are `bigint`, exact to 2^64 - 1.
 *
 * Its memory is freed like the memory of a {@link CountTable}.
 *
 * @example
 * for (const { window, dimensions, rates } of table.groupBy("integration").byWindow("1h")) {
 *   console.log(window.start, dimensions.integration, rates.delivery);
 * }
 */
export class Series<D extends Dimension | undefined = Dimension | undefined> extends Frame<
  D,
  SeriesRow<D>,
  SeriesReport
> {
  /** The time zone, if the windows are days of a zone; otherwise `undefined`. */
  declare readonly zone: string | undefined;
  readonly #between: (range: TimeRange) => Series<D>;

  private constructor(
    series: CoreSeries,
    zone: string | undefined,
    between: (range: TimeRange) => Series<D>,
  ) {
    super(series, rowsOf<D>);
    // Not enumerable: consoles, comparisons and clones read the JSON of a series, which contains the zone.
    Object.defineProperty(this, "zone", { value: zone });
    this.#between = between;
  }

  /** @internal */
  static of<D extends Dimension | undefined>(
    series: CoreSeries,
    zone: string | undefined,
    between: (range: TimeRange) => Series<D>,
  ): Series<D> {
    // Bundlers rename a class that refers to itself by name.
    return new this(series, zone, between);
  }

  /**
   * The length of the windows in its largest unit: `60m` is `1h`. `undefined` if each response keeps its own
   * window.
   */
  get step(): TimeStep | undefined {
    return own(this).step() as TimeStep | undefined;
  }

  /** The windows, sorted, including windows without rows. Windows that the table doesn't cover at all are left out. */
  get windows(): SeriesWindow[] {
    return own(this).windows();
  }

  /** Whether the table covers all windows completely. If not, `complete` of each window shows which. */
  get complete(): boolean {
    return this.windows.every(({ complete }) => complete);
  }

  /**
   * The series with a row for each window and each combination that occurs in any window. Added rows have counts of
   * 0. A series without dimensions gets a row for each window.
   *
   * Windows that the table does not cover are not added, because their counts are unknown.
   *
   * @throws {@link TallyfoldError} with code `group_limit` for more than 2^25 rows.
   * @example
   * const lines = table.groupBy("integration").byWindow("15m").fillZeros();
   */
  fillZeros(): Series<D> {
    return made(own(this).fillZeros(), this.zone, (range) =>
      used(this.between(range), (part) => part.fillZeros()),
    );
  }

  /**
   * The same series for the responses that lie in a range. A step that lies only partly in the range is not
   * `complete`.
   *
   * @throws {@link TallyfoldError} as for {@link CountTable.between}, and with code `out_of_order` if the table was
   * disposed of.
   * @example
   * const days = table.byWindow("1d");
   * const january = days.between({ start: "2026-01-01T00:00:00Z", end: "2026-02-01T00:00:00Z" });
   */
  between(range: TimeRange): Series<D> {
    return this.#between(range);
  }

  /** The sum of all rows. */
  get totals(): Counts {
    return countsOf(own(this).totals());
  }

  /**
   * The series as columns: copies, which you may keep, change or transfer. The window of row `i` is
   * `window.dictionary[window.ids[i]]`, and the dictionary is `windows`.
   *
   * @example
   * const { window, errors } = table.groupBy().byWindow("15m").columns();
   * chart(window.dictionary.map(({ start }) => new Date(start)), errors);
   */
  columns(): SeriesColumns<D> {
    return own(this).columns() as SeriesColumns<D>;
  }

  /**
   * The counts as plain numbers, for chart libraries.
   *
   * @throws {@link TallyfoldError} with code `count_overflow` for a count above 2^53, up to which numbers are
   * exact.
   * @example
   * const total = table.groupBy().byWindow("15m");
   * chart(total.rows.map((row) => Date.parse(row.window.start)), total.numbers().errors);
   */
  numbers(): NumberColumns {
    return numbersOf(own(this).columns());
  }

  /** The rates of each row as columns. NaN means that there is no rate; in rows, that is `null`. */
  rates(): RateColumns {
    return own(this).fractions() as RateColumns;
  }

  /** @internal */
  [inspectSymbol](_depth: number, options: object, inspect: Inspect): string {
    const properties = [
      "dimensions",
      "metric",
      "step",
      "zone",
      "length",
      "windows",
      "totals",
    ] as const;
    return Frame.inspected("Series", this, properties, [options, inspect]);
  }
}

// Outside of the class: a class that refers to itself by name is renamed by bundlers.
function made<D extends Dimension | undefined>(
  ...args: Parameters<typeof Series.of<D>>
): Series<D> {
  return Series.of(...args);
}

function own(series: Series): CoreSeries {
  return Frame.coreOf(series) as CoreSeries;
}

function* rowsOf<D extends Dimension | undefined>(
  core: CoreSeries,
  positions?: Uint32Array,
): IterableIterator<SeriesRow<D>> {
  const names = core.dimensions();
  const columns = core.columns(positions);
  for (let row = 0; row < columns.success.length; row++) {
    const window: SeriesWindow = valueAt(columns.window, row);
    const settled = window.complete && !window.provisional;
    const dimensions = valuesAt<D>(names, columns, row);
    yield rowOf({ window, settled, dimensions }, columns, row) as SeriesRow<D>;
  }
}

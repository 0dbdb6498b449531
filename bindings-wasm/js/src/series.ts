import type { CoreSeries } from "../wasm/tallyfold_wasm.js";
import {
  type CountColumns,
  countColumns,
  type DictionaryColumn,
  dimensionColumns,
  type PerDimension,
  type RateColumns,
  rateColumns,
  valueAt,
  valuesAt,
} from "./columns.js";
import { type Counts, countsOf, ratesOf } from "./counts.js";
import { Handle } from "./handle.js";
import { type Inspect, inspectSymbol } from "./inspect.js";
import type { SavedCounts } from "./table.js";
import type { Dimension, Metric, Rates, TimeStep, Window } from "./types.js";

/** A window of a {@link Series}: a step, or without one what a response covers. */
export interface SeriesWindow extends Window {
  /** Whether the table covers all of the window. If not, its counts are of a part of it. */
  readonly complete: boolean;
}

/** One combination of dimension values in one window, and its counts. */
export class SeriesRow<D extends Dimension | undefined = Dimension | undefined> {
  /** When. */
  readonly window: SeriesWindow;
  /** The value of each dimension of the series. */
  readonly dimensions: PerDimension<D, string>;
  /** Events delivered. */
  readonly success: bigint;
  /** Events not sent due to an error. */
  readonly errors: bigint;
  /** Events filtered from the stream due to playbook, pipeline or compliance filters. */
  readonly filtered: bigint;

  /** @internal */
  constructor(
    window: SeriesWindow,
    dimensions: PerDimension<D, string>,
    { success, errors, filtered }: CountColumns,
    row: number,
  ) {
    this.window = window;
    this.dimensions = dimensions;
    this.success = success[row] as bigint;
    this.errors = errors[row] as bigint;
    this.filtered = filtered[row] as bigint;
  }

  /** The rates of these counts. A getter: a copy of the properties has none. */
  get rates(): Rates {
    return ratesOf(this);
  }
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

/** A series as JSON: what {@link Series.toJSON} gives, and Python's `to_json` too. */
export interface SeriesReport {
  format: string;
  metric: Metric | null;
  dimensions: Dimension[];
  filter: { dimension: Dimension; values: string[] }[];
  step: TimeStep | null;
  totals: SavedCounts;
  windows: {
    start: string;
    end: string;
    complete: boolean;
    rows: ({ values: string[] } & SavedCounts)[];
  }[];
}

/**
 * A table's counts in the order of time: one row for each window and combination of dimension
 * values. {@link CountTable.byWindow} makes it, and it lives on when the table is disposed of.
 *
 * A series does not change. Its rows are sorted by window, then by their dimension values (by
 * UTF-8 bytes, in the order of `dimensions`). Counts are `bigint`, exact to 2^64 - 1.
 *
 * Its memory is freed as that of a {@link CountTable}.
 *
 * @example
 * for (const { window, dimensions, rates } of table.groupBy("integration").byWindow("1h")) {
 *   console.log(window.start, dimensions.integration, rates.delivery);
 * }
 */
export class Series<D extends Dimension | undefined = Dimension | undefined>
  implements Iterable<SeriesRow<D>>
{
  readonly #core: Handle<CoreSeries>;

  private constructor(series: CoreSeries) {
    this.#core = new Handle(series);
  }

  /** @internal */
  static of<D extends Dimension | undefined>(series: CoreSeries): Series<D> {
    // Bundlers rename a class that refers to itself by name.
    return new this(series);
  }

  /** The names of the dimensions, in sorting order after the window. */
  get dimensions(): (D & Dimension)[] {
    return this.#core.object.dimensions();
  }

  /** The endpoint that the counts are from, if the table knew it. */
  get metric(): Metric | undefined {
    return this.#core.object.metric() as Metric | undefined;
  }

  /**
   * The length of the windows, in the largest unit that it is a whole number of: `60m` is `1h`.
   * `undefined` where the windows are those of the responses.
   */
  get step(): TimeStep | undefined {
    return this.#core.object.step() as TimeStep | undefined;
  }

  /**
   * The windows, sorted, also those without rows. Windows of which nothing is covered are not
   * among them.
   */
  get windows(): SeriesWindow[] {
    return this.#core.object.windows();
  }

  /** The sum of all rows. */
  get totals(): Counts {
    return countsOf(this.#core.object.totals());
  }

  /** How many rows. */
  get length(): number {
    return this.#core.object.length();
  }

  /** The rows in sorted order. */
  *[Symbol.iterator](): IterableIterator<SeriesRow<D>> {
    const core = this.#core.object;
    const [names, columns] = [this.dimensions, core.dimensionColumns()];
    const [window, counts] = [this.#window(), countColumns(core.countColumns())];
    for (let row = 0; row < counts.success.length; row++) {
      const dimensions = valuesAt<D>(names, columns, row);
      yield new SeriesRow(valueAt(window, row), dimensions, counts, row);
    }
  }

  /**
   * The series as columns: copies, which the caller may keep, change or transfer. The window of
   * row `i` is `window.dictionary[window.ids[i]]`, and the dictionary is `windows`.
   *
   * @example
   * const { window, errors } = table.groupBy().byWindow("15m").columns();
   * chart(window.dictionary.map(({ start }) => new Date(start)), errors);
   */
  columns(): SeriesColumns<D> {
    const core = this.#core.object;
    return {
      window: this.#window(),
      ...dimensionColumns<D>(this.dimensions, core.dimensionColumns()),
      ...countColumns(core.countColumns()),
    };
  }

  #window(): DictionaryColumn<SeriesWindow> {
    const ids = this.#core.object.windowIds() as Uint32Array<ArrayBuffer>;
    return { dictionary: this.windows, ids };
  }

  /** The rates of each row as columns. Where a row has no rate there is NaN, and `null` in rows. */
  rates(): RateColumns {
    return rateColumns(this.#core.object.rates());
  }

  /**
   * The series as a JSON value with every count as a string of digits, window by window. Nothing
   * reads it back: save the table.
   */
  toJSON(): SeriesReport {
    return JSON.parse(this.#core.object.toJson()) as SeriesReport;
  }

  /** Frees the memory now. */
  [Symbol.dispose](): void {
    this.#core.release();
  }

  /** @internal */
  [inspectSymbol](_depth: number, options: object, inspect: Inspect): string {
    if (this.#core.released) return "Series (disposed of)";
    const { dimensions, metric, step, length, windows, totals } = this;
    return `Series ${inspect({ dimensions, metric, step, length, windows, totals }, options)}`;
  }
}

import type { CoreComparison } from "../wasm/tallyfold_wasm.js";
import {
  type CountColumns,
  countColumns,
  type DictionaryColumn,
  dimensionColumns,
  named,
  type PerDimension,
  type ShareColumns,
  shareColumns,
  valueAt,
  valuesAt,
} from "./columns.js";
import { type Counts, countsOf, orNull } from "./counts.js";
import { Handle } from "./handle.js";
import { type Inspect, inspectSymbol } from "./inspect.js";
import { type CountTable, compareTables, type SavedCounts } from "./table.js";
import type { CountName, Deltas, Dimension, Metric, Presence, Shares, Window } from "./types.js";

/** One group of either table, and how its counts changed. */
export interface ComparisonRow<D extends Dimension | undefined = Dimension | undefined> {
  /** The value of each dimension of the tables. */
  readonly dimensions: PerDimension<D, string>;
  /** Which of the tables has the group. */
  readonly presence: Presence;
  /** The counts before; `null` if the group is new. */
  readonly before: Counts | null;
  /** The counts after; `null` if the group has vanished. */
  readonly after: Counts | null;
  /** How the counts changed, where those of a group that is not there are 0. */
  readonly delta: Deltas;
  /** What part of the change of each total the group causes. */
  readonly share: Shares;
}

/**
 * A comparison as columns of equal length: one per dimension, by its name, the presence, and the
 * counts of both tables, which are 0 where a table lacks the group. Deltas do not fit in the
 * numbers of a typed array: rows have them, as `bigint`.
 */
export type ComparisonColumns<D extends Dimension | undefined = Dimension | undefined> =
  PerDimension<D, DictionaryColumn> & {
    readonly presence: DictionaryColumn<Presence>;
    readonly before: CountColumns;
    readonly after: CountColumns;
  };

/** A comparison as JSON: what {@link Comparison.toJSON} gives, and Python's `to_json` too. */
export interface ComparisonReport {
  format: string;
  metric: Metric | null;
  dimensions: Dimension[];
  filter: { dimension: Dimension; values: string[] }[];
  before: { coverage: { start: string; end: string }[]; totals: SavedCounts };
  after: { coverage: { start: string; end: string }[]; totals: SavedCounts };
  delta: SavedCounts;
  rows: {
    values: string[];
    presence: Presence;
    before: SavedCounts | null;
    after: SavedCounts | null;
    delta: SavedCounts;
  }[];
}

/**
 * Compares two tables, group by group.
 *
 * They may cover any time: windows of other lengths, or the same time twice. Counts are compared
 * as they are; `beforeCoverage` and `afterCoverage` say which time they are of.
 *
 * @throws {@link TallyfoldError} with code `incompatible_tables` for other dimensions, another
 * metric or another filter.
 * @example
 * const yesterday = CountTable.fromJSON(localStorage.getItem("yesterday") ?? "");
 * for (const { dimensions, delta, share } of compare(yesterday, table).top(5)) {
 *   console.log(dimensions, delta.errors, share.errors);
 * }
 */
export function compare<D extends Dimension | undefined>(
  before: CountTable<D>,
  after: CountTable<NoInfer<D>>,
): Comparison<D> {
  return Comparison.of(compareTables(before, after));
}

/**
 * What changed from one table to another: one row for each group of either. {@link compare} makes
 * it, and it lives on when the tables are disposed of.
 *
 * A comparison does not change. Its rows are sorted by their dimension values (by UTF-8 bytes, in
 * the order of `dimensions`).
 *
 * Its memory is freed as that of a {@link CountTable}.
 */
export class Comparison<D extends Dimension | undefined = Dimension | undefined>
  implements Iterable<ComparisonRow<D>>
{
  readonly #core: Handle<CoreComparison>;

  private constructor(comparison: CoreComparison) {
    this.#core = new Handle(comparison);
  }

  /** @internal */
  static of<D extends Dimension | undefined>(comparison: CoreComparison): Comparison<D> {
    // Bundlers rename a class that refers to itself by name.
    return new this(comparison);
  }

  /** The names of the dimensions, in sorting order. */
  get dimensions(): (D & Dimension)[] {
    return this.#core.object.dimensions();
  }

  /** The endpoint that both tables are from, if they knew it. */
  get metric(): Metric | undefined {
    return this.#core.object.metric() as Metric | undefined;
  }

  /** What the table before covers: sorted windows, with those that meet joined. */
  get beforeCoverage(): Window[] {
    return this.#core.object.beforeCoverage();
  }

  /** What the table after covers: sorted windows, with those that meet joined. */
  get afterCoverage(): Window[] {
    return this.#core.object.afterCoverage();
  }

  /** The totals of the table before. */
  get beforeTotals(): Counts {
    return countsOf(this.#core.object.beforeTotals());
  }

  /** The totals of the table after. */
  get afterTotals(): Counts {
    return countsOf(this.#core.object.afterTotals());
  }

  /** How the totals changed: the sum of the deltas of all rows. */
  get totalDelta(): Deltas {
    return this.#core.object.totalDelta();
  }

  /** How many rows. */
  get length(): number {
    return this.#core.object.length();
  }

  /** The rows in sorted order. */
  *[Symbol.iterator](): IterableIterator<ComparisonRow<D>> {
    const core = this.#core.object;
    const [names, columns] = [this.dimensions, core.dimensionColumns()];
    const presence: DictionaryColumn<Presence> = core.presences();
    const [before, after] = [countColumns(core.before()), countColumns(core.after())];
    const shares = shareColumns(core.shares());
    const countsAt = ({ success, errors, filtered }: CountColumns, row: number) =>
      countsOf([success[row], errors[row], filtered[row]] as bigint[]);
    for (let row = 0; row < presence.ids.length; row++) {
      yield changed(
        valuesAt<D>(names, columns, row),
        valueAt(presence, row),
        countsAt(before, row),
        countsAt(after, row),
        [shares.success[row], shares.errors[row], shares.filtered[row]],
      );
    }
  }

  /** The groups that only the table after has, in sorted order. */
  get new(): ComparisonRow<D>[] {
    return [...this].filter(({ presence }) => presence === "new");
  }

  /** The groups that only the table before has, in sorted order. */
  get vanished(): ComparisonRow<D>[] {
    return [...this].filter(({ presence }) => presence === "vanished");
  }

  /**
   * The `n` rows with the largest change, up or down, largest first; equal changes in sorted order.
   *
   * @param n At most how many rows.
   * @param options By which count to rank: `errors` unless told otherwise.
   * @throws {@link TallyfoldError} with code `invalid_argument` for any other name or number.
   */
  top(n: number, options: { readonly by?: CountName | undefined } = {}): ComparisonRow<D>[] {
    const names = this.dimensions;
    const rows: Cell[][] = this.#core.object.top(n, options.by ?? "errors");
    return rows.map((cells) => {
      const [before, after] = [cells.slice(names.length), cells.slice(names.length + 3)];
      const [presence, ...shares] = cells.slice(names.length + 6);
      return changed(
        named(names, (at) => cells[at]) as PerDimension<D, string>,
        presence as Presence,
        countsOf(before as bigint[]),
        countsOf(after as bigint[]),
        shares as number[],
      );
    });
  }

  /**
   * The comparison as columns: copies, which the caller may keep, change or transfer.
   *
   * @example
   * const { integration, before, after } = compare(table, table).columns();
   * chart(integration?.dictionary, before.errors, after.errors);
   */
  columns(): ComparisonColumns<D> {
    const core = this.#core.object;
    return {
      ...dimensionColumns<D>(this.dimensions, core.dimensionColumns()),
      presence: core.presences(),
      before: countColumns(core.before()),
      after: countColumns(core.after()),
    };
  }

  /** The shares of each row as columns. Where a row has no share there is NaN, and `null` in rows. */
  shares(): ShareColumns {
    return shareColumns(this.#core.object.shares());
  }

  /**
   * The comparison as a JSON value with every count as a string of digits, and every delta as one
   * with a `-` where it is negative. Nothing reads it back: save the tables.
   */
  toJSON(): ComparisonReport {
    return JSON.parse(this.#core.object.toJson()) as ComparisonReport;
  }

  /** Frees the memory now. */
  [Symbol.dispose](): void {
    this.#core.release();
  }

  /** @internal */
  [inspectSymbol](_depth: number, options: object, inspect: Inspect): string {
    if (this.#core.released) return "Comparison (disposed of)";
    const { dimensions, metric, length, beforeCoverage, afterCoverage, totalDelta } = this;
    const summary = { dimensions, metric, length, beforeCoverage, afterCoverage, totalDelta };
    return `Comparison ${inspect(summary, options)}`;
  }
}

type Cell = string | bigint | number;

function changed<D extends Dimension | undefined>(
  dimensions: PerDimension<D, string>,
  presence: Presence,
  before: Counts,
  after: Counts,
  [success, errors, filtered]: (number | undefined)[],
): ComparisonRow<D> {
  return {
    dimensions,
    presence,
    before: presence === "new" ? null : before,
    after: presence === "vanished" ? null : after,
    delta: {
      success: after.success - before.success,
      errors: after.errors - before.errors,
      filtered: after.filtered - before.filtered,
    },
    share: { success: orNull(success), errors: orNull(errors), filtered: orNull(filtered) },
  };
}

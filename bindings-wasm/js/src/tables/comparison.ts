import type { CoreComparison } from "../../wasm/tallyfold_wasm.js";
import { exact, type Inspect, inspectSymbol } from "../values/printing.js";
import type { Deltas, Dimension, Metric, Presence, Shares, Window } from "../values/types.js";
import {
  type CountColumns,
  type DeltaColumns,
  type DictionaryColumn,
  deltaColumns,
  type NumberColumns,
  numbersOf,
  type PerDimension,
  type ShareColumns,
  valueAt,
  valuesAt,
} from "./columns.js";
import { type Counts, countsOf, orNull, rowOf, type SavedCounts } from "./counts.js";
import { Frame } from "./frame.js";
import { type CountTable, coreOf } from "./table.js";

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
  /** How the counts changed. If a table lacks the group, its counts are 0. */
  readonly delta: Deltas;
  /** The group's share of the change of each total. */
  readonly share: Shares;
  /** The row with counts as strings of digits, for `JSON.stringify`. */
  toJSON(): object;
}

/**
 * A comparison as columns of equal length: one per dimension, by its name, the presence, and the counts of both
 * tables, which are 0 where a table lacks the group. Don't subtract these unsigned columns, because a negative
 * difference wraps around: use {@link Comparison.deltas}.
 */
export type ComparisonColumns<D extends Dimension | undefined = Dimension | undefined> =
  PerDimension<D, DictionaryColumn> & {
    readonly presence: DictionaryColumn<Presence>;
    readonly before: CountColumns;
    readonly after: CountColumns;
  };

/** A comparison as JSON: the result of {@link Comparison.toJSON}, and of Python's `to_json`. */
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
 * The tables may cover any times: windows of different lengths, or the same time. Counts are not scaled;
 * `beforeCoverage` and `afterCoverage` show the covered times.
 *
 * @throws {@link TallyfoldError} with code `incompatible_tables` if the tables differ in dimensions, metric or
 * filter.
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
  return Comparison.of(coreOf("before", before).compare(coreOf("after", after)));
}

/**
 * The changes from one table to another: one row for each group that occurs in either table. {@link compare}
 * returns it, and it stays valid when the tables are disposed of.
 *
 * A comparison is immutable. Its rows are sorted by their dimension values (by UTF-8 bytes, in the order of
 * `dimensions`).
 *
 * Its memory is freed like the memory of a {@link CountTable}.
 */
export class Comparison<D extends Dimension | undefined = Dimension | undefined> extends Frame<
  D,
  ComparisonRow<D>,
  ComparisonReport
> {
  private constructor(comparison: CoreComparison) {
    super(comparison, rowsOf<D>);
  }

  /** @internal */
  static of<D extends Dimension | undefined>(comparison: CoreComparison): Comparison<D> {
    // Bundlers rename a class that refers to itself by name.
    return new this(comparison);
  }

  /** The time that the table `before` covers: sorted windows; adjacent windows are joined. */
  get beforeCoverage(): Window[] {
    return own(this).beforeCoverage();
  }

  /** The time that the table `after` covers: sorted windows; adjacent windows are joined. */
  get afterCoverage(): Window[] {
    return own(this).afterCoverage();
  }

  /** The totals of the table `before`. */
  get beforeTotals(): Counts {
    return countsOf(own(this).beforeTotals());
  }

  /** The totals of the table `after`. */
  get afterTotals(): Counts {
    return countsOf(own(this).afterTotals());
  }

  /** How the totals changed: the sum of the deltas of all rows. */
  get totalDelta(): Deltas {
    return exact(own(this).totalDelta() as Deltas);
  }

  /** The groups that occur only in the table `after`, in sorted order. */
  get new(): ComparisonRow<D>[] {
    return [...this].filter(({ presence }) => presence === "new");
  }

  /** The groups that occur only in the table `before`, in sorted order. */
  get vanished(): ComparisonRow<D>[] {
    return [...this].filter(({ presence }) => presence === "vanished");
  }

  /**
   * The comparison as columns: copies, which you may keep, change or transfer.
   *
   * @example
   * const { integration, before, after } = compare(table, table).columns();
   * chart(integration?.dictionary, before.errors, after.errors);
   */
  columns(): ComparisonColumns<D> {
    return own(this).columns() as ComparisonColumns<D>;
  }

  /**
   * How the counts of each row changed, as columns of signed integers.
   *
   * @throws {@link TallyfoldError} with code `count_overflow` for a change that does not fit into a signed 64-bit
   * integer.
   */
  deltas(): DeltaColumns {
    return deltaColumns(own(this).deltas());
  }

  /**
   * The counts and their changes as plain numbers, for chart libraries.
   *
   * @throws {@link TallyfoldError} with code `count_overflow` for a number beyond 2^53, up to which numbers are
   * exact.
   */
  numbers(): { readonly [side in "before" | "after" | "delta"]: NumberColumns } {
    const { before, after } = own(this).columns();
    return { before: numbersOf(before), after: numbersOf(after), delta: numbersOf(this.deltas()) };
  }

  /**
   * The shares of each row as columns. NaN means that there is no share; in rows, that is `null`.
   */
  shares(): ShareColumns {
    return own(this).fractions() as ShareColumns;
  }

  /** @internal */
  [inspectSymbol](_depth: number, options: object, inspect: Inspect): string {
    return Frame.inspected("Comparison", this, INSPECTED, [options, inspect]);
  }
}

const INSPECTED = [
  "dimensions",
  "metric",
  "length",
  "beforeCoverage",
  "afterCoverage",
  "totalDelta",
] as const;

function own(comparison: Comparison): CoreComparison {
  return Frame.coreOf(comparison) as CoreComparison;
}

function* rowsOf<D extends Dimension | undefined>(
  core: CoreComparison,
  positions?: Uint32Array,
): IterableIterator<ComparisonRow<D>> {
  const names = core.dimensions();
  const columns = core.columns(positions);
  const shares = core.fractions(positions);
  const deltas: Deltas[] = core.deltas(positions);
  for (const [row, delta] of deltas.entries()) {
    const presence: Presence = valueAt(columns.presence, row);
    yield exact({
      dimensions: valuesAt<D>(names, columns, row),
      presence,
      before: presence === "new" ? null : rowOf({}, columns.before, row),
      after: presence === "vanished" ? null : rowOf({}, columns.after, row),
      delta: exact(delta),
      share: {
        success: orNull(shares.success[row]),
        errors: orNull(shares.errors[row]),
        filtered: orNull(shares.filtered[row]),
      },
    });
  }
}

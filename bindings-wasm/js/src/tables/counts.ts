import { core } from "../loading/library.js";
import { exact } from "../values/printing.js";
import type { CountName, Dimension, Rates } from "../values/types.js";
import type { CountColumns, PerDimension } from "./columns.js";

/** Counts in JSON: strings of digits, because JSON numbers don't represent large counts exactly. */
export type SavedCounts = { [N in CountName]: string };

/** The three counts, each a number of events, exact to 2^64 - 1. */
export interface Counts {
  /** Events delivered. */
  readonly success: bigint;
  /** Events not sent due to an error. */
  readonly errors: bigint;
  /** Events filtered from the stream due to playbook, pipeline or compliance filters. */
  readonly filtered: bigint;
  /** The rates of these counts. A copy of the object does not contain them. */
  readonly rates: Rates;
  /** The counts as strings of digits, for `JSON.stringify`. */
  toJSON(): SavedCounts;
}

/** @internal Counts as a plain object. `rates` and `toJSON` are not enumerable, so they are not shown and not copied. */
export function countsOf<T extends Omit<Counts, "rates" | "toJSON">>(
  counts: T,
): T & Pick<Counts, "rates"> {
  Object.defineProperty(counts, "rates", RATES);
  return exact(counts) as unknown as T & Pick<Counts, "rates">;
}

const RATES: PropertyDescriptor & ThisType<Counts> = {
  // Only the core divides.
  get() {
    const [delivery, error, filter] = core().rates(this.success, this.errors, this.filtered);
    return { delivery: orNull(delivery), error: orNull(error), filter: orNull(filter) };
  },
};

/** @internal Converts NaN to `null`: in typed arrays, NaN means that there is no value. */
export function orNull(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}

/**
 * One combination of dimension values and its counts: a plain object. A copy such as `{ ...row }` contains only the
 * values, without `rates` and `toJSON`; for `JSON.stringify`, pass {@link digits}.
 */
export interface Row<D extends Dimension | undefined = Dimension | undefined> extends Counts {
  /** The value of each dimension of the table. */
  readonly dimensions: PerDimension<D, string>;
  /** The row with counts as strings of digits, for `JSON.stringify`. */
  toJSON(): { dimensions: PerDimension<D, string> } & SavedCounts;
}

/** @internal Adds the counts of a row to `named`. Assigning is five times faster than copying. */
export function rowOf<T extends object>(
  named: T,
  { success, errors, filtered }: CountColumns,
  row: number,
): T & Counts {
  const all = named as T & { [N in CountName]: bigint };
  all.success = success[row] as bigint;
  all.errors = errors[row] as bigint;
  all.filtered = filtered[row] as bigint;
  return countsOf(all) as unknown as T & Counts;
}

import type { Dimension } from "../values/types.js";
import type { CountColumns, PerDimension } from "./columns.js";
import { type Counts, countsOf, type SavedCounts } from "./counts.js";

/**
 * One combination of dimension values and its counts: a plain object. `rates` and `toJSON` are not copied:
 * `{ ...row }` has values only.
 */
export interface Row<D extends Dimension | undefined = Dimension | undefined> extends Counts {
  /** The value of each dimension of the table. */
  readonly dimensions: PerDimension<D, string>;
  /** The row with counts as strings of digits, for `JSON.stringify`. */
  toJSON(): { dimensions: PerDimension<D, string> } & SavedCounts;
}

/** @internal */
export function rowOf<D extends Dimension | undefined>(
  dimensions: PerDimension<D, string>,
  { success, errors, filtered }: CountColumns,
  row: number,
): Row<D> {
  return countsOf({
    dimensions,
    success: success[row] as bigint,
    errors: errors[row] as bigint,
    filtered: filtered[row] as bigint,
  }) as unknown as Row<D>;
}

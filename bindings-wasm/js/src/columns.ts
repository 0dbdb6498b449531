import { Counts } from "./counts.js";
import type { Dimension } from "./types.js";

/**
 * Something per dimension. Where it is not known which dimensions there are, each may be missing:
 * `undefined` among `D` says so.
 */
export type PerDimension<D extends Dimension | undefined, T> = [D] extends [Dimension]
  ? { readonly [N in D]: T }
  : { readonly [N in Dimension]?: T };

/** A column of values that repeat: the value of row `i` is `dictionary[ids[i]]`. */
export interface DictionaryColumn<T = string> {
  /** The distinct values. */
  readonly dictionary: T[];
  /** Per row, the place of its value in the dictionary. */
  readonly ids: Uint32Array<ArrayBuffer>;
}

/** The three counts as columns: per row, a number of events, exact to 2^64 - 1. */
export interface CountColumns {
  /** Events delivered. */
  readonly success: BigUint64Array<ArrayBuffer>;
  /** Events not sent due to an error. */
  readonly errors: BigUint64Array<ArrayBuffer>;
  /** Events filtered. */
  readonly filtered: BigUint64Array<ArrayBuffer>;
}

/** {@link Rates} as columns, for charts: per row, a number from 0 to 1, or NaN if there is none. */
export interface RateColumns {
  /** `success / (success + errors)`. */
  readonly delivery: Float64Array<ArrayBuffer>;
  /** `errors / (success + errors)`. */
  readonly error: Float64Array<ArrayBuffer>;
  /** `filtered / (success + errors + filtered)`. */
  readonly filter: Float64Array<ArrayBuffer>;
}

/** {@link Shares} as columns, for charts: per row, a number, or NaN if there is none. */
export interface ShareColumns {
  /** The part of the change of events delivered. */
  readonly success: Float64Array<ArrayBuffer>;
  /** The part of the change of events not sent due to an error. */
  readonly errors: Float64Array<ArrayBuffer>;
  /** The part of the change of events filtered. */
  readonly filtered: Float64Array<ArrayBuffer>;
}

/** @internal The value of each dimension at one row. */
export function valuesAt<D extends Dimension | undefined>(
  names: readonly Dimension[],
  columns: { readonly [N in Dimension]?: DictionaryColumn },
  row: number,
): PerDimension<D, string> {
  const values: { [N in Dimension]?: string } = {};
  for (const name of names) values[name] = valueAt(columns[name] as DictionaryColumn, row);
  return values as PerDimension<D, string>;
}

/** @internal */
export function valueAt<T>({ dictionary, ids }: DictionaryColumn<T>, row: number): T {
  return dictionary[ids[row] as number] as T;
}

/** @internal */
export function countsAt({ success, errors, filtered }: CountColumns, row: number): Counts {
  return new Counts(success[row] as bigint, errors[row] as bigint, filtered[row] as bigint);
}

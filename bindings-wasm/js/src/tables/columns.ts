import { TallyfoldError } from "../values/error.js";
import type { CountName, Dimension } from "../values/types.js";

/**
 * A property for each dimension. If `D` contains `undefined`, the dimensions are not known, and each property may
 * be missing.
 */
export type PerDimension<D extends Dimension | undefined, T> = [D] extends [Dimension]
  ? { readonly [N in D]: T }
  : { readonly [N in Dimension]?: T };

/** A column of values that repeat: the value of row `i` is `dictionary[ids[i]]`. */
export interface DictionaryColumn<T = string> {
  /** The distinct values. */
  readonly dictionary: T[];
  /** Per row, the position of its value in the dictionary. */
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
  /** The share of the change of events delivered. */
  readonly success: Float64Array<ArrayBuffer>;
  /** The share of the change of events not sent due to an error. */
  readonly errors: Float64Array<ArrayBuffer>;
  /** The share of the change of events filtered. */
  readonly filtered: Float64Array<ArrayBuffer>;
}

/** How the three counts changed, as columns: per row, a number of events with its sign. */
export interface DeltaColumns {
  /** The change of events delivered. */
  readonly success: BigInt64Array<ArrayBuffer>;
  /** The change of events not sent due to an error. */
  readonly errors: BigInt64Array<ArrayBuffer>;
  /** The change of events filtered. */
  readonly filtered: BigInt64Array<ArrayBuffer>;
}

/** The three counts as columns of numbers, for charts. */
export interface NumberColumns {
  /** Events delivered. */
  readonly success: number[];
  /** Events not sent due to an error. */
  readonly errors: number[];
  /** Events filtered. */
  readonly filtered: number[];
}

/** @internal Returns the counts as numbers. Throws an error if a count is too large for that. */
export function numbersOf({
  success,
  errors,
  filtered,
}: CountColumns | DeltaColumns): NumberColumns {
  return {
    success: numbers("success", success),
    errors: numbers("errors", errors),
    filtered: numbers("filtered", filtered),
  };
}

function numbers(name: string, counts: Iterable<bigint>): number[] {
  return Array.from(counts, (count, row) => {
    if (-EXACT <= count && count <= EXACT) return Number(count);
    throw tooLarge(`${name}: ${count} in row ${row} is beyond 2^53, up to which numbers are exact`);
  });
}

/** Up to here, a `number` represents every whole number exactly. */
const EXACT = 2n ** 53n;

/** @internal Returns changes as columns. Throws an error if a change is too large for that. */
export function deltaColumns(
  deltas: readonly { readonly [N in CountName]: bigint }[],
): DeltaColumns {
  const column = (name: CountName) =>
    BigInt64Array.from(deltas, ({ [name]: delta }, row) => {
      if (BigInt.asIntN(64, delta) === delta) return delta;
      throw tooLarge(`${name}: ${delta} in row ${row} is beyond 64 bits with a sign`);
    });
  return { success: column("success"), errors: column("errors"), filtered: column("filtered") };
}

function tooLarge(message: string): TallyfoldError {
  const text = `count_overflow: ${message}; the rows have it as a bigint`;
  return TallyfoldError.of({ code: "count_overflow", kind: "response", message: text });
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

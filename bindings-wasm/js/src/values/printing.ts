// How values look in JSON and in Node's console.

/** An object as JSON has it: each `bigint` is a string of digits. */
export type Digits<T> = {
  [K in keyof T as K extends "rates" | "toJSON" ? never : K]: T[K] extends bigint ? string : T[K];
};

/** What has a `bigint`, which JSON has no number for. */
export interface Exact<J> {
  /** The same with strings of digits, for `JSON.stringify`. */
  toJSON(): J;
}

/**
 * @internal A plain object that `JSON.stringify` takes although it has a `bigint`. `toJSON` does not show and is not
 * copied: a copy is what React and `structuredClone` take.
 */
export function exact<T extends object>(object: T): T & Exact<Digits<T>> {
  return Object.defineProperty(object, "toJSON", TO_JSON) as T & Exact<Digits<T>>;
}

const TO_JSON: PropertyDescriptor & ThisType<object> = {
  value() {
    const all = Object.entries(this).map(([name, value]) => [name, digits(name, value)]);
    return Object.fromEntries(all);
  },
};

/**
 * For `JSON.stringify`: returns a string of digits for each `bigint`, because JSON has no number for it. Tables,
 * series, comparisons and their rows don't need it; `rows` and copies such as `{ ...row }` do, because they contain
 * only values.
 *
 * @example
 * const text = JSON.stringify(table.rows, digits);
 */
export function digits(_name: string, value: unknown): unknown {
  return typeof value === "bigint" ? `${value}` : value;
}

/** @internal A copy with plain objects all the way down, and nothing in it but values. */
export function bare<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, bare(inner)])) as T;
}

/**
 * @internal Lets `JSON.stringify` take a result with all objects in it: each `bigint` becomes a string of digits, because
 * JSON has no number for it.
 */
export function stringable<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const inner of Object.values(value)) stringable(inner);
  return Array.isArray(value) ? value : exact(value);
}

/** @internal Under this name Node's `util.inspect` and `console.log` look for an object's own description. */
export const inspectSymbol = Symbol.for("nodejs.util.inspect.custom");

/** @internal `util.inspect`, which Node hands over, so that no browser has to have it. */
export type Inspect = (value: object, options: object) => string;

/** @internal What an inspector shows of an object, also when it can't be asked any more. */
export function shown(name: string, isReleased: boolean, show: () => string): string {
  if (isReleased) return `${name} (disposed of)`;
  try {
    return `${name} ${show()}`;
  } catch {
    return `${name} (ended)`;
  }
}

// How values look in JSON and in Node's console.

/** The form of an object in JSON: each `bigint` is a string of digits. */
export type Digits<T> = {
  [K in keyof T as K extends "rates" | "toJSON" ? never : K]: T[K] extends bigint ? string : T[K];
};

/** An object with a `bigint`, which JSON can't represent as a number. */
export interface Exact<J> {
  /** The object with a string of digits for each `bigint`, for `JSON.stringify`. */
  toJSON(): J;
}

/**
 * @internal Lets `JSON.stringify` accept a plain object with a `bigint`. `toJSON` is not enumerable, so it isn't shown or
 * copied, and React and `structuredClone` accept a copy.
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

/** @internal A deep copy that consists of plain objects with nothing but values. */
export function bare<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, bare(inner)])) as T;
}

/**
 * @internal Lets `JSON.stringify` accept a result and all objects in it: each `bigint` becomes a string of digits, because
 * JSON has no number for it.
 */
export function stringable<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const inner of Object.values(value)) stringable(inner);
  return Array.isArray(value) ? value : exact(value);
}

/** @internal The symbol under which Node's `util.inspect` and `console.log` look for an object's own description. */
export const inspectSymbol = Symbol.for("nodejs.util.inspect.custom");

/** @internal `util.inspect`. Node passes it as an argument, so a browser doesn't need it. */
export type Inspect = (value: object, options: object) => string;

/** @internal What an inspector shows of an object, even if the object was disposed of or its instance has ended. */
export function shown(name: string, isReleased: boolean, show: () => string): string {
  if (isReleased) return `${name} (disposed of)`;
  try {
    return `${name} ${show()}`;
  } catch {
    return `${name} (ended)`;
  }
}

import { exact } from "./exact.js";

/**
 * @internal Lets `JSON.stringify` take a result with all objects in it: each `bigint` becomes a string of digits, because
 * JSON has no number for it.
 */
export function stringable<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const inner of Object.values(value)) stringable(inner);
  return Array.isArray(value) ? value : exact(value);
}

import { invalidArgument } from "./error.js";

/** The bytes themselves, also those of another realm, for which `instanceof` fails. */
export function bytes(argument: string, value: Uint8Array): Uint8Array {
  // The tag tells the truth: typed arrays compute it from what they are.
  if (tag(value) === "Uint8Array") return value;
  throw invalidArgument(argument, "want a Uint8Array");
}

/** The same fields, each `Date` as text. What is neither is for the core to judge. */
export function timed<T>(fields: T): T {
  if (typeof fields !== "object" || fields === null) return fields;
  const text = (value: unknown): unknown => (tag(value) === "Date" ? iso(value as Date) : value);
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, text(value)])) as T;
}

function iso(date: Date): string {
  return Number.isNaN(date.getTime()) ? "Invalid Date" : date.toISOString();
}

function tag(value: unknown): string {
  return Object.prototype.toString.call(value).slice("[object ".length, -1);
}

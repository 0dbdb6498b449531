// Checks the arguments of untyped callers. The errors name the argument.

import type { MachineArguments } from "./declared.js";
import { invalidAddress, invalidArgument, unknownArgument } from "./error.js";
import type { AccessToken } from "./types.js";

/** Returns the bytes. They may be of another realm, for which `instanceof` fails. */
export function bytes(argument: string, value: Uint8Array, want = "want a Uint8Array"): Uint8Array {
  if (typedArray(value) === "Uint8Array") return value;
  throw invalidArgument(argument, want);
}

/** Returns alternating names and values, as the core expects headers. */
export function flat(headers: Iterable<readonly [string, string]>): string[] {
  if (typeof headers?.[Symbol.iterator] !== "function") {
    throw invalidArgument("headers", "want pairs of names and values");
  }
  return Array.from(headers, (pair) => {
    if (!Array.isArray(pair)) throw invalidArgument("headers", "want pairs of names and values");
    return [pair[0], pair[1]];
  }).flat() as string[];
}

/** Returns pairs of alternating names and values, as the core returns headers. */
export function pairsOf(flat: readonly string[]): [string, string][] {
  const names = flat.filter((_, index) => index % 2 === 0);
  return names.map((name, index) => [name, flat[2 * index + 1] ?? ""]);
}

/** Returns alternating names and values of headers; for anything else, a value that the core refuses. */
export function flatHeaders(headers: MachineArguments["headers"]): unknown {
  if (typeof headers !== "object" || headers === null) return headers;
  const pairs = Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  return pairs.every((pair) => pair?.length === 2) ? pairs.flat() : {};
}

/** Checks the types of a token, and returns a copy of it. */
export function checkedToken(token: AccessToken): AccessToken {
  const { accessToken, expiresIn } = token ?? {};
  if (typeof accessToken !== "string") {
    throw invalidArgument("accessToken", "want { accessToken, expiresIn }, the first a string");
  }
  const lifetime = expiresIn ?? undefined;
  if (!["undefined", "number", "bigint", "string"].includes(typeof lifetime)) {
    throw invalidArgument("expiresIn", "want a number of seconds");
  }
  return { accessToken, expiresIn: lifetime };
}

/** The message for options that aren't an object. */
export const OPTIONS = "want an object of options";

/**
 * Returns a copy of an object of options. `null` counts as no options.
 *
 * @param known The names of all options, unless the core gets the options, which refuses unknown names.
 */
export function fieldsOf<T extends object>(
  argument: string,
  value: T,
  want: string,
  known?: (keyof T & string)[],
): Partial<T> {
  if (value !== undefined && (typeof value !== "object" || Array.isArray(value))) {
    throw invalidArgument(argument, want);
  }
  const fields = own(value);
  const odd = Object.keys(fields).find((name) => known?.includes(name as never) === false);
  if (odd !== undefined) throw unknownArgument(odd, `want ${known?.join(" or ")}`);
  return fields;
}

/**
 * Returns a copy with the object's own properties and without a prototype. Other code in the program may have added an
 * option to the prototype of all objects.
 */
export function own<T extends object | null | undefined>(value: T): T & object {
  return Object.assign(Object.create(null), value);
}

/** Returns a copy of a query, because the caller may change the query while a call waits. */
export function copied<Q extends object>(query: Q): Q {
  // A query is needed, so `null` is as wrong as any other value.
  const copy = fieldsOf("query", query ?? "", "want an object") as Record<string, unknown>;
  for (const [name, value] of Object.entries(copy)) {
    if (Array.isArray(value)) copy[name] = value.slice();
    if (value instanceof Date) copy[name] = new Date(value);
  }
  return copy as Q;
}

/** Returns a function, if there is one. `null` counts as absent. */
export function optionalFunction<F>(argument: string, value: F, want: string): F | undefined {
  if (typeof value === "function") return value;
  if (value === undefined || value === null) return undefined;
  throw invalidArgument(argument, want);
}

/** Returns `true` or `false`, if the option is set. `null` counts as absent. */
export function optionalFlag(argument: string, value: unknown): boolean | undefined {
  if (value === undefined || value === null || typeof value === "boolean")
    return value ?? undefined;
  throw invalidArgument(argument, "want true or false");
}

/** Returns a signal, if there is one. It may be of another realm or a polyfill. `null` counts as absent. */
export function optionalSignal(value: AbortSignal | undefined): AbortSignal | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value.throwIfAborted === "function") return value;
  throw invalidArgument("signal", "want an AbortSignal");
}

const typedArrays = Object.getPrototypeOf(Uint8Array.prototype);

/** Returns the kind of a typed array. Unlike `Symbol.toStringTag` of the object itself, this can't be faked. */
function typedArray(value: unknown): unknown {
  return Reflect.get(typedArrays, Symbol.toStringTag, value);
}

/** Returns the text of an address, which may be a `URL` of any realm. In a page, a path gets the page's origin. */
export function addressOf(argument: string, value: unknown): unknown {
  const text = isUrl(value) ? value.href : value;
  if (typeof text !== "string" || !/^\/(?!\/)/.test(text)) return text;
  const { location } = globalThis as { location?: { origin?: string } };
  if (/^https?:/.test(location?.origin ?? "")) return `${location?.origin}${text}`;
  throw invalidAddress(
    argument,
    "a path is allowed only in a page; want https://host.example/prefix",
  );
}

/** Whether this is a `URL`, also of another realm. */
export function isUrl(value: unknown): value is URL {
  return Object.prototype.toString.call(value) === "[object URL]";
}

/** Joins pieces of bytes. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

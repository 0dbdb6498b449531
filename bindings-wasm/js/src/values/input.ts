// What untyped callers hand over: read with care, and refused by name.

import type { MachineArguments } from "./declared.js";
import { invalidAddress, invalidArgument } from "./error.js";
import type { AccessToken } from "./types.js";

/** The bytes themselves, also those of another realm, for which `instanceof` fails. */
export function bytes(argument: string, value: Uint8Array, want = "want a Uint8Array"): Uint8Array {
  if (typedArray(value) === "Uint8Array") return value;
  throw invalidArgument(argument, want);
}

/** Names and values in turn, as the core takes headers. */
export function flat(headers: Iterable<readonly [string, string]>): string[] {
  if (typeof headers?.[Symbol.iterator] !== "function") {
    throw invalidArgument("headers", "want pairs of names and values");
  }
  return Array.from(headers, (pair) => {
    if (!Array.isArray(pair)) throw invalidArgument("headers", "want pairs of names and values");
    return [pair[0], pair[1]];
  }).flat() as string[];
}

/** Pairs of what comes in turn, as the core gives headers. */
export function pairsOf(flat: readonly string[]): [string, string][] {
  const names = flat.filter((_, index) => index % 2 === 0);
  return names.map((name, index) => [name, flat[2 * index + 1] ?? ""]);
}

/** Names and values of headers in turn, as the core takes them; what are no headers, it refuses. */
export function flatHeaders(headers: MachineArguments["headers"]): unknown {
  if (typeof headers !== "object" || headers === null) return headers;
  const pairs = Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  return pairs.every((pair) => pair?.length === 2) ? pairs.flat() : {};
}

/** A copy of a token that is safe to read. */
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

/** What options that are no object at all are told. */
export const OPTIONS = "want an object of options";

/** Options that were given as one object; `null` is as good as none. */
export function fieldsOf<T extends object>(argument: string, value: T, want: string): Partial<T> {
  if (value !== undefined && (typeof value !== "object" || Array.isArray(value))) {
    throw invalidArgument(argument, want);
  }
  return own(value);
}

/**
 * A copy that has what stands in the object itself, and nothing that all objects inherit: other code in the program may have
 * put an option there.
 */
export function own<T extends object | null | undefined>(value: T): T & object {
  return Object.assign(Object.create(null), value);
}

/** The function, if there is one, where `null` is as good as absent. */
export function optionalFunction<F>(argument: string, value: F, want: string): F | undefined {
  if (typeof value === "function") return value;
  if (value === undefined || value === null) return undefined;
  throw invalidArgument(argument, want);
}

/** Whether something is wanted, if the caller says so. */
export function optionalFlag(argument: string, value: unknown): boolean | undefined {
  if (value === undefined || value === null || typeof value === "boolean")
    return value ?? undefined;
  throw invalidArgument(argument, "want true or false");
}

/** The signal, also one of another realm or a polyfill; `null` is as good as absent. */
export function optionalSignal(value: AbortSignal | undefined): AbortSignal | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value.throwIfAborted === "function") return value;
  throw invalidArgument("signal", "want an AbortSignal");
}

const typedArrays = Object.getPrototypeOf(Uint8Array.prototype);

/** The kind of a typed array. Unlike `Symbol.toStringTag` on the object, it can't be made up. */
function typedArray(value: unknown): unknown {
  return Reflect.get(typedArrays, Symbol.toStringTag, value);
}

/** The text of an address, also that of a `URL` of any realm; a path is one of the page's own origin. */
export function addressOf(argument: string, value: unknown): unknown {
  const text = isUrl(value) ? value.href : value;
  if (typeof text !== "string" || !/^\/(?!\/)/.test(text)) return text;
  const { location } = globalThis as { location?: { origin?: string } };
  if (/^https?:/.test(location?.origin ?? "")) return `${location?.origin}${text}`;
  throw invalidAddress(
    argument,
    "only in a page is a path an address; want https://host.example/prefix",
  );
}

/** Whether this is a `URL`, also of another realm. */
export function isUrl(value: unknown): value is URL {
  return Object.prototype.toString.call(value) === "[object URL]";
}

/** Pieces of bytes as one. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

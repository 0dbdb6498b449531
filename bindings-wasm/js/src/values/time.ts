// Instants, lengths of time, and the host's clocks.

import { invalidArgument } from "./error.js";
import { optionalFunction } from "./input.js";

/**
 * An instant: a `Date`; text such as `2026-01-31T09:15:00Z` or `2026-01-31T10:15:00+01:00`; or a `Temporal.Instant` or
 * `Temporal.ZonedDateTime`, the host's or a polyfill's.
 */
export type Instant = Date | string | TemporalInstant;

/** What a `Temporal.Instant` and a `Temporal.ZonedDateTime` have in common. */
export interface TemporalInstant {
  readonly epochMilliseconds: number;
  readonly [Symbol.toStringTag]: string;
}

/** A length of time that divides a UTC day: digits and a unit, such as `5m`, `15m`, `1h`, `1d`. */
export type TimeStep = `${bigint}${"s" | "m" | "h" | "d"}`;

/** What the host's two clocks say at one moment. */
export interface Now {
  /** Milliseconds since any fixed moment, never running backwards. */
  readonly monotonicMs: number;
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  readonly unixMs: number;
}

/** @internal The host's clocks. A suspended machine may stop the first, a user may set the second. */
export function now(): Now {
  return { monotonicMs: Math.floor(performance.now()), unixMs: Date.now() };
}

/** @internal The caller's own clocks, or else the host's. */
export function clocks(own: (() => Now) | undefined): () => Now {
  const given = optionalFunction(
    "now",
    own,
    "want a function that returns { monotonicMs, unixMs }",
  );
  if (given === undefined) return now;
  return () => {
    const at = given();
    // To the functions that take a time, nothing would mean the host's.
    if (at === undefined) throw invalidArgument("now", "want { monotonicMs, unixMs }");
    return at;
  };
}

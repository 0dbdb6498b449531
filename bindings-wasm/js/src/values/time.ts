// Timestamps and lengths of time.

/**
 * A timestamp: a `Date`; text such as `2026-01-31T09:15:00Z` or `2026-01-31T10:15:00+01:00`; or a `Temporal.Instant` or
 * `Temporal.ZonedDateTime`, the host's or a polyfill's.
 */
export type Instant = Date | string | TemporalInstant;

/** A half-open range of time: `start` is included, `end` is excluded. */
export interface TimeRange {
  readonly start: Instant;
  readonly end: Instant;
}

/** What a `Temporal.Instant` and a `Temporal.ZonedDateTime` have in common. */
export interface TemporalInstant {
  readonly epochMilliseconds: number;
  readonly [Symbol.toStringTag]: string;
}

/** A length of time that divides a UTC day: digits and a unit, such as `5m`, `15m`, `1h`, `1d`. */
export type TimeStep = `${bigint}${"s" | "m" | "h" | "d"}`;

/** The time of the host's two clocks at one moment. */
export interface Now {
  /** Milliseconds since any fixed moment. This clock never runs backwards. */
  readonly monotonicMs: number;
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  readonly unixMs: number;
}

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

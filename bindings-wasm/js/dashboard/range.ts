// Time ranges: what `24h` or two timestamps mean now, and the length of the windows in which a range is read.

import type { TimeStep } from "../src/values/time.js";
import type { Window } from "../src/values/types.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
export const WEEK = 7 * DAY;

/** The ranges to choose from, each ending now. */
export const PRESETS: readonly (readonly [name: string, label: string])[] = [
  ["15m", "Last 15 minutes"],
  ["1h", "Last hour"],
  ["3h", "Last 3 hours"],
  ["12h", "Last 12 hours"],
  ["24h", "Last 24 hours"],
  ["3d", "Last 3 days"],
  ["7d", "Last 7 days"],
  ["30d", "Last 30 days"],
  ["90d", "Last 90 days"],
];

const UNITS: Readonly<Record<string, number>> = { m: MINUTE, h: HOUR, d: DAY };
export const LONGEST = 90 * DAY;

/** The length of windows such as `15m`, in milliseconds. */
export function msOf(window: TimeStep): number {
  return Number.parseInt(window, 10) * (UNITS[window.slice(-1)] ?? 1_000);
}

/** A range, and how it is read. */
export interface Range extends Window {
  /** The length of the windows in which the range is read. */
  readonly window: TimeStep;
}

/**
 * The length of a range such as `24h`, in milliseconds; `undefined` for other texts, and for less than a minute or more than 90
 * days.
 */
export function lengthOf(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,4})([mhd])$/.exec(text) ?? [];
  const ms = Number(digits) * (UNITS[unit ?? ""] ?? Number.NaN);
  return ms >= MINUTE && ms <= LONGEST ? ms : undefined;
}

/**
 * Parses a length that ends at `nowMs`, or two timestamps. Returns `undefined` for other texts, and for too short or long
 * ranges.
 */
export function rangeOf(text: string, nowMs: number): Range | undefined {
  const length = lengthOf(text);
  if (length !== undefined) {
    const [window, step] = windowFor(length);
    // Leaves out the window that has not ended yet.
    const end = Math.floor(nowMs / step) * step;
    return { start: iso(end - Math.ceil(length / step) * step), end: iso(end), window };
  }
  const [from, to, ...rest] = text.split("/").map((part) => Date.parse(part));
  if (from === undefined || to === undefined || rest.length > 0) return undefined;
  if (!(to - from >= MINUTE && to - from <= LONGEST)) return undefined;
  const [window] = windowFor(to - from);
  return { start: iso(from), end: iso(to), window };
}

/** Chooses the window length of a range: few enough windows to read them at once, and enough to show a trend. */
function windowFor(length: number): [TimeStep, number] {
  if (length <= 6 * HOUR) return ["5m", 5 * MINUTE];
  if (length <= 31 * DAY) return ["15m", 15 * MINUTE];
  return ["1h", HOUR];
}

/** Whether the same time a week before is read, too. A range of more than a week would overlap with it. */
export function isCompared({ start, end }: Window): boolean {
  return Date.parse(end) - Date.parse(start) <= WEEK;
}

/** The same range, later by `byMs`, or earlier if it is negative. */
export function shifted<R extends Window>(range: R, byMs: number): R {
  const { start, end } = range;
  return { ...range, start: iso(Date.parse(start) + byMs), end: iso(Date.parse(end) + byMs) };
}

export function iso(ms: number): string {
  return new Date(ms).toISOString().replace(/\.000Z$/, "Z");
}

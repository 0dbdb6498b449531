// The host's clocks, and the days of a time zone.

import { invalidArgument } from "./error.js";
import { optionalFunction } from "./input.js";
import type { Now } from "./time.js";
import type { Window } from "./types.js";

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

/** @internal When days begin in a time zone, from the first window's day to the end of the last one's. */
export function midnights(zone: string, windows: readonly Window[]): string[] {
  const clock = clockOf(zone);
  const start = Date.parse(windows[0]?.start ?? "");
  const last = windows.at(-1)?.end ?? "";
  // A window may end within a millisecond.
  const end = Date.parse(last) + (/\.\d{3}\d*[1-9]/.test(last) ? 1 : 0);
  let found: number[] = [];
  let date = Math.floor(clock(start) / DAY) * DAY - DAY;
  do {
    const midnight = midnightOf(date, clock);
    found = midnight > start ? [...found, midnight] : [midnight];
    date += DAY;
  } while ((found.at(-1) ?? end) < end);
  // Two dates begin at the same time if the first one does not exist. After the year 9999, there are no timestamps.
  const times = Array.from(new Set(found), (ms) => new Date(ms).toISOString());
  return times.filter((text) => !text.startsWith("+"));
}

const DAY = 86_400_000;

/** What the clocks in a time zone show at a time, as the time at which UTC shows it: both in milliseconds since 1970. */
type Clock = (ms: number) => number;

function clockOf(zone: string): Clock {
  let format: Intl.DateTimeFormat;
  try {
    if (typeof zone !== "string") throw new RangeError();
    format = new Intl.DateTimeFormat("en-US", {
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
      timeZone: zone,
    });
  } catch {
    throw invalidArgument("zone", 'want the name of a time zone, such as "America/New_York"');
  }
  return (ms) => {
    const shown = format.format(ms).match(/\d+/g)?.map(Number) ?? [];
    const [month = 1, day, year = 0, hour = 0, minute, second] = shown;
    const date = new Date(0);
    date.setUTCFullYear(year, month - 1, day);
    return date.setUTCHours(hour, minute, second);
  };
}

/** The first time at which the clocks show a date. */
function midnightOf(date: number, clock: Clock): number {
  // Unless the clocks change, they are set as on the day before and on the day after.
  const [early = date, late = date] = [-DAY, DAY]
    .map((other) => date + (date + other - clock(date + other)))
    .sort((one, other) => one - other);
  for (const midnight of [early, late]) if (clock(midnight) === date) return midnight;
  // The clocks are set forward over midnight in between.
  let [before, after] = [early, late];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (clock(middle) < date) before = middle;
    else after = middle;
  }
  return after;
}

// The host's clocks, and the days of a time zone.

import { invalidArgument } from "./error.js";
import { optionalFunction } from "./input.js";
import type { Now } from "./time.js";
import type { Window } from "./types.js";

/** @internal Reads the host's clocks. The first may stop while the machine is suspended, and a user may set the second. */
export function now(): Now {
  return { monotonicMs: Math.floor(performance.now()), unixMs: Date.now() };
}

/** @internal Returns the caller's own clocks, or the host's clocks. */
export function clocks(own: (() => Now) | undefined): () => Now {
  const given = optionalFunction(
    "now",
    own,
    "want a function that returns { monotonicMs, unixMs }",
  );
  if (given === undefined) return now;
  return () => {
    const at = given();
    // Functions with a time argument would read the host's clocks instead of `undefined`.
    if (at === undefined) throw invalidArgument("now", "want { monotonicMs, unixMs }");
    return at;
  };
}

/** @internal Returns when days begin in a time zone, from the day of the first window's start to the end of the last day. */
export function midnights(zone: string, windows: readonly Window[]): string[] {
  const clock = clockOf(zone);
  const start = Date.parse(windows[0]?.start ?? "");
  const last = windows.at(-1)?.end ?? "";
  // A window may end between two milliseconds.
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

/**
 * Returns what the clocks in a time zone show at a time, as the time at which clocks in UTC show the same. Both are in
 * milliseconds since 1970.
 */
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

/** Returns the first time at which the clocks of a zone show a date. */
function midnightOf(date: number, clock: Clock): number {
  // Tries the zone's offset from UTC on the day before and on the day after. One is right unless the clocks skip midnight.
  const [early = date, late = date] = [-DAY, DAY]
    .map((other) => date + (date + other - clock(date + other)))
    .sort((one, other) => one - other);
  for (const midnight of [early, late]) if (clock(midnight) === date) return midnight;
  // The clocks skip midnight: find the time at which they are set forward.
  let [before, after] = [early, late];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (clock(middle) < date) before = middle;
    else after = middle;
  }
  return after;
}

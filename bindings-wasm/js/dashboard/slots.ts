// The slots that a view draws: the steps of a table, and the missing time between them.

import type { SeriesWindow } from "../src/tables/series.js";
import type { CountTable } from "../src/tables/table.js";
import type { TimeStep } from "../src/values/time.js";
import type { Window } from "../src/values/types.js";
import { type Formats, zoneName } from "./formats.js";
import { DAY, msOf } from "./range.js";

/** What is known of a slot: final counts, counts that may still change, counts of only a part, or nothing. */
export type State = "settled" | "provisional" | "partial" | "missing";

/** A step of time in a view, or as much of it as lies in the range. */
export interface Slot {
  readonly start: number;
  readonly end: number;
  /** The whole step. */
  readonly step: { readonly start: number; readonly end: number };
  /** What is known of the time from `start` to `end`. */
  readonly state: State;
  /** Whether its counts cover only a part of the step, so that they can't be compared with the counts of other steps. */
  readonly isPart: boolean;
  /** The index of the slot's window in the series; -1 if nothing is known of the slot. */
  readonly window: number;
}

/** A view that has this many slots gets no further slots for missing time. */
const MOST_SLOTS = 400;

const HOUR = 3_600_000;

/** The steps into which a view adds up windows. Each divides a day. */
const STEPS: readonly (readonly [TimeStep, number])[] = [
  ["1m", HOUR / 60],
  ["5m", HOUR / 12],
  ["15m", HOUR / 4],
  ["30m", HOUR / 2],
  ["1h", HOUR],
  ["2h", 2 * HOUR],
  ["3h", 3 * HOUR],
  ["4h", 4 * HOUR],
  ["6h", 6 * HOUR],
  ["12h", 12 * HOUR],
  ["1d", DAY],
];

const lengths = new WeakMap<CountTable, number>();

/** The length of the longest window of a table, in ms. It is cached, because all views of a page show the same table. */
export function longestOf(table: CountTable): number {
  const known = lengths.get(table);
  if (known !== undefined) return known;
  const longest = table.windows.reduce(
    (most, { start, end }) => Math.max(most, Date.parse(end) - Date.parse(start)),
    0,
  );
  lengths.set(table, longest);
  return longest;
}

/**
 * The shortest step that holds every window of the table and cuts the range into at most `most` slots; a day if there is none.
 */
export function stepFor(table: CountTable, range: Window, most: number): TimeStep {
  const length = Date.parse(range.end) - Date.parse(range.start);
  const longest = longestOf(table);
  const fits = STEPS.find(([, ms]) => ms >= longest && ms % longest === 0 && length / ms <= most);
  return fits?.[0] ?? "1d";
}

/** The range from the first window of a table to its last. */
export function spanOf(table: CountTable): Window | undefined {
  const { coverage } = table;
  const [first, last] = [coverage[0], coverage.at(-1)];
  return first && last && { start: first.start, end: last.end };
}

/** The slots of a range: the steps of a table, and the time in between that no window covers. */
export function slotsOf(table: CountTable, name: TimeStep, range: Window): Slot[] {
  const length = msOf(name);
  const slots: Slot[] = [];
  const missing = (from: number, to: number) => {
    for (let start = from; start < to && slots.length < MOST_SLOTS; ) {
      const first = Math.floor(start / length) * length;
      const step = { start: first, end: first + length };
      const end = Math.min(step.end, to);
      slots.push({ start, end, step, state: "missing", isPart: false, window: -1 });
      start = end;
    }
  };
  let reached = Date.parse(range.start);
  const last = Date.parse(range.end);
  for (const [window, it] of table.byWindow(name).windows.entries()) {
    const step = { start: Date.parse(it.start), end: Date.parse(it.end) };
    if (step.end <= reached || step.start >= last) continue;
    const [start, end] = [Math.max(step.start, reached), Math.min(step.end, last)];
    missing(reached, start);
    const state = stateWithin(it, table, start, end);
    slots.push({ start, end, step, state, isPart: !it.complete, window });
    reached = end;
  }
  missing(reached, last);
  return slots;
}

/** What is known of the part of a window between `start` and `end`. The part counts as complete if the table covers it. */
export function stateWithin(
  window: SeriesWindow,
  { coverage }: CountTable,
  start: number,
  end: number,
): State {
  const isCut = start > Date.parse(window.start) || end < Date.parse(window.end);
  const isCovered = () =>
    coverage.some((it) => Date.parse(it.start) <= start && end <= Date.parse(it.end));
  if (!window.complete && !(isCut && isCovered())) return "partial";
  return window.provisional ? "provisional" : "settled";
}

/** Describes how much of its step a slot at the edge of the range covers; empty if the slot covers the whole step. */
export function partText({ start, end, step }: Slot, { count }: Formats, nowMs: number): string {
  if (start === step.start && end === step.end) return "";
  if (start === step.start && nowMs < step.end) return ", so far";
  const [part, whole] = [end - start, step.end - step.start];
  const [unit, name] =
    part % HOUR === 0 && whole % HOUR === 0 ? [HOUR, "hours"] : [HOUR / 60, "minutes"];
  return `, ${count(Math.floor(part / unit))} of ${count(whole / unit)} ${name}`;
}

/** A label over adjacent slots. */
export interface Tick {
  /** When the first of its slots starts. */
  readonly start: number;
  /** The number of its slots. */
  readonly span: number;
}

const TICKS = [HOUR / 4, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY];

/**
 * Returns at most about `most` labels. Each is over the slots that begin in the same period of local time, such as three hours.
 */
export function ticksOf(
  slots: readonly Pick<Slot, "start" | "end">[],
  zone: string,
  most: number,
): Tick[] {
  const length = (slots.at(-1)?.end ?? 0) - (slots[0]?.start ?? 0);
  const every = TICKS.find((ms) => length / ms <= most) ?? 14 * DAY;
  const ticks: { start: number; span: number }[] = [];
  let last: number | undefined;
  for (const { start } of slots) {
    const part = Math.floor((start + offsetOf(zone, start)) / every);
    const tick = ticks.at(-1);
    if (tick && part === last) tick.span += 1;
    else ticks.push({ start, span: 1 });
    last = part;
  }
  return ticks;
}

/** By how many milliseconds the clocks of a zone are ahead of UTC. */
export function offsetOf(zone: string, at: number): number {
  const name = zoneName(zone);
  if (name === "UTC") return 0;
  const format = clockOf(name);
  const part: { [type: string]: number } = {};
  for (const { type, value } of format.formatToParts(at)) part[type] = Number(value);
  const { year = 0, month = 1, day, hour, minute, second } = part;
  const shown = Date.UTC(year, month - 1, day, hour, minute, second);
  return shown - Math.floor(at / 1000) * 1000;
}

const clocks = new Map<string, Intl.DateTimeFormat>();

function clockOf(zone: string): Intl.DateTimeFormat {
  let format = clocks.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-US", {
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
      hourCycle: "h23",
      timeZone: zone,
    });
    clocks.set(zone, format);
  }
  return format;
}

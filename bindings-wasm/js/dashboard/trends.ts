// The small bars at the end of a row: what failed or was filtered, step by step.

import { html, nothing, svg, type TemplateResult } from "lit";
import type { SeriesColumns } from "../src/tables/series.js";
import type { CountTable } from "../src/tables/table.js";
import type { Dimension, Window } from "../src/values/types.js";
import { msOf } from "./range.js";
import { longestOf, type State, stateWithin, stepFor } from "./slots.js";
import { grouped } from "./view.js";

/** How many events failed and were filtered in each step. For drawing only: texts contain exact counts. */
export interface Trend {
  readonly errors: Float64Array;
  readonly filtered: Float64Array;
}

/** The share of a step that its bar takes; the rest is the gap to the next bar. */
const WIDTH = 0.7;
/** The approximate maximum number of bars. A range of more days than this has a bar for each day. */
const MOST_BARS = 48;
/** If a series may have more rows than this, it is not drawn. */
const MOST_POINTS = 4_000_000;

export interface Trends {
  readonly marks: readonly State[];
  /** How much of each step lies in the range, from 0 to 1. */
  readonly shares: readonly number[];
  /** Prepares the bars of these values. */
  draw(values: readonly string[]): void;
  get(value: string): Trend | undefined;
}

/** The trends of all values of a dimension; `undefined` if there may be too many rows. */
export function trendsOf(table: CountTable, by: Dimension, range: Window): Trends | undefined {
  const length = Date.parse(range.end) - Date.parse(range.start);
  if ((table.length * length) / longestOf(table) > MOST_POINTS) return undefined;
  const step = stepFor(table, range, MOST_BARS);
  const stepMs = msOf(step);
  const first = Math.floor(Date.parse(range.start) / stepMs) * stepMs;
  const bars = Math.ceil((Date.parse(range.end) - first) / stepMs);
  const series = grouped(table, by).byWindow(step);
  const columns = series.columns() as SeriesColumns<Dimension>;
  const slots = columns.window.dictionary.map((it) => (Date.parse(it.start) - first) / stepMs);
  const [start, end] = [Date.parse(range.start), Date.parse(range.end)];
  const marks: State[] = Array.from({ length: bars }, () => "missing");
  for (const [at, it] of columns.window.dictionary.entries())
    marks[slots[at] as number] = stateWithin(
      it,
      table,
      Math.max(Date.parse(it.start), start),
      Math.min(Date.parse(it.end), end),
    );
  const shares = marks.map((_, at) => {
    const from = first + at * stepMs;
    return (Math.min(from + stepMs, end) - Math.max(from, start)) / stepMs;
  });
  const places = new Map(columns[by].dictionary.map((value, id) => [value, id]));
  const drawn = new Map<string, Trend>();
  return {
    marks,
    shares,
    get: (value) => drawn.get(value),
    draw: (values) => {
      const wanted = new Map<number, Trend>();
      for (const value of values) {
        const id = places.get(value);
        if (drawn.has(value) || id === undefined) continue;
        const trend = { errors: new Float64Array(bars), filtered: new Float64Array(bars) };
        drawn.set(value, trend);
        wanted.set(id, trend);
      }
      if (wanted.size === 0) return;
      const { ids } = columns[by];
      for (let row = 0; row < ids.length; row++) {
        const trend = wanted.get(ids[row] as number);
        if (trend === undefined) continue;
        const slot = slots[columns.window.ids[row] as number] as number;
        trend.errors[slot] = Number(columns.errors[row]);
        trend.filtered[slot] = Number(columns.filtered[row]);
      }
    },
  };
}

/**
 * Draws the bars of a row on their own scale: failed events, with filtered events on top. Bars of steps that aren't settled are
 * paler. If a step lies only partly in the range, its bar is narrower, but as high as for a whole step with the same rate of
 * events, so that the area shows the count.
 */
export function barsOf(
  trend: Trend | undefined,
  trends: Pick<Trends, "marks" | "shares"> | undefined,
): TemplateResult | typeof nothing {
  if (!trend || !trends) return nothing;
  const known = made.get(trend);
  if (known) return known;
  const { marks, shares } = trends;
  const shareAt = (at: number) => shares[at] ?? 1;
  const errors = trend.errors.map((failed, at) => failed / shareAt(at));
  const heights = errors.map((failed, at) => failed + (trend.filtered[at] as number) / shareAt(at));
  const most = Math.max(
    heights.reduce((one, other) => Math.max(one, other), 0),
    1,
  );
  const paths = { failed: ["", ""], filtered: ["", ""], missing: "" };
  for (const [at, mark] of marks.entries()) {
    if (mark === "missing") {
      paths.missing += `M${at} 19h.7`;
      continue;
    }
    const open = mark === "settled" ? 0 : 1;
    const [low, high] = [(errors[at] as number) / most, (heights[at] as number) / most];
    // The range may cut off the beginning of the first step, and the end of the last step.
    const width = WIDTH * shareAt(at);
    const left = at === 0 ? WIDTH - width : at;
    if (low > 0) paths.failed[open] += bar(left, width, 0, low);
    if (high > low) paths.filtered[open] += bar(left, width, low, high);
  }
  const [failed, openFailed] = paths.failed;
  const [filtered, openFiltered] = paths.filtered;
  // All rows have the same marks, so an update of a row changes only the paths.
  const isOpen = marks.some((mark) => mark !== "settled" && mark !== "missing");
  const bars = html`<svg
    class="bars"
    viewBox="0 0 ${marks.length} 20"
    preserveAspectRatio="none"
    aria-hidden="true"
  >
    <path d=${failed} fill="var(--failed)"></path>
    <path d=${filtered} fill="var(--filtered)"></path>
    ${
      isOpen
        ? svg`<path d=${openFailed} fill="var(--failed)" opacity="0.45"></path>
            <path d=${openFiltered} fill="var(--filtered)" opacity="0.45"></path>`
        : nothing
    }
    ${
      paths.missing
        ? svg`<path d=${paths.missing} stroke="var(--muted)" stroke-width="2" vector-effect="non-scaling-stroke"></path>`
        : nothing
    }
  </svg>`;
  made.set(trend, bars);
  return bars;
}

/** The bars of a trend, which are the same in each update. */
const made = new WeakMap<Trend, TemplateResult>();

/** The path of a bar from one height to another, each from 0 to 1. */
function bar(left: number, width: number, from: number, to: number): string {
  const height = rounded(Math.max((to - from) * 20, 0.6));
  const wide = rounded(width);
  return `M${rounded(left)} ${rounded(20 - from * 20)}h${wide}v-${height}h-${wide}z`;
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}

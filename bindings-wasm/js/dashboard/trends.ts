// The small bars at the end of a row: what failed or was filtered, step by step.

import { nothing, svg, type TemplateResult, html } from "lit";
import type { SeriesColumns, SeriesWindow } from "../src/tables/series.js";
import type { CountTable } from "../src/tables/table.js";
import type { TimeStep } from "../src/values/time.js";
import type { Dimension, Window } from "../src/values/types.js";

type Drawn = "errors" | "filtered";

/** What is known of each step. */
export type Mark = "settled" | "provisional" | "partial" | "missing";

/** Per step, how much. For drawing only: texts are made of exact counts. */
export interface Trend {
  readonly errors: Float64Array;
  readonly filtered: Float64Array;
}

/** At most so many bars. */
const MOST_BARS = 48;

const STEPS: readonly (readonly [TimeStep, number])[] = [
  ["5m", 5],
  ["15m", 15],
  ["30m", 30],
  ["1h", 60],
  ["2h", 120],
  ["4h", 240],
  ["6h", 360],
  ["12h", 720],
  ["1d", 1_440],
];

export interface Trends {
  readonly marks: readonly Mark[];
  /** Prepares the bars of these values. */
  draw(values: readonly string[]): void;
  get(value: string): Trend | undefined;
}

/** The trends of all values of a dimension. */
export function trendsOf(table: CountTable, by: Dimension, range: Window): Trends | undefined {
  const length = Date.parse(range.end) - Date.parse(range.start);
  const longest = Math.max(...table.windows.map((it) => Date.parse(it.end) - Date.parse(it.start)));
  const found = STEPS.find(
    ([, minutes]) =>
      minutes * 60_000 >= longest &&
      (minutes * 60_000) % longest === 0 &&
      length / (minutes * 60_000) <= MOST_BARS,
  );
  const [step, minutes] = found ?? ["1d", 1_440];
  const stepMs = minutes * 60_000;
  const first = Math.floor(Date.parse(range.start) / stepMs) * stepMs;
  const bars = Math.ceil((Date.parse(range.end) - first) / stepMs);
  const series = table.groupBy(...([by] as never[])).byWindow(step);
  const columns = series.columns() as SeriesColumns<Dimension>;
  const slots = columns.window.dictionary.map((it) => (Date.parse(it.start) - first) / stepMs);
  const marks: Mark[] = Array.from({ length: bars }, () => "missing");
  for (const [at, it] of columns.window.dictionary.entries()) marks[slots[at] as number] = markOf(it, range);
  const places = new Map(columns[by].dictionary.map((value, id) => [value, id]));
  const drawn = new Map<string, Trend>();
  return {
    marks,
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

/** A step at the edge of the range is whole if all of it that lies in the range is there. */
function markOf(window: SeriesWindow, range: Window): Mark {
  if (window.provisional) return "provisional";
  const isEdge =
    Date.parse(window.start) < Date.parse(range.start) ||
    Date.parse(window.end) > Date.parse(range.end);
  return window.complete || isEdge ? "settled" : "partial";
}

/** Bars, on a scale of their own. Provisional steps are paler, and missing ones have a line at the bottom. */
export function barsOf(
  trend: Trend | undefined,
  marks: readonly Mark[] | undefined,
  name: Drawn,
): TemplateResult | typeof nothing {
  if (!trend || !marks) return nothing;
  const values = trend[name];
  const most = values.reduce((one, other) => Math.max(one, other), 0);
  const paths: Record<"settled" | "open" | "missing", string> = { settled: "", open: "", missing: "" };
  for (const [at, mark] of marks.entries()) {
    const value = values[at] as number;
    if (mark === "missing") {
      paths.missing += `M${at} 19.5h.7`;
      continue;
    }
    if (value === 0) continue;
    const height = Math.max(1.5, (value / most) * 19);
    paths[mark === "settled" ? "settled" : "open"] += `M${at} 20h.7v${-height}h-.7z`;
  }
  return html`<svg class="bars" viewBox="0 0 ${marks.length} 20" preserveAspectRatio="none" aria-hidden="true">
    ${svg`<path d="M0 19.75H${marks.length}" stroke="var(--line)" stroke-width=".5" vector-effect="non-scaling-stroke"/>
    <path d=${paths.settled} fill="var(--${name === "errors" ? "failed" : "filtered"})"/>
    <path d=${paths.open} fill="var(--${name === "errors" ? "failed" : "filtered"})" opacity=".45"/>
    <path d=${paths.missing} stroke="var(--muted)" stroke-width="1.5" vector-effect="non-scaling-stroke"/>`}
  </svg>`;
}

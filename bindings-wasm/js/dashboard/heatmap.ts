// `<tallyfold-heatmap>`: which value, and when. A row for each value of a dimension, a column for each step of time.

import { css, html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { guard } from "lit/directives/guard.js";
import type { DictionaryColumn } from "../src/tables/columns.js";
import type { Row } from "../src/tables/counts.js";
import type { Series } from "../src/tables/series.js";
import type { CountTable } from "../src/tables/table.js";
import { TallyfoldError } from "../src/values/error.js";
import type { TimeStep } from "../src/values/time.js";
import type { Dimension, Window } from "../src/values/types.js";
import { formats } from "./formats.js";
import { failure, marks, notice, STATES, shared, value } from "./notice.js";
import { instant, rangeOf, type Slot, slotsOf, stepFor, type Tick, ticksOf } from "./slots.js";
import { View } from "./view.js";

/** What the colour of a cell shows. */
export type HeatmapMeasure = "error_rate" | "filtered_rate";

/** The counts of a cell, and the share that colours it. */
export interface HeatmapCell {
  readonly success: bigint;
  readonly errors: bigint;
  readonly filtered: bigint;
  /** `null` if there is nothing to divide by. */
  readonly share: number | null;
}

/** Per slot, a cell; `undefined` if nothing is known of it. */
type Cells = readonly (HeatmapCell | undefined)[];

/** A row of the heatmap. */
export interface HeatmapLine {
  /** The value of the dimension; `undefined` for the row of all others. */
  readonly value: string | undefined;
  /** How many values the row adds up. */
  readonly values: number;
  readonly cells: Cells;
  /** The same time a week before. */
  readonly before: Cells;
}

/** What the heatmap draws. */
export interface HeatmapModel {
  readonly slots: readonly Slot[];
  readonly ticks: readonly Tick[];
  readonly lines: readonly HeatmapLine[];
}

const WEEK = 7 * 86_400_000;
/** At most so many columns. */
const COLUMNS = 97;
/** At most so many labels of time. */
const LABELS = 9;

/** The rows with the most failed or filtered events, and one for all other values together. */
export function heatmapOf(
  table: CountTable,
  before: CountTable | undefined,
  options: {
    readonly by: Dimension;
    readonly measure: HeatmapMeasure;
    readonly rows: number;
    readonly range: Window;
    readonly zone: string;
  },
): HeatmapModel {
  const { by, measure, range, zone } = options;
  const counts = table.groupBy(by);
  const rank = measure === "error_rate" ? "errors" : "filtered";
  const top = counts.top(options.rows, { by: rank }) as Row<Dimension>[];
  const values = top.map((row) => row.dimensions[by]);
  const named = new Set(values);
  const { dictionary } = counts.columns()[by] as { dictionary: string[] };
  const others = dictionary.filter((value) => !named.has(value));

  const step = stepFor(table, range, COLUMNS);
  const slots = slotsOf(counts.byWindow(step), range);
  const earlier = before?.groupBy(by);
  const linesOf = (wanted: string[], isSum: boolean): Cells[][] => {
    const both = [counts, earlier].map((own, weeks) => {
      const some = own?.filter({ [by]: wanted });
      const series = seriesOf(isSum ? some?.groupBy() : some, step);
      return series ? cellsOf(series, isSum ? [] : [by, wanted], measure, slots, weeks * WEEK) : [];
    });
    return wanted.map((_, place) => both.map((cells) => cells[place] ?? []));
  };
  const lines: HeatmapLine[] = [];
  const add = (value: string | undefined, count: number, [cells = [], then = []]: Cells[]) =>
    lines.push({ value, values: count, cells, before: then });
  if (values.length > 0) {
    for (const [place, own] of linesOf(values, false).entries()) add(values[place], 1, own);
  }
  if (others.length > 0) add(undefined, others.length, linesOf(others, true)[0] ?? []);
  return { slots, ticks: ticksOf(slots, zone, LABELS), lines };
}

/** The counts by step, with 0 where a window has no event; `undefined` if its windows cross the edge of a step. */
function seriesOf(table: CountTable | undefined, step: TimeStep): Series | undefined {
  try {
    return table?.byWindow(step).fillZeros();
  } catch (error) {
    if (TallyfoldError.is(error) && error.code === "unaligned_window") return undefined;
    throw error;
  }
}

/** Per wanted value, or for the sum, the cells of the slots that start later than the windows by `shift`. */
function cellsOf(
  series: Series,
  [by, wanted = [""]]: [Dimension, string[]] | [],
  measure: HeatmapMeasure,
  slots: readonly Slot[],
  shift: number,
): Cells[] {
  const columns = series.columns();
  const rates = series.rates();
  const shares = measure === "error_rate" ? rates.error : rates.filter;
  const slotAt = new Map(slots.map(({ start }, place) => [start, place]));
  const slotOf = columns.window.dictionary.map(({ start }) => slotAt.get(Date.parse(start) + shift));
  const lineAt = new Map(wanted.map((value, place) => [value, place]));
  const names = by && (columns[by] as DictionaryColumn);
  const lineOf = names ? names.dictionary.map((value) => lineAt.get(value)) : [0];
  const lines = wanted.map(() => new Array<HeatmapCell | undefined>(slots.length));
  for (let row = 0; row < shares.length; row++) {
    const slot = slotOf[columns.window.ids[row] as number];
    const line = lineOf[names?.ids[row] ?? 0];
    if (slot === undefined || line === undefined) continue;
    const share = shares[row] as number;
    (lines[line] as (HeatmapCell | undefined)[])[slot] = {
      success: columns.success[row] as bigint,
      errors: columns.errors[row] as bigint,
      filtered: columns.filtered[row] as bigint,
      share: Number.isNaN(share) ? null : share,
    };
  }
  return lines;
}

/** The steps of the scale for shares: each holds what is below its limit and not in the one before. */
const SHARES = [0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, Number.POSITIVE_INFINITY];
/** The steps of the scale for differences of shares. */
const DIFFERENCES = [-0.1, -0.02, -0.005, 0.005, 0.02, 0.1, Number.POSITIVE_INFINITY];

/** The step of a share: 0 only for a share of 0. */
export function stepOfShare(share: number): number {
  return share === 0 ? 0 : SHARES.findIndex((limit) => share < limit);
}

/** The step of a difference of shares; 3 is in the middle. */
export function stepOfDifference(difference: number): number {
  return DIFFERENCES.findIndex((limit) => difference < limit || (limit > 0 && difference === limit));
}

/** What the dimensions are called in a title. */
export const NAMES: { readonly [N in Dimension]: string } = {
  event_name: "event name",
  write_key: "write key",
  integration: "integration",
  reason: "reason",
};

function clamp(place: number, least: number, most: number): number {
  return Math.min(Math.max(place, least), most);
}

const STYLES = css`
  :host {
    --share-0: var(--tallyfold-share-0, light-dark(#f3f5f7, #1d2329));
    --share-1: var(--tallyfold-share-1, light-dark(#fdf3bd, #16305c));
    --share-2: var(--tallyfold-share-2, light-dark(#f2dc7e, #35466b));
    --share-3: var(--tallyfold-share-3, light-dark(#d8bf62, #555b6d));
    --share-4: var(--tallyfold-share-4, light-dark(#a59c74, #7a7873));
    --share-5: var(--tallyfold-share-5, light-dark(#6f7072, #a59c74));
    --share-6: var(--tallyfold-share-6, light-dark(#3b496c, #d3be5c));
    --share-7: var(--tallyfold-share-7, light-dark(#00224e, #fee838));
    --change-0: var(--tallyfold-change-0, light-dark(#08519c, #9ecbff));
    --change-1: var(--tallyfold-change-1, light-dark(#5a9bd0, #4f8fc9));
    --change-2: var(--tallyfold-change-2, light-dark(#c3dbef, #2b4b6b));
    --change-3: var(--tallyfold-change-3, light-dark(#f3f5f7, #1d2329));
    --change-4: var(--tallyfold-change-4, light-dark(#fbd9b1, #6b4a24));
    --change-5: var(--tallyfold-change-5, light-dark(#ec9a4a, #c47a32));
    --change-6: var(--tallyfold-change-6, light-dark(#9c4a06, #ffc78a));
    --head: clamp(6rem, 26cqi, 13rem);
  }
  table[role="grid"] {
    table-layout: fixed;
    user-select: text;
    font-size: 0.8125rem;
  }
  .grid.numbers {
    --least: 3.75rem;
  }
  thead th {
    padding: 0 0 0.25rem;
    color: var(--muted);
    font-size: 0.75rem;
    font-weight: 400;
    line-height: 1.25;
    text-align: start;
    vertical-align: bottom;
    white-space: nowrap;
  }
  thead th[colspan] span {
    display: block;
    overflow: hidden;
    padding-inline-start: 0.25rem;
    border-inline-start: 1px solid var(--line);
  }
  tr > :first-child {
    inline-size: var(--head);
    position: sticky;
    inset-inline-start: 0;
    z-index: 1;
    background: var(--surface);
  }
  tbody th {
    padding: 0 0.5rem 0 0;
    font-weight: 400;
    text-align: start;
    line-height: 1.5rem;
    cursor: pointer;
  }
  tbody th .value {
    display: block;
    max-inline-size: none;
  }
  tbody th:hover .value {
    color: var(--accent);
    text-decoration: underline;
  }
  .others th {
    color: var(--muted);
    cursor: default;
  }
  td {
    block-size: 1.5rem;
    padding: 0;
    border: solid var(--surface);
    border-width: 1px 0.5px;
    background-clip: padding-box;
    overflow: hidden;
    font-size: 0;
    white-space: nowrap;
    cursor: crosshair;
    forced-color-adjust: none;
  }
  .numbers td {
    padding-inline: 0.25rem;
    font-size: 0.75rem;
    text-align: end;
  }
  td.provisional {
    background-image: var(--hatch);
  }
  td.missing {
    background: var(--cross) padding-box;
  }
  td.partial {
    background-image: radial-gradient(var(--mark) 1px, transparent 1.3px);
    background-size: 5px 5px;
  }
  :is(th, td):focus-visible {
    position: relative;
    z-index: 2;
    outline: 2px solid var(--accent);
    outline-offset: 0;
  }
  tr > th:first-child:focus-visible {
    position: sticky;
  }
  .share0, .change3 { background-color: var(--share-0); color: light-dark(#1c2126, #e6e9ec); }
  .share1 { background-color: var(--share-1); color: light-dark(#1c2126, #fff); }
  .share2 { background-color: var(--share-2); color: light-dark(#1c2126, #fff); }
  .share3 { background-color: var(--share-3); color: light-dark(#1c2126, #fff); }
  .share4 { background-color: var(--share-4); color: light-dark(#111, #000); }
  .share5 { background-color: var(--share-5); color: light-dark(#fff, #111); }
  .share6 { background-color: var(--share-6); color: light-dark(#fff, #111); }
  .share7 { background-color: var(--share-7); color: light-dark(#fff, #111); }
  .change0 { background-color: var(--change-0); color: light-dark(#fff, #111); }
  .change1 { background-color: var(--change-1); color: light-dark(#111, #000); }
  .change2 { background-color: var(--change-2); color: light-dark(#1c2126, #fff); }
  .change4 { background-color: var(--change-4); color: light-dark(#1c2126, #fff); }
  .change5 { background-color: var(--change-5); color: light-dark(#111, #000); }
  .change6 { background-color: var(--change-6); color: light-dark(#fff, #111); }
  .none { background-color: transparent; }
  .brush {
    position: absolute;
    inset-block: 0;
    --cell: calc((100% - var(--head)) / var(--slots));
    inset-inline-start: calc(var(--head) + var(--from) * var(--cell));
    inline-size: calc((var(--to) - var(--from)) * var(--cell));
    border-inline: 2px solid var(--accent);
    background: color-mix(in srgb, var(--accent) 14%, transparent);
    pointer-events: none;
  }
  .grid {
    position: relative;
    min-width: calc(var(--head) + var(--slots) * var(--least, 6px));
  }
  .readout em {
    font-style: normal;
    color: var(--muted);
  }
`;

/** What is marked in a heatmap: the slots from one to another, both included. */
interface Brush {
  readonly from: number;
  readonly to: number;
}

/**
 * Values of a dimension by time, coloured by the share of events that failed or were filtered, or by how this share
 * differs from the same time a week before.
 *
 * Arrow keys move through the cells; with the shift key, or by a drag, they mark a range of time, which fires
 * `tallyfold-brush`. Enter, or a click on a value, fires `tallyfold-select`.
 */
export class Heatmap extends View {
  static override properties = {
    ...View.properties,
    measure: { reflect: true },
    against: { reflect: true },
    rows: { type: Number },
    numbers: { type: Boolean, reflect: true },
    brush: { attribute: false },
  };

  /** Which share the cells show: `error_rate` or `filtered_rate`. */
  declare measure: HeatmapMeasure;
  /** What the colour shows: the share, or with `week` its difference from the same time a week before. */
  declare against: "none" | "week";
  /** How many values have a row of their own. */
  declare rows: number;
  /** Whether the numbers are written into the cells. */
  declare numbers: boolean;
  /** The range of time that is marked. */
  declare brush: Window | undefined;

  #model: HeatmapModel | undefined;
  /** The cell of the cursor: its row, and its slot, or -1 for the value of the row. */
  #cursor = { line: 0, slot: 0 };
  /** Where the marked range was begun. */
  #anchor: number | undefined;
  #dragging = false;

  constructor() {
    super();
    this.measure = "error_rate";
    this.against = "none";
    this.rows = 20;
    this.numbers = false;
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    super.willUpdate(changed);
    const inputs = ["table", "tableBefore", "range", "by", "measure", "rows", "zone"] as const;
    if (!inputs.some((name) => changed.has(name))) return;
    const range = this.range ?? (this.table && rangeOf(this.table));
    const { table, tableBefore, by, measure, rows, zone } = this;
    const isShown = table?.dimensions.includes(by) && range;
    this.#model = isShown
      ? heatmapOf(table, tableBefore, { by, measure, rows, range, zone })
      : undefined;
    const { lines = [], slots = [] } = this.#model ?? {};
    this.#cursor = {
      line: Math.min(this.#cursor.line, Math.max(0, lines.length - 1)),
      slot: Math.min(this.#cursor.slot, Math.max(0, slots.length - 1)),
    };
  }

  protected override render(): TemplateResult {
    return html`<section part="view" aria-labelledby="title" aria-busy=${this.loading}>
      <div class="head" part="head">
        <h2 id="title" part="title">${this.#title()}</h2>
        ${this.#controls()}
      </div>
      ${this.#body()}
    </section>`;
  }

  #title(): string {
    const share = this.measure === "error_rate" ? "Failed share" : "Filtered share";
    const change = this.#isDeviation ? ", change since last week," : "";
    return `${share}${change} by ${NAMES[this.by]} and time`;
  }

  #controls(): TemplateResult {
    const choose = (name: "measure" | "against") => (event: Event) => {
      const { value: chosen } = event.target as HTMLSelectElement;
      Object.assign(this, { [name]: chosen });
      this.#tell("tallyfold-state", { measure: this.measure, against: this.against });
    };
    const option = (name: string, text: string, chosen: string, disabled = false) =>
      html`<option value=${name} ?selected=${name === chosen} ?disabled=${disabled}>${text}</option>`;
    return html`<div class="controls" part="controls">
      <select aria-label="Share" @change=${choose("measure")}>
        ${option("error_rate", "Failed", this.measure)}
        ${option("filtered_rate", "Filtered", this.measure)}
      </select>
      <select aria-label="Colour" @change=${choose("against")}>
        ${option("none", "Share", this.against)}
        ${option("week", "Change since last week", this.against, !this.tableBefore)}
      </select>
      <button
        type="button"
        aria-pressed=${this.numbers}
        @click=${() => {
          this.numbers = !this.numbers;
        }}
      >
        Numbers
      </button>
    </div>`;
  }

  #body(): TemplateResult {
    if (this.error !== undefined) return failure(this.error);
    const model = this.#model;
    if (!model) return notice(this.loading ? "Loading…" : "There is nothing to show yet.");
    if (model.lines.length === 0) return notice("No events in this range.");
    const { slots, lines } = model;
    return html`<div class="scroll" part="scroll"><div
        class="grid ${this.numbers ? "numbers" : ""}"
        style="--slots:${slots.length}"
      >
        <table
          role="grid"
          part="table"
          aria-labelledby="title"
          aria-describedby="keys"
          @keydown=${this.#onKey}
          @focusin=${this.#onFocus}
          @click=${this.#onClick}
          @pointerdown=${this.#onPointerDown}
          @pointermove=${this.#onPointerMove}
          @pointerleave=${this.#onPointerLeave}
        >
          ${guard([model, this.against, this.numbers, this.unit, this.locale, this.zone], () => [
            this.#header(model),
            html`<tbody>
              ${lines.map((line) => this.#line(line, slots))}
            </tbody>`,
          ])}
        </table>
        ${this.#marked(slots)}
      </div></div>
      <p id="keys" class="sr">
        Arrow keys move through the cells. Shift with an arrow key marks a range of time, and Escape removes the mark. Enter
        opens the value.
      </p>
      <output class="readout" part="readout">${this.#readout()}</output>
      ${this.#legend()} ${marks(slots.map(({ state }) => state))}`;
  }

  #header({ ticks }: HeatmapModel): TemplateResult {
    const { time, date } = formats(this.locale, this.zone);
    let day: string | undefined;
    return html`<thead>
      <tr>
        <th scope="col">${NAMES[this.by]}</th>
        ${ticks.map(({ start, span }) => {
          const text = date(start);
          const label = text === day ? time(start) : html`${text}<br />${time(start)}`;
          day = text;
          return html`<th scope="col" colspan=${span}><span>${label}</span></th>`;
        })}
      </tr>
    </thead>`;
  }

  #line(line: HeatmapLine, slots: readonly Slot[]): TemplateResult {
    const { count } = formats(this.locale, this.zone);
    const name =
      line.value === undefined ? html`and ${count(line.values)} others` : value(line.value);
    return html`<tr class=${line.value === undefined ? "others" : nothing}>
      <th scope="row" tabindex="-1">${name}</th>
      ${slots.map(({ state }, slot) => {
        const text = this.#written(line, slot);
        return html`<td class="${this.#step(line, slot)} ${state}" tabindex="-1">${text}</td>`;
      })}
    </tr>`;
  }

  /** The class of a cell's colour. */
  #step(line: HeatmapLine, slot: number): string {
    const cell = line.cells[slot];
    if (!cell || cell.share === null) return "none";
    if (!this.#isDeviation) return `share${stepOfShare(cell.share)}`;
    const then = line.before[slot]?.share;
    if (then === undefined || then === null) return "none";
    return `change${stepOfDifference(cell.share - then)}`;
  }

  /** What a cell says. */
  #written(line: HeatmapLine, slot: number): string {
    const cell = line.cells[slot];
    if (!cell) return "";
    const { count, share } = formats(this.locale, this.zone);
    if (this.unit === "percent") return share(cell.share);
    return count(this.measure === "error_rate" ? cell.errors : cell.filtered);
  }

  get #isDeviation(): boolean {
    return this.against === "week" && this.tableBefore !== undefined;
  }

  /** The cell of the cursor in words. */
  #readout(): TemplateResult | string {
    const { line: at, slot: place } = this.#cursor;
    const line = this.#model?.lines[at];
    if (!line) return "";
    const { count, share, span } = formats(this.locale, this.zone);
    const name =
      line.value === undefined
        ? html`The other ${count(line.values)} values together`
        : value(line.value);
    const slot = this.#model?.slots[place];
    if (!slot) return html`${name}: Enter opens this value.`;
    const cell = line.cells[place];
    const state = STATES[slot.state];
    const when = html`${span(slot.start, slot.end)} ${this.zone}`;
    if (!cell) {
      const why = slot.state === "missing" ? state : "no events";
      return html`${name}, ${when}: ${why}.`;
    }
    const what = this.measure === "error_rate" ? "failed" : "filtered";
    const then = line.before[place];
    const lastWeek = then && html` Last week: ${share(then.share)} ${what}, ${this.#counts(then)}.`;
    return html`${name}, ${when}: <b>${share(cell.share)}</b> ${what}, ${this.#counts(cell)}.${lastWeek}
      ${state ? html`<em>${state}.</em>` : nothing}`;
  }

  #counts({ success, errors, filtered }: HeatmapCell): string {
    const { count } = formats(this.locale, this.zone);
    return `${count(errors)} failed, ${count(filtered)} filtered, ${count(success)} delivered`;
  }

  #legend(): TemplateResult {
    const { share } = formats(this.locale, this.zone);
    const limits = this.#isDeviation ? DIFFERENCES : SHARES;
    const name = this.#isDeviation ? "change" : "share";
    const texts = limits.map((limit, step) => {
      const [before, last] = [limits[step - 1], step === limits.length - 1];
      if (!this.#isDeviation && step === 0) return share(0);
      if (before === undefined) return `below ${share(limit)}`;
      return last ? `${share(before)} or more` : `${share(before)} to ${share(limit)}`;
    });
    return html`<ul class="legend" part="legend" aria-label="Colours">
      ${texts.map((text, step) => html`<li><span class="swatch ${name}${step}"></span>${text}</li>`)}
      <li><span class="swatch none"></span>no events</li>
    </ul>`;
  }

  /** The marked range, over the columns. */
  #marked(slots: readonly Slot[]): TemplateResult | typeof nothing {
    const { brush } = this;
    if (!brush) return nothing;
    const [start, end] = [Date.parse(brush.start), Date.parse(brush.end)];
    const from = slots.findIndex((it) => it.end > start);
    const to = slots.findLastIndex((it) => it.start < end);
    if (from < 0 || to < from) return nothing;
    const place = `--from:${from};--to:${to + 1};--slots:${slots.length}`;
    return html`<div class="brush" part="brush" style=${place}></div>`;
  }

  readonly #onKey = (event: KeyboardEvent): void => {
    const { lines = [], slots = [] } = this.#model ?? {};
    const { line, slot } = this.#cursor;
    const isReversed = getComputedStyle(this).direction === "rtl";
    const forward = isReversed ? "ArrowLeft" : "ArrowRight";
    const moves: { readonly [key: string]: readonly [number, number] } = {
      ArrowUp: [line - 1, slot],
      ArrowDown: [line + 1, slot],
      ArrowLeft: [line, slot + (forward === "ArrowLeft" ? 1 : -1)],
      ArrowRight: [line, slot + (forward === "ArrowRight" ? 1 : -1)],
      PageUp: [line - 10, slot],
      PageDown: [line + 10, slot],
      Home: [event.ctrlKey ? 0 : line, 0],
      End: [event.ctrlKey ? lines.length - 1 : line, slots.length - 1],
    };
    const move = moves[event.key];
    if (move) {
      event.preventDefault();
      const to = {
        line: clamp(move[0], 0, lines.length - 1),
        slot: clamp(move[1], event.shiftKey ? 0 : -1, slots.length - 1),
      };
      if (event.shiftKey) this.#extend(this.#anchor ?? Math.max(0, slot), to.slot);
      else this.#anchor = undefined;
      this.#focusOn(to);
      return;
    }
    if (event.key === "Enter") this.#open(line);
    else if (event.key === "Escape" && this.brush) this.#mark(undefined);
    else return;
    event.preventDefault();
  };

  readonly #onFocus = (event: FocusEvent): void => {
    const cell = this.#cellOf(event.target);
    if (cell) this.#show(cell);
  };

  readonly #onClick = (event: MouseEvent): void => {
    const cell = this.#cellOf(event.target);
    if (cell?.slot === -1) this.#open(cell.line);
  };

  readonly #onPointerDown = (event: PointerEvent): void => {
    const cell = this.#cellOf(event.target);
    // A finger scrolls the table.
    if (!cell || cell.slot < 0 || event.pointerType === "touch" || event.button !== 0) return;
    this.#dragging = true;
    this.#anchor = cell.slot;
    const end = () => {
      this.#dragging = false;
      this.#anchor = undefined;
    };
    addEventListener("pointerup", end, { once: true });
    addEventListener("pointercancel", end, { once: true });
  };

  readonly #onPointerMove = (event: PointerEvent): void => {
    const cell = this.#cellOf(event.target);
    if (!cell) return;
    if (!this.#dragging) {
      if (event.pointerType !== "touch" && cell.slot >= 0) this.#show(cell);
    } else if (this.#anchor !== undefined && cell.slot >= 0) {
      // A click marks nothing.
      if (cell.slot !== this.#anchor || this.brush) this.#extend(this.#anchor, cell.slot);
    }
  };

  readonly #onPointerLeave = (): void => {
    const focused = this.#cellOf(this.shadowRoot?.activeElement ?? null);
    if (focused) this.#show(focused);
  };

  /** The place of a cell of the table. */
  #cellOf(target: EventTarget | null): { line: number; slot: number } | undefined {
    const cell = target instanceof Element ? target.closest<HTMLTableCellElement>("td,th") : null;
    const row = cell?.closest("tr");
    if (!cell || row?.parentElement?.tagName !== "TBODY") return undefined;
    return { line: row.sectionRowIndex, slot: cell.cellIndex - 1 };
  }

  #focusOn({ line, slot }: { line: number; slot: number }): void {
    const row = this.shadowRoot?.querySelector("tbody")?.rows[line];
    row?.cells[slot + 1]?.focus();
  }

  #show(cursor: { line: number; slot: number }): void {
    if (cursor.line === this.#cursor.line && cursor.slot === this.#cursor.slot) return;
    this.#cursor = cursor;
    this.requestUpdate();
  }

  protected override updated(changed: PropertyValues<this>): void {
    super.updated(changed);
    // One cell takes part in the order of the tab key.
    const body = this.shadowRoot?.querySelector("tbody");
    const cell = body?.rows[this.#cursor.line]?.cells[this.#cursor.slot + 1];
    if (!cell || cell.tabIndex === 0) return;
    for (const other of body?.querySelectorAll<HTMLElement>('[tabindex="0"]') ?? []) {
      other.tabIndex = -1;
    }
    cell.tabIndex = 0;
  }

  #open(line: number): void {
    const value = this.#model?.lines[line]?.value;
    if (value !== undefined) this.#tell("tallyfold-select", { dimension: this.by, value });
  }

  #extend(anchor: number, slot: number): void {
    this.#anchor = anchor;
    this.#mark({ from: Math.min(anchor, slot), to: Math.max(anchor, slot) });
  }

  #mark(range: Brush | undefined): void {
    const slots = this.#model?.slots ?? [];
    const [first, last] = [slots[range?.from ?? -1], slots[range?.to ?? -1]];
    this.brush = first && last && { start: instant(first.start), end: instant(last.end) };
    this.#tell("tallyfold-brush", this.brush ?? null);
  }

  #tell(name: string, detail: unknown): void {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }

  static override styles = [...[View.styles].flat(), shared, STYLES];
}

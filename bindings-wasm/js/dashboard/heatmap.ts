// `<tallyfold-heatmap>`: which values had failed or filtered events, and when. It has a row for each value of a dimension, and
// a column for each step of time.

import { css, html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { guard } from "lit/directives/guard.js";
import type { Row } from "../src/tables/counts.js";
import type { CountTable } from "../src/tables/table.js";
import type { Dimension, Window } from "../src/values/types.js";
import { DIMENSIONS } from "./base.js";
import { type Cell, type Cells, cellsIn, cellsOf, coveredIn, seriesOf, sumsOf } from "./cells.js";
import { marks, STATES, shared } from "./marks.js";
import { iso, WEEK } from "./range.js";
import { partText, type Slot, slotsOf, stepFor, type Tick, ticksOf } from "./slots.js";
import { emptyState, View, valueText } from "./view.js";

/** What the colour of a cell shows. */
export type HeatmapMeasure = "error_rate" | "filtered_rate";

/** A row of the heatmap. */
export interface HeatmapLine {
  /** The value of the dimension; `undefined` for the row of all others. */
  readonly value: string | undefined;
  /** How many values the row adds up. */
  readonly values: number;
  readonly cells: Cells;
  /** The cells of the same time a week before. */
  readonly before: Cells;
}

/** What the heatmap draws. */
export interface HeatmapModel {
  readonly slots: readonly Slot[];
  readonly ticks: readonly Tick[];
  readonly lines: readonly HeatmapLine[];
}

/** The maximum number of columns. */
const COLUMNS = 97;
/** The approximate maximum number of time labels. */
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
    /** The events that the shares refer to, in this week and in the week before. By default, all events of the row. */
    readonly wholes?: readonly (CountTable | undefined)[];
  },
): HeatmapModel {
  const { by, measure, range, zone, wholes = [] } = options;
  const counts = table.groupBy(by);
  const rank = measure === "error_rate" ? "errors" : "filtered";
  const top = counts.top(options.rows, { by: rank }) as Row<Dimension>[];
  const values = top.map((row) => row.dimensions[by]);
  const named = new Set(values);
  const { dictionary } = counts.columns()[by] as { dictionary: string[] };
  const others = dictionary.filter((value) => !named.has(value));

  const step = stepFor(table, range, COLUMNS);
  const slots = slotsOf(counts, step, range);
  const earlier = before?.groupBy(by);
  const both = (some: string[]) => [counts, earlier].map((it) => it?.filter({ [by]: some }));
  const sums = (it: CountTable | undefined, weeks: number) =>
    sumsOf(seriesOf(it?.groupBy(), step), slots, weeks * WEEK);
  // The whole that the shares of some values refer to: all events of these values, or all events if the rows are reasons.
  const wholeOf = (some: string[], weeks: number) => {
    const whole = wholes[weeks];
    return whole && sums(by === "reason" ? whole : whole.filter({ [by]: some }), weeks);
  };
  const lines: HeatmapLine[] = [];
  if (values.length > 0) {
    const [now, then] = both(values).map((it, weeks) =>
      cellsOf(seriesOf(it, step), by, values, slots, weeks * WEEK),
    );
    for (const [line, value] of values.entries()) {
      const [cells = [], before = []] = [now, then].map((it, weeks) =>
        cellsIn(it?.[line] ?? [], wholeOf([value], weeks)),
      );
      lines.push({ value, values: 1, cells, before });
    }
  }
  if (others.length > 0) {
    const [cells = [], before = []] = both(others).map((it, weeks) =>
      cellsIn(sums(it, weeks), wholeOf(others, weeks)),
    );
    lines.push({ value: undefined, values: others.length, cells, before });
  }
  const whole = lines.map((line) =>
    earlier ? { ...line, before: coveredIn(line.before, slots, earlier, WEEK) } : line,
  );
  return { slots, ticks: ticksOf(slots, zone, LABELS), lines: whole };
}

/**
 * The limits of the steps of the scale for shares. A step contains the shares below its limit that no earlier step contains.
 */
const SHARES = [0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, Number.POSITIVE_INFINITY];
/** The limits of the steps of the scale for differences of shares. */
const DIFFERENCES = [-0.1, -0.02, -0.005, 0.005, 0.02, 0.1, Number.POSITIVE_INFINITY];

/** The step of a share: 0 only for a share of 0. */
export function stepOfShare(share: number): number {
  return share === 0 ? 0 : SHARES.findIndex((limit) => share < limit);
}

/** The step of a difference of shares; 3 is in the middle. */
export function stepOfDifference(difference: number): number {
  return DIFFERENCES.findIndex(
    (limit) => difference < limit || (limit > 0 && difference === limit),
  );
}

/** A cell of the table. */
interface Place {
  readonly line: number;
  readonly slot: number;
}

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
    --head: clamp(6.5rem, 24cqi, 13rem);
  }
  table[role="grid"] {
    table-layout: fixed;
    user-select: text;
    font-size: 0.8125rem;
  }
  .grid.numbers {
    --least: 60px;
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
  tr > th:first-child {
    padding: 0 8px 0 0;
  }
  tbody th {
    height: 24px;
    overflow: hidden;
    text-overflow: ellipsis;
    font-weight: 400;
    text-align: start;
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
  tbody td {
    height: 24px;
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
  .numbers tbody td {
    padding-inline: 4px;
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
  .share0 { background-color: var(--share-0); color: light-dark(#1c2126, #e6e9ec); }
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
  .change3 { background-color: var(--change-3); color: light-dark(#1c2126, #e6e9ec); }
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

/** How many values have a row of their own, unless the page sets another number. */
const ROWS = 20;

/**
 * Shows the values of a dimension over time. The colour of a cell shows the share of events that failed or were filtered, or
 * how this share differs from the same time a week before.
 *
 * Arrow keys move through the cells. Shift with an arrow key, or a drag, marks a range of time, which fires `tallyfold-brush`.
 * Enter, or a click on a value, fires `tallyfold-select`.
 */
export class Heatmap extends View {
  static override properties = {
    ...View.properties,
    rows: { type: Number },
    marked: { attribute: false },
  };

  static override styles = [View.styles, shared, STYLES];

  /** The maximum number of values that have a row of their own. */
  declare rows: number;
  /** The range of time that is marked. */
  declare marked: Window | undefined;

  #model: HeatmapModel | undefined;
  /** The cell of the cursor: its row, and its slot, or -1 for the value of the row. */
  #cursor: Place = { line: 0, slot: 0 };
  /** The slot where the marking began. */
  #anchor: number | undefined;
  #isDragging = false;

  constructor() {
    super();
    this.rows = ROWS;
  }

  protected override get heading(): string {
    const share = this.#measure === "error_rate" ? "Failed share" : "Filtered share";
    const { many } = DIMENSIONS[this.by];
    return `${share} by time: ${many.toLowerCase()}`;
  }

  protected override note(): string {
    return this.#isDeviation ? "change since the same time last week" : "";
  }

  /** The measure in the address, or the default: an address may contain anything. */
  get #measure(): HeatmapMeasure {
    const { share } = this.state;
    return share === "filtered" ? "filtered_rate" : "error_rate";
  }

  get #isDeviation(): boolean {
    const { colour } = this.state;
    return colour === "change" && this.shownBefore !== undefined;
  }

  get #hasNumbers(): boolean {
    const { numbers } = this.state;
    return numbers === "yes";
  }

  protected override tools(): TemplateResult {
    const button = (name: string, value: string | undefined, text: string, isOff = false) =>
      html`<button
        type="button"
        aria-pressed=${this.state[name] === value}
        ?disabled=${isOff}
        @click=${() => this.tell({ [name]: value })}
      >
        ${text}
      </button>`;
    const numbers = () => this.tell({ numbers: this.#hasNumbers ? undefined : "yes" });
    return html`<div class="segments" role="group" aria-label="Share">
        ${button("share", undefined, "Failed")} ${button("share", "filtered", "Filtered")}
      </div>
      <div class="segments" role="group" aria-label="Colour">
        ${button("colour", undefined, "Share")}
        ${button("colour", "change", "Change", this.shownBefore === undefined)}
      </div>
      <div class="segments">
        <button type="button" aria-pressed=${this.#hasNumbers} @click=${numbers}>Numbers</button>
      </div>`;
  }

  protected override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed);
    const inputs = ["table", "tableBefore", "where", "range", "by", "state", "rows", "zone"];
    if (inputs.some((name) => changed.has(name))) this.#model = this.#made();
    const { lines = [], slots = [] } = this.#model ?? {};
    const { line, slot } = this.#cursor;
    const isInside = line < lines.length && slot < slots.length;
    if (!isInside) this.#cursor = { line: 0, slot: 0 };
  }

  #made(): HeatmapModel | undefined {
    const { shown, by, zone, wholeRange: range } = this;
    const rows = this.rows >= 1 ? Math.trunc(this.rows) : ROWS;
    if (!shown?.dimensions.includes(by) || !range) return undefined;
    const wholes = [this.wholeOf("table", by), this.wholeOf("tableBefore", by)];
    const options = { by, measure: this.#measure, rows, range, zone, wholes };
    return heatmapOf(shown, this.shownBefore, options);
  }

  protected override content(): TemplateResult {
    const model = this.#model;
    if (!model) return emptyState("No counts", "These counts do not have this dimension.");
    const { slots, lines } = model;
    const shape = `--slots:${slots.length}`;
    return html`<div class="body">
      <div class="scroll" part="scroll">
        <div class="grid ${this.#hasNumbers ? "numbers" : ""}" .style=${shape}>
          <table
            role="grid"
            part="table"
            aria-labelledby="title"
            aria-describedby="keys"
            @keydown=${this.#onKey}
            @keyup=${this.#onKeyUp}
            @focusin=${this.#onFocus}
            @click=${this.#onClick}
            @pointerdown=${this.#onPointerDown}
            @pointermove=${this.#onPointerMove}
            @pointerleave=${this.#onPointerLeave}
          >
            ${guard([model, this.#isDeviation, this.unit, this.formats], () => [
              this.#header(model),
              html`<tbody>
                ${lines.map((line) => this.#line(line, slots))}
              </tbody>`,
            ])}
          </table>
          ${this.#mark(slots)}
        </div>
      </div>
      <p id="keys" class="sr">
        Arrow keys move through the cells. Shift with an arrow key marks a range of time, and Escape removes the mark. Enter
        shows only the value.
      </p>
      <output class="readout" part="readout">${this.#readout()}</output>
      ${this.#legend()} ${marks(slots.map(({ state }) => state))}
    </div>`;
  }

  #header({ ticks, slots }: HeatmapModel): TemplateResult {
    const { time, date } = this.formats;
    let day: string | undefined;
    return html`<thead>
      <tr>
        <th scope="col">${DIMENSIONS[this.by].one}</th>
        ${ticks.map(({ start, span }, at) => {
          // The last columns may be too few for a label.
          const isNarrow = at > 0 && span * 2 * LABELS < slots.length;
          const text = date(start);
          const label = text === day ? time(start) : html`${text}<br />${time(start)}`;
          day = text;
          return html`<th scope="col" colspan=${span}>${
            isNarrow ? html`<div class="sr">${label}</div>` : html`<span>${label}</span>`
          }</th>`;
        })}
      </tr>
    </thead>`;
  }

  #line(line: HeatmapLine, slots: readonly Slot[]): TemplateResult {
    const { count } = this.formats;
    const name =
      line.value === undefined
        ? html`and ${count(line.values)} others`
        : valueText(line.value, this.by);
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
    const now = this.#shareOf(cell);
    if (now === null) return "none";
    if (!this.#isDeviation) return `share${stepOfShare(now)}`;
    const then = this.#shareOf(line.before[slot]);
    return then === null ? "none" : `change${stepOfDifference(now - then)}`;
  }

  /** The share of a cell that the view shows: its error rate or its filter rate. */
  #shareOf(cell: Cell | undefined): number | null {
    if (!cell) return null;
    return this.#measure === "error_rate" ? cell.rates.error : cell.rates.filter;
  }

  /** The text of a cell. */
  #written(line: HeatmapLine, slot: number): string {
    const cell = line.cells[slot];
    if (!cell) return "";
    const { count, share } = this.formats;
    if (this.unit === "percent") return share(this.#shareOf(cell));
    return count(this.#measure === "error_rate" ? cell.errors : cell.filtered);
  }

  /** The cell of the cursor in words. */
  #readout(): TemplateResult | string {
    const { line: at, slot: place } = this.#cursor;
    const line = this.#model?.lines[at];
    if (!line) return "";
    const { formats } = this;
    const { count, share, span, zoneAt } = formats;
    const name =
      line.value === undefined
        ? html`The other ${count(line.values)} values together`
        : valueText(line.value, this.by);
    const slot = this.#model?.slots[place];
    if (!slot) return html`${name}: Enter opens this value.`;
    const cell = line.cells[place];
    const state = STATES[slot.state];
    const part = partText(slot, formats, Date.now());
    const when = html`${span(slot.start, slot.end)} ${zoneAt(slot.start)}${part}`;
    if (!cell || this.#shareOf(cell) === null) {
      const why = slot.state === "missing" ? state : "no events that were to be sent";
      return html`${name}, ${when}: ${why}.`;
    }
    const what = this.#measure === "error_rate" ? "failed" : "filtered";
    const then = line.before[place];
    const lastWeek =
      then && html` Last week: ${share(this.#shareOf(then))} ${what}, ${this.#counts(then)}.`;
    return html`${name}, ${when}: <b>${share(this.#shareOf(cell))}</b> ${what}, ${this.#counts(cell)}.${lastWeek}
      ${state ? html`<em>${state}.</em>` : nothing}`;
  }

  #counts({ success, errors, filtered }: Cell): string {
    const { count } = this.formats;
    return `${count(errors)} failed, ${count(filtered)} filtered, ${count(success)} delivered`;
  }

  #legend(): TemplateResult {
    const { share } = this.formats;
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
  #mark(slots: readonly Slot[]): TemplateResult | typeof nothing {
    const { marked } = this;
    if (!marked) return nothing;
    const [start, end] = [Date.parse(marked.start), Date.parse(marked.end)];
    const from = slots.findIndex((it) => it.end > start);
    const to = slots.filter((it) => it.start < end).length - 1;
    if (from < 0 || to < from) return nothing;
    const place = `--from:${from};--to:${to + 1};--slots:${slots.length}`;
    return html`<div class="brush" part="brush" .style=${place}></div>`;
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
      this.#focusOn(to);
      return;
    }
    if (event.key === "Enter") this.#open(line);
    else if (event.key === "Escape" && this.marked) {
      this.marked = undefined;
      this.unmark();
    } else return;
    event.preventDefault();
  };

  readonly #onKeyUp = (event: KeyboardEvent): void => {
    if (event.key === "Shift") this.#finish();
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
    this.#isDragging = true;
    this.#anchor = cell.slot;
    const over = new AbortController();
    const end = () => {
      over.abort();
      this.#isDragging = false;
      this.#finish();
    };
    addEventListener("pointerup", end, { signal: over.signal });
    addEventListener("pointercancel", end, { signal: over.signal });
  };

  readonly #onPointerMove = (event: PointerEvent): void => {
    const cell = this.#cellOf(event.target);
    if (!cell) return;
    if (!this.#isDragging) {
      if (event.pointerType !== "touch" && cell.slot >= 0) this.#show(cell);
    } else if (this.#anchor !== undefined && cell.slot >= 0) {
      // A click marks nothing.
      if (cell.slot !== this.#anchor || this.marked) this.#extend(this.#anchor, cell.slot);
    }
  };

  readonly #onPointerLeave = (): void => {
    const focused = this.#cellOf(this.shadowRoot?.activeElement ?? null);
    if (focused) this.#show(focused);
  };

  /** The place of a cell of the table. */
  #cellOf(target: EventTarget | null): Place | undefined {
    const cell = target instanceof Element ? target.closest<HTMLTableCellElement>("td,th") : null;
    const row = cell?.closest("tr");
    if (!cell || row?.parentElement?.tagName !== "TBODY") return undefined;
    return { line: row.sectionRowIndex, slot: cell.cellIndex - 1 };
  }

  #focusOn({ line, slot }: Place): void {
    const row = this.shadowRoot?.querySelector("tbody")?.rows[line];
    row?.cells[slot + 1]?.focus();
  }

  #show(cursor: Place): void {
    if (cursor.line === this.#cursor.line && cursor.slot === this.#cursor.slot) return;
    this.#cursor = cursor;
    this.requestUpdate();
  }

  protected override updated(changed: PropertyValues<this>): void {
    super.updated(changed);
    // Only one cell can be reached with the Tab key.
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
    if (value !== undefined) this.select(this.by, value);
  }

  /** Marks the time between two slots. */
  #extend(anchor: number, slot: number): void {
    this.#anchor = anchor;
    const slots = this.#model?.slots ?? [];
    const [first, last] = [slots[Math.min(anchor, slot)], slots[Math.max(anchor, slot)]];
    if (first && last) this.marked = { start: iso(first.start), end: iso(last.end) };
  }

  /** Ends the marking, and fires the event of the marked range. */
  #finish(): void {
    const isMarking = this.#anchor !== undefined;
    this.#anchor = undefined;
    if (isMarking && this.marked) this.brush(this.marked.start, this.marked.end);
  }
}

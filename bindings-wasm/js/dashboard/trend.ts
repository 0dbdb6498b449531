// `<tallyfold-trend>`: events over time, and the same time a week before.

import { css, html, nothing, type PropertyValues, type TemplateResult } from "lit";
import type uPlot from "uplot";
import type { CountTable } from "../src/tables/table.js";
import type { TimeStep } from "../src/values/time.js";
import type { Dimension, Window } from "../src/values/types.js";
import { type Cell, type Cells, cellsIn, coveredIn, seriesOf, sumsOf } from "./cells.js";
import type { Unit } from "./elements.js";
import { zoneName } from "./formats.js";
import { marks, STATES, shared } from "./marks.js";
import type { ExportItem } from "./menus.js";
import { DAY, iso, WEEK } from "./range.js";
import { offsetOf, partText, type Slot, slotsOf, stepFor } from "./slots.js";
import { turnOf } from "./turns.js";
import { dimensionsOf, emptyState, failureText, filtered, progressOf, View } from "./view.js";

/** What the line shows. */
export type TrendMeasure = "failed" | "filtered" | "delivered";

/** What the trend draws: the counts of each slot, and the counts a week before. */
export interface TrendModel {
  readonly slots: readonly Slot[];
  readonly cells: Cells;
  readonly before: Cells;
}

/** The bounds between which the value of a slot usually stays. */
export interface Usual extends Window {
  readonly low: number;
  readonly high: number;
}

/** How much time before the range is read to learn what is usual, in milliseconds. */
const HISTORY = 2 * WEEK;

/** The maximum number of slots: a day has 288 steps of five minutes. */
const SLOTS = 290;

/**
 * Computes the usual values of each slot of a range, in the measure and unit of the line. `history` contains the counts of the
 * range and of the weeks before it.
 */
async function usualOf(
  history: CountTable,
  { start, end }: Window,
  step: TimeStep,
  measure: TrendMeasure,
  unit: Unit,
): Promise<Usual[]> {
  const health = await import("../src/health.js");
  await health.init();
  const counts = { failed: "errors", filtered: "filtered", delivered: "success" } as const;
  const shares = {
    failed: "error_rate",
    filtered: "filtered_rate",
    delivered: "error_rate",
  } as const;
  const of = (unit === "percent" ? shares : counts)[measure];
  const usual = health.usual(history, of, { start, end, step });
  // An event that is sent is delivered or fails, so the delivered share is 1 minus the failed share.
  if (of !== "error_rate" || measure === "failed") return usual;
  return usual.map((it) => ({ ...it, low: 1 - it.high, high: 1 - it.low }));
}

/**
 * Sums a table over time.
 *
 * @param wholes The events that the shares refer to, in this week and in the week before.
 */
export function trendOf(
  table: CountTable,
  before: CountTable | undefined,
  range: Window,
  wholes: readonly (CountTable | undefined)[] = [],
): TrendModel {
  const step = stepFor(table, range, SLOTS);
  const [now, earlier] = [table, before].map((it) => it?.groupBy());
  const slots = slotsOf(now as CountTable, step, range);
  const sums = (it: CountTable | undefined, weeks: number) =>
    sumsOf(seriesOf(it, step), slots, weeks * WEEK);
  const [cells = [], then = []] = [now, earlier].map((it, weeks) =>
    cellsIn(sums(it, weeks), wholes[weeks] && sums(wholes[weeks]?.groupBy(), weeks)),
  );
  return { slots, cells, before: before ? coveredIn(then, slots, before, WEEK) : then };
}

/**
 * The lines of a chart. Each slot has two points, at its start and just before its end, so that a line is level within a slot.
 * `parts` has single points apart from the lines.
 *
 * @param isApart Whether a slot is in `parts` instead of in the lines.
 */
export function linesOf(
  { slots, cells, before }: TrendModel,
  heightOf: (cell: Cell | undefined) => number | null,
  isApart: (slot: Slot) => boolean,
): { x: number[]; settled: Line; open: Line; parts: Line; lastWeek: Line } {
  const twice = (values: readonly (number | null)[]) => values.flatMap((it) => [it, it]);
  const all = slots.map((_, place) => heightOf(cells[place]));
  const inLine = (it: number | null, place: number) => {
    const slot = slots[place];
    return slot && isApart(slot) ? null : it;
  };
  const now = all.map(inLine);
  const isSettled = slots.map(({ state }) => state === "settled");
  const settled = twice(now.map((it, place) => (isSettled[place] ? it : null)));
  const open = twice(now.map((it, place) => (isSettled[place] ? null : it)));
  for (const [place, { state }] of slots.entries()) {
    // Lets the two lines meet.
    if (isSettled[place] && slots[place + 1] && !isSettled[place + 1]) {
      open[2 * place + 1] = settled[2 * place + 1] ?? null;
    }
    if (isSettled[place] && place > 0 && !isSettled[place - 1] && state === "settled") {
      open[2 * place] = settled[2 * place] ?? null;
    }
  }
  return {
    x: slots.flatMap(({ start, end }) => [start / 1000, (end - 1) / 1000]),
    settled,
    open,
    parts: slots.flatMap((slot, place) => [isApart(slot) ? (all[place] ?? null) : null, null]),
    lastWeek: twice(slots.map((_, place) => inLine(heightOf(before[place]), place))),
  };
}

type Line = (number | null)[];

const STYLES = css`
  .chart {
    position: relative;
    height: 220px;
    direction: ltr;
    touch-action: pan-y;
  }
  .chart:focus-visible {
    outline-offset: 2px;
    border-radius: var(--radius-line);
  }
  .u-wrap {
    position: relative;
    user-select: none;
  }
  .u-over,
  .u-under {
    position: absolute;
  }
  .u-under {
    overflow: hidden;
  }
  canvas {
    display: block;
    position: relative;
    width: 100%;
    height: 100%;
  }
  .u-axis {
    position: absolute;
  }
  .u-select {
    position: absolute;
    border-inline: 2px solid var(--accent);
    background: color-mix(in srgb, var(--accent) 14%, transparent);
    pointer-events: none;
  }
  .u-select[style*="width: 0px"] {
    border: 0;
  }
  .u-cursor-x,
  .u-cursor-y {
    position: absolute;
    inset-block-start: 0;
    left: 0;
    pointer-events: none;
  }
  .u-cursor-x {
    height: 100%;
    border-inline-end: 1px solid var(--line-strong);
  }
  .u-off {
    display: none;
  }
  .ink {
    display: none;
  }
  .key {
    flex: none;
    width: 18px;
    height: 0;
    border-block-start: 2px solid;
  }
  .key.open {
    border-block-start-style: dotted;
  }
  .key.part {
    width: 9px;
    height: 9px;
    border: 2px solid;
    border-radius: 50%;
  }
  .key.week {
    border-color: var(--line-strong);
    border-block-start-width: 1px;
    border-block-start-style: dashed;
  }
  .key.usual {
    height: 10px;
    border: 0;
    background: color-mix(in srgb, var(--muted) 22%, transparent);
  }
  .legend li {
    color: var(--muted);
  }
  .legend .key {
    color: var(--ink);
  }
  .more {
    margin-block-start: var(--s2);
  }
  .more > summary {
    width: max-content;
    color: var(--muted);
    font-size: var(--small);
  }
  .reading {
    display: flex;
    flex-wrap: wrap;
    gap: var(--s2);
    align-items: center;
  }
  .rows {
    max-height: 320px;
    overflow: auto;
    margin-block-start: var(--s2);
  }
  thead th {
    position: sticky;
    inset-block-start: 0;
    background: var(--surface);
  }
`;

/**
 * Shows events over time as a line, with the same time a week before. Provisional and incomplete counts are drawn as a dotted
 * line, and missing time is left out. A count that covers only a part of a step, such as the hour that has just begun, is a
 * point.
 *
 * A drag, or Shift with an arrow key, marks a range of time, which fires `tallyfold-brush`.
 */
export class Trend extends View {
  static override properties = {
    ...View.properties,
    measure: {},
    marked: { attribute: false },
    usual: { attribute: false },
  };

  static override styles = [View.styles, shared, STYLES];

  /** Which events the line shows before the visitor selects others. */
  declare measure: TrendMeasure | undefined;
  /** The range of time that is marked. */
  declare marked: Window | undefined;
  /**
   * The usual values of some slots, in the measure and unit of the line, drawn as a band. A button computes them from two
   * weeks.
   */
  declare usual: readonly Usual[] | undefined;

  #given: readonly unknown[] = [];
  #model: TrendModel | undefined;
  /** The inputs for which the band of usual values was learned; empty if it is not shown. */
  #learned: readonly unknown[] = [];
  /** The usual values, by the start of the slot in milliseconds. */
  #usualAt: ReadonlyMap<number, Usual> = new Map();
  /** The progress of reading the history. */
  #learning: { done: number; planned: number; readonly stop: AbortController } | undefined;
  /** Why the history could not be read. */
  #failed: unknown;
  #plot: uPlot | undefined;
  #chart: typeof uPlot | undefined;
  /** Resolves when the code of the chart is loaded. */
  #drawing: Promise<void> | undefined;
  /** The slot of the cursor. */
  #place = 0;
  #anchor: number | undefined;
  readonly #size = new ResizeObserver(() => this.#fit());
  readonly #scheme = matchMedia("(prefers-color-scheme: dark)");
  readonly #redraw = () => this.#plot?.redraw(false);

  protected override get looked(): (CountTable | undefined)[] {
    return [this.shown, this.shownBefore];
  }

  protected override get heading(): string {
    const name = { failed: "Failed", filtered: "Filtered", delivered: "Delivered" }[this.#measure];
    return this.unit === "percent" ? `${name} share over time` : `${name} events over time`;
  }

  get #measure(): TrendMeasure {
    const { measure = this.measure } = this.state;
    return measure === "filtered" || measure === "delivered" ? measure : "failed";
  }

  /** Whether to show the band of usual values. A button switches it on and off, and the address stores this. */
  get #isUsualShown(): boolean {
    const { usual } = this.state;
    return usual === "shown" && this.#canLearn;
  }

  /** Whether the usual values can be learned: if the view can read counts, and does not show shares of reasons. */
  get #canLearn(): boolean {
    const { reason } = this.where;
    const isShare = this.unit === "percent" && reason !== undefined;
    return this.load !== undefined && this.query !== undefined && !isShare;
  }

  /** Reads two weeks of history, and learns what is usual. Later calls usually request only new and provisional windows. */
  async #learn(): Promise<void> {
    this.#learning?.stop.abort();
    this.#failed = undefined;
    const { load, query, shown, range, where } = this;
    if (!this.#isUsualShown || !load || !query || !shown || !range) {
      this.#learning = undefined;
      this.usual = undefined;
      return;
    }
    const stop = new AbortController();
    const own = { done: 0, planned: 0, stop };
    this.#learning = own;
    this.requestUpdate();
    const dimensions = dimensionsOf(Object.keys(where) as Dimension[]);
    const asked = {
      ...query,
      dimensions: dimensions.length > 0 ? dimensions : [this.by],
      start: iso(Date.parse(query.start) - HISTORY),
    };
    const onProgress = (done: number, planned: number) => {
      Object.assign(own, { done, planned });
      this.requestUpdate();
    };
    try {
      const history = filtered(await load(asked, { signal: stop.signal, onProgress }), where);
      const step = stepFor(shown, range, SLOTS);
      const usual = await usualOf(history, range, step, this.#measure, this.unit);
      if (this.#learning === own) this.usual = usual;
    } catch (error) {
      if (this.#learning !== own || stop.signal.aborted) return;
      this.usual = undefined;
      this.#failed = error;
      void this.tellError(error);
    } finally {
      if (this.#learning === own) this.#learning = undefined;
      this.requestUpdate();
    }
  }

  protected override tools(): TemplateResult {
    const button = (measure: TrendMeasure, text: string) => html`<button
      type="button"
      aria-pressed=${this.#measure === measure}
      @click=${() => this.tell({ measure: measure === (this.measure ?? "failed") ? undefined : measure })}
    >
      ${text}
    </button>`;
    const isShown = this.#isUsualShown;
    return html`<div class="segments" role="group" aria-label="Events">
        ${button("failed", "Failed")} ${button("filtered", "Filtered")}
        ${button("delivered", "Delivered")}
      </div>
      ${
        this.#canLearn
          ? html`<div class="segments">
            <button
              type="button"
              aria-pressed=${isShown}
              title="The values that are usual at this time of day, by the two weeks before"
              @click=${() => this.tell({ usual: isShown ? undefined : "shown" })}
            >
              Usual
            </button>
          </div>`
          : nothing
      }`;
  }

  override exported(): CountTable | undefined {
    return this.shown?.groupBy() as CountTable | undefined;
  }

  protected override exports(): ExportItem[] {
    const canvas = this.#plot?.ctx.canvas;
    if (!canvas) return [];
    const make = () =>
      new Promise<Blob>((resolve, reject) => {
        canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))));
      });
    return [{ label: "PNG", extension: "png", make }];
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#scheme.addEventListener("change", this.#redraw);
    // An element that was moved to another place of the page has to draw its chart again.
    this.requestUpdate();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#scheme.removeEventListener("change", this.#redraw);
    this.#learning?.stop.abort();
    this.#learned = [];
    this.#discard();
  }

  /** Changes that also affect the tables are drawn after the tables, because drawing the chart measures the page. */
  protected override async scheduleUpdate(): Promise<void> {
    const given = [this.table, this.where, this.unit];
    const isOther = given.some((value, at) => value !== this.#given[at]);
    this.#given = given;
    if (isOther) await turnOf("later");
    return super.scheduleUpdate();
  }

  protected override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed);
    if (["table", "tableBefore", "where", "range"].some((name) => changed.has(name))) {
      const { shown, wholeRange: range } = this;
      this.#model =
        shown &&
        range &&
        trendOf(shown, this.shownBefore, range, [
          this.wholeOf("table"),
          this.wholeOf("tableBefore"),
        ]);
      this.#place = Math.max(0, (this.#model?.slots.length ?? 0) - 1);
    }
    const { table, unit, where, range, query } = this;
    const question = JSON.stringify([this.#measure, unit, where, range, query]);
    const learned = this.#isUsualShown ? [table, question] : [];
    const isSame = learned.length === this.#learned.length;
    if (!isSame || learned.some((it, place) => it !== this.#learned[place])) {
      // The band of another measure or unit says nothing about this line.
      if (this.#learned.length > 0 && this.#learned[1] !== question) this.usual = undefined;
      this.#learned = learned;
      void this.#learn();
    }
    if (changed.has("usual")) {
      this.#usualAt = new Map(this.usual?.map((it) => [Date.parse(it.start), it]));
    }
  }

  protected override content(): TemplateResult {
    const model = this.#model;
    if (!model || model.slots.length === 0) return emptyState("No counts", "Nothing was read yet.");
    const measure = this.#measure;
    return html`<div class="body" .style=${`--ink:var(--${measure})`}>
      ${["ink", "line-strong", "muted", "line"].map(
        (name) => html`<i class="ink" .style=${`color:var(--${name})`}></i>`,
      )}
      <div
        class="chart"
        part="chart"
        role="group"
        aria-labelledby="title"
        aria-describedby="keys"
        tabindex="0"
        @focus=${() => this.#show(this.#place)}
        @keydown=${this.#onKey}
        @keyup=${this.#onKeyUp}
        @pointerdown=${this.#onPointerDown}
        @pointermove=${this.#onPointerMove}
      ></div>
      <p id="keys" class="sr">
        Arrow keys move through time. Shift with an arrow key marks a range of time, and Escape removes the mark.
      </p>
      <output class="readout" part="readout">${this.#readout(model)}</output>
      <ul class="legend" part="legend">
        <li><span class="key"></span>${measure}</li>
        ${
          model.slots.some(({ state }) => state === "provisional" || state === "partial")
            ? html`<li><span class="key open"></span>may still change</li>`
            : nothing
        }
        ${
          model.slots.some(this.#isApart)
            ? html`<li><span class="key part"></span>covers less time than the line</li>`
            : nothing
        }
        ${this.shownBefore ? html`<li><span class="key week"></span>same time last week</li>` : nothing}
        ${this.usual ? html`<li><span class="key usual"></span>usual</li>` : nothing}
      </ul>
      ${this.#progress()} ${this.#failure()}
      ${marks(model.slots.map(({ state }) => state).filter((state) => state !== "provisional"))}
      <details class="more" @toggle=${() => this.requestUpdate()}>
        <summary>Table</summary>
        ${this.renderRoot.querySelector<HTMLDetailsElement>(".more")?.open ? this.#table(model) : nothing}
      </details>
    </div>`;
  }

  #progress(): TemplateResult | typeof nothing {
    if (!this.#learning) return nothing;
    return html`<p class="reading" role="status">
      ${progressOf(this.#learning, this.formats, "Reading two weeks")}
    </p>`;
  }

  /** Why the band of usual values is not shown. */
  #failure(): TemplateResult | typeof nothing {
    if (this.#failed === undefined) return nothing;
    const { title, text } = failureText(this.#failed);
    return html`<p class="reading row" role="alert">
      <span><b>${title}.</b> <bdi>${text}</bdi></span>
      <button type="button" @click=${() => void this.#learn()}>Try again</button>
    </p>`;
  }

  #readout({ slots, cells, before }: TrendModel): TemplateResult | string {
    const slot = slots[this.#place];
    if (!slot) return "";
    const { span, zoneAt } = this.formats;
    const part = partText(slot, this.formats, Date.now());
    const when = html`${span(slot.start, slot.end)} ${zoneAt(slot.start)}${part}`;
    const cell = cells[this.#place];
    if (!cell) return html`${when}: ${STATES.missing}.`;
    const then = before[this.#place];
    const usual = this.#usualOf(slot);
    return html`${when}: ${this.#said(cell)}.
    ${then ? html`Last week: ${this.#said(then)}.` : nothing}
    ${usual ? html`Usually ${this.#bound(usual.low)} to ${this.#bound(usual.high)}.` : nothing}
    ${slot.state === "settled" ? nothing : html`<em class="muted">${STATES[slot.state]}.</em>`}`;
  }

  /**
   * Whether a slot is drawn apart from the line. Counts of only a part of a step are, because with them, the line would seem to
   * fall. Shares of a part of a step don't make the line fall.
   */
  readonly #isApart = ({ isPart }: Slot): boolean => isPart && this.unit === "counts";

  /**
   * What is usual in a slot; `undefined` for a slot apart from the line, because what is usual is known only for whole steps.
   */
  #usualOf(slot: Slot): Usual | undefined {
    return this.#isApart(slot) ? undefined : this.#usualAt.get(slot.step.start);
  }

  /** A bound of the usual values as text. Bounds are estimates, so counts are rounded to whole numbers. */
  #bound(value: number): string {
    const { count, share } = this.formats;
    return this.unit === "percent" ? share(value) : count(Math.round(value));
  }

  /** A cell in words. */
  #said(cell: Cell): TemplateResult {
    const { count, share } = this.formats;
    const { errors, filtered, success, rates } = cell;
    return html`<b>${count(errors)}</b> failed (${share(rates.error)}), <b>${count(filtered)}</b> filtered
      (${share(rates.filter)}), <b>${count(success)}</b> delivered (${share(rates.delivery)})`;
  }

  /** The same numbers as a table, for viewers who can't see the line. */
  #table({ slots, cells, before }: TrendModel): TemplateResult {
    const { span, zoneAt, count, share } = this.formats;
    const shown = (cell: Cell | undefined) => {
      if (!cell) return "";
      return this.unit === "percent" ? share(this.#rateOf(cell)) : count(this.#countOf(cell));
    };
    const now = Date.now();
    const usually = (slot: Slot) => {
      const usual = this.#usualOf(slot);
      return usual ? html`${this.#bound(usual.low)} to ${this.#bound(usual.high)}` : "";
    };
    return html`<div class="rows" tabindex="0" role="group" aria-label="Table of ${this.heading}">
      <table part="table">
        <thead>
          <tr>
            <th scope="col">Time (${zoneAt(slots[0]?.start ?? 0)})</th>
            <th scope="col">${this.heading.replace(" over time", "")}</th>
            <th scope="col">Last week</th>
            ${this.usual ? html`<th scope="col">Usually</th>` : nothing}
            <th scope="col">State</th>
          </tr>
        </thead>
        <tbody>
          ${slots.map(
            (slot, place) => html`<tr>
              <th scope="row">${span(slot.start, slot.end)}${partText(slot, this.formats, now)}</th>
              <td>${shown(cells[place])}</td>
              <td>${shown(before[place])}</td>
              ${this.usual ? html`<td>${usually(slot)}</td>` : nothing}
              <td>${slot.state}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
  }

  #countOf({ errors, filtered, success }: Cell): bigint {
    return { failed: errors, filtered, delivered: success }[this.#measure];
  }

  #rateOf({ rates }: Cell): number | null {
    return { failed: rates.error, filtered: rates.filter, delivered: rates.delivery }[
      this.#measure
    ];
  }

  /** The height of a cell in the chart. Pixels don't need exact numbers. */
  readonly #heightOf = (cell: Cell | undefined): number | null => {
    if (!cell) return null;
    return this.unit === "percent" ? this.#rateOf(cell) : Number(this.#countOf(cell));
  };

  protected override updated(changed: PropertyValues): void {
    super.updated(changed);
    const chart = this.renderRoot.querySelector<HTMLElement>(".chart");
    if (!chart || !this.#model) {
      this.#discard();
      return;
    }
    const drawn = ["table", "tableBefore", "where", "range", "state", "unit", "usual"];
    const looks = ["zone", "locale"];
    if (this.#plot && looks.some((name) => changed.has(name))) this.#discard();
    if (!this.#plot || this.#plot.root.parentElement !== chart) void this.#draw(chart);
    else if (drawn.some((name) => changed.has(name))) this.#plot.setData(this.#data());
    if (changed.has("marked")) this.#showMark();
  }

  /** The first update is complete when the code of the chart is loaded and the chart is drawn. */
  protected override async getUpdateComplete(): Promise<boolean> {
    const isComplete = await super.getUpdateComplete();
    if (!this.#drawing) return isComplete;
    await this.#drawing;
    return super.getUpdateComplete();
  }

  async #draw(chart: HTMLElement): Promise<void> {
    if (!this.#chart) {
      this.#drawing ??= import("uplot").then(({ default: loaded }) => {
        this.#chart = loaded;
        this.#drawing = undefined;
      });
      await this.#drawing;
      // The update also draws what has changed meanwhile.
      return this.requestUpdate();
    }
    this.#discard();
    this.#plot = new this.#chart(this.#options(chart), this.#data(), chart);
    this.#size.observe(chart);
    this.#showMark();
    this.requestUpdate();
  }

  #discard(): void {
    this.#size.disconnect();
    this.#plot?.destroy();
    this.#plot = undefined;
  }

  #fit(): void {
    const chart = this.#plot?.root.parentElement;
    if (!chart || chart.clientWidth === 0) return;
    this.#plot?.setSize({ width: chart.clientWidth, height: chart.clientHeight });
    this.#showMark();
  }

  #data(): uPlot.AlignedData {
    const model = this.#model as TrendModel;
    const { x, settled, open, parts, lastWeek } = linesOf(model, this.#heightOf, this.#isApart);
    const bound = (name: "low" | "high") =>
      model.slots.flatMap((slot) => {
        const it = this.#usualOf(slot)?.[name] ?? null;
        return [it, it];
      });
    return [x, bound("low"), bound("high"), lastWeek, settled, open, parts];
  }

  #options(chart: HTMLElement): uPlot.Options {
    const ink = (place: number) => () => {
      const probe = chart.parentElement?.querySelectorAll(".ink")[place];
      return probe ? getComputedStyle(probe).color : "gray";
    };
    const [main, week, muted, line] = [ink(0), ink(1), ink(2), ink(3)];
    const hidden = { points: { show: false }, stroke: "transparent", width: 0 };
    const shownLine = { points: { show: false }, spanGaps: false };
    const font = `12px ${getComputedStyle(chart).fontFamily}`;
    const axis = { stroke: muted, font, ticks: { stroke: line, width: 1, size: 4 } };
    const zone = zoneName(this.zone);
    const make = this.#chart as typeof uPlot;
    return {
      width: chart.clientWidth,
      height: chart.clientHeight,
      padding: [8, 28, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false, setScale: false } },
      tzDate: (seconds) => make.tzDate(new Date(seconds * 1000), zone),
      scales: {
        x: {
          range: () => {
            const { slots } = this.#model as TrendModel;
            return [(slots[0]?.start ?? 0) / 1000, (slots.at(-1)?.end ?? 1) / 1000];
          },
        },
        y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] },
      },
      axes: [
        {
          ...axis,
          size: 32,
          grid: { show: false },
          values: (_, splits) => splits.map((it) => this.#timeLabel(it * 1000)),
        },
        {
          ...axis,
          grid: { stroke: line, width: 1 },
          ticks: { show: false },
          size: 56,
          values: (_, splits) => splits.map((it) => this.#label(it)),
        },
      ],
      series: [
        {},
        hidden,
        hidden,
        { ...shownLine, stroke: week, width: 1, dash: [4, 4] },
        { ...shownLine, stroke: main, width: 2 },
        { ...shownLine, stroke: main, width: 2, dash: [2, 3] },
        {
          stroke: main,
          width: 0,
          paths: () => null,
          points: { show: true, size: 7, width: 2, fill: "transparent" },
        },
      ],
      bands: [{ series: [2, 1], fill: () => faded(muted()) }],
    };
  }

  #timeLabel(ms: number): string {
    const { time, date } = this.formats;
    const isMidnight = (ms + offsetOf(this.zone, ms)) % DAY === 0;
    return isMidnight ? date(ms) : time(ms);
  }

  #label(value: number): string {
    const { compact, share } = this.formats;
    return this.unit === "percent" ? share(value) : compact(value);
  }

  #showMark(): void {
    const plot = this.#plot;
    if (!plot) return;
    const { marked } = this;
    const at = (text: string) => plot.valToPos(Date.parse(text) / 1000, "x");
    const [left, right] = marked ? [at(marked.start), at(marked.end)] : [0, 0];
    const height = marked ? plot.over.clientHeight : 0;
    plot.setSelect({ left, width: right - left, top: 0, height }, false);
  }

  #show(place: number): void {
    this.#place = place;
    const plot = this.#plot;
    const slot = this.#model?.slots[place];
    if (plot && slot) {
      const left = plot.valToPos((slot.start + slot.end) / 2000, "x");
      plot.setCursor({ left, top: 0 }, false);
    }
    this.requestUpdate();
  }

  readonly #onKey = (event: KeyboardEvent): void => {
    const last = (this.#model?.slots.length ?? 0) - 1;
    const from = this.#place;
    const moves: { readonly [key: string]: number } = {
      ArrowLeft: from - 1,
      ArrowRight: from + 1,
      PageUp: from - 10,
      PageDown: from + 10,
      Home: 0,
      End: last,
    };
    const move = moves[event.key];
    if (move !== undefined) {
      event.preventDefault();
      const to = Math.min(Math.max(move, 0), last);
      if (event.shiftKey) this.#extend(this.#anchor ?? from, to);
      this.#show(to);
    } else if (event.key === "Escape" && this.marked) {
      event.preventDefault();
      this.marked = undefined;
      this.unmark();
    }
  };

  readonly #onKeyUp = (event: KeyboardEvent): void => {
    if (event.key === "Shift") this.#finish();
  };

  /** The slot under the pointer. */
  #under(event: PointerEvent): number | undefined {
    const plot = this.#plot;
    if (!plot || !this.#model) return undefined;
    const ms = plot.posToVal(event.clientX - plot.over.getBoundingClientRect().left, "x") * 1000;
    const { slots } = this.#model;
    if (slots.length === 0) return undefined;
    const place = slots.findIndex(({ end }) => ms < end);
    return place < 0 ? slots.length - 1 : place;
  }

  readonly #onPointerDown = (event: PointerEvent): void => {
    const place = this.#under(event);
    if (place === undefined || event.pointerType === "touch" || event.button !== 0) return;
    this.#anchor = place;
    const over = new AbortController();
    const end = () => {
      over.abort();
      this.#finish();
    };
    addEventListener("pointerup", end, { signal: over.signal });
    addEventListener("pointercancel", end, { signal: over.signal });
  };

  readonly #onPointerMove = (event: PointerEvent): void => {
    const place = this.#under(event);
    if (place === undefined) return;
    // A click marks nothing.
    if (this.#anchor !== undefined && event.buttons > 0 && place !== this.#anchor) {
      this.#extend(this.#anchor, place);
    }
    if (place !== this.#place) {
      this.#place = place;
      this.requestUpdate();
    }
  };

  #extend(anchor: number, place: number): void {
    this.#anchor = anchor;
    const slots = this.#model?.slots ?? [];
    const [first, last] = [slots[Math.min(anchor, place)], slots[Math.max(anchor, place)]];
    if (first && last) this.marked = { start: iso(first.start), end: iso(last.end) };
  }

  #finish(): void {
    const isMarking = this.#anchor !== undefined;
    this.#anchor = undefined;
    if (isMarking && this.marked) this.brush(this.marked.start, this.marked.end);
  }
}

/** A colour that lets the line show through. */
function faded(color: string): string {
  return color.replace(/^rgba?\(([^)]*)\)$/, (_, parts: string) => {
    const [red, green, blue] = parts.split(/[\s,/]+/);
    return `rgb(${red} ${green} ${blue} / 20%)`;
  });
}

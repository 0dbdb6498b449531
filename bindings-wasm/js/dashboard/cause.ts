// `<tallyfold-cause>`: explains what has changed in a marked range, or how the whole range differs from the week before.

import { css, html, nothing, type PropertyValues, type TemplateResult } from "lit";
import type { Amount, Cause as Candidate, Explanation, Measure } from "../src/health.js";
import type { CountTable } from "../src/tables/table.js";
import { TallyfoldError } from "../src/values/error.js";
import type { Dimension, Window } from "../src/values/types.js";
import { DIMENSIONS } from "./base.js";
import type { DashboardQuery } from "./elements.js";
import { marks, shared, statesOf } from "./marks.js";
import { iso, shifted, WEEK } from "./range.js";
import { slotsOf, stepFor } from "./slots.js";
import { turn, turnOf } from "./turns.js";
import {
  descending,
  dimensionsOf,
  emptyState,
  failureState,
  filtered,
  manyOf,
  NAMES,
  partOf,
  skeleton,
  View,
  valueText,
} from "./view.js";

const MEASURES: { readonly [M in Measure]: string } = {
  error_rate: "Failed share",
  errors: "Failed events",
  filtered_rate: "Filtered share",
  filtered: "Filtered events",
  success: "Delivered events",
  events: "All events",
};

/** An explanation, the tables that it compares, and the time that the table `before` is for. */
interface Found {
  readonly explanation: Explanation;
  readonly before: CountTable;
  readonly now: CountTable;
  readonly earlier: Window;
}

/** The measures that are compared with the week before if no range is marked, and the states of other views that show them. */
const WEEKLY = {
  error_rate: { label: "failed events", views: {} },
  filtered_rate: {
    label: "filtered events",
    views: { "trend.measure": "filtered", "heatmap.share": "filtered" },
  },
  events: { label: "events", views: { "trend.measure": "delivered" } },
} as const;

type Weekly = keyof typeof WEEKLY;

/** How a part of the range differs from the week before. */
interface Change {
  readonly measure: Weekly;
  readonly start: string;
  readonly end: string;
  /** The values that explain most of the change; empty if everything has changed alike. */
  readonly where: Candidate["where"];
  readonly events: bigint;
}

/** The maximum number of parts in which the range is compared, and the maximum for a table with many groups. */
const PARTS = 24;
const PARTS_OF_MANY = 6;
const MANY_GROUPS = 5_000;
/** The minimum number of windows in a part. The differences between them show how much counts usually vary. */
const WINDOWS = 4;
/** The maximum probability that any of the changes is due to chance. */
const CHANCE = 0.05;
/** How many changes are shown. */
const SHOWN = 5;

/** Thrown if the time to compare with was not read. */
class Unread extends Error {}

const STYLES = css`
  .sentence {
    margin-block-end: var(--s3);
    font-size: var(--large);
    overflow-wrap: anywhere;
  }
  .badge {
    display: inline-block;
    margin-block-end: var(--s2);
    padding: 1px 10px;
    border: 1px solid var(--line-strong);
    border-radius: calc(12 * var(--radius));
    font-size: var(--small);
  }
  .bar {
    display: block;
    height: 4px;
    margin-block-start: 2px;
    border-radius: var(--radius-swatch);
    background: var(--accent);
  }
  .compared {
    margin-block: var(--s2) 0;
    color: var(--muted);
    font-size: var(--small);
  }
  .change {
    display: grid;
    grid-template-columns: minmax(8ch, max-content) minmax(0, 1fr) auto;
    align-items: center;
    gap: 0 var(--s3);
    padding-block: 6px;
  }
  .change + .change {
    border-block-start: 1px solid var(--line);
  }
  .change strong {
    font-weight: 600;
    text-align: end;
  }
  .what {
    display: flex;
    flex-wrap: wrap;
    gap: 0 var(--s4);
    min-width: 0;
  }
  .what .where {
    display: flex;
    flex-wrap: wrap;
    gap: 0 var(--s3);
    min-width: 0;
  }
  .what .where > span {
    display: inline-flex;
    gap: 6px;
    min-width: 0;
  }
  .what .link {
    min-width: 0;
  }
  .what .value {
    display: block;
    white-space: normal;
    overflow-wrap: anywhere;
  }
  .more {
    margin-block-start: var(--s2);
  }
  .more > summary {
    width: max-content;
    color: var(--muted);
    font-size: var(--small);
  }
`;

/**
 * Shows what changed in a marked range: the few combinations of values that explain the change, and the exact numbers of
 * events. The marked range is compared with the time just before it, or with the same time a week before. If no range is
 * marked, each part of the whole range is compared with the week before.
 */
export class Cause extends View {
  static override properties = {
    ...View.properties,
    marked: { attribute: false },
  };

  static override styles = [View.styles, shared, STYLES];

  /** The range to explain. */
  declare marked: Window | undefined;

  #found: Found | undefined;
  #changes: readonly Change[] | undefined;
  #failed: unknown;
  #searching: AbortController | undefined;
  /** Resolves when the last search has ended. */
  #searched: Promise<void> | undefined;

  protected override get looked(): (CountTable | undefined)[] {
    return [this.shown, this.shownBefore];
  }

  protected override get heading(): string {
    return this.marked ? "What changed here?" : "Changes since last week";
  }

  protected override note(): unknown {
    const { marked } = this;
    if (!marked) return nothing;
    const { span, zoneAt } = this.formats;
    return `${span(marked.start, marked.end)} ${zoneAt(marked.start)}`;
  }

  /** The measures to choose from. Rows with a reason have events of one kind only, so their shares mean nothing. */
  get #measures(): [Measure, string][] {
    const all = Object.entries(MEASURES) as [Measure, string][];
    return this.where.reason ? all.filter(([name]) => !name.endsWith("_rate")) : all;
  }

  get #usualMeasure(): Measure {
    return this.where.reason ? "events" : "error_rate";
  }

  get #measure(): Measure {
    const { measure } = this.state;
    return this.#measures.find(([name]) => name === measure)?.[0] ?? this.#usualMeasure;
  }

  get #isWeekly(): boolean {
    const { against } = this.state;
    return against === "week";
  }

  protected override tools(): TemplateResult | typeof nothing {
    if (!this.marked) return nothing;
    const choose = (event: Event) => {
      const { value } = event.target as HTMLSelectElement;
      this.tell({ measure: value === this.#usualMeasure ? undefined : value });
    };
    const button = (against: "week" | undefined, text: string) => html`<button
      type="button"
      aria-pressed=${this.#isWeekly === (against === "week")}
      @click=${() => this.tell({ against })}
    >
      ${text}
    </button>`;
    return html`<select aria-label="What changed" @change=${choose}>
        ${this.#measures.map(
          ([name, text]) =>
            html`<option value=${name} .selected=${name === this.#measure}>${text}</option>`,
        )}
      </select>
      <div class="segments" role="group" aria-label="Compared with">
        ${button(undefined, "Time before")} ${button("week", "Last week")}
      </div>`;
  }

  override get exportedQuery(): DashboardQuery | undefined {
    const { query, marked } = this;
    const dimensions = (this.#found?.now.dimensions ?? query?.dimensions) as readonly Dimension[];
    return query && marked ? { ...query, start: marked.start, end: marked.end, dimensions } : query;
  }

  /** Exports the counts of the marked range if there is one. */
  override exported(): CountTable | undefined {
    return this.marked ? this.#found?.now : super.exported();
  }

  protected override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed);
    const inputs = ["marked", "table", "tableBefore", "where", "state", "load"];
    if (inputs.some((name) => changed.has(name))) this.#searched = this.#search();
  }

  /** An update is complete when the search for causes has ended. */
  protected override async getUpdateComplete(): Promise<boolean> {
    await super.getUpdateComplete();
    await this.#searched;
    return super.getUpdateComplete();
  }

  override connectedCallback(): void {
    super.connectedCallback();
    // The search ended when the element was removed from the page.
    const isCut = this.#searching?.signal.aborted && !this.#found && !this.#changes;
    if (isCut) this.#searched = this.#search();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#searching?.abort();
  }

  async #search(): Promise<void> {
    this.#searching?.abort();
    this.#found = undefined;
    this.#changes = undefined;
    this.#failed = undefined;
    const { marked, shown } = this;
    if (!shown) return;
    const searching = new AbortController();
    this.#searching = searching;
    const { signal } = searching;
    if (!marked) return this.#compareWeeks(signal);
    const measure = this.#measure;
    const length = Date.parse(marked.end) - Date.parse(marked.start);
    const earlier = shifted(marked, this.#isWeekly ? -WEEK : -length);
    try {
      const health = await import("../src/health.js");
      const [now, before] = await Promise.all([
        this.#countsOf(marked, signal),
        this.#countsOf(earlier, signal),
        health.init(),
      ]);
      if (signal.aborted) return;
      this.#found = { now, before, earlier, explanation: health.explain(before, now, measure) };
    } catch (error) {
      if (signal.aborted) return;
      this.#failed = error;
    }
    this.requestUpdate();
  }

  /** Explains how each part of the range differs from the week before, by the dimensions that were read. */
  async #compareWeeks(signal: AbortSignal): Promise<void> {
    const { shown, shownBefore: before, wholeRange: range } = this;
    if (!shown || !before || !range) return;
    try {
      const health = await import("../src/health.js");
      await health.init();
      // Waits until the browser has drawn the result of a click.
      await turnOf("later");
      // Rows with a reason have events of one kind only, so their shares mean nothing.
      const measures = (this.where.reason ? ["events"] : Object.keys(WEEKLY)) as Weekly[];
      const parts = await partsOf(shown, before, range);
      if (signal.aborted) return;
      if (parts.length === 0) throw new Unread();
      const found: Change[] = [];
      for (const { now, then, start, end } of parts) {
        // Yields to other views and to the browser.
        await turn();
        if (signal.aborted) return;
        for (const [at, explanation] of health.explainEach(then, now, measures).entries()) {
          const { probability, causes, change } = explanation;
          if (probability * parts.length * measures.length > CHANCE) continue;
          // If there is no cause, everything has changed alike.
          const { where, events } = causes[0] ?? { where: {}, events: change };
          found.push({ measure: measures[at] as Weekly, start, end, where, events });
        }
      }
      this.#changes = joined(found);
    } catch (error) {
      if (signal.aborted) return;
      this.#failed = error;
    }
    this.requestUpdate();
  }

  /**
   * Returns the counts of a range. If the view can read counts, these have all dimensions of the metric; otherwise, the
   * dimensions of the tables that the view was given.
   */
  async #countsOf(range: Window, signal: AbortSignal): Promise<CountTable> {
    const { load, query, shown, shownBefore } = this;
    if (load && query) {
      const isIngestion = query.metric === "event_ingestion";
      const dimensions = NAMES.filter((name) => !isIngestion || name !== "reason");
      const { start, end } = range;
      return filtered(await load({ ...query, dimensions, start, end }, { signal }), this.where);
    }
    const table = [shown, shownBefore].find((it) => it?.gaps(range).length === 0) ?? shown;
    try {
      return (table as CountTable).between(range);
    } catch (error) {
      const isUnread = TallyfoldError.is(error) && error.code === "invalid_window";
      if (!isUnread) throw error;
      throw new Unread();
    }
  }

  protected override content(): TemplateResult {
    if (this.#failed instanceof Unread) {
      return emptyState("Nothing to compare with", "The time to compare with was not read.");
    }
    if (this.#failed !== undefined) return failureState(this.#failed, () => void this.#search());
    if (!this.marked) return this.#week();
    if (!this.#found) return skeleton();
    const { explanation, before, now, earlier } = this.#found;
    const { sentence, isNormal, isGlobal, causes, others } = explanation;
    const states = [...statesOf(now, this.marked), ...statesOf(before, earlier)];
    return html`<div class="body" aria-live="polite">
      ${isNormal ? html`<p class="badge" part="badge">within normal variation</p>` : nothing}
      ${isGlobal ? html`<p class="badge" part="badge">everything changed alike</p>` : nothing}
      <p class="sentence" part="sentence"><bdi>${sentence}</bdi></p>
      ${causes.length > 0 ? this.#table(explanation, causes, true) : nothing}
      ${
        others.length > 0
          ? html`<details class="more">
            <summary>Other candidates</summary>
            ${this.#table(explanation, others, false)}
          </details>`
          : nothing
      }
      <p class="compared">${this.#compared(before)}</p>
      ${marks(states)}
    </div>`;
  }

  /** Shows what has changed since the week before. */
  #week(): TemplateResult {
    const { range, shownBefore } = this;
    const shown = this.shown as CountTable;
    if (!shownBefore && !this.loading) {
      return emptyState("Nothing to compare with", "The same time last week was not read.");
    }
    if (!this.#changes) return skeleton();
    const names = dimensionsOf(shown.dimensions as Dimension[]);
    const [first, others] = [this.#changes.slice(0, SHOWN), this.#changes.slice(SHOWN)];
    const { count } = this.formats;
    return html`<div class="body" aria-live="polite">
      ${
        first.length === 0
          ? html`<p class="none">No part of this range differs from last week by more than counts usually vary.</p>`
          : html`<ul class="changes">${first.map((it) => this.#change(it))}</ul>`
      }
      <p class="compared">
        ${others.length > 0 ? html`${count(others.length)} smaller changes are not shown. ` : nothing}${this.#totals()}
        Causes were sought among ${manyOf(names, "and")}.
      </p>
      ${marks(range ? statesOf(shown, range) : [])}
    </div>`;
  }

  /**
   * Compares the rates of the whole range and of the week before, in a sentence. Empty if windows are missing, or if only rows
   * with some reasons are shown.
   */
  #totals(): string {
    const { shown, shownBefore, wholeRange: range } = this;
    if (!shown || !shownBefore || !range || this.where.reason) return "";
    if (shown.gaps(range).length > 0 || this.gapsBefore(range).length > 0) return "";
    const { share } = this.formats;
    const [now, then] = [shown.totals.rates, shownBefore.totals.rates];
    return `In the whole range, ${share(now.error)} failed (last week ${share(then.error)}), and ${share(now.filter)} were filtered (last week ${share(then.filter)}).`;
  }

  #change({ measure, start, end, where, events }: Change): TemplateResult {
    const { label, views } = WEEKLY[measure];
    const { delta, span, zoneAt } = this.formats;
    const names = dimensionsOf(Object.keys(where) as Dimension[]);
    const open = () =>
      this.emit("tallyfold-open", {
        marked: { start, end },
        ...(names[0] && { by: names[0] }),
        views: { ...views, "cause.measure": measure, "cause.against": "week" },
      });
    return html`<li class="change" data-measure=${measure}>
      <strong>${delta(events)}</strong>
      <span class="what">
        <span>${label}, ${span(start, end)} ${zoneAt(start)}</span>
        <span class="where">
          ${names.length === 0 ? html`<span class="muted">everything alike</span>` : nothing}
          ${names.map(
            (name) => html`<span>
              <span class="muted">${DIMENSIONS[name].one}</span>${this.#value({ where }, name)}
            </span>`,
          )}
        </span>
      </span>
      ${
        this.src === ""
          ? html`<button type="button" class="when" @click=${open}>Show</button>`
          : nothing
      }
    </li>`;
  }

  #compared(before: CountTable): TemplateResult {
    const { span, zoneAt } = this.formats;
    const spans = before.coverage.map(({ start, end }) => span(start, end));
    return html`Compared with ${spans.join(", ")} ${zoneAt(before.coverage[0]?.start ?? 0)}.`;
  }

  #table(
    { unexplained }: Explanation,
    causes: readonly Candidate[],
    isWhole: boolean,
  ): TemplateResult {
    const { count, delta, share } = this.formats;
    const names = dimensionsOf(causes.flatMap(({ where }) => Object.keys(where) as Dimension[]));
    const amount = ({ part, whole }: Amount) =>
      whole === undefined ? count(part) : html`${count(part)} of ${count(whole)}`;
    return html`<div class="scroll" tabindex="0" role="group" aria-label="Causes">
      <table part="table">
        <thead>
          <tr>
            ${names.map((name) => html`<th scope="col">${DIMENSIONS[name].one}</th>`)}
            <th scope="col">Explains</th>
            <th scope="col">Change</th>
            <th scope="col">Now</th>
            <th scope="col">Expected</th>
            <th scope="col">Before</th>
          </tr>
        </thead>
        <tbody>
          ${causes.map(
            (cause) => html`<tr>
              ${names.map((name) => html`<td class="text">${this.#value(cause, name)}</td>`)}
              <td>
                ${share(cause.share)}
                <span class="bar" .style=${`width:${width(cause.share)}%`}></span>
              </td>
              <td>${delta(cause.events)}</td>
              <td>${amount(cause.now)}</td>
              <td>${count(Math.round(cause.expected))}</td>
              <td>${amount(cause.before)}</td>
            </tr>`,
          )}
          ${
            isWhole
              ? html`<tr>
                <td class="text muted" colspan=${names.length + 1}>not explained by these</td>
                <td>${delta(unexplained)}</td>
                <td colspan="3"></td>
              </tr>`
              : nothing
          }
        </tbody>
      </table>
    </div>`;
  }

  #value({ where }: Pick<Candidate, "where">, name: Dimension): TemplateResult {
    const value = Object.hasOwn(where, name) ? where[name] : undefined;
    if (value === undefined) return html`<span class="muted">any</span>`;
    return html`<button type="button" class="link" @click=${() => this.select(name, value)}>
      ${valueText(value, name)}
    </button>`;
  }
}

/**
 * The parts of a range whose counts are complete, in this week and in the week before. Yields to other views and to the browser
 * between them.
 */
async function partsOf(shown: CountTable, before: CountTable, range: Window) {
  const most = shown.length > MANY_GROUPS ? PARTS_OF_MANY : PARTS;
  const windows = Math.floor(shown.windows.length / WINDOWS);
  const step = stepFor(shown, range, Math.max(1, Math.min(most, windows)));
  const parts = [];
  for (const slot of slotsOf(shown, step, range)) {
    await turn();
    if (slot.isPart) continue;
    const part = { start: iso(slot.start), end: iso(slot.end) };
    const earlier = shifted(part, -WEEK);
    if (shown.gaps(part).length > 0 || before.gaps(earlier).length > 0) continue;
    const [now, then] = [partOf(shown, part), partOf(before, earlier)];
    if (now && then) parts.push({ now, then, ...part });
  }
  return parts;
}

/** Joins changes with the same cause in adjacent parts, and sorts them by the number of events. */
function joined(found: readonly Change[]): Change[] {
  const all: Change[] = [];
  for (const it of found) {
    const key = keyOf(it);
    const last = all.findIndex((one) => one.end === it.start && keyOf(one) === key);
    const earlier = all[last];
    if (!earlier) all.push(it);
    else all[last] = { ...earlier, end: it.end, events: earlier.events + it.events };
  }
  return all.sort((one, other) => descending(size(one.events), size(other.events)));
}

function keyOf({ measure, where, events }: Change): string {
  return JSON.stringify([measure, where, events > 0n]);
}

function size(events: bigint): bigint {
  return events < 0n ? -events : events;
}

/** The width of a bar for a share, which may be below 0 or above 1. */
function width(share: number): number {
  return Math.round(Math.min(Math.max(share, 0), 1) * 100);
}

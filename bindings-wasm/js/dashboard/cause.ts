// `<tallyfold-cause>`: what explains a change in a marked range, or in the whole range since the week before.

import { css, html, nothing, type PropertyValues, type TemplateResult } from "lit";
import type { Amount, Cause as Candidate, Explanation, Measure } from "../src/health.js";
import { CountTable } from "../src/tables/table.js";
import { TallyfoldError } from "../src/values/error.js";
import type { Dimension, Window } from "../src/values/types.js";
import { marks, shared, statesOf } from "./marks.js";
import { shifted, WEEK } from "./range.js";
import {
  DIMENSIONS,
  dimensionsOf,
  emptyState,
  failureState,
  filtered,
  NAMES,
  partOf,
  skeleton,
  turn,
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

/** What was explained, and what it was compared with. */
interface Found {
  readonly explanation: Explanation;
  readonly before: CountTable;
  readonly now: CountTable;
}

/** What is compared with the week before if no range is marked, and what other views show of it. */
const WEEKLY = {
  error_rate: { label: "Failed share", rate: "error", views: {} },
  filtered_rate: {
    label: "Filtered share",
    rate: "filter",
    views: { "trend.measure": "filtered", "heatmap.share": "filtered" },
  },
  events: { label: "All events", rate: undefined, views: { "trend.measure": "delivered" } },
} as const;

type Weekly = keyof typeof WEEKLY;

/** The time to compare with was not read. */
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
    border-radius: 99px;
    font-size: var(--small);
  }
  .bar {
    display: block;
    height: 4px;
    margin-block-start: 2px;
    border-radius: 2px;
    background: var(--accent);
  }
  .compared {
    margin-block: var(--s2) 0;
    color: var(--muted);
    font-size: var(--small);
  }
  .change + .change,
  .change + .compared {
    margin-block-start: var(--s3);
  }
  .change h3 {
    font-size: var(--body);
  }
  .change h3 span {
    margin-inline-start: var(--s2);
    color: var(--muted);
    font-weight: 400;
  }
  .causes li {
    display: grid;
    grid-template-columns: minmax(7ch, max-content) minmax(0, max-content) auto;
    justify-content: start;
    align-items: center;
    gap: 0 var(--s3);
    padding-block: 2px;
  }
  .causes strong {
    font-weight: 600;
    text-align: end;
  }
  .causes .where {
    display: flex;
    flex-wrap: wrap;
    gap: 0 var(--s2);
    min-width: 0;
  }
  .causes .where > span {
    display: inline-flex;
    gap: 6px;
    min-width: 0;
  }
  @container (max-width: 560px) {
    .causes li {
      grid-template-columns: minmax(7ch, max-content) minmax(0, 1fr);
    }
    .causes .when {
      grid-column: 2;
      justify-self: start;
      margin-block: 2px 6px;
    }
  }
  .causes .link {
    min-width: 0;
  }
  .causes .value {
    display: block;
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
 * What changed in a marked range: the few combinations of values that explain it, and by how many events exactly. It is
 * compared with the time before, or with the same time a week before. If no range is marked, the whole range is compared with
 * the week before.
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
  #weekly: { readonly before: CountTable; readonly found: readonly Explanation[] } | undefined;
  #failed: unknown;
  #searching: AbortController | undefined;

  protected override get heading(): string {
    return this.marked ? "What changed here?" : "Changes since last week";
  }

  protected override note(): unknown {
    const { marked } = this;
    if (!marked) return nothing;
    const { span, zoneAt } = this.formats;
    return `${span(marked.start, marked.end)} ${zoneAt(marked.start)}`;
  }

  get #measure(): Measure {
    const { measure } = this.state;
    return measure !== undefined && Object.hasOwn(MEASURES, measure)
      ? (measure as Measure)
      : "error_rate";
  }

  get #isWeekly(): boolean {
    const { against } = this.state;
    return against === "week";
  }

  protected override tools(): TemplateResult | typeof nothing {
    if (!this.marked) return nothing;
    const choose = (event: Event) => {
      const { value } = event.target as HTMLSelectElement;
      this.tell({ measure: value === "error_rate" ? undefined : value });
    };
    const button = (against: "week" | undefined, text: string) => html`<button
      type="button"
      aria-pressed=${this.#isWeekly === (against === "week")}
      @click=${() => this.tell({ against })}
    >
      ${text}
    </button>`;
    return html`<select aria-label="What changed" @change=${choose}>
        ${Object.entries(MEASURES).map(
          ([name, text]) =>
            html`<option value=${name} ?selected=${name === this.#measure}>${text}</option>`,
        )}
      </select>
      <div class="segments" role="group" aria-label="Compared with">
        ${button(undefined, "Time before")} ${button("week", "Last week")}
      </div>`;
  }

  /** What is exported are the counts of the marked range. */
  override exported(): CountTable | undefined {
    return this.marked ? this.#found?.now : super.exported();
  }

  protected override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed);
    const inputs = ["marked", "table", "tableBefore", "where", "state", "load"];
    if (inputs.some((name) => changed.has(name))) void this.#search();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#searching?.abort();
  }

  async #search(): Promise<void> {
    this.#searching?.abort();
    this.#found = undefined;
    this.#weekly = undefined;
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
      this.#found = { now, before, explanation: health.explain(before, now, measure) };
    } catch (error) {
      if (signal.aborted) return;
      this.#failed = error;
    }
    this.requestUpdate();
  }

  /** Explains what has changed since the week before, by the dimensions that were read; what moved most events first. */
  async #compareWeeks(signal: AbortSignal): Promise<void> {
    const { shown } = this;
    const before = this.#sameTimeBefore();
    if (!shown || !before) return;
    try {
      const health = await import("../src/health.js");
      await health.init();
      const found: Explanation[] = [];
      // Rows of one reason have no shares of their own.
      const measures = this.where.reason ? ["events"] : Object.keys(WEEKLY);
      for (const measure of measures as Weekly[]) {
        // Other views have their turn in between.
        await turn();
        if (signal.aborted) return;
        found.push(health.explain(before, shown, measure));
      }
      found.sort((one, other) => Number(size(other.change) - size(one.change)));
      this.#weekly = { before, found };
    } catch (error) {
      if (signal.aborted) return;
      this.#failed = error;
    }
    this.requestUpdate();
  }

  /** A week before, the time that is there of this week; `undefined` if some of it was not read. */
  #sameTimeBefore(): CountTable | undefined {
    const { shown, shownBefore: before } = this;
    if (!before || before.gaps().length > 0) return undefined;
    const spans = shown?.coverage.map((it) => partOf(before, shifted(it, -WEEK))) ?? [];
    const parts = spans.filter((it) => it !== undefined);
    return parts.length === 0 || parts.length < spans.length
      ? undefined
      : CountTable.mergeAll(parts);
  }

  /** The counts of a range by all dimensions, or by those that are there already if nothing else can be read. */
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
    if (!this.marked) return this.#changes();
    if (!this.#found) return skeleton();
    const { explanation, before, now } = this.#found;
    const { sentence, isNormal, isGlobal, causes, others } = explanation;
    const states = [now, before].flatMap((it, place) => {
      const length = Date.parse(this.marked?.end ?? "") - Date.parse(this.marked?.start ?? "");
      const back = this.#isWeekly ? WEEK : length;
      return statesOf(it, shifted(this.marked as Window, -back * place));
    });
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

  /** What has changed since the week before. */
  #changes(): TemplateResult {
    const { range } = this;
    const shown = this.shown as CountTable;
    if (!this.#weekly) {
      const isComing = this.loading || this.#sameTimeBefore() !== undefined;
      if (isComing) return skeleton();
      return emptyState("Nothing to compare with", "The same time last week was not read.");
    }
    const { found } = this.#weekly;
    const changed = found.filter(({ isNormal }) => !isNormal);
    const usual = found.filter(({ isNormal }) => isNormal);
    const names = dimensionsOf(shown.dimensions as Dimension[]);
    const many = names.map((name) => DIMENSIONS[name].many.toLowerCase()).join(" and ");
    return html`<div class="body" aria-live="polite">
      ${changed.map((it) => this.#change(it))}
      <p class="compared">
        ${usual.length > 0 ? html`Within normal variation: ${usual.map((it) => `${labelOf(it).toLowerCase()} ${this.#numbers(it)}`).join("; ")}. ` : nothing}
        What explains a change was sought among ${many}.
      </p>
      ${marks(range ? statesOf(shown, range) : [])}
    </div>`;
  }

  /** A measure now and a week before. */
  #numbers({ measure, now, before }: Explanation): string {
    const { rate } = WEEKLY[measure as Weekly];
    const { count, share } = this.formats;
    const [shown, earlier] = [this.shown, this.#weekly?.before].map((table) =>
      rate ? share(table?.totals.rates[rate]) : undefined,
    );
    return `${shown ?? count(now.part)}, last week ${earlier ?? count(before.part)}`;
  }

  #change(explanation: Explanation): TemplateResult {
    const { measure, change, causes, isGlobal } = explanation;
    const { views } = WEEKLY[measure as Weekly];
    const { delta } = this.formats;
    const open = (where: Candidate["where"]) => () => this.emit("tallyfold-open", { where, views });
    return html`<div class="change" data-measure=${measure}>
      <h3>
        ${labelOf(explanation)}<span>${this.#numbers(explanation)}: ${delta(change)} events</span>
      </h3>
      ${isGlobal || causes.length === 0 ? html`<p>Everything changed alike.</p>` : nothing}
      <ul class="causes">
        ${causes.map(
          (cause) => html`<li>
            <strong>${delta(cause.events)}</strong>
            <span class="where">
              ${dimensionsOf(Object.keys(cause.where) as Dimension[]).map(
                (name) => html`<span>
                  <span class="muted">${DIMENSIONS[name].one}</span>${this.#value(cause, name)}
                </span>`,
              )}
            </span>
            ${
              this.src === ""
                ? html`<button type="button" class="when" @click=${open(cause.where)}>When?</button>`
                : nothing
            }
          </li>`,
        )}
      </ul>
    </div>`;
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

  #value({ where }: Candidate, name: Dimension): TemplateResult {
    const value = Object.hasOwn(where, name) ? where[name] : undefined;
    if (value === undefined) return html`<span class="muted">any</span>`;
    return html`<button type="button" class="link" @click=${() => this.select(name, value)}>
      ${valueText(value, name)}
    </button>`;
  }
}

function labelOf({ measure }: Explanation): string {
  return WEEKLY[measure as Weekly].label;
}

function size(change: bigint): bigint {
  return change < 0n ? -change : change;
}

/** The width of a bar for a share, which may be below 0 or above 1. */
function width(share: number): number {
  return Math.round(Math.min(Math.max(share, 0), 1) * 100);
}

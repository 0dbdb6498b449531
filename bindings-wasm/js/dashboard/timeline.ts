// `<tallyfold-timeline>`: the incidents that rules find in a range, and an editor that shows when other rules would have
// fired.

import { css, html, nothing, type PropertyValues, type TemplateResult } from "lit";
import type { Incident, Need, Observed, Replay } from "../src/health.js";
import { CountTable } from "../src/tables/table.js";
import { TallyfoldError } from "../src/values/error.js";
import type { Dimension, Metric, Window } from "../src/values/types.js";
import { shared } from "./marks.js";
import { DAY, iso } from "./range.js";
import { ticksOf } from "./slots.js";
import {
  emptyState,
  failureText,
  isOther,
  type Load,
  progressOf,
  skeleton,
  View,
  visible,
} from "./view.js";

type Health = typeof import("../src/health.js");

/** What a history is read for. */
interface Asked {
  /** The needs of the rules, as a text. */
  readonly needs: string;
  readonly range: Window;
  /** The maximum time before the range that is read, in milliseconds. */
  readonly most: number;
  /** The function that reads it. */
  readonly load: Load;
}

/** Where a rules file is wrong. */
interface Mistake {
  /** The index of the mistake in the text. */
  readonly place: number;
  /** The line, from 1. */
  readonly line: number;
  readonly text: string;
}

function mistakeIn(rules: string, error: TallyfoldError): Mistake {
  const before = new TextEncoder().encode(rules).subarray(0, error.offset ?? 0);
  const { length } = new TextDecoder("utf-8", { ignoreBOM: true }).decode(before);
  return {
    place: length,
    line: rules.slice(0, length).split("\n").length,
    text: error.message.replace(`${error.code}: ${error.argument}: `, ""),
  };
}

/** The maximum number of incidents that are drawn. */
const SHOWN = 100;
/** The maximum length of history that is read, in milliseconds, unless the viewer requests all of it. */
const HISTORY = 28 * DAY;
/** Windows begin at multiples of five minutes. */
const MINUTES = 300_000;
/** The time between the last keystroke and the replay of the rules, in milliseconds. */
const PAUSE_MS = 400;

const STYLES = css`
  .summary {
    margin-block-end: var(--s2);
  }
  .bars {
    table-layout: fixed;
  }
  .bars th,
  .bars td {
    vertical-align: top;
    height: auto;
    padding-block: 6px;
  }
  .bars th:first-child {
    width: 44%;
    padding-inline-start: 0;
    white-space: normal;
  }
  .bars th:last-child,
  .bars td:last-child {
    padding-inline-end: 0;
  }
  .bars tbody th {
    max-width: none;
  }
  .axis {
    position: relative;
    height: 1.5em;
  }
  .axis span {
    position: absolute;
    inset-inline-start: var(--from);
    padding-inline-start: 4px;
    border-inline-start: 1px solid var(--line-strong);
    white-space: nowrap;
  }
  .track {
    position: relative;
    height: 20px;
    border-radius: var(--radius-bar);
    background: var(--sunken);
  }
  .track button {
    position: absolute;
    inset-block: 2px;
    inset-inline-start: var(--from);
    width: max(6px, var(--long));
    min-height: 0;
    padding: 0;
    border: 0;
    border-radius: var(--radius-bar);
    background: var(--ink);
  }
  .track button:hover:not(:disabled) {
    background: color-mix(in srgb, var(--ink) 80%, var(--text));
  }
  .info {
    --ink: var(--accent);
  }
  .warning {
    --ink: var(--filtered);
  }
  .critical {
    --ink: var(--failed);
  }
  .severity {
    display: inline-block;
    margin-inline-end: var(--s1);
    padding: 0 6px;
    border: 1px solid var(--ink);
    border-radius: var(--radius-bar);
    color: var(--ink);
    font-size: 11px;
  }
  .sentence {
    display: -webkit-box;
    -webkit-box-orient: vertical;
    -webkit-line-clamp: 4;
    overflow: hidden;
    overflow-wrap: anywhere;
  }
  .when {
    display: block;
    color: var(--muted);
    font-size: var(--small);
  }
  .parts {
    margin-block: var(--s1) 0;
    padding-inline-start: var(--s3);
    border-inline-start: 2px solid var(--line);
  }
  .parts li {
    padding-block: 2px;
    overflow-wrap: anywhere;
  }
  :is(.more, .editor) > summary {
    width: max-content;
    color: var(--muted);
    font-size: var(--small);
  }
  .bars + .more {
    margin-block-start: var(--s3);
  }
  .editor {
    margin-block-start: var(--s4);
    border-block-start: 1px solid var(--line);
    padding-block-start: var(--s3);
  }
  .code {
    position: relative;
    display: grid;
    grid-template-columns: auto 1fr;
    margin-block: var(--s2);
    border: 1px solid var(--line-strong);
    border-radius: var(--radius-control);
    overflow: hidden;
    background: var(--sunken);
    direction: ltr;
    text-align: left;
  }
  .code:has(textarea:focus-visible) {
    outline: 2px solid var(--accent);
    outline-offset: 1px;
  }
  .code textarea,
  .numbers {
    height: 18rem;
    margin: 0;
    padding: 8px;
    border: 0;
    font: 12px/18px var(--mono);
    tab-size: 2;
  }
  .code textarea {
    width: 100%;
    resize: none;
    color: var(--text);
    background: none;
    white-space: pre;
    overflow: auto;
    outline: none;
  }
  .numbers {
    overflow: hidden;
    color: var(--muted);
    text-align: right;
    border-right: 1px solid var(--line);
    user-select: none;
  }
  .numbers span {
    display: block;
  }
  .numbers .wrong {
    margin-inline: -8px;
    padding-inline: 8px;
    background: var(--failed);
    color: var(--surface);
  }
  .mistake {
    color: var(--failed);
    overflow-wrap: anywhere;
  }
  .row {
    display: flex;
    flex-wrap: wrap;
    gap: var(--s2);
    align-items: center;
  }
  .mistake:not(:has(bdi)) {
    display: none;
  }
  progress {
    accent-color: var(--accent);
  }
  @container (max-width: 560px) {
    .bars,
    .bars tbody,
    .bars tr,
    .bars th,
    .bars td {
      display: block;
      width: 100%;
    }
    .bars th:first-child {
      width: auto;
      border: 0;
      padding-block-end: 0;
    }
    .bars td {
      padding-inline: 0;
    }
    .bars thead {
      display: none;
    }
  }
`;

/**
 * Shows the incidents that rules find in the range, as bars over time, and an editor for the rules. Rules that the viewer types
 * are replayed, which shows when they would have fired.
 *
 * Rules that compare with earlier weeks need more counts than those in the range. A button reads these counts. A page that
 * already has them can set `observed`.
 */
export class Timeline extends View {
  static override properties = {
    ...View.properties,
    observed: { attribute: false },
  };

  static override styles = [View.styles, shared, STYLES];

  /**
   * The counts that the rules judge, with history. Default: the counts that were read for the rules, or else for the range and
   * the week before.
   */
  declare observed: Observed | undefined;

  #health: Health | undefined;
  #text: string | undefined;
  #replay: Replay | undefined;
  #needs: readonly Need[] = [];
  #mistake: Mistake | undefined;
  #failed: unknown;
  /** Whether the viewer has typed the rules. If so, a mistake in them is not a failure of the page. */
  #isTyped = false;
  /** The failure that was reported last. */
  #told: string | undefined;
  /** Whether the editor is open. */
  #isOpen = false;
  /** The counts that were read for the rules, and what they were read for. */
  #history: (Asked & { readonly observed: Observed }) | undefined;
  #reading: (Asked & { readonly stop: AbortController; done: number; planned: number }) | undefined;
  #pause: ReturnType<typeof setTimeout> | undefined;

  protected override get heading(): string {
    return "Alerts";
  }

  /** The current text of the rules in the editor. */
  get text(): string {
    return this.#text ?? this.rules ?? "";
  }

  override exported(): CountTable | undefined {
    return undefined;
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.#pause);
    this.#reading?.stop.abort();
  }

  protected override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed);
    if (changed.has("rules") && this.rules !== this.#text) {
      this.#text = undefined;
      this.#isTyped = false;
    }
    // The counts of another server are of no use.
    if (changed.has("load") && changed.get("load")) this.#reading?.stop.abort();
    const inputs = ["rules", "table", "tableBefore", "range", "observed", "load"];
    if (inputs.some((name) => changed.has(name))) void this.#judge();
  }

  /** Replays the rules over the available counts. */
  async #judge(): Promise<void> {
    try {
      if (!this.#health) {
        const health = await import("../src/health.js");
        await health.init();
        this.#health = health;
      }
      this.#text ??= this.rules ?? this.#health.Rules.standard().text;
      const rules = this.#health.Rules.parse(this.#text);
      this.#mistake = undefined;
      this.#needs = rules.needs();
      // Until the history of the next windows is read, the incidents of the last ones stay.
      if (this.#hasMoved) void this.#read(this.#history?.most ?? 0);
      else {
        const counts = this.#counts();
        const range = this.#span();
        this.#replay = counts && range && rules.replay({ ...counts, ...range });
        this.#failed = undefined;
        this.#told = undefined;
      }
    } catch (error) {
      const isMistake = TallyfoldError.is(error) && error.code === "invalid_rules";
      this.#mistake = isMistake ? mistakeIn(this.text, error) : undefined;
      if (this.#mistake) this.#isOpen = true;
      else this.#failed = error;
      // Before there are counts, no error is reported, because the page shows that they are being read.
      if (this.shown && !this.#isTyped && this.#told !== String(error)) {
        this.#told = String(error);
        void this.tellError(error);
      }
    }
    this.requestUpdate();
  }

  #span(): Window | undefined {
    const range = this.wholeRange;
    return range && { start: range.start, end: range.end };
  }

  #counts(): Observed | undefined {
    if (this.observed) return this.observed;
    if (this.#isHistoryRead) return this.#history?.observed;
    const given = this.table;
    if (given === undefined) return undefined;
    const [delivery, before] = [given, this.tableBefore].map((it) =>
      it === undefined || it instanceof CountTable ? it : CountTable.fromJSON(it),
    ) as [CountTable, CountTable | undefined];
    return { delivery: before ? joined(before, delivery) : delivery };
  }

  /** Whether the history is that of these rules, this range and this server. */
  get #isHistoryRead(): boolean {
    return this.#isFor(this.#history) && !isOther(this.#history?.range, this.#span());
  }

  /** Whether the range has moved on since the history was read. A range elsewhere is a question of its own. */
  get #hasMoved(): boolean {
    const [last, next] = [this.#history?.range, this.#span()];
    if (this.observed || !last || !next || !this.#isFor(this.#history)) return false;
    const [from, to] = [Date.parse(next.start), Date.parse(next.end)];
    const [start, end] = [Date.parse(last.start), Date.parse(last.end)];
    return to - from === end - start && start < from && from < end;
  }

  /** Whether a history is that of these rules and this server. */
  #isFor(one: Asked | undefined): boolean {
    return one?.needs === this.#needed && one.load === this.load;
  }

  get #needed(): string {
    return JSON.stringify(
      this.#needs.map(({ metric, dimensions, window }) => [metric, dimensions, window]),
    );
  }

  /** Reads the counts that the rules need, from at most `most` milliseconds before the range. */
  async #read(most: number): Promise<void> {
    const { load } = this;
    const range = this.#span();
    if (!load || !range) return;
    if (this.#isFor(this.#reading) && !isOther(this.#reading?.range, range)) return;
    this.#reading?.stop.abort();
    const stop = new AbortController();
    const asked = { needs: this.#needed, range, most, load };
    const own = { ...asked, stop, done: 0, planned: 0 };
    this.#reading = own;
    this.#failed = undefined;
    this.requestUpdate();
    const observed: { delivery?: CountTable; ingestion?: CountTable } = {};
    try {
      for (const { metric, dimensions, window, backMs } of this.#needs) {
        const start = iso(Date.parse(range.start) - Math.min(backMs, most));
        const query = { metric: metric as Metric, dimensions: dimensions as Dimension[], window };
        const onProgress = (done: number, planned: number) => {
          Object.assign(own, { done, planned });
          this.requestUpdate();
        };
        const table = await load(
          { ...query, start, end: range.end },
          { signal: stop.signal, onProgress },
        );
        observed[metric === "event_ingestion" ? "ingestion" : "delivery"] = table;
      }
      this.#history = { ...asked, observed };
      await this.#judge();
    } catch (error) {
      if (stop.signal.aborted) return;
      this.#failed = error;
      void this.tellError(error);
    } finally {
      if (this.#reading === own) this.#reading = undefined;
      this.requestUpdate();
    }
  }

  protected override body(): unknown {
    // The editor is shown even if the range has no events, or if only `observed` was given.
    if (this.shown === undefined && !this.observed) return super.body();
    return this.content();
  }

  protected override content(): TemplateResult {
    if (!this.#health && this.#failed === undefined) return skeleton();
    return html`<div class="body">
      ${this.#failed === undefined ? nothing : this.#failure()}
      ${this.#replay ? this.#found(this.#replay) : nothing} ${this.#editor()}
    </div>`;
  }

  #failure(): TemplateResult {
    const { title, text } = failureText(this.#failed);
    return html`<p class="mistake" role="alert"><b>${title}.</b> <bdi>${text}</bdi></p>`;
  }

  #found(replay: Replay): TemplateResult {
    const { incidents, findings, judged, unjudged, leftOut } = replay;
    const { count } = this.formats;
    const many = (number: number, one: string, more: string) =>
      `${count(number)} ${number === 1 ? one : more}`;
    return html`<p class="summary" role="status">
        <b>${many(incidents.length, "incident", "incidents")}</b> of
        ${many(findings.length, "finding", "findings")}; ${count(judged)} windows judged.
        ${leftOut > 0n ? html`${count(leftOut)} findings were left out, because there are too many.` : nothing}
      </p>
      ${incidents.length === 0 ? this.#none(unjudged.length) : this.#bars(incidents)}
      ${
        unjudged.length > 0
          ? html`<details class="more">
            <summary>${many(unjudged.length, "rule", "rules")} could not judge anything</summary>
            <ul class="parts">
              ${unjudged.map(({ rule, reason }) => html`<li><b><bdi>${visible(rule)}</bdi></b>: <bdi>${reason}</bdi></li>`)}
            </ul>
          </details>`
          : nothing
      }
      ${this.#more()}`;
  }

  /** The message if there is no incident. It includes how many rules could not judge the range. */
  #none(unjudged: number): TemplateResult {
    if (unjudged === 0)
      return emptyState("No incident", "These rules would not have fired in this range.");
    const { count } = this.formats;
    return emptyState(
      "No incident so far",
      `${count(unjudged)} ${unjudged === 1 ? "rule" : "rules"} could not judge this range, so this is only a part of the answer.`,
    );
  }

  /** Buttons that read more history for the rules, or the progress while it is being read. */
  #more(): TemplateResult | typeof nothing {
    if (this.#reading) {
      const { stop } = this.#reading;
      return html`<p class="row" role="status">
        ${progressOf(this.#reading, this.formats, "Reading history")}
        <button type="button" @click=${() => stop.abort()}>Cancel</button>
      </p>`;
    }
    const isRead = this.observed !== undefined || this.#isHistoryRead;
    if (!this.load || isRead || this.#mistake) return nothing;
    const longest = Math.max(0, ...this.#needs.map(({ backMs }) => backMs));
    const days = (ms: number) => this.formats.count(Math.ceil(ms / DAY));
    const some = Math.min(longest, HISTORY);
    return html`<p class="row">
      <span class="muted">These rules compare with the past ${days(longest)} days.</span>
      <button type="button" @click=${() => void this.#read(some)}>Read ${days(some)} days</button>
      ${
        longest > some
          ? html`<button type="button" @click=${() => void this.#read(longest)}>
            Read all ${days(longest)} days
          </button>`
          : nothing
      }
    </p>`;
  }

  #bars(incidents: readonly Incident[]): TemplateResult {
    const range = this.#span() as Window;
    const { time, date, zoneAt, count } = this.formats;
    const [start, end] = [Date.parse(range.start), Date.parse(range.end)];
    const place = (ms: number) =>
      (100 * (Math.min(Math.max(ms, start), end) - start)) / (end - start);
    // Slots of about a hundredth of the range are precise enough for the labels.
    const step = Math.ceil((end - start) / 96 / MINUTES) * MINUTES;
    const slots = Array.from({ length: Math.ceil((end - start) / step) }, (_, at) => {
      const from = start + at * step;
      return { start: from, end: from + step, state: "settled" as const, window: at };
    });
    const isLong = end - start > 2 * DAY;
    return html`<table class="bars" part="table">
        <thead>
          <tr>
            <th scope="col">Incident</th>
            <th scope="col">
              <span class="sr">Time (${zoneAt(start)})</span>
              <div class="axis" aria-hidden="true">
                ${ticksOf(slots, this.zone, 5)
                  .filter((it) => it.start < end - (end - start) / 10)
                  .map(
                    (it) =>
                      html`<span .style=${`--from:${place(it.start)}%`}>${isLong ? date(it.start) : time(it.start)}</span>`,
                  )}
              </div>
            </th>
          </tr>
        </thead>
        <tbody>
          ${incidents.slice(0, SHOWN).map((it) => this.#bar(it, place))}
        </tbody>
      </table>
      ${
        incidents.length > SHOWN
          ? html`<p class="muted">and ${count(incidents.length - SHOWN)} later ones</p>`
          : nothing
      }`;
  }

  #bar(incident: Incident, place: (ms: number) => number): TemplateResult {
    const { severity, status, since, until, sentence, parts, provisional } = incident;
    const { span, zoneAt, count } = this.formats;
    const [from, to] = [place(Date.parse(since)), place(Date.parse(until))];
    const when = `${span(since, until)} ${zoneAt(since)}`;
    return html`<tr class=${severity}>
      <th scope="row">
        <span class="severity">${severity}</span>
        <span class="sentence"><bdi>${sentence}</bdi></span>
        <span class="when">
          ${when}, ${status}${provisional ? ", provisional: counts may still change" : nothing}
        </span>
        ${
          parts.length > 1
            ? html`<details class="more">
              <summary>${count(parts.length)} findings</summary>
              <ul class="parts">
                ${parts.map((part) => html`<li><bdi>${part.sentence}</bdi></li>`)}
              </ul>
            </details>`
            : nothing
        }
      </th>
      <td>
        <div class="track">
          <button
            type="button"
            .style=${`--from:${from}%;--long:${to - from}%`}
            title=${when}
            aria-label="Mark ${when}"
            @click=${() => this.brush(since, until)}
          ></button>
        </div>
      </td>
    </tr>`;
  }

  #editor(): TemplateResult {
    const lines = this.text.split("\n").length;
    const mistake = this.#mistake;
    return html`<details
      class="editor"
      ?open=${this.#isOpen}
      @toggle=${(event: Event) => {
        this.#isOpen = (event.target as HTMLDetailsElement).open;
      }}
    >
      <summary>Rules</summary>
      <p class="muted">Edit them to see when they would have fired. Nothing is saved.</p>
      <div class="code">
        <div class="numbers" aria-hidden="true">
          ${Array.from({ length: lines }, (_, at) => html`<span class=${at + 1 === mistake?.line ? "wrong" : nothing}>${at + 1}</span>`)}
        </div>
        <textarea
          part="rules"
          aria-label="Rules as TOML"
          aria-invalid=${mistake ? "true" : "false"}
          aria-describedby="mistake"
          spellcheck="false"
          autocapitalize="off"
          .value=${this.text}
          @input=${this.#onInput}
          @scroll=${this.#onScroll}
        ></textarea>
      </div>
      <div class="row">
        <span id="mistake" class="mistake" role="status">
          ${
            mistake
              ? html`<bdi>${mistake.text}</bdi>${this.#replay ? ". The incidents above are those of the last valid rules." : nothing}`
              : nothing
          }
        </span>
        ${mistake ? html`<button type="button" @click=${() => this.#goTo(mistake)}>Go to line ${mistake.line}</button>` : nothing}
        <button type="button" @click=${this.#reset}>Reset</button>
      </div>
    </details>`;
  }

  readonly #onInput = (event: Event): void => {
    this.#text = (event.target as HTMLTextAreaElement).value;
    this.#isTyped = true;
    this.requestUpdate();
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => {
      void this.#judge();
      this.emit("tallyfold-rules", { text: this.text });
    }, PAUSE_MS);
  };

  readonly #onScroll = (event: Event): void => {
    const { scrollTop } = event.target as HTMLTextAreaElement;
    const numbers = this.renderRoot.querySelector(".numbers");
    if (numbers) numbers.scrollTop = scrollTop;
  };

  readonly #reset = (): void => {
    this.#text = undefined;
    this.#isTyped = false;
    this.emit("tallyfold-rules", { text: undefined });
    void this.#judge();
  };

  /** Puts the cursor where the mistake is. */
  #goTo(mistake: Mistake): void {
    const area = this.renderRoot.querySelector("textarea");
    if (!area) return;
    area.focus();
    area.setSelectionRange(mistake.place, mistake.place);
    area.scrollTop = Math.max(0, (mistake.line - 6) * 18);
  }
}

/** Two tables as one; only the second one if they can't be merged. */
function joined(before: CountTable, table: CountTable): CountTable {
  try {
    return CountTable.mergeAll([before, table]);
  } catch (error) {
    if (TallyfoldError.is(error)) return table;
    throw error;
  }
}

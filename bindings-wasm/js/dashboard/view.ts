// The base class of all views: their counts and where these come from, the frame with the title and the menus, and what is
// shown while there are no counts.

import {
  type CSSResultGroup,
  html,
  nothing,
  type PropertyDeclarations,
  type PropertyValues,
  type TemplateResult,
} from "lit";
import type { DictionaryColumn } from "../src/tables/columns.js";
import type { Counts, Row } from "../src/tables/counts.js";
import { CountTable, type SavedTable } from "../src/tables/table.js";
import { TallyfoldError } from "../src/values/error.js";
import type { Dimension, Metric, Window } from "../src/values/types.js";
import { Base, DIMENSIONS } from "./base.js";
import { type Loaded, sourceOf } from "./data.js";
import type { DashboardQuery, LoadOptions, Where } from "./elements.js";
import type { Formats } from "./formats.js";
import { mistakeInZone, PageError } from "./given.js";
import { type ExportItem, HIDDEN, menus } from "./menus.js";
import { rangeOf, shifted, WEEK } from "./range.js";
import { spanOf } from "./slots.js";
import { parts, tokens } from "./styles.js";
import { turnOf } from "./turns.js";

/** All dimensions, in the order in which they are requested. */
export const NAMES = Object.keys(DIMENSIONS) as Dimension[];

/**
 * Reads counts like the dashboard. If some can't be read, it rejects with an error whose `partial` is the table of the others.
 */
export type Load = (query: DashboardQuery, options?: LoadOptions) => Promise<CountTable>;

/** A view: a custom element that shows counts. */
export abstract class View extends Base {
  static override properties: PropertyDeclarations = {
    ...Base.properties,
    rules: {},
    table: { attribute: false },
    tableBefore: { attribute: false },
    ingestion: { attribute: false },
    range: { attribute: false },
    state: { attribute: false, hasChanged: isOther },
    query: { attribute: false },
    cluster: { attribute: false },
    load: { attribute: false },
    loading: { attribute: false },
    error: { attribute: false },
  };

  static override styles: CSSResultGroup = [tokens, parts];

  /** Rules as TOML. */
  declare rules: string | undefined;
  /** The counts that were read, window by window, by the dimensions of `query`. */
  declare table: CountTable | SavedTable | undefined;
  /** The same time a week before. */
  declare tableBefore: CountTable | SavedTable | undefined;
  /** The ingestion counts of the same time, for views that need them. */
  declare ingestion: CountTable | undefined;
  /** The range that was requested. Parts of it that `table` lacks are missing. */
  declare range: Window | undefined;
  /** The state of this view in the address. To change it, call {@link tell}. */
  declare state: { readonly [name: string]: string | undefined };
  /** The query that was read. */
  declare query: DashboardQuery | undefined;
  /** The name of the cluster whose counts are shown, for commands. */
  declare cluster: string | undefined;
  /** Reads other counts. */
  declare load: Load | undefined;
  declare loading: boolean;
  declare error: unknown;

  /** The rows to show: the rows of `table` that `where` selects. */
  protected shown: CountTable | undefined;
  #shownBefore: { readonly table: CountTable | undefined } | undefined;
  /** The function `load` that the view has made for its `src`. */
  #own: { readonly src: string; readonly load: Load } | undefined;
  /** Whether the view was removed from the page while it was reading. */
  #isCut = false;
  /** Whether the view is visible in the browser window. */
  #isSeen = true;
  readonly #sight = new IntersectionObserver((entries) => {
    this.#isSeen = entries.at(-1)?.isIntersecting ?? true;
  });
  /** Whether the viewer has used this view since its last update. */
  #isUsed = false;

  constructor() {
    super();
    this.state = {};
    this.loading = false;
  }

  /** The title of the view. */
  protected abstract get heading(): string;

  /** What the view shows when there are counts. */
  protected abstract content(): TemplateResult | typeof nothing;

  /** The controls in the header, next to the menus. */
  protected tools(): unknown {
    return nothing;
  }

  /** A short text after the title. */
  protected note(): unknown {
    return nothing;
  }

  /** The formats for export in addition to CSV, JSON and SVG, such as PNG. */
  protected exports(): ExportItem[] {
    return [];
  }

  /** The table that CSV and JSON are made from. */
  exported(): CountTable | undefined {
    return this.shown && grouped(this.shown, this.by);
  }

  /** The query of the exported counts, for commands and file names. */
  get exportedQuery(): DashboardQuery | undefined {
    return this.query;
  }

  /** The metrics that the view reads when it reads counts itself. */
  protected get metrics(): readonly Metric[] {
    return ["event_delivery"];
  }

  /** The dimensions that the view needs. */
  protected get dimensions(): Dimension[] {
    return dimensionsOf([this.by, "reason", ...(Object.keys(this.where) as Dimension[])]);
  }

  protected override get asked(): readonly string[] {
    return ["src", "period", "by"];
  }

  protected override ask(): void {
    if (this.src !== "") void this.refresh();
    else this.reading?.abort();
  }

  /** Reads counts from `src`. */
  async refresh(): Promise<void> {
    this.reading?.abort();
    const own = new AbortController();
    this.reading = own;
    const { signal } = own;
    const range = rangeOf(this.period, Date.now());
    // The next update shows what is wrong.
    if (range === undefined || this.mistakeNow) return;
    const source = sourceOf(this.src);
    const query = { ...range, metric: "event_delivery" as Metric, dimensions: this.dimensions };
    // A page may have set a function of its own.
    if (this.load === undefined || this.load === this.#own?.load) {
      if (this.#own?.src !== this.src) this.#own = { src: this.src, load: loadOf(this.src) };
      this.load = this.#own.load;
    }
    this.loading = true;
    this.error = undefined;
    let loaded: Loaded = { table: undefined };
    try {
      const before = shifted(query, -WEEK);
      const earlier = source.load(before, { signal }).catch(() => undefined);
      loaded = await source.load(query, { signal });
      const isMoved = this.range?.start !== range.start || this.range.end !== range.end;
      if (isMoved) Object.assign(this, { tableBefore: undefined, ingestion: undefined });
      Object.assign(this, { ...loaded, query, range: { start: range.start, end: range.end } });
      if (this.metrics.includes("event_ingestion")) {
        const dimensions = query.dimensions.filter((name) => name !== "reason");
        const asked = { ...query, metric: "event_ingestion" as Metric, dimensions };
        this.ingestion = (await source.load(asked, { signal })).table;
      }
      this.tableBefore = (await earlier)?.table;
    } catch (error) {
      if (!signal.aborted) this.error = error;
    } finally {
      if (this.reading === own) this.loading = false;
    }
    const { table } = loaded;
    await this.tellRead(own, table && { query, table }, this.error);
  }

  protected override get mistakeNow(): PageError | undefined {
    if (this.src !== "") return super.mistakeNow;
    // If the page sets the counts, the attribute `period` is not used.
    return mistakeInZone(this.zone) ?? mistakeInWhere(this.where, this.shown);
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#sight.observe(this);
    if (this.#isCut) void this.refresh();
    this.#isCut = false;
  }

  override disconnectedCallback(): void {
    this.#isCut = this.src !== "" && this.loading;
    super.disconnectedCallback();
    this.#sight.disconnect();
  }

  /**
   * Updates each view in a task of its own, so that no update delays a click for long. A view that the viewer has used comes
   * first, then visible views. Other views are updated after these are drawn.
   */
  protected override async scheduleUpdate(): Promise<void> {
    await turnOf(this.#isUsed ? "used" : this.#isSeen ? "seen" : "later");
    this.#isUsed = false;
    super.scheduleUpdate();
  }

  protected override willUpdate(changed: PropertyValues): void {
    const isGiven = this.src === "" && changed.has("table");
    const isOtherServer = Boolean(changed.get("src")) && !isGiven;
    const isOther = changed.has("where") || changed.has("query");
    const isUnread = isOther && this.#lacksDimension;
    // Until the counts of this server and for this filter are read, others would be taken for them.
    if (isOtherServer || isUnread) {
      Object.assign(this, { table: undefined, tableBefore: undefined, ingestion: undefined });
    }
    if (changed.has("table") || changed.has("where")) this.shown = this.#kept("table");
    if (changed.has("tableBefore") || changed.has("where")) this.#shownBefore = undefined;
    super.willUpdate(changed);
    const isAsked = this.asked.some((name) => changed.has(name));
    if (isUnread && !isAsked && this.mistake === undefined) this.ask();
  }

  /** Whether the counts that the view has read lack a dimension of the filter. */
  get #lacksDimension(): boolean {
    const { src, query, where } = this;
    return src !== "" && lackingIn(where, query).length > 0;
  }

  /** The same rows of the week before. They are filtered at the first use, because not every view shows them at once. */
  protected get shownBefore(): CountTable | undefined {
    this.#shownBefore ??= { table: this.#kept("tableBefore") };
    return this.#shownBefore.table;
  }

  /** The requested range, or else the range of all windows that were read. */
  protected get wholeRange(): Window | undefined {
    return this.range ?? (this.shown && spanOf(this.shown));
  }

  /** The windows of the same time a week before this range that are missing. */
  protected gapsBefore(range: Window): readonly Window[] {
    return this.shownBefore?.gaps(shifted(range, -WEEK)) ?? [];
  }

  #kept(name: "table" | "tableBefore", where = this.where): CountTable | undefined {
    const given = this[name];
    if (given === undefined || given === null) return undefined;
    const table = given instanceof CountTable ? given : CountTable.fromJSON(given);
    return filtered(table, where);
  }

  /**
   * The shown rows with all their reasons: the events that shares of reasons refer to. `undefined` if `where` has no reasons
   * and `by` is another dimension.
   */
  protected wholeOf(name: "table" | "tableBefore", by?: Dimension): CountTable | undefined {
    const { reason, ...where } = this.where;
    if (reason === undefined && by !== "reason") return undefined;
    return this.#kept(name, where);
  }

  override render(): unknown {
    return html`<section class="card" part="view" aria-labelledby="title" aria-busy=${this.loading}>
      <header class="head" part="header">
        <h2 id="title" part="title">${this.heading}</h2>
        <span class="note">${this.note()}</span>
        <div class="tools" part="tools">${this.tools()}${this.shown && menus(this, this.exports())}</div>
      </header>
      ${this.mistake ? mistakeState(this.mistake) : [this.#incomplete(), this.body()]}
    </section>`;
  }

  /** The error of a view that reads its own counts and could read only some of them. */
  #incomplete(): TemplateResult | typeof nothing {
    if (this.src === "" || this.error === undefined || !this.shown) return nothing;
    return html`<p class="incomplete" role="alert">
      <strong>Some counts are missing.</strong> ${failureText(this.error).text}
      <button type="button" class="link" @click=${() => void this.refresh()}>Try again</button>
    </p>`;
  }

  /** The counts of the view. It says that there are no events if all of these are empty. */
  protected get looked(): (CountTable | undefined)[] {
    return [this.shown];
  }

  /** The content, or what is shown instead while there are no counts. */
  protected body(): unknown {
    if (this.shown === undefined) {
      if (this.error !== undefined) return failureState(this.error, () => void this.retry());
      return this.loading || this.src
        ? skeleton()
        : emptyState(
            "No server",
            "Set the attribute src to the path of the server for web apps, or the property table to counts.",
          );
    }
    if (this.looked.every((table) => !table?.length)) return this.#nothing(this.shown);
    return this.content();
  }

  /** The text for a range without events. It says whether a filter applies, and whether a part of the range is missing. */
  #nothing(shown: CountTable): TemplateResult {
    const { wholeRange: range } = this;
    const span = range ? this.formats.span(range.start, range.end) : "this range";
    const events = Object.keys(this.where).length > 0 ? "events that match the filter" : "events";
    const [gap] = range ? shown.gaps(range) : [];
    if (!gap) return emptyState(`No ${events}`, `No ${events} were counted in ${span}.`);
    const isWhole = gap.start === range?.start && gap.end === range.end;
    if (isWhole) return emptyState("No counts", `Nothing of ${span} was read.`);
    return emptyState(
      "Some counts are missing",
      `A part of ${span} was not read. The rest has no ${events}.`,
    );
  }

  /** Reads again, for the button next to an error. */
  protected retry(): Promise<void> | undefined {
    if (this.src !== "") return this.refresh();
    this.emit("tallyfold-retry", {});
    return undefined;
  }

  /** Fires the event that shows only the rows with this value. */
  protected select(dimension: Dimension, value: string): void {
    this.#isUsed = true;
    this.emit("tallyfold-select", { dimension, value });
  }

  /** Fires the event that marks this range. */
  protected brush(start: string, end: string): void {
    this.emit("tallyfold-brush", { start, end });
  }

  /** Fires the event that removes the mark. */
  protected unmark(): void {
    this.emit("tallyfold-unmark", {});
  }

  /** Changes a part of the view's state, and fires the event that puts it into the address. */
  protected tell(state: { readonly [name: string]: string | undefined }): void {
    this.#isUsed = true;
    this.state = { ...this.state, ...state };
    this.emit("tallyfold-state", state);
  }
}

/** Returns a function that reads counts from the server for web apps at `src`. */
export function loadOf(src: string): Load {
  return async (query, options) => {
    const { table, error } = await sourceOf(src).load(query, options);
    if (error || !table) throw error;
    return table;
  };
}

/** Dimensions without repeats, in the order in which they are requested. */
export function dimensionsOf(names: readonly Dimension[]): Dimension[] {
  return NAMES.filter((name) => names.includes(name));
}

/** The names of dimensions for a sentence, such as `destinations and reasons`. */
export function manyOf(names: readonly Dimension[], conjunction: "and" | "or"): string {
  return names.map((name) => DIMENSIONS[name].many.toLowerCase()).join(` ${conjunction} `);
}

/** Adds up rows by one dimension, whose name is known only at run time. */
export function grouped(table: CountTable, by: Dimension): CountTable<Dimension> {
  return once(table, by, () => (table as CountTable<Dimension>).groupBy(by));
}

/** The dimensions that `where` restricts, and that are not among those of `counts`. */
function lackingIn(
  where: Where,
  counts: { readonly dimensions: readonly Dimension[] } | undefined,
): Dimension[] {
  const restricted = Object.entries(where).filter(([, values]) => values);
  // Reading the dimensions of a table takes long.
  if (restricted.length === 0 || !counts) return [];
  const { dimensions } = counts;
  return (restricted.map(([name]) => name) as Dimension[]).filter(
    (name) => !dimensions.includes(name),
  );
}

/** A filter that the counts of a page can't be restricted by. */
function mistakeInWhere(where: Where, table: CountTable | undefined): PageError | undefined {
  const lacking = lackingIn(where, table as CountTable<Dimension> | undefined);
  if (lacking.length === 0) return undefined;
  return new PageError(
    "These counts can't be filtered",
    `the property where filters by ${lacking.join(", ")}, but the property table has no such dimension`,
  );
}

/** The rows that `where` selects. Dimensions that the table lacks are ignored. */
export function filtered(table: CountTable, where: Where): CountTable {
  const names = new Set<string>(table.dimensions);
  const kept = Object.entries(where).filter(([name, values]) => names.has(name) && values);
  if (kept.length === 0) return table;
  return once(table, JSON.stringify(kept), () => table.filter(Object.fromEntries(kept)));
}

/** Tables that were made from a table. All views of a page show the same rows, so these are filtered and added up only once. */
const made = new WeakMap<CountTable, Map<string, CountTable>>();
/** The maximum number of tables that are kept for one table. A viewer switches back and forth between only a few. */
const MOST_MADE = 8;

function once<T extends CountTable>(table: CountTable, key: string, make: () => T): T {
  const kept = made.get(table) ?? new Map<string, CountTable>();
  made.set(table, kept);
  const found = kept.get(key) ?? make();
  kept.delete(key);
  kept.set(key, found);
  const [oldest] = kept.keys();
  if (kept.size > MOST_MADE && oldest !== undefined) kept.delete(oldest);
  return found as T;
}

/** The counts of a range; `undefined` if no window lies in it, or if a window lies in it only partly. */
export function partOf(table: CountTable, range: Window): CountTable | undefined {
  try {
    return table.between(range);
  } catch (error) {
    if (TallyfoldError.is(error)) return undefined;
    throw error;
  }
}

/** The values of a dimension with the most events, delivered or not, and their counts. */
export function largest(table: CountTable, by: Dimension, most: number): Row<Dimension>[] {
  const { success, errors, filtered, ...others } = table.columns();
  const names = (others as { [N in Dimension]?: DictionaryColumn })[by];
  const all = Array.from(success, (delivered, row) => ({
    events: delivered + (errors[row] ?? 0n) + (filtered[row] ?? 0n),
    value: names?.dictionary[names.ids[row] as number] ?? "",
  }));
  all.sort((one, other) => descending(one.events, other.events));
  const values = all.slice(0, most).map(({ value }) => value);
  const rows = Array.from(table.filter({ [by]: values })) as Row<Dimension>[];
  return rows.sort((one, other) => descending(eventsOf(one), eventsOf(other)));
}

/** All events of a row. */
export function eventsOf({ success, errors, filtered }: Counts): bigint {
  return success + errors + filtered;
}

/** Sorts large numbers before small ones. */
export function descending(one: bigint | number, other: bigint | number): number {
  return one === other ? 0 : one < other ? 1 : -1;
}

/** A value of a dimension as text, never as markup. */
export function valueText(value: string, dimension: Dimension): TemplateResult {
  if (value !== "") {
    const text = visible(value);
    return html`<bdi class="value" title=${text}>${text}</bdi>`;
  }
  const text = dimension === "reason" ? "no reason given" : "(empty)";
  return html`<span class="value empty-value">${text}</span>`;
}

/** Longer values are cut: no screen shows more. */
const LONGEST_VALUE = 300;

/**
 * A name as the page shows it: cut to `most` characters, with the escapes that the command uses. Characters that are invisible
 * or change the direction of text become escapes such as `\u{202e}`, so that no name looks like another. So backslashes are
 * doubled.
 */
export function visible(value: string, most = LONGEST_VALUE): string {
  const text = value.length <= most ? value : `${value.slice(0, most)}…`;
  return text.replaceAll("\\", "\\\\").replace(HIDDEN, escaped);
}

/** Escapes a character like the core's `text::escape`. */
function escaped(character: string): string {
  const code = character.codePointAt(0) as number;
  const short = { 9: "\\t", 10: "\\n", 13: "\\r" }[code];
  if (short) return short;
  const hex = code.toString(16);
  return code <= 0xff ? `\\x${hex.padStart(2, "0")}` : `\\u{${hex}}`;
}

/** The placeholder for counts that are being read. */
export function skeleton(): TemplateResult {
  return html`<div class="skeleton" part="loading" role="status">
    <span class="sr">Loading…</span>${Array.from({ length: 6 }, () => html`<i></i>`)}
  </div>`;
}

export function emptyState(title: string, text: unknown): TemplateResult {
  return html`<div class="state" part="empty" role="status"><strong>${title}</strong><p>${text}</p></div>`;
}

/** What went wrong, what happens next, and a button to try again. */
export function failureState(
  error: unknown,
  retry: () => void,
  next: string | typeof nothing = nothing,
): TemplateResult {
  const { title, text } = failureText(error);
  return html`<div class="state" part="error" role="alert">
    <strong>${title}</strong>
    <p>${text}</p>
    ${next === nothing ? nothing : html`<p>${next}</p>`}
    <button type="button" @click=${retry}>Try again</button>
  </div>`;
}

/** A mistake in what the page has given to an element. */
export function mistakeState({ title, message }: PageError): TemplateResult {
  return html`<div class="state" part="error" role="alert"><strong>${title}</strong><p>${message}</p></div>`;
}

/** An error in words. */
export function failureText(error: unknown): { title: string; text: string } {
  if (error instanceof PageError) return { title: error.title, text: error.message };
  if (!TallyfoldError.is(error)) {
    return {
      title: "Something went wrong",
      text: error instanceof Error ? error.message : String(error),
    };
  }
  const { code, status } = error;
  const said = serverText(error);
  const message = said ?? error.message;
  // Errors that the server for web apps reports have the same codes as failures to reach that server, but also its text.
  const [who, whom] =
    said === undefined ? ["Your server", ""] : ["The service", " from your server"];
  if (status === 401) {
    return {
      title: "Your session has expired",
      text: `Sign in again, then try again. (${message})`,
    };
  }
  if (status === 403) {
    return {
      title: "You may not see these counts",
      text: `If you have signed out, sign in again. Otherwise, ask the owner of this page for access. (${message})`,
    };
  }
  const titles: Partial<Record<string, string>> = {
    network_failed: `${who} can't be reached${whom}`,
    timed_out: `${who} took too long`,
    rate_limited: "Too many requests",
    invalid_rules: "The rules are invalid",
    wasm_forbidden: "The page's security policy forbids WebAssembly",
  };
  return {
    title: titles[code] ?? "The counts could not be read",
    text: message,
  };
}

/** Whether the failure may be transient, so that a retry may succeed. */
export function isPassing(error: unknown): boolean {
  if (!TallyfoldError.is(error)) return false;
  return error.kind === "service" && error.status !== 401 && error.status !== 403;
}

/** The message of the server for web apps about its error. It may refer to the server's log. */
function serverText({ failures, excerpt }: TallyfoldError): string | undefined {
  try {
    const { message } = JSON.parse(failures[0]?.error.excerpt ?? excerpt ?? "");
    return typeof message === "string" ? message : undefined;
  } catch {
    return undefined;
  }
}

/** How many windows have been read. */
export function progressOf(
  { done, planned }: { readonly done: number; readonly planned: number },
  { count }: Formats,
  label: string,
): TemplateResult {
  return html`<progress max=${planned || 1} .value=${done} aria-label=${label}></progress>
    ${count(done)} of ${count(planned)} windows`;
}

export function isOther(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) !== JSON.stringify(other);
}

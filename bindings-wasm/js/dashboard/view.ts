// What all views have in common: their counts and where these come from, the frame with the title and the menus, and
// what stands in place of counts while there are none.

import {
  type CSSResultGroup,
  html,
  LitElement,
  nothing,
  type PropertyValues,
  type TemplateResult,
} from "lit";
import { CountTable, type SavedTable } from "../src/tables/table.js";
import { TallyfoldError } from "../src/values/error.js";
import type { Dimension, Metric, Window } from "../src/values/types.js";
import { sourceOf } from "./data.js";
import type { DashboardQuery, LoadOptions, Unit, Where } from "./elements.js";
import { type Formats, formats } from "./formats.js";
import { type ExportItem, menus } from "./menus.js";
import { rangeOf, shifted, WEEK } from "./range.js";
import { parts, tokens } from "./styles.js";

/** The dimensions in the order in which they are requested, and their names as people say them. */
export const DIMENSIONS: Readonly<Record<Dimension, { one: string; many: string }>> = {
  integration: { one: "Destination", many: "Destinations" },
  reason: { one: "Reason", many: "Reasons" },
  event_name: { one: "Event", many: "Events" },
  write_key: { one: "Source", many: "Sources" },
};

/** All dimensions, in that order. */
export const NAMES = Object.keys(DIMENSIONS) as Dimension[];

/** Reads counts as the dashboard does. It rejects with an error that has the `partial` table. */
export type Load = (query: DashboardQuery, options?: LoadOptions) => Promise<CountTable>;

/** A view: a custom element that shows counts. */
export abstract class View extends LitElement {
  static override properties = {
    src: {},
    period: {},
    by: {},
    unit: {},
    zone: {},
    locale: {},
    rules: {},
    table: { attribute: false },
    tableBefore: { attribute: false },
    ingestion: { attribute: false },
    range: { attribute: false },
    where: { attribute: false },
    state: { attribute: false },
    query: { attribute: false },
    load: { attribute: false },
    loading: { attribute: false },
    error: { attribute: false },
  };

  static override styles: CSSResultGroup = [tokens, parts];

  declare src: string;
  declare period: string;
  declare by: Dimension;
  declare unit: Unit;
  declare zone: string;
  declare locale: string | undefined;
  /** Rules as TOML. */
  declare rules: string | undefined;
  /** What was read, window by window, by the dimensions of `query`. */
  declare table: CountTable | SavedTable | undefined;
  /** The same time a week before. */
  declare tableBefore: CountTable | SavedTable | undefined;
  /** Ingestion in the same time, for views that want it. */
  declare ingestion: CountTable | undefined;
  /** The range that was requested. Parts of it that `table` lacks are missing. */
  declare range: Window | undefined;
  declare where: Where;
  /** What the address says of this view. To change it, call {@link tell}. */
  declare state: { readonly [name: string]: string | undefined };
  /** What was asked. */
  declare query: DashboardQuery | undefined;
  /** Reads other counts. */
  declare load: Load | undefined;
  declare loading: boolean;
  declare error: unknown;

  /** The rows to show: those of `table` that `where` keeps. */
  protected shown: CountTable | undefined;
  protected shownBefore: CountTable | undefined;
  #reading: AbortController | undefined;
  /** Whether the view is in the window, or at most half a window away. */
  #isNear = true;
  readonly #nearness = new IntersectionObserver(
    (entries) => {
      this.#isNear = entries.at(-1)?.isIntersecting ?? true;
    },
    { rootMargin: "50%" },
  );

  constructor() {
    super();
    this.src = "";
    this.period = "24h";
    this.by = "integration";
    this.unit = "counts";
    this.zone = "UTC";
    this.where = {};
    this.state = {};
    this.loading = false;
  }

  /** The title of the view. */
  protected abstract get heading(): string;

  /** What the view shows when there are counts. */
  protected abstract content(): TemplateResult | typeof nothing;

  /** What stands in the head next to the menus. */
  protected tools(): unknown {
    return nothing;
  }

  /** A short text after the title. */
  protected note(): unknown {
    return nothing;
  }

  /** What can be exported next to CSV and JSON, such as a picture. */
  protected exports(): ExportItem[] {
    return [];
  }

  /** The table that CSV and JSON are written of. */
  exported(): CountTable | undefined {
    return this.shown && grouped(this.shown, this.by);
  }

  /** The metrics that the view reads when it reads for itself. */
  protected get metrics(): readonly Metric[] {
    return ["event_delivery"];
  }

  /** The dimensions that the view needs. */
  protected get dimensions(): Dimension[] {
    return dimensionsOf([this.by, "reason", ...(Object.keys(this.where) as Dimension[])]);
  }

  /** How numbers and times are written. */
  get formats(): Formats {
    return formats(languageOf(this), this.zone);
  }

  /** Reads counts from `src`. */
  async refresh(): Promise<void> {
    this.#reading?.abort();
    const own = new AbortController();
    this.#reading = own;
    const { signal } = own;
    const range = rangeOf(this.period, Date.now());
    if (range === undefined) {
      this.error = new RangeError(`period: want a length such as "24h", or "start/end"`);
      return;
    }
    const source = sourceOf(this.src);
    const query = { ...range, metric: "event_delivery" as Metric, dimensions: this.dimensions };
    this.load ??= loadOf(this.src);
    this.loading = true;
    this.error = undefined;
    try {
      const before = shifted(query, -WEEK);
      const earlier = source.load(before, { signal }).catch(() => undefined);
      const { table, error } = await source.load(query, { signal });
      Object.assign(this, { table, error, query, range: { start: range.start, end: range.end } });
      if (this.metrics.includes("event_ingestion")) {
        const dimensions = query.dimensions.filter((name) => name !== "reason");
        const asked = { ...query, metric: "event_ingestion" as Metric, dimensions };
        this.ingestion = (await source.load(asked, { signal })).table;
      }
      this.tableBefore = (await earlier)?.table;
      await this.#told(own, table && { query, table }, error);
    } catch (error) {
      if (signal.aborted) return;
      this.error = error;
      await this.#told(own, undefined, error);
    } finally {
      if (this.#reading === own) this.loading = false;
    }
  }

  /** Fires the events of a reading when the page shows what it has led to. */
  async #told(own: AbortController, loaded: unknown, error: unknown): Promise<void> {
    if (this.#reading !== own) return;
    this.loading = false;
    await this.updateComplete;
    if (this.#reading !== own || own.signal.aborted) return;
    if (loaded) this.emit("tallyfold-load", loaded);
    if (error !== undefined) this.emit("tallyfold-error", { error });
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#nearness.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#nearness.disconnect();
    this.#reading?.abort();
  }

  /**
   * Each view is updated in a task of its own, so that none holds up a click for long. Those that nobody sees are updated after
   * what has changed before the viewer's eyes is drawn.
   */
  protected override async scheduleUpdate(): Promise<void> {
    await (this.#isNear ? turn() : painted());
    super.scheduleUpdate();
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has("src") || changed.has("period") || changed.has("by")) {
      if (this.src !== "") void this.refresh();
    }
    if (changed.has("table") || changed.has("where")) this.shown = this.#kept("table");
    if (changed.has("tableBefore") || changed.has("where")) {
      this.shownBefore = this.#kept("tableBefore");
    }
  }

  #kept(name: "table" | "tableBefore", where = this.where): CountTable | undefined {
    const given = this[name];
    if (given === undefined || given === null) return undefined;
    const table = given instanceof CountTable ? given : CountTable.fromJSON(given);
    return filtered(table, where);
  }

  /** The rows whose events the shares of reasons are of: those with all reasons. `undefined` if rows have all of them anyway. */
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
      ${this.body()}
    </section>`;
  }

  /** The content, or what stands in its place. */
  protected body(): unknown {
    if (this.shown === undefined) {
      if (this.error !== undefined) return failureState(this.error, () => void this.retry());
      return this.loading || this.src
        ? skeleton()
        : emptyState("No counts", "Nothing was read yet.");
    }
    if (this.shown.length === 0) {
      const span = this.range ? this.formats.span(this.range.start, this.range.end) : "this range";
      return emptyState("No events", `No events were counted in ${span}.`);
    }
    return this.content();
  }

  /** Reads again: what the button does that stands next to an error. */
  protected retry(): Promise<void> | undefined {
    if (this.src !== "") return this.refresh();
    this.emit("tallyfold-retry", {});
    return undefined;
  }

  /** Shows only the rows with this value. */
  protected select(dimension: Dimension, value: string): void {
    this.emit("tallyfold-select", { dimension, value });
  }

  /** Shows this range. */
  protected brush(start: string, end: string): void {
    this.emit("tallyfold-brush", { start, end });
  }

  /** Puts a part of the view's state into the address. */
  protected tell(state: { readonly [name: string]: string | undefined }): void {
    this.state = { ...this.state, ...state };
    this.emit("tallyfold-state", state);
  }

  protected emit(name: string, detail: unknown): void {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }
}

/** Reads from the server for pages at `src`. */
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

/** What these dimensions have values of, in a sentence: `destinations and reasons`. */
export function manyOf(names: readonly Dimension[], conjunction: "and" | "or"): string {
  return names.map((name) => DIMENSIONS[name].many.toLowerCase()).join(` ${conjunction} `);
}

/** Rows added up by one dimension, whose name is only known now. */
export function grouped(table: CountTable, by: Dimension): CountTable<Dimension> {
  return once(table, by, () => (table as CountTable<Dimension>).groupBy(by));
}

/** The rows that `where` keeps, as far as the table has its dimensions. */
export function filtered(table: CountTable, where: Where): CountTable {
  const names = new Set<string>(table.dimensions);
  const kept = Object.entries(where).filter(([name, values]) => names.has(name) && values);
  if (kept.length === 0) return table;
  return once(table, JSON.stringify(kept), () => table.filter(Object.fromEntries(kept)));
}

/** What was made of a table: all views of a page show the same rows, which are filtered and added up once. */
const made = new WeakMap<CountTable, Map<string, CountTable>>();
/** How much is kept of one table: a viewer goes back and forth between a few. */
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

/** The counts of a range; `undefined` if no window lies in it, or one of them only in part. */
export function partOf(table: CountTable, range: Window): CountTable | undefined {
  try {
    return table.between(range);
  } catch (error) {
    if (TallyfoldError.is(error)) return undefined;
    throw error;
  }
}

/** The language of an element: its own, or that of the page. */
export function languageOf(
  element: HTMLElement & { locale?: string | undefined },
): string | undefined {
  if (element.locale) return element.locale;
  return element.closest<HTMLElement>("[lang]")?.lang || document.documentElement.lang || undefined;
}

/** A value of a dimension as text, never as markup. */
export function valueText(value: string, dimension: Dimension): TemplateResult {
  if (value !== "")
    return html`<bdi class="value" title=${shortened(value)}>${shortened(value)}</bdi>`;
  const text = dimension === "reason" ? "no reason given" : "(empty)";
  return html`<span class="value empty-value">${text}</span>`;
}

/** Longer values are cut: no screen shows more. */
const LONGEST_VALUE = 300;

function shortened(value: string): string {
  return value.length <= LONGEST_VALUE ? value : `${value.slice(0, LONGEST_VALUE)}…`;
}

/** What stands in place of counts that are being read. */
export function skeleton(): TemplateResult {
  return html`<div class="skeleton" part="loading" role="status">
    <span class="sr">Loading…</span>${Array.from({ length: 6 }, () => html`<i></i>`)}
  </div>`;
}

export function emptyState(title: string, text: unknown): TemplateResult {
  return html`<div class="state" part="empty" role="status"><strong>${title}</strong><p>${text}</p></div>`;
}

/** What went wrong, by whom it can be mended, and a button. */
export function failureState(error: unknown, retry: () => void): TemplateResult {
  const { title, text } = failureText(error);
  return html`<div class="state" part="error" role="alert">
    <strong>${title}</strong>
    <p>${text}</p>
    <button type="button" @click=${retry}>Try again</button>
  </div>`;
}

/** An error in words. */
export function failureText(error: unknown): { title: string; text: string } {
  if (!TallyfoldError.is(error)) {
    return {
      title: "Something went wrong",
      text: error instanceof Error ? error.message : String(error),
    };
  }
  const { code, status } = error;
  const said = serverText(error);
  const message = said ?? error.message;
  // What the server for pages has answered, and what the browser got no answer to, have the same codes.
  const [who, whom] =
    said === undefined ? ["Your server", ""] : ["The service", " from your server"];
  if (status === 401 || status === 403) {
    return {
      title: "Your session has expired",
      text: `Sign in again, then try again. If that does not help, you may not see these counts. (${message})`,
    };
  }
  const titles: Partial<Record<string, string>> = {
    network_failed: `${who} can't be reached${whom}`,
    timed_out: `${who} took too long`,
    rate_limited: "Too many requests",
    wasm_forbidden: "The page's security policy forbids WebAssembly",
  };
  return {
    title: titles[code] ?? "The counts could not be read",
    text: message,
  };
}

/** What the server for pages says about its error, such as where its log has more. */
function serverText({ failures, excerpt }: TallyfoldError): string | undefined {
  try {
    const { message } = JSON.parse(failures[0]?.error.excerpt ?? excerpt ?? "");
    return typeof message === "string" ? message : undefined;
  } catch {
    return undefined;
  }
}

/** Until the browser has had its turn. */
export function turn(): Promise<void> {
  const { scheduler } = globalThis as { scheduler?: { yield?: () => Promise<void> } };
  return scheduler?.yield?.() ?? new Promise((resolve) => setTimeout(resolve));
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

/** A page that is not seen draws no frame. */
const LONGEST_FRAME_MS = 100;

/** Until the browser has drawn what has changed: the other views are updated after the next frame at the latest. */
export function painted(): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LONGEST_FRAME_MS);
    const drawn = () => {
      clearTimeout(timer);
      setTimeout(resolve);
    };
    requestAnimationFrame(() => requestAnimationFrame(drawn));
  });
}

// A ranked table of groups: the base class of `<tallyfold-destinations>` and `<tallyfold-reasons>`.

import {
  type CSSResultGroup,
  css,
  html,
  nothing,
  type PropertyValues,
  type TemplateResult,
} from "lit";
import { repeat } from "lit/directives/repeat.js";
import { type ComparisonRow, compare } from "../src/tables/comparison.js";
import { type Counts, countsOf, type Row } from "../src/tables/counts.js";
import type { CountTable } from "../src/tables/table.js";
import type { CountName, Dimension } from "../src/values/types.js";
import { DIMENSIONS } from "./base.js";
import { ratesIn } from "./cells.js";
import { markStyles, marks, statesOf } from "./marks.js";
import { isCompared } from "./range.js";
import { barsOf, type Trends, trendsOf } from "./trends.js";
import { turnOf } from "./turns.js";
import { descending, emptyState, grouped, View, valueText, visible } from "./view.js";

/** A column of numbers: the count that it shows, and the share of these events. */
interface Column {
  readonly name: CountName;
  readonly label: string;
  readonly share: "error" | "filter" | "delivery";
}

const COLUMNS: readonly [Column, Column, Column] = [
  { name: "errors", label: "Failed", share: "error" },
  { name: "filtered", label: "Filtered", share: "filter" },
  { name: "success", label: "Delivered", share: "delivery" },
];

/** The columns of a table of reasons. Only events that were not delivered have reasons. */
const LOST: readonly [Column, Column] = [COLUMNS[1], COLUMNS[0]];

type Group = Row<Dimension>;

/** The events that shares refer to: those of the group itself unless `of` has others for its value. */
interface Whole {
  readonly totals: Counts;
  readonly of: ReadonlyMap<string, Counts> | undefined;
}

/** How many rows are shown at first. */
const FIRST = 12;
/** If the viewer shows all rows, and there are more than this, only rows in or near the visible part are in the document. */
const MANY = 150;
const ROW_PX = 33;

/** A ranked table of the values of one dimension, with a search field, and a trend for each value. */
export abstract class Groups extends View {
  static override styles: CSSResultGroup = [
    View.styles,
    markStyles,
    css`
    :host {
      --row: ${ROW_PX}px;
    }
    .scroll {
      overflow-x: auto;
      overscroll-behavior-x: contain;
      border-block-start: 1px solid var(--line);
    }
    .scroll.many {
      max-height: 640px;
      overflow-y: auto;
    }
    table {
      table-layout: fixed;
      min-width: 640px;
    }
    .compact table {
      min-width: 420px;
    }
    col.name {
      width: auto;
    }
    col.number {
      width: 104px;
    }
    col.share {
      width: 112px;
    }
    col.trend {
      width: 132px;
    }
    .compact col.number {
      width: 80px;
    }
    .compact col.share {
      width: 76px;
    }
    .compact col.trend {
      width: 96px;
    }
    .compact .rate i {
      display: none;
    }
    .compact .rate span {
      flex: 1;
    }
    .compact td:last-child {
      padding-inline-end: var(--s3);
    }
    .many thead th {
      position: sticky;
      inset-block-start: 0;
      z-index: 2;
      background: var(--surface);
    }
    thead button {
      min-height: 0;
      width: 100%;
      padding: 6px 0;
      border: 0;
      background: none;
      text-align: inherit;
      font-weight: 500;
    }
    thead button:hover {
      color: var(--text);
      background: none;
    }
    thead [aria-sort] button {
      color: var(--text);
    }
    thead [aria-sort] button::after {
      content: " ↓" / "";
    }
    thead [aria-sort="ascending"] button::after {
      content: " ↑" / "";
    }
    tbody tr:hover > * {
      background: var(--sunken);
    }
    th[scope="row"] button {
      display: block;
      width: 100%;
      color: var(--text);
    }
    th[scope="row"] button:hover {
      color: var(--accent);
    }
    .many tfoot th,
    .many tfoot td {
      position: sticky;
      inset-block-end: 0;
      background: var(--surface);
    }
    tfoot th,
    tfoot td {
      border-block-start: 1px solid var(--line-strong);
      border-block-end: 0;
      font-weight: 600;
      color: var(--text);
      font-size: var(--body);
    }
    tfoot th {
      overflow: hidden;
      text-overflow: ellipsis;
    }
    .rate {
      display: flex;
      align-items: center;
      gap: var(--s2);
    }
    .rate i {
      flex: 1;
      height: 6px;
      border-radius: var(--radius-bar);
      background: var(--line);
      overflow: clip;
    }
    .rate b {
      display: block;
      height: 100%;
      border-radius: var(--radius-bar);
      background: var(--failed);
    }
    .by-reason .rate b {
      background: var(--filtered);
    }
    svg.bars {
      display: block;
      width: 100%;
      height: 20px;
      margin-inline-start: auto;
    }
    .up {
      color: var(--failed);
    }
    .down {
      color: var(--delivered);
    }
    .search {
      width: 150px;
      min-height: 28px;
      font-size: var(--small);
    }
    .search::placeholder {
      color: var(--muted);
      opacity: 1;
    }
    .more {
      padding: var(--s2) var(--s3);
    }
    .marks {
      padding: 0 var(--s4) var(--s3);
    }
    @container (max-width: 900px) {
      .wide col.number {
        width: 84px;
      }
      .wide col.share {
        width: 104px;
      }
      .wide col.trend {
        width: 92px;
      }
    }
    @container (max-width: 520px) {
      .search {
        width: 100%;
      }
      .head .tools {
        width: 100%;
        margin-inline-start: 0;
      }
      .head .tools > .search {
        flex: 1;
      }
      table,
      .compact table {
        min-width: 480px;
      }
      col.name {
        width: 148px;
      }
      col.number {
        width: 84px;
      }
      .wide table {
        min-width: 680px;
      }
      tbody th,
      thead th:first-child,
      tfoot th:first-child {
        position: sticky;
        inset-inline-start: 0;
        z-index: 1;
        background: var(--surface);
      }
      thead th:first-child,
      tfoot th:first-child {
        z-index: 3;
      }
    }
  `,
  ];

  /** The dimension of the rows. */
  protected abstract get dimension(): Dimension;
  /** Whether the table stands next to another one, and has fewer columns. */
  protected get isCompact(): boolean {
    return false;
  }

  #groups: CountTable<Dimension> | undefined;
  /** All groups, sorted by value. */
  #all: readonly Group[] = [];
  /** The groups to show, in the order in which they are shown. */
  #rows: readonly Group[] = [];
  /** The rows in the document. */
  #seen: readonly Group[] = [];
  #changes: ReadonlyMap<string, ComparisonRow<Dimension>> | undefined;
  /** The sums of all groups. */
  #totals: Counts | undefined;
  /** The shares that were computed, by column and group. Another order or another unit does not change them. */
  readonly #shares = new Map<string, number | null>();
  /** The events that shares refer to. */
  #whole: Whole | undefined;
  #wholeBefore: Whole | undefined;
  #trends: Trends | undefined;
  /** Resolves when the rows have their trends and changes. */
  #added: Promise<void> | undefined;
  /** The largest share among the first rows. A bar for this share has the full length. */
  #most = 0;
  #isWhole = false;
  #from = 0;
  #ranked = "";

  override exported(): CountTable | undefined {
    return this.#groups;
  }

  protected override get dimensions(): Dimension[] {
    return [...new Set([...super.dimensions, this.dimension])];
  }

  protected override note(): unknown {
    if (!this.#groups?.length) return nothing;
    const { sort } = this.state;
    const rank = sort === undefined ? ", most lost events first" : "";
    return `${this.formats.count(this.#groups.length)}${rank}`;
  }

  protected override tools(): unknown {
    const isSearched = Boolean(this.state["q"]);
    if (!this.#groups || (this.#groups.length <= 5 && !isSearched)) return nothing;
    const label = `Search ${DIMENSIONS[this.dimension].many.toLowerCase()}`;
    return html`<input
      class="search"
      type="search"
      aria-label=${label}
      placeholder="Search"
      .value=${this.state["q"] ?? ""}
      @input=${({ target }: Event) => this.tell({ q: (target as HTMLInputElement).value || undefined })}
    />`;
  }

  protected override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed);
    const isOther = ["table", "where", "by", "of"].some((name) => changed.has(name));
    if (isOther) this.#group();
    if (isOther || changed.has("range")) this.#trends = undefined;
    if (isOther || changed.has("range") || changed.has("tableBefore")) this.#added = this.#add();
    const ranked = JSON.stringify([this.unit, this.state["sort"], this.state["q"]]);
    if (isOther || this.#ranked !== ranked) {
      this.#ranked = ranked;
      this.#rank();
    }
  }

  /** Once the rows are drawn, adds what takes longer to compute: the trends, and the comparison with the week before. */
  async #add(): Promise<void> {
    this.#changes = undefined;
    const { shown, dimension } = this;
    const groups = this.#groups;
    await turnOf("later");
    // If the rows have changed meanwhile, their own update adds this to them.
    if (this.#groups !== groups || this.dimension !== dimension) return;
    this.#compare();
    if (groups && shown && this.range) this.#trends ??= trendsOf(shown, dimension, this.range);
    this.requestUpdate();
  }

  /** An update is complete when the rows have their trends and changes. */
  protected override async getUpdateComplete(): Promise<boolean> {
    await super.getUpdateComplete();
    await this.#added;
    return super.getUpdateComplete();
  }

  #group(): void {
    const { shown, dimension } = this;
    this.#groups = shown?.dimensions.includes(dimension) ? grouped(shown, dimension) : undefined;
    this.#all = [...(this.#groups ?? [])] as Group[];
    this.#totals = this.#groups?.totals;
    this.#whole = this.#wholeIn("table", this.shown);
    this.#shares.clear();
  }

  /** If only some reasons are shown, shares refer to the events of all reasons. */
  #wholeIn(name: "table" | "tableBefore", shown: CountTable | undefined): Whole | undefined {
    const whole = this.wholeOf(name);
    const totals = (whole ?? shown)?.totals;
    if (!totals) return undefined;
    if (!whole?.dimensions.includes(this.dimension as never)) return { totals, of: undefined };
    const rows = [...grouped(whole, this.dimension)] as Group[];
    return { totals, of: new Map(rows.map((row) => [row.dimensions[this.dimension], row])) };
  }

  get #isReason(): boolean {
    return this.dimension === "reason";
  }

  get #columns(): readonly [Column, ...Column[]] {
    return this.#isReason ? LOST : COLUMNS;
  }

  /**
   * Whether there is a column for the week before. There is one also while that week is being read, but not in a compact table,
   * for a long range, or if the view has no way to read that week.
   */
  get #isCompared(): boolean {
    const isLong = this.range !== undefined && !isCompared(this.range);
    return !this.isCompact && !isLong && (this.tableBefore ?? this.load ?? this.src) !== "";
  }

  /** Compares the groups with the same time a week before, unless either time has gaps. */
  #compare(): void {
    const { shownBefore: before, shown, range } = this;
    if (!this.#groups || !before || !shown || !range) return;
    if (!before.dimensions.includes(this.dimension as never)) return;
    if (shown.gaps(range).length > 0 || this.gapsBefore(range).length > 0) return;
    this.#wholeBefore = this.#wholeIn("tableBefore", before);
    const earlier = grouped(before, this.dimension);
    const changes = new Map<string, ComparisonRow<Dimension>>();
    for (const row of compare(earlier, this.#groups) as Iterable<ComparisonRow<Dimension>>) {
      changes.set(row.dimensions[this.dimension], row);
    }
    this.#changes = changes;
  }

  #rank(): void {
    const [key, direction] = (this.state["sort"] ?? "").split("-");
    const column = COLUMNS.find(({ name }) => name === key);
    const rows = [...this.#all];
    if (key !== "name") {
      const ranks = new Map(rows.map((row) => [row, this.#rankOf(row, column)]));
      rows.sort((one, other) => descending(ranks.get(one) ?? 0, ranks.get(other) ?? 0));
    }
    if (direction === "up") rows.reverse();
    const sought = (this.state["q"] ?? "").toLocaleLowerCase();
    this.#rows = sought
      ? rows.filter((row) => row.dimensions[this.dimension].toLocaleLowerCase().includes(sought))
      : rows;
    this.#most = this.#rows
      .slice(0, MANY)
      .reduce((most, row) => Math.max(most, this.#partOf(row)), 0);
    this.#from = this.#fromAt(this.renderRoot.querySelector(".scroll.many")?.scrollTop ?? 0);
  }

  /** What a row is ranked by: the number that the column shows, or all lost events. */
  #rankOf(row: Group, column: Column | undefined): bigint | number {
    if (column === undefined) return row.errors + row.filtered;
    if (this.unit !== "percent" || this.#isReason) return row[column.name];
    return this.#shareOf(column, row, this.#valueOf(row)) ?? 0;
  }

  /**
   * Updates reuse rows for other values, which is fast. So the focus is moved to the row that now has the focused value, or to
   * the table if there is none.
   */
  protected override update(changed: PropertyValues): void {
    const buttons = () => Array.from(this.renderRoot.querySelectorAll("tbody th button"));
    const focused = this.shadowRoot?.activeElement;
    const value = this.#valueOf(this.#seen[focused ? buttons().indexOf(focused) : -1]);
    super.update(changed);
    if (value === undefined) return;
    const place = this.#seen.findIndex((row) => this.#valueOf(row) === value);
    const next = buttons()[place] ?? this.renderRoot.querySelector(".scroll");
    if (next !== focused) (next as HTMLElement | null)?.focus({ preventScroll: true });
  }

  #valueOf(row: Group | undefined): string | undefined {
    return row?.dimensions[this.dimension];
  }

  protected override content(): TemplateResult {
    const rows = this.#rows;
    if (!this.#groups) return emptyState("No counts", "These counts do not have this dimension.");
    if (rows.length === 0) {
      return emptyState(
        "Nothing found",
        html`Nothing contains <bdi>“${visible(this.state["q"] ?? "", 100)}”</bdi>.`,
      );
    }
    const isMany = rows.length > MANY && this.#isWhole;
    const limit = this.#isWhole ? rows.length : Math.min(rows.length, this.isCompact ? 8 : FIRST);
    // There may be fewer rows than before.
    const from = isMany ? Math.max(0, Math.min(this.#from, limit - 60)) : 0;
    const to = isMany ? Math.min(from + 60, limit) : limit;
    const seen = rows.slice(from, to);
    this.#seen = seen;
    this.#trends?.draw(seen.map((row) => row.dimensions[this.dimension]));
    const classes = `${isMany ? "many" : ""} ${this.isCompact ? "compact" : "wide"} ${this.#isReason ? "by-reason" : ""}`;
    const space = (px: number) =>
      px > 0 ? html`<tr aria-hidden="true" .style=${`height:${px}px`}></tr>` : nothing;
    return html`
      <div
        class="scroll ${classes}"
        role="region"
        aria-label=${`${this.heading}: table`}
        tabindex="0"
        @scroll=${isMany ? this.#scrolled : nothing}
      >
        <table aria-rowcount=${rows.length + 2} part="table">
          <colgroup>
            <col class="name" />
            ${this.#columns.map(() => html`<col class="number" />`)}
            <col class="share" />
            ${this.#isCompared ? html`<col class="number" />` : nothing}
            <col class="trend" />
          </colgroup>
          <thead>
            <tr>
              ${this.#header("name", DIMENSIONS[this.dimension].one)}
              ${this.#columns.map(({ name, label }) => this.#header(name, label))}
              <th scope="col">${this.#shareLabel()}</th>
              ${this.#isCompared ? html`<th scope="col">Last week</th>` : nothing}
              <th scope="col">Trend</th>
            </tr>
          </thead>
          <tbody>
            ${space(from * ROW_PX)}
            ${repeat(
              seen,
              (row, at) => (isMany ? row.dimensions[this.dimension] : at),
              (row, at) => this.#row(row, from + at),
            )}
            ${space((limit - to) * ROW_PX)}
          </tbody>
          <tfoot>
            ${this.#total()}
          </tfoot>
        </table>
      </div>
      ${
        limit < rows.length
          ? html`<div class="more">
              <button type="button" class="plain" @click=${this.#showAll}>
                Show all ${this.formats.count(rows.length)}
              </button>
            </div>`
          : nothing
      }
      ${this.#marks()}
    `;
  }

  #marks(): TemplateResult | typeof nothing {
    const { shown, wholeRange: range } = this;
    return shown && range ? marks(statesOf(shown, range)) : nothing;
  }

  #header(key: string, label: string): TemplateResult {
    const [sorted, direction] = (this.state["sort"] ?? "").split("-");
    const isUp = (direction === "up") !== (key === "name");
    const sort = sorted === key ? (isUp ? "ascending" : "descending") : nothing;
    return html`<th scope="col" aria-sort=${sort}>
      <button type="button" @click=${() => this.#sort(key)}>${label}</button>
    </th>`;
  }

  /** Sorts by the column, then in reverse, then in the default order. */
  #sort(key: string): void {
    const { sort } = this.state;
    const next = sort === key ? `${key}-up` : sort === `${key}-up` ? undefined : key;
    this.tell({ sort: next });
  }

  #row(row: Group, at: number): TemplateResult {
    const value = row.dimensions[this.dimension];
    return html`<tr aria-rowindex=${at + 2}>
      <th scope="row">
        <button type="button" class="link" @click=${() => this.#drill(value)}>
          ${valueText(value, this.dimension)}
        </button>
      </th>
      ${this.#columns.map((column) => this.#cell(column, row, value))}
      <td>${this.#share(row)}</td>
      ${this.#isCompared ? html`<td>${this.#change(value)}</td>` : nothing}
      <td>${barsOf(this.#trends?.get(value), this.#trends)}</td>
    </tr>`;
  }

  /** The row may disappear, so the focus moves to the table. */
  #drill(value: string): void {
    this.renderRoot.querySelector<HTMLElement>(".scroll")?.focus({ preventScroll: true });
    this.select(this.dimension, value);
  }

  #total(): TemplateResult {
    const totals = this.#totals as Counts;
    return html`<tr aria-rowindex=${this.#rows.length + 2}>
      <th scope="row">All ${DIMENSIONS[this.dimension].many.toLowerCase()}</th>
      ${this.#columns.map((column) => this.#cell(column, totals))}
      <td>${this.#isReason ? nothing : this.#complement(totals)}</td>
      ${this.#isCompared ? html`<td></td>` : nothing}
      <td></td>
    </tr>`;
  }

  /** The count whose share and change are shown. */
  get #main(): "errors" | "filtered" {
    return this.#isReason ? "filtered" : "errors";
  }

  /**
   * The share of a group or of the total. For a reason, it is the part of all failed events, or of all filtered events;
   * otherwise, it is the part of the group's own events.
   */
  #rate(
    { name, share }: Column,
    counts: Counts,
    value?: string,
    whole = this.#whole,
  ): number | null {
    if (!this.#isReason) {
      const own = value === undefined ? whole?.of && whole.totals : whole?.of?.get(value);
      return (own ? ratesIn(counts, own) : counts.rates)[share];
    }
    const rest = (whole?.totals[name] ?? 0n) - counts[name];
    return countsOf({ success: rest, errors: counts[name], filtered: 0n }).rates.error;
  }

  /** The same for the shown range. Each share is computed only once. */
  #shareOf(column: Column, counts: Counts, value?: string): number | null {
    const key = value === undefined ? column.name : `${column.name} ${value}`;
    const known = this.#shares.get(key);
    if (known !== undefined) return known;
    const share = this.#rate(column, counts, value);
    this.#shares.set(key, share);
    return share;
  }

  #cell(column: Column, counts: Counts, value?: string): TemplateResult {
    const { count, share } = this.formats;
    const { name } = column;
    const [number, part] = [count(counts[name]), share(this.#shareOf(column, counts, value))];
    const [text, other] = this.unit === "percent" ? [part, number] : [number, part];
    const looks = { errors: "failed", filtered: "filtered", success: "" };
    const look = counts[name] === 0n ? "zero" : looks[name];
    return html`<td class=${look} title=${other} data-count=${name}>${text}</td>`;
  }

  #shareLabel(): string {
    const what = this.#isReason ? "filtered" : "failed";
    if (this.unit === "percent") return `Events ${what}`;
    return this.#isReason ? "Of filtered" : "Failed share";
  }

  #complement(counts: Counts, value?: string): string {
    const { count, share } = this.formats;
    if (this.unit === "percent") return count(counts[this.#main]);
    return share(this.#shareOf(this.#columns[0], counts, value));
  }

  #partOf(row: Group): number {
    return this.#shareOf(this.#columns[0], row, this.#valueOf(row)) ?? 0;
  }

  #share(row: Group): TemplateResult {
    const share = this.#partOf(row);
    const part = this.#most === 0 ? 0 : Math.max(share / this.#most, share > 0 ? 0.02 : 0);
    return html`<span class="rate">
      <i><b .style=${`width:${part * 100}%`}></b></i><span>${this.#complement(row, this.#valueOf(row))}</span>
    </span>`;
  }

  #change(value: string): TemplateResult | string {
    const row = this.#changes?.get(value);
    const { count, delta, share } = this.formats;
    if (row === undefined) return html`<span class="muted">–</span>`;
    if (row.before === null) return html`<span class="muted">new</span>`;
    const change = row.delta[this.#main];
    const direction = change > 0n ? "up" : change < 0n ? "down" : "muted";
    if (this.unit === "percent") {
      return html`<span class="muted" title=${count(row.before[this.#main])}>${share(
        this.#rate(this.#columns[0], row.before, value, this.#wholeBefore),
      )}</span>`;
    }
    return html`<span class=${direction} title="${count(row.before[this.#main])} last week">${delta(change)}</span>`;
  }

  readonly #showAll = () => {
    this.#isWhole = true;
    this.requestUpdate();
  };

  readonly #scrolled = ({ currentTarget }: Event) => {
    const from = this.#fromAt((currentTarget as HTMLElement).scrollTop);
    if (from === this.#from) return;
    this.#from = from;
    this.requestUpdate();
  };

  /** The first row in the document if the table is scrolled by so many pixels. */
  #fromAt(scrollTop: number): number {
    return Math.max(0, Math.floor((Math.floor(scrollTop / ROW_PX) - 15) / 10) * 10);
  }
}

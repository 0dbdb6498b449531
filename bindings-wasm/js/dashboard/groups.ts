// A ranked table of groups: what `<tallyfold-destinations>` and `<tallyfold-reasons>` have in common.

import { type CSSResultGroup, css, html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { type ComparisonRow, compare } from "../src/tables/comparison.js";
import type { Counts, Row } from "../src/tables/counts.js";
import type { CountTable } from "../src/tables/table.js";
import type { CountName, Dimension, RankBy } from "../src/values/types.js";
import { barsOf, type Trends, trendsOf } from "./trends.js";
import { DIMENSIONS, emptyState, View, valueText } from "./view.js";

/** A column of numbers: the count that it shows, and what rows are ranked by when it is chosen. */
interface Column {
  readonly name: CountName;
  readonly label: string;
  readonly share: "error" | "filter" | "delivery";
  readonly byCount: RankBy;
  readonly byShare: RankBy;
  /** Shares of what was delivered fall as shares of what failed rise. */
  readonly isTurned?: boolean;
}

const COLUMNS: readonly Column[] = [
  { name: "errors", label: "Failed", share: "error", byCount: "errors", byShare: "error_rate" },
  {
    name: "filtered",
    label: "Filtered",
    share: "filter",
    byCount: "filtered",
    byShare: "filtered_rate",
  },
  {
    name: "success",
    label: "Delivered",
    share: "delivery",
    byCount: "success",
    byShare: "error_rate",
    isTurned: true,
  },
];

type Group = Row<Dimension>;

/** How many rows are shown at first. */
const FIRST = 12;
/** From so many rows on, only those in sight are in the document. */
const MANY = 150;
const ROW_PX = 33;
/** A series of more rows than this is not drawn. */
const MOST_POINTS = 4_000_000;

/** Rows of one dimension, ranked, with a search and a trend. */
export abstract class Groups extends View {
  static override styles: CSSResultGroup = [View.styles, css`
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
    thead th {
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
      content: " ↓";
    }
    thead [aria-sort="ascending"] button::after {
      content: " ↑";
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
    tfoot th,
    tfoot td {
      position: sticky;
      inset-block-end: 0;
      background: var(--surface);
      border-block-start: 1px solid var(--line-strong);
      border-block-end: 0;
      font-weight: 600;
      color: var(--text);
      font-size: var(--body);
    }
    .rate {
      display: grid;
      grid-template-columns: 1fr auto;
      align-items: center;
      gap: var(--s2);
    }
    .rate i {
      display: block;
      height: 6px;
      border-radius: 3px;
      background: var(--line);
      overflow: hidden;
    }
    .rate i::before {
      content: "";
      display: block;
      width: calc(var(--part) * 100%);
      height: 100%;
      border-radius: 3px;
      background: var(--failed);
    }
    .reasons .rate i::before {
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
    .foot {
      display: flex;
      flex-wrap: wrap;
      gap: var(--s1) var(--s4);
      padding: var(--s2) var(--s4) var(--s3);
      color: var(--muted);
      font-size: var(--small);
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
        min-width: 660px;
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
  `];

  /** The dimension of the rows. */
  protected abstract readonly dimension: Dimension;
  /** Whether the table stands next to another one, and has fewer columns. */
  protected readonly isCompact: boolean = false;

  #groups: CountTable | undefined;
  #rows: readonly Group[] = [];
  #changes: ReadonlyMap<string, ComparisonRow<Dimension>> | undefined;
  #trends: Trends | undefined;
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
    if (this.#groups === undefined) return nothing;
    const { sort } = this.state;
    const rank = sort === undefined ? ", most lost events first" : "";
    return `${this.formats.count(this.#groups.length)}${rank}`;
  }

  protected override tools(): unknown {
    if (!this.#groups || this.#groups.length <= 5) return nothing;
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
    const isOther = ["table", "where", "by"].some((name) => changed.has(name));
    if (isOther) this.#group();
    if (isOther || changed.has("tableBefore")) this.#compare();
    const ranked = JSON.stringify([this.unit, this.state["sort"], this.state["q"]]);
    if (isOther || changed.has("tableBefore") || this.#ranked !== ranked) {
      this.#ranked = ranked;
      this.#rank();
    }
  }

  #group(): void {
    this.#groups = this.shown?.groupBy(...([this.dimension] as never[])) as CountTable | undefined;
    this.#trends = undefined;
    this.#from = 0;
  }

  /** The same time a week before, if all of it is known. */
  #compare(): void {
    this.#changes = undefined;
    const { shownBefore: before, shown, range } = this;
    if (!this.#groups || !before || !shown || !range) return;
    if (!before.dimensions.includes(this.dimension as never)) return;
    if (shown.gaps(range).length > 0 || before.gaps().length > 0) return;
    const earlier = before.groupBy(...([this.dimension] as never[])) as CountTable;
    const changes = new Map<string, ComparisonRow<Dimension>>();
    for (const row of compare(earlier, this.#groups) as Iterable<ComparisonRow<Dimension>>) {
      changes.set(row.dimensions[this.dimension], row);
    }
    this.#changes = changes;
  }

  #rank(): void {
    const groups = this.#groups as CountTable<Dimension> | undefined;
    if (groups === undefined) {
      this.#rows = [];
      return;
    }
    const [key, direction] = (this.state["sort"] ?? "").split("-");
    const column = COLUMNS.find(({ name }) => name === key);
    let rows: Group[];
    if (key === "name") rows = [...groups] as Group[];
    else {
      const turned = column?.isTurned && this.unit === "percent";
      const by = column?.[this.unit === "percent" ? "byShare" : "byCount"] ?? "undelivered";
      rows = groups.top(groups.length, { by }) as Group[];
      if (turned) rows.reverse();
    }
    if (direction === "up") rows.reverse();
    const sought = (this.state["q"] ?? "").toLocaleLowerCase();
    this.#rows = sought
      ? rows.filter((row) => row.dimensions[this.dimension].toLocaleLowerCase().includes(sought))
      : rows;
    this.#from = 0;
  }

  protected override content(): TemplateResult {
    const rows = this.#rows;
    if (rows.length === 0) {
      return emptyState("Nothing found", html`Nothing contains <bdi>“${this.state["q"]?.slice(0, 100)}”</bdi>.`);
    }
    const isMany = rows.length > MANY && this.#isWhole;
    const limit = this.#isWhole ? rows.length : Math.min(rows.length, this.isCompact ? 8 : FIRST);
    const from = isMany ? this.#from : 0;
    const to = isMany ? Math.min(from + 60, limit) : limit;
    const seen = rows.slice(from, to);
    const trends = this.#trendsOf(seen);
    const most = this.#mostShare();
    const classes = `${isMany ? "many" : ""} ${this.isCompact ? "compact" : "wide"} ${this.localName.replace("tallyfold-", "")}`;
    const space = (px: number) =>
      px > 0 ? html`<tr aria-hidden="true" style="height:${px}px"></tr>` : nothing;
    return html`
      <div
        class="scroll ${classes}"
        role="region"
        aria-label=${this.heading}
        tabindex="0"
        @scroll=${isMany ? this.#scrolled : nothing}
      >
        <table aria-rowcount=${rows.length + 2} part="table">
          <colgroup>
            <col class="name" />
            ${COLUMNS.map(() => html`<col class="number" />`)}
            <col class="share" />
            ${this.isCompact ? nothing : html`<col class="number" />`}
            <col class="trend" />
          </colgroup>
          <thead>
            <tr>
              ${this.#header("name", DIMENSIONS[this.dimension].one)}
              ${COLUMNS.map(({ name, label }) => this.#header(name, label))}
              <th scope="col">${this.#shareLabel()}</th>
              ${this.isCompact ? nothing : html`<th scope="col">Last week</th>`}
              <th scope="col">Trend</th>
            </tr>
          </thead>
          <tbody>
            ${space(from * ROW_PX)}
            ${repeat(
              seen,
              (row) => row.dimensions[this.dimension],
              (row, at) => this.#row(row, from + at, trends, most),
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
    `;
  }

  #header(key: string, label: string): TemplateResult {
    const [sorted, direction] = (this.state["sort"] ?? "").split("-");
    const isUp = (direction === "up") !== (key === "name");
    const sort = sorted === key ? (isUp ? "ascending" : "descending") : nothing;
    return html`<th scope="col" aria-sort=${sort}>
      <button type="button" @click=${() => this.#sort(key)}>${label}</button>
    </th>`;
  }

  /** Down, then up, then as it was. */
  #sort(key: string): void {
    const { sort } = this.state;
    const next = sort === key ? `${key}-up` : sort === `${key}-up` ? undefined : key;
    this.tell({ sort: next });
  }

  #row(row: Group, at: number, trends: Trends | undefined, most: number): TemplateResult {
    const value = row.dimensions[this.dimension];
    return html`<tr aria-rowindex=${at + 2}>
      <th scope="row">
        <button type="button" class="link" @click=${() => this.select(this.dimension, value)}>
          ${valueText(value, this.dimension)}
        </button>
      </th>
      ${COLUMNS.map((column) => this.#cell(column, row))}
      <td>${this.#share(row, most)}</td>
      ${this.isCompact ? nothing : html`<td>${this.#change(value)}</td>`}
      <td>${barsOf(trends?.get(value), trends?.marks, this.drawn)}</td>
    </tr>`;
  }

  #total(): TemplateResult {
    const totals = (this.#groups as CountTable).totals;
    return html`<tr aria-rowindex=${this.#rows.length + 2}>
      <th scope="row">All ${DIMENSIONS[this.dimension].many.toLowerCase()}</th>
      ${COLUMNS.map((column) => this.#cell(column, totals))}
      <td>${this.#complement(totals)}</td>
      ${this.isCompact ? nothing : html`<td></td>`}
      <td></td>
    </tr>`;
  }

  /** What the trend shows. */
  protected readonly drawn: "errors" | "filtered" = "errors";

  #cell({ name, share }: Column, counts: Counts): TemplateResult {
    const { count, share: percent } = this.formats;
    const text = this.unit === "percent" ? percent(counts.rates[share]) : count(counts[name]);
    const other = this.unit === "percent" ? count(counts[name]) : percent(counts.rates[share]);
    const look = counts[name] === 0n ? "zero" : name === "errors" ? "failed" : name === "filtered" ? "filtered" : "";
    return html`<td class=${look} title=${other} data-count=${name}>${text}</td>`;
  }

  #shareLabel(): string {
    const what = this.drawn === "errors" ? "Failed" : "Filtered";
    return this.unit === "percent" ? `${what}, events` : `${what}, share`;
  }

  #complement(counts: Counts): string {
    const { count, share } = this.formats;
    if (this.unit === "percent") return count(counts[this.drawn]);
    return share(this.drawn === "errors" ? counts.rates.error : counts.rates.filter);
  }

  #share(row: Group, most: number): TemplateResult {
    const share = this.drawn === "errors" ? row.rates.error : row.rates.filter;
    const part = share === null || most === 0 ? 0 : Math.max(share / most, share > 0 ? 0.02 : 0);
    return html`<span class="rate"><i style="--part:${part}"></i><span>${this.#complement(row)}</span></span>`;
  }

  /** The largest share of all rows: the length of the longest bar. */
  #mostShare(): number {
    let most = 0;
    for (const { rates } of this.#rows.slice(0, MANY)) {
      most = Math.max(most, (this.drawn === "errors" ? rates.error : rates.filter) ?? 0);
    }
    return most;
  }

  #change(value: string): TemplateResult | string {
    const row = this.#changes?.get(value);
    const { count, delta, share } = this.formats;
    if (row === undefined) return html`<span class="muted">–</span>`;
    if (row.before === null) return html`<span class="muted">new</span>`;
    const change = row.delta[this.drawn];
    const direction = change > 0n ? "up" : change < 0n ? "down" : "muted";
    if (this.unit === "percent") {
      const rates = row.before.rates;
      return html`<span class="muted" title=${count(row.before[this.drawn])}>${share(
        this.drawn === "errors" ? rates.error : rates.filter,
      )}</span>`;
    }
    return html`<span class=${direction} title="${count(row.before[this.drawn])} last week">${delta(change)}</span>`;
  }

  #trendsOf(seen: readonly Group[]): Trends | undefined {
    const { shown, range } = this;
    if (!shown || !range || shown.length * shown.windows.length > MOST_POINTS) return undefined;
    const values = seen.map((row) => row.dimensions[this.dimension]);
    this.#trends ??= trendsOf(shown, this.dimension, range);
    this.#trends.draw(values);
    return this.#trends;
  }

  readonly #showAll = () => {
    this.#isWhole = true;
    this.requestUpdate();
  };

  readonly #scrolled = ({ currentTarget }: Event) => {
    const first = Math.floor((currentTarget as HTMLElement).scrollTop / ROW_PX);
    const from = Math.max(0, Math.floor((first - 15) / 10) * 10);
    if (from === this.#from) return;
    this.#from = from;
    this.requestUpdate();
  };
}

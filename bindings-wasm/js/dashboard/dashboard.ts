// `<tallyfold-dashboard>`: all views, for one range, one cluster and the chosen rows.

import {
  css,
  html,
  type LitElement,
  noChange,
  nothing,
  type PropertyDeclarations,
  type PropertyValues,
  type TemplateResult,
} from "lit";
import { Directive, directive, type ElementPart } from "lit/directive.js";
import { guard } from "lit/directives/guard.js";
import { TallyfoldError } from "../src/values/error.js";
import type { Dimension, Window } from "../src/values/types.js";
import { isOwn, type Place, placeIn, textOf } from "./address.js";
import { barStyles, crumbs, segments, unitSwitch } from "./bar.js";
import { DIMENSIONS } from "./base.js";
import type { DashboardCluster, Where } from "./elements.js";
import { isZone, languageOf } from "./formats.js";
import { invalid, type PageError } from "./given.js";
import { need } from "./lazy.js";
import { picker, pickerStyles } from "./picker.js";
import { isCompared, rangeOf } from "./range.js";
import { Reading, SLOW_MS } from "./reading.js";
import { OwnRules } from "./rules.js";
import { parts, tokens } from "./styles.js";
import { turnOf } from "./turns.js";
import {
  failureState,
  failureText,
  type Load,
  loadOf,
  mistakeState,
  NAMES,
  skeleton,
  visible,
} from "./view.js";

/** The pages of the dashboard, and the elements that each page loads on demand. */
const PAGES: Readonly<Record<string, { label: string; needs: readonly string[] }>> = {
  overview: { label: "Overview", needs: ["tallyfold-cause", "tallyfold-trend"] },
  time: { label: "Over time", needs: ["tallyfold-heatmap", "tallyfold-cause", "tallyfold-trend"] },
  changes: {
    label: "Changes",
    needs: ["tallyfold-values", "tallyfold-silent", "tallyfold-corrections"],
  },
  alerts: { label: "Alerts", needs: ["tallyfold-budget", "tallyfold-timeline"] },
};

const KEEPS_TRYING = "The dashboard keeps trying.";

/** A directive that sets several properties of an element. It sets only properties that have changed. */
class Properties extends Directive {
  #last: { readonly [name: string]: unknown } = {};
  #isFirst = true;

  override render(_values: object): unknown {
    return noChange;
  }

  override update({ element }: ElementPart, [values]: [object]): unknown {
    const last = this.#last;
    this.#last = { ...values };
    if (element.matches(":not(:defined)")) {
      // If a property was set before the element is defined, the element's first update would set it again, and would
      // replace a later value.
      if (this.#isFirst)
        void customElements
          .whenDefined(element.localName)
          .then(() => Object.assign(element, this.#last));
      this.#isFirst = false;
      return noChange;
    }
    const changed = Object.entries(values).filter(([name, value]) => last[name] !== value);
    Object.assign(element, Object.fromEntries(changed));
    return noChange;
  }
}

const properties = directive(Properties);

/**
 * The first state of a view whose state isn't in the address. It is always the same object, so the view keeps its own state.
 */
const NO_STATE = {};

/** The value of an attribute in JSON; its text if it isn't JSON. */
function jsonOf(text: string | null): unknown {
  try {
    return JSON.parse(text ?? "[]");
  } catch {
    return text;
  }
}

function isClusters(given: unknown): given is readonly DashboardCluster[] {
  return (
    Array.isArray(given) &&
    given.every((it) => typeof it?.name === "string" && typeof it?.src === "string")
  );
}

/** The parameters of an address that belong to the page. */
function othersIn(search: string): string[] {
  const all = search.slice(1).split("&");
  return all.filter((it) => ![...new URLSearchParams(it).keys()].some(isOwn));
}

export class Dashboard extends Reading {
  static override properties: PropertyDeclarations = {
    ...Reading.properties,
    clusters: { converter: jsonOf },
    cluster: {},
    view: {},
    address: {},
    heading: {},
    rulesSrc: { attribute: "rules" },
    rules: { attribute: false },
    marked: { attribute: false },
  };

  declare clusters: readonly DashboardCluster[];
  declare cluster: string | undefined;
  declare view: string;
  declare address: "hash" | "query" | "none";
  declare heading: string;
  declare rulesSrc: string | undefined;
  declare rules: string | undefined;
  declare marked: Window | undefined;

  #views: Readonly<Record<string, string>> = {};
  #defaults: Omit<Place, "views"> = {};
  /** The address when the element was removed from the page. */
  #left: string | undefined;
  readonly #rules = new OwnRules(this, (error) => void this.tellError(error));
  /** Resolves when the address is written. */
  #written: Promise<void> = Promise.resolve();
  /** How the views load counts. Views get the same function until the server changes. */
  #loadFrom: { readonly src: string; readonly load: Load } | undefined;

  constructor() {
    super();
    this.clusters = [];
    this.view = "overview";
    this.address = "hash";
    this.heading = "Event delivery";
  }

  static override styles = [
    tokens,
    parts,
    barStyles,
    pickerStyles,
    css`
      :host {
        container-type: inline-size;
        background: var(--background);
        min-height: 320px;
      }
      .page {
        display: grid;
        grid-template-columns: minmax(0, 1fr);
        gap: var(--s4);
        max-width: 1760px;
        margin-inline: auto;
        padding: var(--s4) var(--s5) var(--s5);
      }
      .top {
        display: flex;
        flex-wrap: wrap;
        align-items: center;
        gap: var(--s2) var(--s3);
      }
      .top h1 {
        margin: 0;
        font-size: 20px;
        line-height: 28px;
        font-weight: 650;
        letter-spacing: -0.01em;
      }
      .top .tools {
        display: flex;
        flex-wrap: wrap;
        align-items: center;
        gap: var(--s2);
        margin-inline-start: auto;
        min-width: 0;
      }
      [role="tablist"] {
        display: flex;
        gap: var(--s4);
        border-block-end: 1px solid var(--line);
        overflow-x: auto;
        scrollbar-width: none;
      }
      [role="tab"] {
        min-height: 36px;
        padding: 6px 2px;
        border: 0;
        border-block-end: 2px solid transparent;
        border-radius: 0;
        background: none;
        color: var(--muted);
        white-space: nowrap;
      }
      [role="tab"]:hover {
        color: var(--text);
        background: none;
      }
      [role="tab"]:focus-visible {
        outline-offset: -3px;
      }
      [role="tab"][aria-selected="true"] {
        color: var(--text);
        border-color: var(--accent);
        font-weight: 600;
      }
      .notice {
        display: flex;
        flex-wrap: wrap;
        align-items: center;
        gap: var(--s1) var(--s3);
        padding: var(--s2) var(--s4);
        background: var(--failed-soft);
        border: 1px solid color-mix(in srgb, var(--failed) 40%, transparent);
        border-radius: var(--radius);
      }
      .notice p {
        flex: 1 1 320px;
        min-width: 0;
        overflow-wrap: anywhere;
      }
      .notice.mark {
        background: var(--accent-soft);
        border-color: color-mix(in srgb, var(--accent) 40%, transparent);
        color: var(--text);
        font-size: var(--body);
      }
      .notice.mark::before {
        content: none;
      }
      .status {
        display: flex;
        flex-wrap: wrap;
        align-items: center;
        gap: var(--s1) var(--s4);
        min-height: 20px;
        color: var(--muted);
        font-size: var(--small);
      }
      .status .reading {
        display: inline-flex;
        align-items: center;
        gap: var(--s2);
      }
      progress {
        appearance: none;
        width: 120px;
        height: 6px;
        border: 0;
        border-radius: var(--radius-bar);
        overflow: hidden;
        background: var(--line);
      }
      progress::-webkit-progress-bar {
        background: var(--line);
      }
      progress::-webkit-progress-value {
        background: var(--accent);
      }
      progress::-moz-progress-bar {
        background: var(--accent);
      }
      .grid {
        display: grid;
        grid-template-columns: minmax(0, 1fr);
        gap: var(--s4);
        align-items: start;
      }
      .grid > * {
        min-width: 0;
      }
      .grid > :not(:defined):empty {
        display: none;
      }
      .stale {
        opacity: 0.6;
      }
      select {
        max-width: 220px;
      }
      @container (min-width: 1480px) {
        .grid .split {
          display: grid;
          grid-template-columns: minmax(0, 1.75fr) minmax(0, 1fr);
          gap: var(--s4);
          align-items: start;
        }
      }
      .split {
        display: grid;
        gap: var(--s4);
        grid-template-columns: minmax(0, 1fr);
      }
      @container (max-width: 860px) {
        .top .tools {
          order: 1;
          width: 100%;
        }
        .top .refresh {
          margin-inline-start: auto;
        }
      }
      @container (max-width: 560px) {
        .page {
          padding: var(--s3);
          gap: var(--s3);
        }
        .top .tools,
        .group {
          margin-inline-start: 0;
          width: 100%;
        }
        [role="tablist"] {
          gap: var(--s3);
        }
        .picker {
          width: 100%;
        }
        .picker > details {
          flex: 1;
        }
        .picker > details > summary {
          width: 100%;
          justify-content: center;
        }
        .group .segments {
          max-width: 100%;
          overflow-x: auto;
        }
      }
    `,
  ];

  get #clusters(): readonly DashboardCluster[] {
    return isClusters(this.clusters) ? this.clusters : [];
  }

  /** The cluster that is shown: the first one if none is chosen. */
  get #cluster(): DashboardCluster | undefined {
    const all = this.#clusters;
    return this.cluster ? all.find(({ name }) => name === this.cluster) : all[0];
  }

  /** The path of the server for web apps. */
  protected override get server(): string {
    return this.#cluster?.src ?? this.src;
  }

  protected override get mistakeNow(): PageError | undefined {
    if (this.clusters && !isClusters(this.clusters)) {
      return invalid("clusters", `want JSON such as [{"name": "eu", "src": "/eu"}]`);
    }
    const names = this.#clusters.map(({ name }) => name);
    if (names.length > 0 && !this.#cluster) {
      const text = visible(this.cluster ?? "", 100);
      return invalid("cluster", `there is no cluster “${text}”: want ${names.join(", ")}`);
    }
    return super.mistakeNow;
  }

  protected override get asked(): readonly string[] {
    return [...super.asked, "clusters", "cluster"];
  }

  get #load(): Load {
    if (this.#loadFrom?.src !== this.server) {
      this.#loadFrom = { src: this.server, load: loadOf(this.server) };
    }
    return this.#loadFrom.load;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    // While the element was not on the page, the address may have changed.
    if (this.hasUpdated && location.href !== this.#left) this.#arrive();
    addEventListener("popstate", this.#arrive);
    addEventListener("hashchange", this.#arrive);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#left = location.href;
    removeEventListener("popstate", this.#arrive);
    removeEventListener("hashchange", this.#arrive);
  }

  /** Shows what the page has set, unless the address contains another state. */
  #begin(): void {
    const { cluster, period, by, unit, zone, view, where, marked } = this;
    const rest = { ...(cluster && { cluster }), ...(marked && { marked }) };
    this.#defaults = { period, by, unit, zone, view, where, ...rest };
    this.#arrive();
  }

  /** Shows the state that the address contains. */
  readonly #arrive = (): void => {
    if (this.address === "none") return;
    const text = this.address === "hash" ? location.hash.slice(1) : location.search;
    const place = { ...this.#defaults, ...placeIn(text) };
    const { cluster, period, by, unit, zone, view, where, marked } = place;
    Object.assign(this, { cluster, period, by, unit, zone, view, where, marked });
    this.#views = place.views;
    this.requestUpdate();
  };

  /** Changes what is shown, and updates the address. */
  #go(change: Partial<Omit<Place, "views">>): void {
    Object.assign(this, change);
    // A search is for the rows in which it was typed.
    if (["cluster", "where", "by"].some((name) => name in change)) this.#forget(/\.q$/);
    this.requestUpdate();
    // Browsers take long to change the address, so the page is drawn first.
    this.#written = turnOf("later").then(() => this.#writeAddress("push"));
  }

  /** Moves the focus after rendering, without waiting for the address. The focused button may be gone by then. */
  #focus(selector: string, options: FocusOptions = { preventScroll: true }): void {
    void super.getUpdateComplete().then(() => {
      this.renderRoot.querySelector<HTMLElement>(selector)?.focus(options);
    });
  }

  /** An update is complete when the address matches what is shown. */
  protected override async getUpdateComplete(): Promise<boolean> {
    const isComplete = await super.getUpdateComplete();
    await this.#written;
    return isComplete;
  }

  #writeAddress(how: "push" | "replace"): void {
    if (this.address === "none" || !this.isConnected) return;
    const { cluster, period, by, unit, zone, view, where, marked } = this;
    const place = { period, by, unit, zone, view, where, views: this.#views };
    const rest = { ...(cluster && { cluster }), ...(marked && { marked }) };
    const text = textOf({ ...place, ...rest }, this.#defaults);
    const url = new URL(location.href);
    if (this.address === "hash") url.hash = text;
    else url.search = [...othersIn(url.search), text].filter(Boolean).join("&");
    if (url.href === location.href) return;
    if (how === "push") history.pushState(null, "", url);
    else history.replaceState(null, "", url);
  }

  /** Updates in a task of its own, so that the task of a click stays short. */
  protected override async scheduleUpdate(): Promise<void> {
    if (this.hasUpdated) await turnOf("dashboard");
    super.scheduleUpdate();
  }

  protected override willUpdate(changed: PropertyValues): void {
    // Until the first update, the element lacks the properties that a page has set before it was defined.
    if (!this.hasUpdated) this.#begin();
    if (!Object.hasOwn(PAGES, this.view)) this.view = "overview";
    if (changed.has("rulesSrc")) void this.#rules.read();
    if (changed.has("rules")) this.#rules.reset();
    super.willUpdate(changed);
  }

  protected override async shows(): Promise<void> {
    await super.shows();
    const views = this.renderRoot.querySelectorAll<LitElement>(".grid > *, .grid > .split > *");
    await Promise.all(
      Array.from(views, async (it) => {
        // Some elements are loaded when they are first used.
        if (await need(this.renderRoot, it.localName)) await it.updateComplete;
      }),
    );
  }

  override render(): TemplateResult {
    const range = this.range ?? rangeOf(this.period, Date.now());
    return html`<div
      class="page"
      part="page"
      @tallyfold-select=${this.#selected}
      @tallyfold-brush=${this.#brushed}
      @tallyfold-unmark=${() => this.#go({ marked: undefined })}
      @tallyfold-state=${this.#stated}
      @tallyfold-open=${this.#opened}
      @tallyfold-retry=${() => void this.refresh()}
      @tallyfold-error=${this.#rules.failed}
      @tallyfold-rules=${this.#rules.typed}
    >
      <header class="top" part="header">
        <h1 part="heading">${this.heading}</h1>
        ${this.#clusterSwitch()}
        <div class="tools">
          ${
            range &&
            picker({
              period: this.period,
              range: rangeOf(this.period, Date.now()) ?? range,
              formats: this.formats,
              zone: this.zone,
              nowMs: Date.now(),
              choose: (period) => this.#go({ period, marked: undefined }),
            })
          }
          ${unitSwitch(this.unit, (unit) => this.#go({ unit }))}
          ${segments("Time zone", this.zone || "UTC", this.#zones, (zone) => this.#go({ zone }))}
        </div>
        <button type="button" class="refresh" aria-label="Refresh" ?disabled=${this.isReading} @click=${() =>
          void this.refresh()}>${REFRESH}</button>
      </header>
      ${this.#tabs()} ${this.#bar()}
      ${this.#notices()}
      <div
        class="grid ${this.isReading && this.table && this.wanted?.start !== this.range?.start ? "stale" : ""}"
        role="tabpanel"
        id="panel"
        aria-labelledby=${`tab-${this.view}`}
        tabindex="-1"
      >
        ${this.#body()}
      </div>
      <footer class="status" part="status">${guard(
        [this.table, this.range, this.progress, this.readAt, this.period, this.live, this.formats],
        () => this.#status(),
      )}</footer>
    </div>`;
  }

  /** The time zones to choose from: UTC, the browser's, and the one that the page or the address names. */
  get #zones(): (readonly [string, string])[] {
    const named = [this.#defaults.zone, this.zone].filter((it) => it && isZone(it)) as string[];
    const all = [...new Set(["UTC", "local", ...named])];
    return all.map((zone) => [zone, zone === "local" ? "Local" : zone]);
  }

  #clusterSwitch(): TemplateResult | typeof nothing {
    const clusters = this.#clusters;
    const current = this.#cluster?.name;
    if (clusters.length < 2 && (current || clusters.length === 0)) return nothing;
    const go = (cluster: string) => this.#go({ cluster, where: {}, marked: undefined });
    if (clusters.length <= 4) {
      const names = clusters.map(({ name }) => [name, name] as const);
      return segments("Cluster", current ?? "", names, go);
    }
    return html`<select
      aria-label="Cluster"
      @change=${({ target }: Event) => go((target as HTMLSelectElement).value)}
    >
      ${current === undefined ? html`<option selected disabled>Choose</option>` : nothing}
      ${clusters.map(
        ({ name }) => html`<option value=${name} .selected=${name === current}>${name}</option>`,
      )}
    </select>`;
  }

  #tabs(): TemplateResult {
    const names = Object.keys(PAGES);
    const move = (event: KeyboardEvent) => {
      const keys: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };
      const way = (keys[event.key] ?? 0) * (this.matches(":dir(rtl)") ? -1 : 1);
      const edge = { Home: 0, End: names.length - 1 }[event.key];
      if (way === 0 && edge === undefined) return;
      event.preventDefault();
      const at = edge ?? (names.indexOf(this.view) + way + names.length) % names.length;
      this.#go({ view: names[at] as string });
      this.#focus("[aria-selected=true]", {});
    };
    return html`<div role="tablist" aria-label="Pages" @keydown=${move}>
      ${names.map(
        (name) => html`<button
          type="button"
          role="tab"
          id=${`tab-${name}`}
          aria-controls="panel"
          aria-selected=${name === this.view}
          tabindex=${name === this.view ? 0 : -1}
          @click=${() => this.#go({ view: name })}
        >
          ${PAGES[name]?.label}
        </button>`,
      )}
    </div>`;
  }

  #bar(): TemplateResult {
    const others = NAMES.filter((name) => this.where[name] === undefined || name === this.by);
    return html`<div class="bar">
      ${crumbs(this.where, (where) => {
        const isAll = Object.keys(where).length === 0;
        this.#go({ where, by: isAll ? "integration" : this.#free(where) });
        this.#focus(".crumbs");
      })}
      <div class="group">
        ${segments(
          "Group by",
          this.by,
          others.map((name) => [name, DIMENSIONS[name].many] as const),
          (by) => this.#go({ by: by as Dimension }),
        )}
      </div>
    </div>`;
  }

  /** The dimension to compare: another one if `where` restricts the current one. */
  #free(where: Where): Dimension {
    return where[this.by] ? (NAMES.find((name) => !where[name]) ?? this.by) : this.by;
  }

  readonly #selected = ({ detail }: CustomEvent<{ dimension: Dimension; value: string }>): void => {
    const where = { ...this.where, [detail.dimension]: [detail.value] };
    this.#forget(/\.sort$/);
    this.#go({ where, by: this.#free(where) });
  };

  /** Drops the states of views whose names match. */
  #forget(names: RegExp): void {
    const kept = Object.entries(this.#views).filter(([name]) => !names.test(name));
    this.#views = Object.fromEntries(kept);
  }

  /** Opens the page “Over time” with the range of a change marked, and explains the change. */
  readonly #opened = ({ detail }: CustomEvent<Pick<Place, "marked" | "by" | "views">>): void => {
    const { views, ...place } = detail;
    this.#views = views;
    this.#go({ ...place, view: "time" });
  };

  readonly #brushed = ({ detail }: CustomEvent<Window>): void => {
    this.#go({ marked: { start: detail.start, end: detail.end } });
  };

  readonly #stated = (event: CustomEvent<Record<string, string | undefined>>): void => {
    const view = (event.target as HTMLElement).localName.replace("tallyfold-", "");
    const views = { ...this.#views };
    for (const [name, value] of Object.entries(event.detail)) {
      if (value === undefined) delete views[`${view}.${name}`];
      else views[`${view}.${name}`] = value;
    }
    this.#views = views;
    // The view already shows its new state, so the dashboard can update later.
    this.#written = turnOf("later").then(() => {
      this.requestUpdate();
      this.#writeAddress("replace");
    });
  };

  #state(view: string): Readonly<Record<string, string | undefined>> {
    const own = Object.entries(this.#views)
      .filter(([name]) => name.startsWith(`${view}.`))
      .map(([name, value]) => [name.slice(view.length + 1), value] as const);
    return Object.fromEntries(own);
  }

  #notices(): TemplateResult {
    const { marked } = this;
    const { span, zoneAt } = this.formats;
    return html`${
      this.isSlow && this.table === undefined && this.error === undefined
        ? html`<div class="notice mark" role="status">
            <p>No counts have arrived for ${SLOW_MS / 1_000} seconds: the service does not answer, or is slow. ${KEEPS_TRYING}</p>
          </div>`
        : nothing
    }${
      this.error !== undefined && this.table !== undefined
        ? html`<div class="notice" role="alert">
            <p>${this.#partialText()}</p>
            <button type="button" @click=${() => void this.refresh()}>Try again</button>
          </div>`
        : nothing
    }${
      marked
        ? html`<div class="notice mark" role="status">
            <p>Marked: ${span(marked.start, marked.end)} ${zoneAt(marked.start)}</p>
            <button
              type="button"
              @click=${() => {
                this.#go({ period: `${marked.start}/${marked.end}`, marked: undefined });
                this.#focus("#panel");
              }}
            >
              Zoom in
            </button>
            ${
              this.view === "time"
                ? nothing
                : html`<button type="button" @click=${() => this.#go({ view: "time" })}>What changed?</button>`
            }
            <button
              type="button"
              class="plain"
              @click=${() => {
                this.#go({ marked: undefined });
                this.#focus("#panel");
              }}
            >
              Clear
            </button>
          </div>`
        : nothing
    }`;
  }

  /** What could not be read, and why. */
  #partialText(): unknown {
    const { text } = failureText(this.error);
    const failures = TallyfoldError.is(this.error) ? this.error.failures : [];
    const gaps = TallyfoldError.is(this.error) ? this.error.gaps : [];
    const { span, zoneAt, count } = this.formats;
    const first = gaps[0];
    const where = first
      ? `${span(first.start, first.end)} ${zoneAt(first.start)}${gaps.length > 1 ? " and more" : ""} is missing from all numbers here. `
      : "";
    const how = failures.length > 0 ? `${count(failures.length)} windows could not be read. ` : "";
    return html`<strong>Some counts are missing.</strong> ${how}${where}${
      this.keepsTrying ? `${KEEPS_TRYING} ` : ""
    }<span class="muted">${text}</span>`;
  }

  #body(): TemplateResult | typeof nothing {
    if (this.mistake) return html`<section class="card">${mistakeState(this.mistake)}</section>`;
    // After "Try again", there is no error while counts are read, so the views show that they are loading.
    if (this.table === undefined && this.error !== undefined) {
      const next = this.keepsTrying ? KEEPS_TRYING : nothing;
      return html`<section class="card">${failureState(this.error, () => void this.refresh(), next)}</section>`;
    }
    if (this.server === "") {
      return html`<section class="card">
        <div class="state"><strong>No server</strong><p>Set the attribute src to the path of the server for web apps.</p></div>
      </section>`;
    }
    // Further elements are loaded when there are counts, so that they don't delay the first view.
    if (this.table !== undefined) {
      for (const name of PAGES[this.view]?.needs ?? []) void need(this.renderRoot, name);
    }
    return this.#pages[this.view]?.() ?? nothing;
  }

  readonly #pages: Readonly<Record<string, () => TemplateResult>> = {
    overview: () => html`
      <tallyfold-pipeline
        ${this.#given("pipeline", { ingestion: this.ingestion })}
        exportparts="view, header, title"
      ></tallyfold-pipeline>
      ${
        this.range && isCompared(this.range)
          ? html`<tallyfold-cause
              ${this.#given("cause")}
              exportparts="view, header, title"
            ></tallyfold-cause>`
          : nothing
      }
      ${this.#trend()}
      <div class="split">
        <tallyfold-destinations
          ${this.#given("destinations")}
          exportparts="view, header, title, table"
        ></tallyfold-destinations>
        <tallyfold-reasons
          ${
            this.by === "reason"
              ? this.#given(undefined, { by: "integration", of: "integration", state: NO_STATE })
              : this.#given("reasons", { by: "reason", of: "reason" })
          }
          exportparts="view, header, title, table"
        ></tallyfold-reasons>
      </div>
    `,
    time: () => html`
      ${this.#trend()}
      <tallyfold-heatmap
        ${this.#given("heatmap", { marked: this.marked })}
        exportparts="view, header, title"
      ></tallyfold-heatmap>
      ${
        this.marked
          ? html`<tallyfold-cause
              ${this.#given("cause", { marked: this.marked })}
              exportparts="view, header, title"
            ></tallyfold-cause>`
          : nothing
      }
    `,
    changes: () => html`
      <tallyfold-values ${this.#given("values")} exportparts="view, header, title"></tallyfold-values>
      <tallyfold-silent ${this.#given("silent")} exportparts="view, header, title"></tallyfold-silent>
      <tallyfold-corrections
        ${this.#given("corrections", { server: this.server })}
        exportparts="view, header, title"
      ></tallyfold-corrections>
    `,
    alerts: () =>
      this.#rulesState() ??
      html`
      <tallyfold-budget
        ${this.#given("budget", { rules: this.#rules.shown })}
        exportparts="view, header, title"
      ></tallyfold-budget>
      <tallyfold-timeline
        ${this.#given("timeline", { rules: this.#rules.shown })}
        exportparts="view, header, title"
      ></tallyfold-timeline>
    `,
  };

  /** What is shown instead of budgets and alerts while the rules file is being read, or if it can't be read. */
  #rulesState(): TemplateResult | undefined {
    const { error, isRead } = this.#rules;
    if (isRead) return undefined;
    const again = () => void this.#rules.read();
    return html`<section class="card">${error ? failureState(error, again) : skeleton()}</section>`;
  }

  #trend(): TemplateResult {
    return html`<tallyfold-trend
      ${this.#given("trend", { marked: this.marked })}
      exportparts="view, header, title"
    ></tallyfold-trend>`;
  }

  /** The properties of a view. Without a name, the view gets no state from the address. */
  #given(view: string | undefined, more: object = {}): unknown {
    return properties({
      table: this.table,
      tableBefore: this.tableBefore,
      range: this.range,
      query: this.query,
      cluster: this.#cluster?.name,
      where: this.where,
      by: this.by,
      unit: this.unit,
      zone: this.zone,
      locale: languageOf(this),
      load: this.#load,
      loading: this.isReading,
      error: this.error,
      ...(view && { state: this.#state(view) }),
      ...more,
    });
  }

  /** Which windows are settled, provisional or missing, and when the counts were read. */
  #status(): TemplateResult {
    const table = this.table;
    const { time, zoneAt, count, span } = this.formats;
    const progress = this.progress;
    const range = this.range;
    const provisional = table?.provisional ?? [];
    const gaps = table && range ? table.gaps(range) : [];
    const [first, gap] = [provisional[0], gaps[0]];
    return html`<span role="status" class="reading"
        >${
          progress
            ? html`<progress
                  aria-label="Reading"
                  max=${Math.max(progress.planned, 1)}
                  value=${progress.done}
                ></progress
                >${
                  progress.planned > 0
                    ? html`Reading ${count(progress.done)} of ${count(progress.planned)} windows`
                    : "Reading the first windows"
                }`
            : this.readAt
              ? html`${this.table ? "Read" : "Tried"} at ${time(this.readAt)} ${zoneAt(this.readAt)}${
                  this.live && !this.period.includes("/") ? ", follows new windows" : ""
                }`
              : nothing
        }</span
      >${
        range && !isCompared(range)
          ? html`<span>Ranges of more than 7 days are not compared with the week before</span>`
          : nothing
      }${
        first
          ? html`<span class="mark provisional"
              >Provisional from ${time(first.start)} on (${count(provisional.length)} windows): these counts may still
              change and are part of all sums</span
            >`
          : table && gaps.length === 0
            ? html`<span>All windows are settled</span>`
            : nothing
      }${
        gap
          ? html`<span class="mark missing"
              >Missing: ${span(gap.start, gap.end)}${gaps.length > 1 ? html` and ${count(gaps.length - 1)} more` : ""}</span
            >`
          : nothing
      }`;
  }
}

const REFRESH = html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
  <path d="M13 8a5 5 0 1 1-1.5-3.5L13 6m0-3.5V6H9.5" />
</svg>`;

// The widget for notebooks, which anywidget loads as one self-contained module. It shows the tables that Python passes to it,
// and sends no requests.

import { css, html, LitElement, nothing, type TemplateResult } from "lit";
import { CountTable } from "../src/tables/table.js";
import type { Dimension } from "../src/values/types.js";
import { barStyles, crumbs, segments, unitSwitch } from "./bar.js";
import { DIMENSIONS } from "./base.js";
import { Destinations } from "./destinations.js";
import type { Unit, Where } from "./elements.js";
import { Heatmap } from "./heatmap.js";
import { define } from "./lazy.js";
import { Pipeline } from "./pipeline.js";
import { Reasons } from "./reasons.js";
import { parts, tokens } from "./styles.js";
import { Trend } from "./trend.js";
import { dimensionsOf } from "./view.js";

/** The model that anywidget passes to the widget: the traits of the Python object. */
interface Model {
  get(name: "delivery" | "ingestion" | "left_out"): string;
}

/** The views of one table: what was delivered, failed and filtered, and when. */
class Notebook extends LitElement {
  static override properties = {
    delivery: { attribute: false },
    ingestion: { attribute: false },
    leftOut: { attribute: false },
    by: { state: true },
    unit: { state: true },
    where: { state: true },
  };

  static override styles = [
    tokens,
    parts,
    barStyles,
    css`
      .page {
        display: grid;
        gap: var(--s4);
        padding: var(--s2) 0;
      }
      .page > * {
        min-width: 0;
      }
    `,
  ];

  declare delivery: CountTable;
  declare ingestion: CountTable | undefined;
  /** A sentence about what Python has left out; empty if it has left out nothing. */
  declare leftOut: string;
  declare by: Dimension;
  declare unit: Unit;
  declare where: Where;

  constructor() {
    super();
    this.unit = "counts";
    this.where = {};
    this.addEventListener("tallyfold-select", (event) => {
      const { dimension, value } = event.detail;
      this.#go({ ...this.where, [dimension]: [value] });
    });
  }

  /**
   * Shows only the rows that `where` selects. If it restricts the current dimension or is empty, groups by the first free one.
   */
  #go(where: Where): void {
    this.where = where;
    const isAll = Object.keys(where).length === 0;
    const free = this.#dimensions.find((name) => where[name] === undefined);
    if (free !== undefined && (isAll || where[this.by] !== undefined)) this.by = free;
  }

  get #dimensions(): Dimension[] {
    return dimensionsOf(this.delivery.dimensions);
  }

  override render(): TemplateResult {
    const dimensions = this.#dimensions;
    const { by, delivery: table, unit, where } = this;
    const { windows } = table;
    const isLong = windows.length > 1;
    const range = { start: windows[0]?.start ?? "", end: windows.at(-1)?.end ?? "" };
    const names = dimensions.map((name) => [name, DIMENSIONS[name].many] as const);
    return html`<div class="page">
      <div class="bar">
        ${crumbs(where, (kept) => this.#go(kept))}
        <div class="group">
          ${names.length > 1 ? segments("Group by", by, names, (name) => this.#compare(name)) : nothing}
          ${unitSwitch(unit, (to) => this.#count(to))}
        </div>
      </div>
      ${
        this.ingestion
          ? html`<tallyfold-pipeline
              .table=${table}
              .range=${range}
              .ingestion=${this.ingestion}
              .where=${where}
              .unit=${unit}
            ></tallyfold-pipeline>`
          : nothing
      }
      ${isLong ? html`<tallyfold-trend .table=${table} .range=${range} .where=${where} .unit=${unit} .by=${by}></tallyfold-trend>` : nothing}
      <tallyfold-destinations .table=${table} .range=${range} .where=${where} .unit=${unit} .by=${by}></tallyfold-destinations>
      ${
        dimensions.includes("reason") && by !== "reason"
          ? html`<tallyfold-reasons .table=${table} .range=${range} .where=${where} .unit=${unit}></tallyfold-reasons>`
          : nothing
      }
      ${isLong ? html`<tallyfold-heatmap .table=${table} .range=${range} .where=${where} .unit=${unit} .by=${by}></tallyfold-heatmap>` : nothing}
      ${this.leftOut ? html`<p class="muted">${this.leftOut}</p>` : nothing}
    </div>`;
  }

  #compare(name: string): void {
    this.by = name as Dimension;
  }

  #count(unit: Unit): void {
    this.unit = unit;
  }
}

define("tallyfold-destinations", Destinations);
define("tallyfold-reasons", Reasons);
define("tallyfold-pipeline", Pipeline);
define("tallyfold-heatmap", Heatmap);
define("tallyfold-trend", Trend);
define("tallyfold-notebook", Notebook);

/** The colour scheme of JupyterLab or VS Code; elsewhere, the browser's. */
function schemeOf({ body }: Document): string {
  const { jpThemeLight, vscodeThemeKind } = body.dataset;
  if (jpThemeLight !== undefined) return jpThemeLight === "true" ? "light" : "dark";
  if (vscodeThemeKind !== undefined) return /light/.test(vscodeThemeKind) ? "light" : "dark";
  return "light dark";
}

export default {
  render({ model, el }: { model: Model; el: HTMLElement }): void {
    const table = (name: "delivery" | "ingestion") => {
      const text = model.get(name);
      return text === "" ? undefined : CountTable.fromJSON(text);
    };
    const delivery = table("delivery");
    if (delivery === undefined) return;
    const view = new Notebook();
    const by = dimensionsOf(delivery.dimensions)[0] ?? "integration";
    const leftOut = model.get("left_out");
    Object.assign(view, { delivery, ingestion: table("ingestion"), leftOut, by });
    el.style.colorScheme = schemeOf(document);
    el.append(view);
  },
};

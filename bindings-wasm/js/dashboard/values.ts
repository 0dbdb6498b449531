// `<tallyfold-values>`: values that are new or have vanished since the same time a week before.

import { css, html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { compare } from "../src/tables/comparison.js";
import type { Row } from "../src/tables/counts.js";
import type { CountTable } from "../src/tables/table.js";
import type { Dimension } from "../src/values/types.js";
import { DIMENSIONS } from "./base.js";
import { marks, shared, statesOf } from "./marks.js";
import type { State } from "./slots.js";
import { dimensionsOf, emptyState, largest, manyOf, View, valueText } from "./view.js";

/** The values of a dimension that one of two tables lacks. */
export interface Difference {
  readonly dimension: Dimension;
  /** Those with the most events. */
  readonly rows: readonly Row<Dimension>[];
  /** How many there are. */
  readonly all: number;
}

/** What is new, and what has vanished. */
export interface Differences {
  readonly appeared: readonly Difference[];
  readonly vanished: readonly Difference[];
}

/** How many values of a dimension are shown. */
const SHOWN = 20;

/** Per dimension of the tables, the values that only one of them has. */
export function differencesOf(before: CountTable, now: CountTable): Differences {
  const appeared: Difference[] = [];
  const vanished: Difference[] = [];
  for (const dimension of dimensionsOf(now.dimensions as Dimension[])) {
    if (!before.dimensions.includes(dimension)) continue;
    const [earlier, later] = [before.groupBy(dimension), now.groupBy(dimension)];
    const compared = compare(earlier, later);
    const { presence, [dimension]: names } = compared.columns();
    const valuesWith = (wanted: string) =>
      Array.from(presence.ids).flatMap((id, row) => {
        const value = names?.dictionary[names.ids[row] as number];
        return presence.dictionary[id] === wanted && value !== undefined ? [value] : [];
      });
    for (const [wanted, table, found] of [
      ["new", later, appeared],
      ["vanished", earlier, vanished],
    ] as const) {
      const values = valuesWith(wanted);
      if (values.length === 0) continue;
      const some = table.filter({ [dimension]: values });
      const rows = largest(some, dimension, SHOWN);
      found.push({ dimension, rows, all: values.length });
    }
  }
  return { appeared, vanished };
}

const STYLES = css`
  .two {
    display: grid;
    grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr));
    gap: var(--s3) var(--s5);
  }
  .two > * {
    min-width: 0;
  }
  h3 {
    padding-block: var(--s1);
  }
  .none {
    padding-block: var(--s2);
    color: var(--muted);
  }
`;

/** Values that had events only in this range, or only at the same time a week before: by each dimension. */
export class Values extends View {
  static override styles = [View.styles, shared, STYLES];

  #differences: Differences | undefined;
  #states: State[] = [];
  /** Whether windows of this range are missing, and windows of the same time last week. */
  #isPartial = { now: false, earlier: false };

  protected override get looked(): (CountTable | undefined)[] {
    return [this.shown, this.shownBefore];
  }

  protected override get heading(): string {
    return "New and vanished";
  }

  protected override note(): string {
    const names = dimensionsOf((this.shown?.dimensions ?? []) as Dimension[]);
    const many = manyOf(names, "and");
    return `${many && `${many}, `}compared with the same time last week`;
  }

  protected override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed);
    if (!["table", "tableBefore", "where", "range"].some((name) => changed.has(name))) return;
    const { shown, shownBefore, wholeRange: range } = this;
    this.#differences = shown && shownBefore && differencesOf(shownBefore, shown);
    this.#states = shown && range ? statesOf(shown, range) : [];
    this.#isPartial = {
      now: range !== undefined && (shown?.gaps(range).length ?? 0) > 0,
      earlier: range !== undefined && this.gapsBefore(range).length > 0,
    };
  }

  protected override content(): TemplateResult {
    if (!this.#differences) {
      return emptyState("Nothing to compare with", "The same time last week was not read.");
    }
    const { appeared, vanished } = this.#differences;
    return html`<div class="body">
      <div class="two">
        ${this.#list("New", "No value is new.", appeared)}
        ${this.#list("Vanished", "No value has vanished.", vanished)}
      </div>
      ${
        this.#isPartial.now
          ? html`<p class="none">
              A part of this range was not read: more values may be new, and a value that is listed as vanished may have had
              events then.
            </p>`
          : nothing
      }${
        this.#isPartial.earlier
          ? html`<p class="none">
              A part of last week was not read: more values may have vanished, and a value that is listed as new may have had
              events then.
            </p>`
          : nothing
      }
      ${marks(this.#states)}
    </div>`;
  }

  #list(title: string, none: string, found: readonly Difference[]): TemplateResult {
    const { count } = this.formats;
    const when = title === "New" ? "in this range" : "last week";
    return html`<div>
      <h3>${title} <small class="muted">events ${when}</small></h3>
      ${
        found.length === 0
          ? html`<p class="none">${none}</p>`
          : html`<div class="scroll" tabindex="0" role="group" aria-label=${title}>
            <table part="table">
              <thead>
                <tr>
                  <th scope="col">Value</th>
                  <th scope="col">Delivered</th>
                  <th scope="col">Failed</th>
                  <th scope="col">Filtered</th>
                </tr>
              </thead>
              ${found.map(
                ({ dimension, rows, all }) => html`<tbody>
                  <tr>
                    <th scope="rowgroup" colspan="4" class="muted">
                      ${DIMENSIONS[dimension].many} (${count(all)})
                    </th>
                  </tr>
                  ${rows.map((row) => this.#row(dimension, row, title === "New"))}
                  ${
                    all > rows.length
                      ? html`<tr>
                        <td colspan="4" class="text muted">and ${count(all - rows.length)} others</td>
                      </tr>`
                      : nothing
                  }
                </tbody>`,
              )}
            </table>
          </div>`
      }
    </div>`;
  }

  #row(dimension: Dimension, row: Row<Dimension>, isOpen: boolean): TemplateResult {
    const { count } = this.formats;
    const value = row.dimensions[dimension];
    const text = valueText(value, dimension);
    return html`<tr>
      <th scope="row">
        ${
          isOpen
            ? html`<button type="button" class="link" @click=${() => this.select(dimension, value)}>
              ${text}
            </button>`
            : text
        }
      </th>
      <td>${count(row.success)}</td>
      <td>${count(row.errors)}</td>
      <td>${count(row.filtered)}</td>
    </tr>`;
  }
}

// `<tallyfold-budget>`: the part of its error budget that each rule has used.

import { css, html, nothing, type PropertyValues, type TemplateResult } from "lit";
import type { ErrorBudget, Finding } from "../src/health.js";
import type { Row } from "../src/tables/counts.js";
import type { CountTable } from "../src/tables/table.js";
import type { Dimension } from "../src/values/types.js";
import { marks, shared, statesOf } from "./marks.js";
import type { State } from "./slots.js";
import { emptyState, failureText, skeleton, View, valueText, visible } from "./view.js";

/** How much of a budget a group has used. */
export interface Used {
  readonly budget: ErrorBudget;
  readonly row: Row;
  /** The group's error rate, or its filter rate if the rule measures that; `null` if the group has no events to divide by. */
  readonly rate: number | null;
}

/** The maximum number of groups that are shown per rule. */
const GROUPS = 10;

/** The groups with the highest rates; `undefined` if the table lacks a dimension of the rule. */
function usedOf(budget: ErrorBudget, table: CountTable): Used[] | undefined {
  const { dimensions, where, measure } = budget;
  const needed = [...dimensions, ...Object.keys(where)] as Dimension[];
  if (!needed.every((name) => table.dimensions.includes(name))) return undefined;
  const by = measure === "filtered_rate" ? "filtered_rate" : "error_rate";
  const groups = table.filter(where).groupBy(...dimensions);
  return groups.top(GROUPS, { by }).map((row) => ({
    budget,
    row,
    rate: by === "error_rate" ? row.rates.error : row.rates.filter,
  }));
}

const STYLES = css`
  tbody th {
    white-space: nowrap;
  }
  .meter {
    position: relative;
    display: block;
    width: 100%;
    min-width: 80px;
    height: 4px;
    margin-block-start: 1px;
    border-radius: var(--radius-bar);
    background: var(--line);
    overflow: hidden;
  }
  .meter i {
    position: absolute;
    inset-block: 0;
    inset-inline-start: 0;
    border-radius: var(--radius-bar);
    background: var(--accent);
  }
  .over .meter i {
    background: var(--failed);
  }
  .over .used {
    color: var(--failed);
    font-weight: 600;
  }
  .burning {
    margin-block: var(--s2);
    padding-inline-start: var(--s3);
    border-inline-start: 3px solid var(--failed);
    overflow-wrap: anywhere;
  }
`;

/** Shows for each rule with a budget how much of the budget this range has used, and whether it is being used too fast. */
export class Budget extends View {
  static override styles = [View.styles, shared, STYLES];

  #used: readonly { readonly name: string; readonly groups: Used[] | undefined }[] | undefined;
  #burning: readonly Finding[] = [];
  #states: State[] = [];
  #failed: unknown;

  protected override get heading(): string {
    return "Error budget";
  }

  protected override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed);
    if (["rules", "table", "where", "range"].some((name) => changed.has(name))) void this.#judge();
  }

  async #judge(): Promise<void> {
    // Rows with a reason have events of one kind only, so budgets are those of all reasons.
    const shown = this.wholeOf("table") ?? this.shown;
    if (!shown) return;
    try {
      const health = await import("../src/health.js");
      await health.init();
      const rules =
        this.rules === undefined ? health.Rules.standard() : health.Rules.parse(this.rules);
      const range = this.wholeRange;
      const budgets = rules.budgets().filter(({ metric }) => metric === "event_delivery");
      this.#used = budgets.map((budget) => ({
        name: budget.rule,
        groups: usedOf(budget, shown),
      }));
      this.#states = range ? statesOf(shown, range) : [];
      const { start, end } = range ?? {};
      const findings = start && end ? rules.replay({ delivery: shown, start, end }).findings : [];
      this.#burning = findings.filter(({ kind }) => kind === "budget");
      this.#failed = undefined;
    } catch (error) {
      // The same rules fail again with each table, so their error is reported once.
      if (String(error) !== String(this.#failed)) void this.tellError(error);
      this.#failed = error;
    }
    this.requestUpdate();
  }

  protected override content(): TemplateResult {
    if (this.#failed !== undefined) {
      const { title, text } = failureText(this.#failed);
      return emptyState(title, text);
    }
    if (!this.#used) return skeleton();
    if (this.#used.length === 0) {
      return emptyState("No budget", html`No rule has <code>kind = "budget"</code>.`);
    }
    return html`<div class="body">
      <div class="scroll" tabindex="0" role="group" aria-label=${this.heading}>
        <table part="table">
          <thead>
            <tr>
              <th scope="col">Rule</th>
              <th scope="col" class="text">Group</th>
              <th scope="col">Used</th>
              <th scope="col">In this range</th>
              <th scope="col">Allowed</th>
              <th scope="col">Failed</th>
              <th scope="col">Filtered</th>
              <th scope="col">Delivered</th>
            </tr>
          </thead>
          <tbody>
            ${this.#used.map(({ name, groups }) =>
              groups
                ? groups.map((it) => this.#row(it))
                : html`<tr>
                    <th scope="row"><bdi class="value">${visible(name)}</bdi></th>
                    <td colspan="7" class="text muted">These counts lack a dimension of this rule.</td>
                  </tr>`,
            )}
          </tbody>
        </table>
      </div>
      ${this.#burning.map(
        ({ sentence }) => html`<p class="burning" part="burning"><bdi>${sentence}</bdi></p>`,
      )}
      <p class="note-below">
        At 100%, this range used exactly its part of the budget. An alert fires when the budget is used several times too fast.
        ${this.where.reason ? "The filter by reason does not apply here, because shares refer to the events of all reasons." : nothing}
      </p>
      ${marks(this.#states)}
    </div>`;
  }

  #row({ budget, row, rate }: Used): TemplateResult {
    const { count, share } = this.formats;
    const used = rate === null ? null : rate / budget.share;
    const values = Object.entries(row.dimensions) as [Dimension, string][];
    return html`<tr class=${used !== null && used > 1 ? "over" : nothing}>
      <th scope="row"><bdi class="value" title=${visible(budget.rule)}>${visible(budget.rule)}</bdi></th>
      <td class="text">
        ${values.length === 0 ? html`<span class="muted">all</span>` : values.map(([name, value]) => valueText(value, name))}
      </td>
      <td class="used">
        ${share(used)}
        <span class="meter" aria-hidden="true"
          ><i .style=${`width:${Math.min(used ?? 0, 1) * 100}%`}></i
        ></span>
      </td>
      <td>${share(rate)}</td>
      <td>${share(budget.share)}</td>
      <td>${count(row.errors)}</td>
      <td>${count(row.filtered)}</td>
      <td>${count(row.success)}</td>
    </tr>`;
  }
}

// `<tallyfold-silent>`: values that have had no event for some time, but had events at the same time a week before.

import { html, type PropertyValues, type TemplateResult } from "lit";
import type { DictionaryColumn } from "../src/tables/columns.js";
import type { Row } from "../src/tables/counts.js";
import type { CountTable } from "../src/tables/table.js";
import type { Dimension, Window } from "../src/values/types.js";
import { DIMENSIONS } from "./base.js";
import { marks, shared, statesOf } from "./marks.js";
import { iso, shifted, WEEK } from "./range.js";
import type { State } from "./slots.js";
import {
  descending,
  emptyState,
  eventsOf,
  largest,
  manyOf,
  NAMES,
  partOf,
  View,
  valueText,
} from "./view.js";

/** A value without events. */
export interface Silence {
  readonly value: string;
  /** The end of the last window in which it had an event; the start of the range if it had no event at all. */
  readonly since: string;
  /** Whether it had no event in the whole range. */
  readonly isWhole: boolean;
  /** Whether the counts of all windows since then may still change. */
  readonly isProvisional: boolean;
  /** Its events a week before, in the time of the silence. */
  readonly lastWeek: Row<Dimension>;
}

/** The maximum number of values that are shown. */
const SHOWN = 25;

/** The silences of a dimension's values. Values that lack the most events come first. */
export function silencesOf(
  before: CountTable,
  now: CountTable,
  by: Dimension,
  range: Window,
): Silence[] {
  const counts = now.groupBy(by);
  const earlier = before.groupBy(by);
  const end = counts.coverage.at(-1)?.end;
  if (end === undefined) return [];
  // For each value, the end of the last window in which it had an event.
  const last = new Map<string, string>();
  const { window, success, errors, filtered, ...others } = counts.byWindow().columns();
  const names = (others as { [N in Dimension]?: DictionaryColumn })[by];
  for (let row = 0; row < success.length; row++) {
    if (success[row] === 0n && errors[row] === 0n && filtered[row] === 0n) continue;
    const value = names?.dictionary[names.ids[row] as number] as string;
    last.set(value, window.dictionary[window.ids[row] as number]?.end as string);
  }
  const known = (earlier.columns() as { [N in Dimension]?: DictionaryColumn })[by];
  const bySince = new Map<string, string[]>();
  for (const value of known?.dictionary ?? []) {
    const since = last.get(value) ?? range.start;
    if (Date.parse(since) >= Date.parse(end)) continue;
    const values = bySince.get(since);
    if (values) values.push(value);
    else bySince.set(since, [value]);
  }
  const settledUntil = now.provisional[0]?.start ?? end;
  const found = Array.from(bySince).flatMap(([since, values]) => {
    const then = partOf(earlier, shifted({ start: since, end }, -WEEK));
    const rows = then ? largest(then.filter({ [by]: values }), by, SHOWN) : [];
    return rows.map((lastWeek) => ({
      value: lastWeek.dimensions[by],
      since: iso(Date.parse(since)),
      isWhole: !last.has(lastWeek.dimensions[by]),
      isProvisional: Date.parse(since) >= Date.parse(settledUntil),
      lastWeek,
    }));
  });
  return found
    .filter(({ lastWeek }) => eventsOf(lastWeek) > 0n)
    .sort((one, other) => descending(eventsOf(one.lastWeek), eventsOf(other.lastWeek)))
    .slice(0, SHOWN);
}

/** Values that have had no event for some time, although they had events at the same time a week before. */
export class Silent extends View {
  static override styles = [View.styles, shared];

  #silences: readonly Silence[] | undefined;
  #states: State[] = [];

  protected override get looked(): (CountTable | undefined)[] {
    return [this.shown, this.shownBefore];
  }

  protected override get heading(): string {
    return `Silent ${DIMENSIONS[this.by].many.toLowerCase()}`;
  }

  protected override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed);
    const inputs = ["table", "tableBefore", "where", "range", "by"];
    if (!inputs.some((name) => changed.has(name))) return;
    const { shown, shownBefore, by, wholeRange: range } = this;
    const isKnown = [shown, shownBefore].every((it) => it?.dimensions.includes(by));
    this.#silences =
      shown && shownBefore && range && isKnown
        ? silencesOf(shownBefore, shown, by, range)
        : undefined;
    this.#states = shown && range ? statesOf(shown, range) : [];
  }

  protected override content(): TemplateResult {
    if (!this.#silences) {
      return emptyState("Nothing to compare with", "The same time last week was not read.");
    }
    const { many } = DIMENSIONS[this.by];
    if (this.#silences.length === 0) {
      const names = NAMES.filter((name) => name !== this.by && name !== "reason");
      const others = manyOf(names, "or");
      const text = `All ${many.toLowerCase()} that had events at this time last week have some now. Group by ${others} to check those.`;
      return emptyState("None is silent", text);
    }
    const { moment, zoneAt } = this.formats;
    const zone = zoneAt(this.#silences[0]?.since ?? 0);
    return html`<div class="body">
      <div class="scroll" tabindex="0" role="group" aria-label=${this.heading}>
        <table part="table">
          <thead>
            <tr>
              <th scope="col">${DIMENSIONS[this.by].one}</th>
              <th scope="col">No events since (${zone})</th>
              <th scope="col">Delivered last week</th>
              <th scope="col">Failed</th>
              <th scope="col">Filtered</th>
            </tr>
          </thead>
          <tbody>
            ${this.#silences.map((it) => this.#row(it, moment(it.since)))}
          </tbody>
        </table>
      </div>
      <p class="note-below">
        Last week's counts cover the same time, from the last event to the end of the range. A rule of the kind
        <code>silent</code> judges by several weeks.
      </p>
      ${marks(this.#states)}
    </div>`;
  }

  #row({ value, isWhole, isProvisional, lastWeek }: Silence, since: string): TemplateResult {
    const { count } = this.formats;
    return html`<tr>
      <th scope="row">
        <button type="button" class="link" @click=${() => this.select(this.by, value)}>
          ${valueText(value, this.by)}
        </button>
      </th>
      <td>${isWhole ? "before " : ""}${since}${isProvisional ? " (provisional)" : ""}</td>
      <td>${count(lastWeek.success)}</td>
      <td>${count(lastWeek.errors)}</td>
      <td>${count(lastWeek.filtered)}</td>
    </tr>`;
  }
}

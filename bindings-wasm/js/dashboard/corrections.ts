// `<tallyfold-corrections>`: what late data has changed, and when this page noticed the change.

import { css, html, nothing, type PropertyValues, type TemplateResult } from "lit";
import type { Revision } from "../src/ranges/follow.js";
import { type Comparison, compare } from "../src/tables/comparison.js";
import { CountTable } from "../src/tables/table.js";
import type { Deltas, Dimension, Window } from "../src/values/types.js";
import { DIMENSIONS } from "./base.js";
import type { Where } from "./elements.js";
import { shared } from "./marks.js";
import { emptyState, partOf, View, valueText } from "./view.js";

/** A window whose counts differ from an earlier reading. */
export interface Correction {
  readonly window: Window;
  /** When this page noticed the change, in milliseconds since 1970. */
  readonly at: number;
  /** Whether the counts no longer change. */
  readonly isSettled: boolean;
  /** How the sums changed. */
  readonly delta: Deltas;
  /** The groups that changed, those that changed most first. */
  readonly rows: readonly {
    readonly dimensions: { readonly [N in Dimension]?: string };
    readonly delta: Deltas;
  }[];
}

/** The maximum number of groups that are shown of a correction. */
const ROWS = 10;
/** The maximum number of corrections that are kept. */
const KEPT = 200;

/**
 * The last table of a query, and its corrections. Logs are kept only in memory, so another user of the browser never sees them.
 */
interface Log {
  last: CountTable | undefined;
  entries: Correction[];
}

const logs = new Map<string, Log>();

/** What has changed in windows that were provisional when `before` was read. */
export function correctionsOf(before: CountTable, now: CountTable, at: number): Correction[] {
  const open = new Set(now.provisional.map(placeOf));
  return before.provisional.flatMap((window) => {
    const [earlier, later] = [partOf(before, window), partOf(now, window)];
    if (!earlier || !later) return [];
    const found = correctionOf(window, compare(earlier, later), !open.has(placeOf(window)), at);
    return found ? [found] : [];
  });
}

/** The correction of a window; `undefined` if its counts haven't changed. */
export function correctionOf(
  window: Window,
  changes: Comparison,
  isSettled: boolean,
  at: number,
): Correction | undefined {
  const all = Object.values(changes.deltas()) as BigInt64Array[];
  if (all.every((deltas) => deltas.every((it) => it === 0n))) return undefined;
  const delta = changes.totalDelta;
  const by = (["errors", "filtered", "success"] as const).find((name) => delta[name] !== 0n);
  const rows = changes
    .top(changes.length, { by: by ?? "success" })
    .filter(({ delta: it }) => it.success !== 0n || it.errors !== 0n || it.filtered !== 0n)
    .map(({ dimensions, delta: own }) => ({ dimensions, delta: own }));
  return { window, at, isSettled, delta, rows };
}

/** The part of a correction that `where` selects; `undefined` if there is none. */
function partIn(correction: Correction, where: Where): Correction | undefined {
  const kept = Object.entries(where) as [Dimension, readonly string[]][];
  if (kept.length === 0) return correction;
  const rows = correction.rows.filter(({ dimensions }) =>
    kept.every(([name, values]) => values.includes(dimensions[name] ?? "")),
  );
  const sum = (name: keyof Deltas) => rows.reduce((all, { delta }) => all + delta[name], 0n);
  const delta = { success: sum("success"), errors: sum("errors"), filtered: sum("filtered") };
  return rows.length === 0 ? undefined : { ...correction, rows, delta };
}

function placeOf({ start, end }: Window): string {
  return `${start}/${end}`;
}

const STYLES = css`
  th small {
    color: var(--muted);
  }
  .more {
    white-space: normal;
  }
  .more > summary {
    width: max-content;
  }
  .groups li {
    display: flex;
    flex-wrap: wrap;
    gap: 0 var(--s2);
    padding-block: 2px;
    color: var(--muted);
  }
  tbody th {
    height: auto;
    min-width: 10rem;
    max-width: none;
    padding-block: 6px;
    white-space: normal;
  }
`;

/**
 * Shows what late data has changed since this page first read the counts: for each window, the changes of its sums and the
 * groups that changed most. {@link Corrections.record} adds the revisions of a follow.
 */
export class Corrections extends View {
  static override properties = {
    ...View.properties,
    server: { attribute: false },
  };

  static override styles = [View.styles, shared, STYLES];

  /** The path of the dashboard's server for web apps. Without a dashboard, the path is `src`. */
  declare server: string | undefined;

  protected override get heading(): string {
    return "Corrections";
  }

  protected override note(): string {
    return "what late data has changed since these counts were first shown here";
  }

  get #log(): Log {
    const { metric, dimensions, window } = this.query ?? {};
    const names = dimensions ?? (this.table instanceof CountTable ? this.table.dimensions : []);
    const key = JSON.stringify([this.server ?? this.src, metric, names, window]);
    const log = logs.get(key) ?? { last: undefined, entries: [] };
    logs.set(key, log);
    return log;
  }

  override exported(): CountTable | undefined {
    return undefined;
  }

  /** Adds what a revision of a follow has changed. */
  record(revision: Revision): void {
    const { window, changes, settled, number } = revision;
    if (number === 0) return;
    const found = correctionOf(window, changes, settled, Date.now());
    if (found) this.#add([found]);
  }

  protected override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed);
    if (!changed.has("table") || !(this.table instanceof CountTable)) return;
    const log = this.#log;
    const { table } = this;
    if (log.last && log.last !== table) {
      // The two tables may have different ranges. Only windows that are in both are compared.
      const found = isAlike(log.last, table) ? correctionsOf(log.last, table, Date.now()) : [];
      this.#add(found);
    }
    log.last = table;
  }

  #add(found: readonly Correction[]): void {
    const log = this.#log;
    log.entries = [...found, ...log.entries].slice(0, KEPT);
    this.requestUpdate();
  }

  protected override content(): TemplateResult {
    const { entries: all, last } = this.#log;
    const entries = all.flatMap((it) => partIn(it, this.where) ?? []);
    const { count, moment, span, delta, zoneAt } = this.formats;
    const open = last?.provisional.length ?? 0;
    if (entries.length === 0) {
      const text =
        open === 0
          ? "All windows of this range are settled."
          : `${count(open)} windows may still change. What late data changes in them is listed here.`;
      return emptyState("No correction", text);
    }
    const zone = zoneAt(entries[0]?.window.start ?? 0);
    return html`<div class="body">
      <div class="scroll" tabindex="0" role="group" aria-label=${this.heading}>
        <table part="table">
          <thead>
            <tr>
              <th scope="col">Window (${zone})</th>
              <th scope="col">Seen</th>
              <th scope="col">Delivered</th>
              <th scope="col">Failed</th>
              <th scope="col">Filtered</th>
            </tr>
          </thead>
          <tbody aria-live="polite">
            ${entries.map(
              (it) => html`<tr>
                <th scope="row">
                  ${span(it.window.start, it.window.end)}
                  <small>${it.isSettled ? "settled" : "provisional"}</small>
                  ${this.#groups(it)}
                </th>
                <td>${moment(it.at)}</td>
                <td>${delta(it.delta.success)}</td>
                <td>${delta(it.delta.errors)}</td>
                <td>${delta(it.delta.filtered)}</td>
              </tr>`,
            )}
          </tbody>
        </table>
      </div>
    </div>`;
  }

  #groups({ rows }: Correction): TemplateResult {
    const groups = rows.length;
    const { count, delta } = this.formats;
    return html`<details class="more">
      <summary>${count(groups)} ${groups === 1 ? "group" : "groups"}</summary>
      <ul class="groups">
        ${rows.slice(0, ROWS).map(({ dimensions, delta: own }) => {
          const values = Object.entries(dimensions) as [Dimension, string][];
          return html`<li>
            ${values.map(([name, value]) => html`<span title=${DIMENSIONS[name].one}>${valueText(value, name)}</span>`)}
            <span>delivered ${delta(own.success)}, failed ${delta(own.errors)}, filtered ${delta(own.filtered)}</span>
          </li>`;
        })}
        ${groups > ROWS ? html`<li>and ${count(groups - ROWS)} others</li>` : nothing}
      </ul>
    </details>`;
  }
}

/** Whether two tables have the same metric and dimensions, so that they can be compared. */
function isAlike(one: CountTable, other: CountTable): boolean {
  return one.metric === other.metric && one.dimensions.join() === other.dimensions.join();
}

// The marks for windows that are not settled, and the styles that several views share.

import { type CSSResultGroup, css, html, nothing, type TemplateResult } from "lit";
import type { CountTable } from "../src/tables/table.js";
import type { Window } from "../src/values/types.js";
import type { State } from "./slots.js";

/** What is known of a slot, in words; empty if it is settled. */
export const STATES: { readonly [S in State]: string } = {
  settled: "",
  provisional: "provisional: these counts may still change",
  partial: "incomplete: a part of this time is missing",
  missing: "missing: nothing is known of this time",
};

/** A legend of the marks that a view shows. */
export function marks(states: Iterable<State>): TemplateResult | typeof nothing {
  const shown = new Set(states);
  const known = (["provisional", "partial", "missing"] as const).filter((it) => shown.has(it));
  if (known.length === 0) return nothing;
  return html`<ul class="marks" part="marks">
    ${known.map(
      (state) =>
        html`<li><span class="swatch ${state}" aria-hidden="true"></span>${STATES[state]}</li>`,
    )}
  </ul>`;
}

/** The styles of the marks and of their legend. */
export const markStyles = css`
  :host {
    --mark: light-dark(rgb(0 0 0 / 42%), rgb(255 255 255 / 48%));
    --hatch: repeating-linear-gradient(135deg, transparent 0 3px, var(--mark) 3px 4px);
    --dots: radial-gradient(var(--mark) 1px, transparent 1.3px) 0 0 / 5px 5px;
    --cross:
      linear-gradient(to top right, transparent 47%, var(--faint) 47% 53%, transparent 53%),
      linear-gradient(to bottom right, transparent 47%, var(--faint) 47% 53%, transparent 53%);
    --faint: light-dark(rgb(0 0 0 / 26%), rgb(255 255 255 / 30%));
  }
  .marks,
  .legend {
    display: flex;
    flex-wrap: wrap;
    gap: var(--s1) var(--s3);
    color: var(--muted);
    font-size: var(--small);
  }
  .marks {
    margin-block-start: var(--s2);
  }
  :is(.marks, .legend) li {
    display: flex;
    align-items: center;
    gap: 5px;
  }
  .swatch {
    flex: none;
    width: 16px;
    height: 12px;
    border: 1px solid var(--line-strong);
    border-radius: var(--radius-swatch);
    forced-color-adjust: none;
  }
  .swatch.provisional {
    background-image: var(--hatch);
  }
  .swatch.missing {
    background: var(--cross);
  }
  .swatch.partial {
    background: var(--dots);
  }
`;

/** The styles that several views add to the styles of all views. */
export const shared: CSSResultGroup = [
  markStyles,
  css`
  h3 {
    font-size: var(--body);
    font-weight: 600;
  }
  .value {
    display: inline-block;
    max-width: min(100%, 18rem);
    vertical-align: bottom;
  }
  td .value {
    max-width: 14rem;
  }
  th > .value,
  th > .link > .value {
    display: block;
  }
  .scroll {
    position: relative;
    overflow-x: auto;
  }
  .readout {
    display: block;
    min-height: 2.9em;
    margin-block: var(--s2);
    overflow-wrap: anywhere;
  }
  .link {
    max-width: 100%;
    vertical-align: middle;
  }
  tbody th {
    max-width: 14rem;
  }
  .body table:not([role="grid"]) :is(th, td):first-child {
    padding-inline-start: 0;
  }
  .body table:not([role="grid"]) :is(th, td):last-child {
    padding-inline-end: 0;
  }
  .note-below {
    margin-block-start: var(--s2);
    color: var(--muted);
    font-size: var(--small);
  }
  .text {
    min-width: 6rem;
    text-align: start;
    white-space: normal;
    overflow-wrap: anywhere;
  }
`,
];

/** The states in the last range of each table. They are cached, because every update of each view shows them. */
const known = new WeakMap<CountTable, { readonly range: Window; readonly states: State[] }>();

/** The states of the windows of a range, without `settled`. If windows are missing, the state is `partial`. */
export function statesOf(table: CountTable, range: Window): State[] {
  const last = known.get(table);
  if (last?.range.start === range.start && last.range.end === range.end) return last.states;
  const states: State[] = table.provisional.length > 0 ? ["provisional"] : [];
  if (table.gaps(range).length > 0) states.push("partial");
  known.set(table, { range, states });
  return states;
}

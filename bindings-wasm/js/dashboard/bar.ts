// The controls above the views. They select which rows the views show, and what the views compare.

import { css, html, type TemplateResult } from "lit";
import type { Dimension } from "../src/values/types.js";
import { DIMENSIONS } from "./base.js";
import type { Unit, Where } from "./elements.js";
import { valueText, visible } from "./view.js";

export const barStyles = css`
  .bar {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    gap: var(--s2) var(--s4);
  }
  .crumbs {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    gap: var(--s1) var(--s2);
    min-width: 0;
  }
  .crumbs ol {
    display: flex;
    flex-wrap: wrap;
    gap: var(--s1);
    min-width: 0;
  }
  .crumb {
    display: inline-flex;
    align-items: center;
    max-width: min(420px, 80vw);
    background: var(--accent-soft);
    border-radius: var(--radius-control);
  }
  .crumb > button {
    min-height: 28px;
    border: 0;
    background: none;
    color: var(--text);
  }
  .crumb > button:first-child {
    display: flex;
    gap: 6px;
    min-width: 0;
    padding-inline-end: 4px;
  }
  .crumb > button:last-child {
    padding-inline: 6px 8px;
    color: var(--muted);
  }
  .crumb > button:last-child:hover {
    color: var(--text);
  }
  .group {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    gap: var(--s2);
    margin-inline-start: auto;
  }
`;

/** Shows the filter as breadcrumbs. Each value has a button that drops the values after it, and a button that removes it. */
export function crumbs(where: Where, go: (where: Where) => void): TemplateResult {
  const all = (Object.entries(where) as [Dimension, readonly string[]][]).flatMap(
    ([name, values]) => values.map((value) => [name, value] as const),
  );
  const keep = (kept: typeof all) => {
    const where: { [N in Dimension]?: string[] } = {};
    for (const [name, value] of kept) where[name] = [...(where[name] ?? []), value];
    go(where);
  };
  return html`<nav class="crumbs" aria-label="Shown rows" tabindex="-1">
    ${
      all.length === 0
        ? html`<span class="muted">All events</span>`
        : html`<button type="button" class="link" @click=${() => go({})}>All events</button>
            <ol>
              ${all.map(
                ([name, value], at) => html`<li class="crumb">
                  <button
                    type="button"
                    aria-current=${at === all.length - 1 ? "true" : "false"}
                    @click=${() => keep(all.slice(0, at + 1))}
                  >
                    <span class="muted">${DIMENSIONS[name].one}</span>${valueText(value, name)}
                  </button>
                  <button
                    type="button"
                    aria-label=${`Remove ${DIMENSIONS[name].one} ${visible(value, 100)}`}
                    @click=${() => keep(all.filter((_, other) => other !== at))}
                  >
                    ×
                  </button>
                </li>`,
              )}
            </ol>`
    }
  </nav>`;
}

/** The buttons that choose between counts and percentages. */
export function unitSwitch(unit: Unit, choose: (unit: Unit) => void): TemplateResult {
  const units = [
    ["counts", "Counts"],
    ["percent", "Percent"],
  ] as const;
  return segments("Unit", unit, units, (name) => choose(name as Unit));
}

/** A group of buttons, one of which is pressed. */
export function segments(
  label: string,
  current: string,
  all: readonly (readonly [value: string, text: string])[],
  choose: (value: string) => void,
): TemplateResult {
  return html`<div class="segments" role="group" aria-label=${label}>
    ${all.map(
      ([value, text]) => html`<button
        type="button"
        aria-pressed=${value === current}
        @click=${() => value === current || choose(value)}
      >
        ${text}
      </button>`,
    )}
  </div>`;
}

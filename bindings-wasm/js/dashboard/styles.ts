// The styles that all elements share. Pages can change them with the custom properties that begin with `--tallyfold-`.

import { css } from "lit";

/** Colours, sizes and type. Each pair of text and background has a contrast of at least 4.5 in both schemes. */
export const tokens = css`
  :host {
    color-scheme: inherit;
    --background: var(--tallyfold-background, light-dark(#f4f6f8, #101317));
    --surface: var(--tallyfold-surface, light-dark(#ffffff, #1a1e25));
    --raised: var(--tallyfold-raised, light-dark(#ffffff, #232831));
    --sunken: var(--tallyfold-sunken, light-dark(#f4f6f8, #101317));
    --line: var(--tallyfold-line, light-dark(#e1e5ea, #2c323c));
    --line-strong: var(--tallyfold-line-strong, light-dark(#8a94a1, #6b7685));
    --text: var(--tallyfold-text, light-dark(#16202c, #e6eaf0));
    --muted: var(--tallyfold-muted, light-dark(#566270, #9ba6b4));
    --accent: var(--tallyfold-accent, light-dark(#1d5fbf, #79aef5));
    --accent-soft: var(--tallyfold-accent-soft, light-dark(#e8f0fc, #1c2d47));
    --on-accent: var(--tallyfold-on-accent, light-dark(#ffffff, #0c1420));
    --delivered: var(--tallyfold-delivered, light-dark(#1f6f8b, #63b3cc));
    --failed: var(--tallyfold-failed, light-dark(#b8330e, #ff8f6b));
    --filtered: var(--tallyfold-filtered, light-dark(#7a5b00, #d9b44a));
    --failed-soft: var(--tallyfold-failed-soft, light-dark(#fdeee9, #3a1f17));
    --radius: var(--tallyfold-radius, 8px);
    --radius-control: calc(0.75 * var(--radius));
    --radius-line: calc(0.5 * var(--radius));
    --radius-bar: calc(0.375 * var(--radius));
    --radius-swatch: calc(0.25 * var(--radius));
    --font: var(--tallyfold-font, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif);
    --mono: var(--tallyfold-mono, ui-monospace, "SF Mono", Menlo, Consolas, monospace);
    --s1: 4px;
    --s2: 8px;
    --s3: 12px;
    --s4: 16px;
    --s5: 24px;
    --small: 12px;
    --body: 13px;
    --large: 15px;
    /* For windows whose counts may still change, and for time that nothing is known of. */
    --hatch-provisional: repeating-linear-gradient(
      -45deg,
      transparent 0 3px,
      color-mix(in srgb, var(--muted) 35%, transparent) 3px 4px
    );
    --hatch-missing: repeating-linear-gradient(
      45deg,
      transparent 0 2px,
      color-mix(in srgb, var(--muted) 60%, transparent) 2px 4px
    );
    display: block;
    box-sizing: border-box;
    color: var(--text);
    font: 400 var(--body) / 1.45 var(--font);
    font-variant-numeric: tabular-nums lining-nums;
    text-align: start;
    -webkit-text-size-adjust: 100%;
  }
  :host([hidden]) {
    display: none;
  }
  * {
    box-sizing: border-box;
  }
  @media (prefers-reduced-motion: reduce) {
    * {
      animation: none !important;
      transition: none !important;
    }
  }
`;

/** The styles of the parts that views consist of. */
export const parts = css`
  .sr {
    position: absolute;
    width: 1px;
    height: 1px;
    margin: -1px;
    overflow: hidden;
    clip-path: inset(50%);
    white-space: nowrap;
  }
  h2,
  h3,
  p,
  ul,
  ol,
  dl,
  dd {
    margin: 0;
    padding: 0;
  }
  ul,
  ol {
    list-style: none;
  }
  .card {
    container-type: inline-size;
    position: relative;
    background: var(--surface);
    border: 1px solid var(--line);
    border-radius: var(--radius);
  }
  .head {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    gap: var(--s1) var(--s2);
    padding: var(--s3) var(--s3) var(--s2) var(--s4);
  }
  .head h2 {
    font-size: var(--large);
    font-weight: 600;
    line-height: 28px;
  }
  .head .note {
    color: var(--muted);
    font-size: var(--small);
  }
  .head .tools {
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    gap: var(--s1);
    margin-inline-start: auto;
  }
  .body {
    padding: 0 var(--s4) var(--s4);
  }
  button,
  select,
  input,
  summary {
    font: inherit;
    color: inherit;
  }
  button,
  select,
  input,
  .button {
    min-height: 28px;
    padding: 3px 10px;
    background: var(--raised);
    border: 1px solid var(--line-strong);
    border-radius: var(--radius-control);
  }
  button,
  select,
  summary,
  .button {
    cursor: pointer;
  }
  button:hover:not(:disabled, [aria-pressed="true"], .plain, .link),
  summary:hover {
    background: var(--sunken);
  }
  button:disabled {
    opacity: 0.5;
    cursor: default;
  }
  button.plain,
  summary.plain {
    border-color: transparent;
    background: none;
    padding-inline: 8px;
    color: var(--muted);
  }
  button.plain:hover,
  summary.plain:hover {
    background: var(--sunken);
    color: var(--text);
  }
  button.link {
    min-height: 0;
    padding: 0;
    border: 0;
    background: none;
    color: var(--accent);
    text-align: start;
  }
  button.link:hover {
    text-decoration: underline;
  }
  :focus-visible {
    outline: 2px solid var(--accent);
    outline-offset: 1px;
  }
  .segments {
    display: inline-flex;
    padding: 2px;
    gap: 2px;
    background: var(--sunken);
    border: 1px solid var(--line);
    border-radius: var(--radius);
  }
  .segments button {
    min-height: 24px;
    padding: 1px 10px;
    border-color: transparent;
    background: none;
    color: var(--muted);
    white-space: nowrap;
  }
  .segments button[aria-pressed="true"] {
    background: var(--raised);
    border-color: var(--line-strong);
    color: var(--text);
    font-weight: 500;
  }
  table {
    width: 100%;
    border-collapse: separate;
    border-spacing: 0;
  }
  th,
  td {
    padding: 0 var(--s2);
    height: 32px;
    text-align: end;
    white-space: nowrap;
    border-block-end: 1px solid var(--line);
  }
  th {
    color: var(--muted);
    font-size: var(--small);
    font-weight: 500;
  }
  th:first-child,
  td:first-child {
    padding-inline-start: var(--s4);
    text-align: start;
  }
  th:last-child,
  td:last-child {
    padding-inline-end: var(--s4);
  }
  tbody th {
    color: inherit;
    font-size: inherit;
    font-weight: 400;
    text-align: start;
  }
  .value {
    display: block;
    overflow: clip;
    text-overflow: ellipsis;
    white-space: nowrap;
  }
  .empty-value {
    color: var(--muted);
    font-style: italic;
  }
  .muted {
    color: var(--muted);
  }
  .delivered {
    color: var(--delivered);
  }
  .failed {
    color: var(--failed);
  }
  .filtered {
    color: var(--filtered);
  }
  .zero {
    color: var(--muted);
  }
  .mark {
    display: inline-flex;
    align-items: center;
    gap: var(--s1);
    font-size: var(--small);
    color: var(--muted);
  }
  .mark::before {
    content: "";
    box-sizing: border-box;
    flex: none;
    width: 12px;
    height: 12px;
    border: 1px solid var(--line-strong);
    border-radius: var(--radius-bar);
  }
  .mark.provisional::before {
    background: var(--hatch-provisional);
  }
  .mark.missing::before,
  .mark.partial::before {
    background: var(--hatch-missing);
  }
  .state {
    display: grid;
    justify-items: center;
    gap: var(--s2);
    padding: var(--s5) var(--s4) calc(2 * var(--s5));
    text-align: center;
    color: var(--muted);
  }
  .state strong {
    color: var(--text);
    font-size: var(--large);
    font-weight: 600;
  }
  .state p {
    max-width: 60ch;
    overflow-wrap: anywhere;
  }
  .incomplete {
    padding: 0 var(--s4) var(--s2);
    overflow-wrap: anywhere;
  }
  .skeleton {
    display: grid;
    gap: var(--s3);
    padding: var(--s2) var(--s4) var(--s4);
  }
  .skeleton i {
    height: 16px;
    border-radius: var(--radius-line);
    background: var(--line);
    /* It begins late, because most counts come earlier, and each frame takes time that they need. */
    animation: breathe 1.6s ease-in-out 2s infinite;
  }
  .skeleton i:nth-child(2n) {
    width: 82%;
  }
  .skeleton i:nth-child(3n) {
    width: 64%;
  }
  @keyframes breathe {
    50% {
      opacity: 0.5;
    }
  }
  details.menu {
    position: relative;
  }
  details.menu > summary {
    list-style: none;
    display: inline-flex;
    align-items: center;
    gap: 6px;
    min-height: 28px;
    padding: 3px 8px;
    border-radius: var(--radius-control);
    border: 1px solid transparent;
    font-size: var(--small);
    white-space: nowrap;
  }
  details.menu > summary::-webkit-details-marker {
    display: none;
  }
  details.menu > .pop {
    position: absolute;
    z-index: 5;
    inset-block-start: calc(100% + 4px);
    inset-inline-end: 0;
    min-width: 180px;
    max-width: min(560px, 86vw);
    padding: var(--s1);
    background: var(--raised);
    border: 1px solid var(--line);
    border-radius: var(--radius);
    box-shadow: 0 6px 24px light-dark(rgb(15 30 50 / 0.16), rgb(0 0 0 / 0.5));
  }
  .pop button.item {
    display: block;
    width: 100%;
    border: 0;
    background: none;
    text-align: start;
  }
  .pop button.item:hover {
    background: var(--sunken);
  }
  .icon {
    flex: none;
    width: 16px;
    height: 16px;
    fill: none;
    stroke: currentColor;
    stroke-width: 1.5;
    stroke-linecap: round;
    stroke-linejoin: round;
  }
  @container (max-width: 560px) {
    summary .label {
      display: none;
    }
  }
  .commands {
    display: grid;
    gap: var(--s3);
    width: 520px;
    max-width: 100%;
    padding: var(--s2);
  }
  .command-head {
    display: flex;
    justify-content: space-between;
    align-items: center;
    font-size: var(--small);
  }
  pre {
    margin: 0;
    padding: var(--s2) var(--s3);
    overflow: auto;
    max-height: 240px;
    background: var(--sunken);
    border-radius: var(--radius-control);
    font: 12px/1.5 var(--mono);
    white-space: pre;
    direction: ltr;
    text-align: left;
  }
`;

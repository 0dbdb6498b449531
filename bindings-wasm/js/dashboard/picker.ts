// The range picker: presets, a start and an end, and buttons to go back and forward.

import { css, html, type TemplateResult } from "lit";
import { type Formats, zoneName } from "./formats.js";
import { iso, LONGEST, PRESETS, type Range, rangeOf } from "./range.js";
import { offsetOf } from "./slots.js";

export const pickerStyles = css`
  .picker {
    display: flex;
    align-items: stretch;
    min-width: 0;
  }
  .picker > button {
    padding: 3px 8px;
  }
  .picker > button:first-child {
    border-start-end-radius: 0;
    border-end-end-radius: 0;
  }
  .picker > button:last-child {
    border-start-start-radius: 0;
    border-end-start-radius: 0;
  }
  .picker details.menu {
    min-width: 0;
  }
  .picker details.menu > summary {
    height: 100%;
    max-width: 100%;
    border: 1px solid var(--line-strong);
    border-inline: 0;
    border-radius: 0;
    background: var(--raised);
    color: var(--text);
    font-size: var(--body);
    padding-inline: 12px;
  }
  .picker details.menu > summary .label {
    display: flex;
    flex-wrap: wrap;
    gap: 0 8px;
    min-width: 0;
    overflow: hidden;
    height: 20px;
  }
  .picker details.menu > .pop {
    inset-inline: 0 auto;
    padding: var(--s3);
  }
  .presets {
    display: grid;
    grid-template-columns: 1fr 1fr;
    gap: 2px;
    width: 320px;
    max-width: 100%;
  }
  .presets button[aria-pressed="true"] {
    background: var(--accent-soft);
    color: var(--accent);
    font-weight: 500;
  }
  .between {
    display: grid;
    grid-template-columns: auto 1fr;
    align-items: center;
    gap: var(--s2) var(--s3);
    margin-block-start: var(--s3);
    padding-block-start: var(--s3);
    border-block-start: 1px solid var(--line);
  }
  .between label {
    color: var(--muted);
    font-size: var(--small);
  }
  .between input {
    min-width: 0;
    width: 100%;
  }
  .between .go {
    grid-column: 1 / -1;
    display: flex;
    flex-wrap: wrap;
    align-items: center;
    justify-content: space-between;
    gap: var(--s2);
    color: var(--muted);
    font-size: var(--small);
  }
  .between [role="status"] {
    color: var(--failed);
  }
  .between .primary {
    background: var(--accent);
    border-color: var(--accent);
    color: var(--on-accent);
    font-size: var(--body);
  }
  .flip:dir(rtl) {
    transform: scaleX(-1);
  }
  @container (max-width: 560px) {
    .picker summary .label {
      display: flex;
    }
  }
`;

interface Choice {
  readonly period: string;
  readonly range: Range;
  readonly formats: Formats;
  readonly zone: string;
  readonly nowMs: number;
  readonly choose: (period: string) => void;
}

export function picker({ period, range, formats, zone, nowMs, choose }: Choice): TemplateResult {
  const length = Date.parse(range.end) - Date.parse(range.start);
  const move = (by: number) => () => {
    const step = stepOf(range);
    // Leaves out the window that has not ended yet.
    const end = Math.min(Date.parse(range.end) + by, Math.floor(nowMs / step) * step);
    const whole = rangeOf(`${iso(end - length)}/${iso(end)}`, nowMs);
    if (whole) choose(`${whole.start}/${whole.end}`);
  };
  const isNow = Date.parse(range.end) + stepOf(range) > nowMs;
  const preset = PRESETS.find(([name]) => name === period)?.[1];
  return html`<div class="picker" role="group" aria-label="Range">
    <button type="button" aria-label="Earlier" @click=${move(-length)}>${arrow("m10 3-5 5 5 5")}</button>
    <details class="menu" @keydown=${closeByKey}>
      <summary>
        <span class="label"
          >${preset ? html`<strong>${preset}</strong>` : ""}<span class="muted span"
            >${formats.span(range.start, range.end)} ${formats.zoneAt(range.start)}</span
          ></span
        >
      </summary>
      <div class="pop">
        <div class="presets">
          ${PRESETS.map(
            ([name, label]) => html`<button
              type="button"
              class="item"
              aria-pressed=${name === period}
              @click=${(event: Event) => chosen(event, () => choose(name))}
            >
              ${label}
            </button>`,
          )}
        </div>
        <form class="between" @submit=${(event: Event) => between(event, range, zone, nowMs, choose)}>
          <label for="from">From</label>
          <input id="from" name="from" type="datetime-local" required .value=${clockAt(range.start, zone)} />
          <label for="to">To</label>
          <input id="to" name="to" type="datetime-local" required .value=${clockAt(range.end, zone)} />
          <div class="go">
            <span>Times are in ${zoneName(zone)}. <span role="status"></span></span>
            <button class="primary">Show</button>
          </div>
        </form>
      </div>
    </details>
    <button type="button" aria-label="Later" ?disabled=${isNow} @click=${move(length)}>${arrow("m6 3 5 5-5 5")}</button>
  </div>`;
}

function arrow(path: string): TemplateResult {
  return html`<svg class="icon flip" viewBox="0 0 16 16" aria-hidden="true"><path d=${path} /></svg>`;
}

function closeByKey(event: KeyboardEvent): void {
  if (event.key !== "Escape") return;
  const menu = event.currentTarget as HTMLDetailsElement;
  menu.open = false;
  menu.querySelector("summary")?.focus();
}

function chosen({ currentTarget }: Event, choose: () => void): void {
  const menu = (currentTarget as HTMLElement).closest("details") as HTMLDetailsElement;
  menu.open = false;
  menu.querySelector("summary")?.focus();
  choose();
}

function between(
  event: Event,
  shown: Range,
  zone: string,
  nowMs: number,
  choose: (period: string) => void,
): void {
  event.preventDefault();
  const form = event.currentTarget as HTMLFormElement;
  const given = new FormData(form);
  // When clocks go back, two times have the same text. A time that the viewer has not changed is the time that is shown.
  const timeIn = (name: string, time: string) => {
    const clock = String(given.get(name));
    return clock === clockAt(time, zone) ? Date.parse(time) : timeOf(clock, zone);
  };
  const [from, to] = [timeIn("from", shown.start), timeIn("to", shown.end)];
  const status = form.querySelector("[role=status]") as HTMLElement;
  if (!(from !== undefined && to !== undefined && from < to)) {
    status.textContent = "The end must be after the start.";
    return;
  }
  const range = rangeOf(`${iso(from)}/${iso(to)}`, nowMs);
  if (range === undefined) {
    status.textContent = "Choose a range of at most 90 days.";
    return;
  }
  status.textContent = "";
  // Extends a new range to whole windows, so that no window is cut. The longest range is moved to whole windows instead.
  const isShown = from === Date.parse(shown.start) && to === Date.parse(shown.end);
  const step = isShown ? 1 : stepOf(range);
  const start = Math.floor(from / step) * step;
  const end = Math.min(Math.ceil(to / step) * step, start + LONGEST);
  chosen(event, () => choose(`${iso(start)}/${iso(end)}`));
}

function stepOf({ window }: Range): number {
  return { "5m": 300_000, "15m": 900_000, "1h": 3_600_000 }[window as "5m"] ?? 60_000;
}

/** What a clock in the zone shows, in the format of `datetime-local`. */
export function clockAt(time: string | number, zone: string): string {
  const at = new Date(time).getTime();
  return new Date(at + offsetOf(zone, at)).toISOString().slice(0, 16);
}

/** The time at which a clock in the zone shows `clock`, in milliseconds since 1970; `undefined` if `clock` is not a time. */
export function timeOf(clock: string, zone: string): number | undefined {
  const wanted = Date.parse(`${clock}Z`);
  if (Number.isNaN(wanted)) return undefined;
  let time = wanted;
  // Two rounds, because the offset may differ between the first estimate and the result.
  for (let round = 0; round < 2; round++) time += wanted - Date.parse(`${clockAt(time, zone)}Z`);
  return time;
}

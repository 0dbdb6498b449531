// `<tallyfold-pipeline>`: what came in, what was filtered, what failed, what was delivered, and whether it adds up.

import { type CSSResultGroup, css, html, nothing, type TemplateResult } from "lit";
import type { Counts, Row } from "../src/tables/counts.js";
import type { CountTable } from "../src/tables/table.js";
import type { CountName, Dimension, Metric, Rates } from "../src/values/types.js";
import { ratesIn } from "./cells.js";
import { markStyles, marks, statesOf } from "./marks.js";
import { dimensionsOf, filtered, grouped, View, valueText } from "./view.js";

/** A possible outcome of events. */
interface Stage {
  readonly name: CountName;
  readonly label: string;
  readonly share: "delivery" | "error" | "filter";
  /** The events that the share refers to, in words. */
  readonly of: string;
}

const STAGES: readonly Stage[] = [
  { name: "filtered", label: "Filtered", share: "filter", of: "of all events" },
  { name: "errors", label: "Failed", share: "error", of: "of events to send" },
  { name: "success", label: "Delivered", share: "delivery", of: "of events to send" },
];

/** Whether ingestion and delivery have equal counts, or why they can't be compared. */
export type Verdict = "equal" | "different" | "reasons" | "partial" | "unknown" | "unread";

const WHY: Readonly<Record<Verdict, string>> = {
  equal:
    "Ingestion and delivery report the same events: every event that came in is accounted for.",
  different:
    "Not compared with delivery: the counts differ. An event for several destinations counts once for each of them in " +
    "delivery, and the service’s reference does not show what ingestion counts.",
  reasons:
    "Not compared with delivery: ingestion has no reasons, and delivery shows only some here.",
  partial: "Not compared with delivery: a part of this time is missing in one of them.",
  unknown: "Ingestion could not be read.",
  unread: "Reading ingestion…",
};

/** The maximum number of reasons that a stage shows by name. */
const REASONS = 3;

export class Pipeline extends View {
  static override styles: CSSResultGroup = [
    View.styles,
    markStyles,
    css`
      ol {
        display: grid;
        grid-template-columns: 1.15fr 1fr 1fr 1fr;
        border-block-start: 1px solid var(--line);
      }
      li.stage {
        position: relative;
        min-width: 0;
        padding: var(--s3) var(--s4) var(--s4);
      }
      li.stage + li.stage {
        border-inline-start: 1px solid var(--line);
      }
      .stage-label {
        display: flex;
        align-items: center;
        gap: var(--s2);
        color: var(--muted);
        font-size: var(--small);
        font-weight: 500;
      }
      .stage-label i {
        width: 8px;
        height: 8px;
        border-radius: var(--radius-swatch);
        background: var(--colour, var(--accent));
      }
      .number {
        display: flex;
        flex-wrap: wrap;
        align-items: baseline;
        gap: 0 var(--s2);
        margin-block: 2px var(--s2);
      }
      .number strong {
        font-size: 24px;
        line-height: 32px;
        font-weight: 600;
        letter-spacing: -0.01em;
      }
      .number span {
        color: var(--muted);
        font-size: var(--small);
      }
      dl {
        margin-block-start: var(--s1);
      }
      dl,
      .reasons {
        display: grid;
        gap: 2px;
        font-size: var(--small);
      }
      dl > div,
      .reasons > li {
        display: flex;
        justify-content: space-between;
        gap: var(--s3);
        min-width: 0;
        line-height: 20px;
      }
      .reasons button {
        min-width: 0;
        color: var(--muted);
      }
      .reasons .others {
        color: var(--muted);
      }
      .reasons button:hover {
        color: var(--accent);
      }
      dt,
      .verdict {
        color: var(--muted);
      }
      .verdict {
        display: block;
        margin-block-start: var(--s2);
        font-size: var(--small);
        line-height: 1.45;
      }
      .verdict b {
        color: var(--delivered);
        font-weight: 700;
      }
      .bar {
        display: flex;
        gap: 2px;
        height: 8px;
        margin: 0 var(--s4) var(--s3);
      }
      .bar i {
        min-width: 2px;
        border-radius: var(--radius-swatch);
      }
      .bar i[hidden] {
        display: none;
      }
      .marks {
        padding: 0 var(--s4) var(--s3);
      }
      @container (max-width: 860px) {
        ol {
          grid-template-columns: 1fr 1fr;
        }
        li.stage + li.stage:nth-child(odd) {
          border-inline-start: 0;
        }
        li.stage:nth-child(n + 3) {
          border-block-start: 1px solid var(--line);
        }
      }
      @container (max-width: 440px) {
        ol {
          grid-template-columns: 1fr;
        }
        li.stage + li.stage {
          border-inline-start: 0;
          border-block-start: 1px solid var(--line);
        }
      }
    `,
  ];

  protected override get heading(): string {
    return "Pipeline";
  }

  protected override get metrics(): readonly Metric[] {
    return ["event_delivery", "event_ingestion"];
  }

  protected override get dimensions(): Dimension[] {
    return dimensionsOf([...super.dimensions, "reason"]);
  }

  override exported(): CountTable | undefined {
    return this.#hasReasons ? grouped(this.shown as CountTable, "reason") : this.shown?.groupBy();
  }

  /** Whether the counts have reasons. A page may set counts without them. */
  get #hasReasons(): boolean {
    return this.shown?.dimensions.includes("reason") ?? false;
  }

  get #incoming(): CountTable | undefined {
    return this.ingestion && filtered(this.ingestion, this.where);
  }

  protected override get looked(): (CountTable | undefined)[] {
    return [this.shown, this.#incoming];
  }

  /** Whether ingestion and delivery can be compared, and whether they are equal. */
  get verdict(): Verdict {
    const { shown, range, where } = this;
    const incoming = this.#incoming;
    if (where.reason !== undefined) return "reasons";
    if (incoming === undefined) return this.loading ? "unread" : "unknown";
    if (!shown || !range) return "unknown";
    if (shown.gaps(range).length > 0 || incoming.gaps(range).length > 0) return "partial";
    const [one, other] = [incoming.totals, shown.totals];
    return STAGES.every(({ name }) => one[name] === other[name]) ? "equal" : "different";
  }

  protected override content(): TemplateResult {
    const shown = this.shown as CountTable;
    const { totals } = shown;
    const whole = this.wholeOf("table")?.totals;
    const rates = whole ? ratesIn(totals, whole) : totals.rates;
    const range = this.wholeRange;
    return html`
      <div class="bar" aria-hidden="true">
        ${[...STAGES].reverse().map(
          ({ name }) =>
            html`<i
              ?hidden=${totals[name] === 0n}
              .style=${`flex:${Number(totals[name])};background:var(--${colour(name)})`}
            ></i>`,
        )}
      </div>
      <ol part="stages">
        ${this.#ingested()} ${STAGES.map((stage) => this.#stage(stage, totals, rates, shown))}
      </ol>
      ${range ? marks(statesOf(shown, range)) : nothing}
    `;
  }

  #ingested(): TemplateResult {
    const { verdict } = this;
    const incoming = verdict === "reasons" ? undefined : this.#incoming;
    const totals = incoming?.totals;
    const { count, share } = this.formats;
    const text = ({ name, share: rate }: Stage, counts: Counts) =>
      this.unit === "percent" ? share(counts.rates[rate]) : count(counts[name]);
    return html`<li class="stage" data-stage="ingested">
      <span class="stage-label"><i></i>Ingested</span>
      ${
        totals &&
        html`<dl>
          ${[...STAGES].reverse().map(
            (stage) => html`<div>
              <dt>${stage.label}</dt>
              <dd data-count=${stage.name}>${text(stage, totals)}</dd>
            </div>`,
          )}
        </dl>`
      }
      <span class="verdict"
        >${verdict === "equal" ? html`<b aria-hidden="true">✓ </b>` : nothing}${WHY[verdict]}</span
      >
    </li>`;
  }

  #stage({ name, label, share: rate, of }: Stage, totals: Counts, rates: Rates, shown: CountTable) {
    const { count, share } = this.formats;
    const [number, part] = [count(totals[name]), share(rates[rate])];
    const isPercent = this.unit === "percent";
    return html`<li class="stage" data-stage=${name} .style=${`--colour:var(--${colour(name)})`}>
      <span class="stage-label"><i></i>${label}</span>
      <p class="number">
        <strong data-count=${name}>${isPercent ? part : number}</strong>
        <span>${isPercent ? `${number} events` : `${part} ${of}`}</span>
      </p>
      ${name === "success" || !this.#hasReasons ? nothing : this.#reasons(name, shown)}
    </li>`;
  }

  #reasons(name: CountName, shown: CountTable): TemplateResult {
    const reasons = grouped(shown, "reason");
    const ranked = reasons.top(reasons.length, { by: name as "errors" }) as Row<Dimension>[];
    const all = ranked.filter((row) => row[name] > 0n);
    const shownRows = all.slice(0, REASONS);
    const others = all.slice(REASONS).map((row) => row.dimensions.reason);
    return html`<ul class="reasons" aria-label="Reasons">
      ${shownRows.map(
        (row) => html`<li>
          <button
            type="button"
            class="link"
            @click=${() => this.select("reason", row.dimensions.reason)}
          >
            ${valueText(row.dimensions.reason, "reason")}
          </button>
          <span data-count=${name}>${this.formats.count(row[name])}</span>
        </li>`,
      )}${
        others.length === 0
          ? nothing
          : html`<li class="others">
              <span>${this.formats.count(others.length)} more</span>
              <span data-count=${name}
                >${this.formats.count(filtered(shown, { reason: others }).totals[name])}</span
              >
            </li>`
      }
    </ul>`;
  }
}

function colour(name: CountName): string {
  return { success: "delivered", errors: "failed", filtered: "filtered" }[name];
}

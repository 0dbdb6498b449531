/**
 * What explains a change in exact counts, and what rules find in them. Only programs that import this entry load its
 * WebAssembly.
 * @module tallyfold/health
 */

import {
  type CoreObserved,
  type CoreRules,
  type CoreTable,
  type Glue,
  glue,
} from "../wasm/tallyfold_health.js";
import source from "../wasm/tallyfold_health_bg.wasm";
import { Module } from "./loading/start.js";
import type { CountTable } from "./tables/table.js";
import { isTable, ofTable } from "./tables/transfer.js";
import type {
  Check,
  ErrorBudget,
  ExplainArguments,
  Explanation,
  Measure,
  Need,
  Replay,
  Usual,
} from "./values/declared.js";
import { invalidArgument } from "./values/error.js";
import { fieldsOf, OPTIONS } from "./values/input.js";
import { stringable } from "./values/printing.js";
import type { Instant } from "./values/time.js";

export { type Notified, type NotifyOptions, notify, type Receiver } from "./notify.js";
export type {
  Amount,
  Cause,
  Check,
  ErrorBudget,
  Explanation,
  Finding,
  Incident,
  IncidentChange,
  IncidentEvent,
  IncidentHold,
  IncidentPart,
  Measure,
  Need,
  Query,
  Receipt,
  ReceiverKind,
  Replay,
  RuleKind,
  Severity,
  Status,
  Unjudged,
  Usual,
} from "./values/declared.js";

const module = new Module(glue, source, "explainChange");

/** The core of health. The first call compiles it. */
function healthCore(): Glue {
  return module.glue;
}

/**
 * Compiles the WebAssembly of health off the main thread. Without it, the first use compiles it at once, which a page
 * on a slow phone notices.
 *
 * @example
 * await init();
 * const { sentence } = explain(table, table, "error_rate");
 */
export function init(): Promise<void> {
  return module.compile();
}

/** A copy of a table in the memory of health, with all that the table knows of its windows. */
function handedOver(glue: Glue, argument: string, table: unknown): CoreTable {
  if (!isTable(table)) throw invalidArgument(argument, "want a CountTable");
  const totals = table.groupBy();
  try {
    return new glue.CoreTable(ofTable(glue, table), JSON.stringify(totals));
  } finally {
    totals[Symbol.dispose]();
  }
}

/** The options of {@link explain}. */
export interface ExplainOptions extends ExplainArguments {}

/**
 * Which few combinations of dimension values explain how a measure changed from one table to another, and by how many
 * events exactly.
 *
 * For a rate, the table before may cover any length of time, and a long one is better. If it has three windows or more,
 * those whose rate is far from the median are left out, unless they are in the later table, too: `leftOut` of the result
 * names them, and the option `keepUnusual` keeps them. For a volume, it should have as many windows as the other one,
 * because counts are not scaled.
 *
 * @throws {@link TallyfoldError} with code `incompatible_tables` for tables of other dimensions, another metric or
 * another filter; of kind `config` for other arguments.
 * @example
 * const { sentence, causes } = explain(table, table, "error_rate");
 * for (const { where, events } of causes) console.log(where, events);
 */
export function explain(
  before: CountTable,
  now: CountTable,
  measure: Measure,
  options: ExplainOptions = {},
): Explanation {
  const given = fieldsOf("options", options, OPTIONS);
  const glue = healthCore();
  const tables = [];
  try {
    const earlier = handedOver(glue, "before", before);
    tables.push(earlier);
    const later = handedOver(glue, "now", now);
    tables.push(later);
    return stringable(glue.explainChange(earlier, later, measure, given) as Explanation);
  } finally {
    for (const table of tables) table.free();
  }
}

/** The options of {@link usual}. */
export interface UsualOptions {
  /** Where the range starts. */
  readonly start: Instant;
  /** Where the range ends. */
  readonly end: Instant;
  /** The length of a slot, `"15m"` by default. */
  readonly step?: string | undefined;
}

/**
 * What is usual for the sum of a table's rows in each slot of a range: what to expect, and between which values it stays on all
 * but a few days. It is learned from the table's settled windows before each slot, so the table needs history: with two
 * weeks, the band follows how much the counts vary. Slots with too little history are left out.
 *
 * @throws {@link TallyfoldError} with code `unaligned_window` for a table with a window that crosses the edge of a slot; of kind
 * `config` for other arguments.
 * @example
 * const bands = usual(table, "errors", { start, end });
 * for (const { start, low, high } of bands) console.log(start, low, high);
 */
export function usual(table: CountTable, measure: Measure, options: UsualOptions): Usual[] {
  const given = fieldsOf("options", options, OPTIONS);
  const glue = healthCore();
  const core = handedOver(glue, "table", table);
  try {
    return glue.usualValues(core, measure, given) as Usual[];
  } finally {
    core.free();
  }
}

/** The options of {@link acknowledge}. */
export interface AcknowledgeOptions {
  /** Who knows of the incident, or what is done about it. */
  readonly note?: string | undefined;
}

/** The options of {@link silence}. */
export interface SilenceOptions extends AcknowledgeOptions {
  /** When the silence ends. */
  readonly until: Instant;
}

/**
 * Records that somebody knows of an incident, and returns the state for the next check. Until the incident becomes more
 * severe, or is over and comes back, it counts as silenced: a check is healthy in spite of it, and no receiver is
 * notified. The beginning of its `id` suffices.
 *
 * @throws {@link TallyfoldError} with code `invalid_argument` unless exactly one incident has this `id`;
 * `invalid_checkpoint` for a state that is torn or was changed.
 * @example
 * const { state, incidents } = Rules.standard().check({ delivery: table });
 * for (const { id } of incidents) store(acknowledge(state, id, { note: "the vendor works on it" }));
 */
export function acknowledge(
  state: string,
  incident: string,
  options: AcknowledgeOptions = {},
): string {
  const given = fieldsOf("options", options, OPTIONS);
  return healthCore().acknowledgeIncident(state, incident, given);
}

/**
 * Silences an incident until a time, even if it becomes more severe, and returns the state for the next check.
 *
 * @throws {@link TallyfoldError} as {@link acknowledge} does, and with code `missing_argument` without `until`.
 * @example
 * const { state, incidents } = Rules.standard().check({ delivery: table });
 * for (const { id } of incidents) store(silence(state, id, { until: new Date(Date.now() + 3_600_000) }));
 */
export function silence(state: string, incident: string, options: SilenceOptions): string {
  const given = fieldsOf("options", options, OPTIONS);
  return healthCore().silenceIncident(state, incident, given);
}

/**
 * Takes back what {@link acknowledge} or {@link silence} has recorded, and returns the state for the next check.
 *
 * @throws {@link TallyfoldError} as {@link acknowledge} does.
 * @example
 * const { state, incidents } = Rules.standard().check({ delivery: table });
 * for (const { id } of incidents) store(unsilence(state, id));
 */
export function unsilence(state: string, incident: string): string {
  return healthCore().unsilenceIncident(state, incident);
}

/** The counts that {@link Rules} judge, with their history: see {@link Rules.needs}. */
export interface Observed {
  /** Counts of event delivery. */
  readonly delivery?: CountTable | undefined;
  /** Counts of event ingestion. */
  readonly ingestion?: CountTable | undefined;
}

/** The options of {@link Rules.check}. */
export interface CheckOptions extends Observed {
  /** The `state` of the check before. Without one, the windows of the last day are judged. */
  readonly state?: string | undefined;
  /** For silences; no window that ends after it is judged. By default, the clock's time. */
  readonly now?: Instant | undefined;
}

/** The options of {@link Rules.replay}. */
export interface ReplayOptions extends Observed {
  /** Where the range starts. Windows before it only teach what is normal. */
  readonly start: Instant;
  /** Where the range ends. */
  readonly end: Instant;
}

/**
 * Rules: what to look for in counts, and how bad it is. They do not change, and hold no memory of WebAssembly. What one
 * check leaves for the next is a text that the caller keeps.
 *
 * @example
 * const rules = Rules.parse(`
 *   [[rule]]
 *   name = "integrations fail"
 *   kind = "threshold"
 *   measure = "error_rate"
 *   by = ["integration"]
 *   above = "5%"
 * `);
 * const { healthy, findings, state } = rules.check({ delivery: table });
 * for (const { sentence } of findings) console.log(sentence);
 */
export class Rules {
  readonly #text: string;

  private constructor(text: string) {
    this.#text = text;
  }

  /**
   * Reads rules from the text of a TOML file.
   *
   * @throws {@link TallyfoldError} with code `invalid_rules`, whose message has line, column and key, and whose `offset` counts the bytes
   * before that place.
   */
  static parse(text: string): Rules {
    healthCore().CoreRules.parse(text).free();
    // Bundlers rename a class that refers to itself by name.
    return new this(text);
  }

  /** The standard rules, which need no settings of your own. */
  static standard(): Rules {
    return new this(healthCore().CoreRules.standard());
  }

  /** The text that they were read from. */
  get text(): string {
    return this.#text;
  }

  /** The names of the rules, in the order of the text. */
  get names(): string[] {
    return this.#use((core) => core.names());
  }

  /**
   * Which counts the rules need: for each endpoint its dimensions, the length of windows, and how far back.
   *
   * @example
   * const now = Date.parse("2026-03-01T13:00:00Z");
   * const rule = "{ name = 'many errors', kind = 'threshold', measure = 'errors', above = 9 }";
   * for (const { metric, dimensions, window, backMs } of Rules.parse(`rule = [${rule}]`).needs()) {
   *   const range = { start: new Date(now - backMs), end: new Date(now) };
   *   await client.collect({ metric, dimensions, window, ...range });
   * }
   */
  needs(): Need[] {
    return this.#use((core) => core.needs() as Need[]);
  }

  /**
   * Which share of events may fail or be filtered, by the rules of kind `budget`.
   *
   * @example
   * for (const { rule, share } of Rules.standard().budgets()) console.log(rule, share); // delivery budget 0.05
   */
  budgets(): ErrorBudget[] {
    return this.#use((core) => core.budgets() as ErrorBudget[]);
  }

  /**
   * Judges the windows that have settled since the last check. A check that comes twice judges nothing twice, and one
   * that comes late judges the windows in between. The same counts and state give the same findings, in every
   * language.
   *
   * @throws {@link TallyfoldError} with code `invalid_checkpoint` for a state that is torn or was changed;
   * `unaligned_window` for a table whose windows are longer than a rule's windows, or cross the edge of one; of kind
   * `config` for other arguments.
   * @example
   * const { healthy, state } = Rules.standard().check({ delivery: table, state: load() });
   * store(state);
   */
  check(options: CheckOptions = {}): Check {
    const { delivery, ingestion, now, ...given } = fieldsOf("options", options, OPTIONS);
    return this.#judge({ delivery, ingestion }, (core, counts) => {
      const checked = core.check(counts, { ...given, now: now ?? new Date() });
      try {
        return stringable({ ...(checked.found() as Check), state: checked.state() });
      } finally {
        checked.free();
      }
    });
  }

  /**
   * Judges a range of the past window by window, as checks would have done.
   *
   * @throws {@link TallyfoldError} as {@link Rules.check} does.
   * @example
   * const { findings } = Rules.standard().replay({ delivery: table, start, end });
   */
  replay(options: ReplayOptions): Replay {
    const { delivery, ingestion, ...given } = fieldsOf("options", options, OPTIONS);
    return this.#judge({ delivery, ingestion }, (core, counts) =>
      stringable(core.replay(counts, given) as Replay),
    );
  }

  /** Hands the counts over, and judges them. */
  #judge<T>(observed: Observed, by: (core: CoreRules, counts: CoreObserved) => T): T {
    return this.#use((core, glue) => {
      const counts = new glue.CoreObserved();
      try {
        for (const name of ["delivery", "ingestion"] as const) {
          const table = observed[name] ?? undefined;
          if (table !== undefined) counts[name](handedOver(glue, name, table));
        }
        return by(core, counts);
      } finally {
        counts.free();
      }
    });
  }

  /** The rules in the memory of health, which is so given back when it is large. Reading them takes no time. */
  #use<T>(by: (core: CoreRules, glue: Glue) => T): T {
    const glue = healthCore();
    const core = glue.CoreRules.parse(this.#text);
    try {
      return by(core, glue);
    } finally {
      core.free();
    }
  }
}

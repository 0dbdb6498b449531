/**
 * Explains changes in exact counts, and judges counts by rules. Only programs that import this entry load its
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
import { isTable, ofTable } from "./export/transfer.js";
import { Module } from "./loading/start.js";
import type { CountTable } from "./tables/table.js";
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

/**
 * Compiles the WebAssembly of health off the main thread. Without this call, the first use compiles it on the main
 * thread, which can block a page on a slow phone.
 *
 * @example
 * await init();
 * const { sentence } = explain(table, table, "error_rate");
 */
export function init(): Promise<void> {
  return module.compile();
}

/** Copies a table into the memory of health, with everything that the table contains about its windows. */
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
 * Finds the few combinations of dimension values that explain how a measure changed from one table to another, with
 * exact numbers of events.
 *
 * For a rate, `before` may cover any length of time, and a longer time is better. If it has three windows or more,
 * windows whose rate is far from the median are left out, unless they are in `now`, too: `leftOut` of the result
 * names them, and the option `keepUnusual` keeps them. For a volume, `before` should have as many windows as `now`,
 * because counts are not scaled.
 *
 * @throws {@link TallyfoldError} with code `incompatible_tables` if the tables differ in dimensions, metric or
 * filter; `sum_overflow` if a table has more than 2^64 - 1 events; `group_limit` if the values of a dimension take
 * more than 1 GiB in both tables together; of kind `config` for other arguments that can't be used.
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
  return explainEach(before, now, [measure], options)[0] as Explanation;
}

/** @internal The same for several measures. The tables are copied only once. */
export function explainEach(
  before: CountTable,
  now: CountTable,
  measures: readonly Measure[],
  options: ExplainOptions = {},
): Explanation[] {
  const given = fieldsOf("options", options, OPTIONS);
  const glue = module.glue;
  const tables = [];
  try {
    const earlier = handedOver(glue, "before", before);
    tables.push(earlier);
    const later = handedOver(glue, "now", now);
    tables.push(later);
    return measures.map((measure) =>
      stringable(glue.explainChange(earlier, later, measure, given) as Explanation),
    );
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
 * Computes what is usual for the sum of a table's rows in each slot of a range: the expected value, and the band in
 * which the value stays on all but a few days. The function learns this from the table's settled windows before
 * each slot, so the table needs history: with two weeks, the band follows how much the counts vary. Slots with too
 * little history are left out.
 *
 * @throws {@link TallyfoldError} with code `unaligned_window` for a table with a window that crosses the edge of a
 * slot; of kind `config` for other arguments that can't be used.
 * @example
 * const bands = usual(table, "errors", { start, end });
 * for (const { start, low, high } of bands) console.log(start, low, high);
 */
export function usual(table: CountTable, measure: Measure, options: UsualOptions): Usual[] {
  const given = fieldsOf("options", options, OPTIONS);
  const glue = module.glue;
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
 * Records that somebody knows of an incident, and returns the state for the next check. Until the incident becomes
 * more severe, or is over and comes back, it counts as silenced: a check is healthy in spite of it, and no receiver
 * is notified that it fires. If a receiver was notified before, it is still notified when the incident is over; an
 * Alertmanager may let its alert expire earlier. `incident` is the `id`, or the beginning of the `id`.
 *
 * @throws {@link TallyfoldError} with code `invalid_argument` unless exactly one incident has this `id`, and for a
 * `note` of more than 1,000 characters; `invalid_checkpoint` for a state that is incomplete or was changed.
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
  return module.glue.acknowledgeIncident(state, incident, given);
}

/**
 * Silences an incident until a time, even if it becomes more severe, and returns the state for the next check.
 *
 * @throws {@link TallyfoldError} as for {@link acknowledge}; with code `missing_argument` without `until`, and
 * `invalid_argument` for an `until` up to which the checks have judged already.
 * @example
 * const { state, incidents } = Rules.standard().check({ delivery: table });
 * for (const { id } of incidents) store(silence(state, id, { until: new Date(Date.now() + 3_600_000) }));
 */
export function silence(state: string, incident: string, options: SilenceOptions): string {
  const given = fieldsOf("options", options, OPTIONS);
  return module.glue.silenceIncident(state, incident, given);
}

/**
 * Removes the record of {@link acknowledge} or {@link silence}, and returns the state for the next check.
 *
 * @throws {@link TallyfoldError} as for {@link acknowledge}.
 * @example
 * const { state, incidents } = Rules.standard().check({ delivery: table });
 * for (const { id } of incidents) store(unsilence(state, id));
 */
export function unsilence(state: string, incident: string): string {
  return module.glue.unsilenceIncident(state, incident);
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
  /** The `state` of the previous check. Without a state, the check judges the windows of the last day. */
  readonly state?: string | undefined;
  /**
   * The time of the check, which decides which silences apply. Windows that end after it are not judged. By
   * default, the clock's time.
   */
  readonly now?: Instant | undefined;
}

/** The options of {@link Rules.replay}. */
export interface ReplayOptions extends Observed {
  /** The start of the range. Windows before it only show what is normal. */
  readonly start: Instant;
  /** Where the range ends. */
  readonly end: Instant;
}

/**
 * Rules: what to look for in counts, and how severe each finding is. Rules are immutable, and hold no memory of
 * WebAssembly. A check returns its state as text: store it, and pass it to the next check.
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
   * @throws {@link TallyfoldError} with code `invalid_rules`. Its message contains the line, the column and the
   * key, and `offset` is the number of bytes before that place.
   */
  static parse(text: string): Rules {
    module.glue.CoreRules.parse(text).free();
    // Bundlers rename a class that refers to itself by name.
    return new this(text);
  }

  /** The standard rules, which need no settings. */
  static standard(): Rules {
    return new this(module.glue.CoreRules.standard());
  }

  /** The text that the rules were read from. */
  get text(): string {
    return this.#text;
  }

  /** The names of the rules, in the order of the text. */
  get names(): string[] {
    return this.#use((core) => core.names());
  }

  /**
   * The counts that the rules need: the dimensions, the windows and the history for each endpoint.
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
   * The share of events that may fail or be filtered, for each rule of kind `budget`.
   *
   * @example
   * for (const { rule, share } of Rules.standard().budgets()) console.log(rule, share); // delivery budget 0.05
   */
  budgets(): ErrorBudget[] {
    return this.#use((core) => core.budgets() as ErrorBudget[]);
  }

  /**
   * Judges the windows that have settled since the last check. A repeated check judges no window twice, and a late
   * check judges all windows since the last check. The same counts and state give the same findings, in every
   * language.
   *
   * @throws {@link TallyfoldError} with code `invalid_checkpoint` for a state that is incomplete or was changed;
   * `unaligned_window` for a table whose windows are longer than a rule's windows, or cross the edge of such a
   * window; of kind `config` for other arguments that can't be used.
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
   * Judges a past range window by window, as checks would have done at the time.
   *
   * @throws {@link TallyfoldError} as for {@link Rules.check}.
   * @example
   * const { findings } = Rules.standard().replay({ delivery: table, start, end });
   */
  replay(options: ReplayOptions): Replay {
    const { delivery, ingestion, ...given } = fieldsOf("options", options, OPTIONS);
    return this.#judge({ delivery, ingestion }, (core, counts) =>
      stringable(core.replay(counts, given) as Replay),
    );
  }

  /** Copies the counts into the memory of health, and judges them. */
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

  /** Reads the rules, and frees them after use, so that a large memory can be replaced. Reading them takes hardly any time. */
  #use<T>(by: (core: CoreRules, glue: Glue) => T): T {
    const glue = module.glue;
    const core = glue.CoreRules.parse(this.#text);
    try {
      return by(core, glue);
    } finally {
      core.free();
    }
  }
}

// Written by scripts/declare.py from what the Rust crates declare. Change it there.

import type { Url } from "./host.js";
import type { Instant, TimeStep } from "./time.js";

/**
 * Every code that {@link TallyfoldError.code} can have: a closed list, the same in every language.
 *
 * @example
 * const known = errorCodes.includes("rate_limited"); // true
 */
export const errorCodes = [
  "missing_argument",
  "unknown_argument",
  "invalid_argument",
  "invalid_base_address",
  "insecure_base_address",
  "secret_in_browser",
  "wasm_forbidden",
  "invalid_timestamp",
  "invalid_window",
  "unknown_dimension",
  "repeated_dimension",
  "no_dimensions",
  "invalid_page",
  "overlapping_coverage",
  "unaligned_window",
  "incompatible_tables",
  "invalid_checkpoint",
  "memory_limit",
  "invalid_rules",
  "unsupported_by_format",
  "out_of_order",
  "token_refused",
  "invalid_token_response",
  "invalid_token_lifetime",
  "token_rejected",
  "token_provider_failed",
  "redirected",
  "forbidden",
  "rate_limited",
  "retry_later",
  "server_error",
  "unexpected_status",
  "network_failed",
  "timed_out",
  "deadline_exceeded",
  "wrong_content_type",
  "wrong_content_encoding",
  "html_response",
  "empty_body",
  "truncated_body",
  "invalid_json",
  "invalid_utf8",
  "lone_surrogate",
  "byte_order_mark",
  "trailing_bytes",
  "duplicate_key",
  "missing_field",
  "wrong_type",
  "invalid_count",
  "count_overflow",
  "inexact_count",
  "sum_overflow",
  "window_mismatch",
  "dimension_mismatch",
  "repeated_combination",
  "depth_limit",
  "string_limit",
  "key_limit",
  "body_limit",
  "group_limit",
  "out_of_memory",
  "crashed",
  "invalid_table",
  "windows_not_additive",
] as const;

/**
 * What went wrong: one of {@link errorCodes}.
 *
 * Codes of kind `config`: the arguments or the order of calls are wrong; usually nothing was sent.
 *
 * `missing_argument`: A required argument was not given.
 * `unknown_argument`: An argument with a name that does not exist.
 * `invalid_argument`: An argument has a value that can't be used.
 * `invalid_base_address`: A base address is not an absolute http(s) address, or has user info, a
 * query or a fragment.
 * `insecure_base_address`: A base address is plain http and points to another machine.
 * `secret_in_browser`: A client secret was given in a browser, where every visitor could read it.
 * `wasm_forbidden`: The page or the process does not allow WebAssembly to be compiled. Only
 * JavaScript can report it.
 * `invalid_timestamp`: A timestamp is not a date and time with `Z` or an offset from UTC.
 * `invalid_window`: A window does not start before it ends.
 * `unknown_dimension`: A dimension that the service does not know, or that the endpoint or table
 * does not have.
 * `repeated_dimension`: The same dimension twice.
 * `no_dimensions`: No dimension at all.
 * `invalid_page`: `page` or `perPage` below 1.
 * `overlapping_coverage`: Two tables cover the same time.
 * `unaligned_window`: A window crosses the edge of a step or range, and its counts can't be split.
 * `incompatible_tables`: Two tables differ in their dimensions, metric, filter, cluster or client.
 * `invalid_checkpoint`: A checkpoint that is incomplete, was changed, belongs to another query,
 * has counts from the future, or is in use.
 * `memory_limit`: The counts that a collect keeps take more memory than allowed. To save memory,
 * set `keep`, which adds windows up.
 * `invalid_rules`: A rules file that isn't TOML, or that has an invalid key or value.
 * `unsupported_by_format`: The format can't represent what is exported.
 * `out_of_order`: Methods were called in the wrong order, during another call, or after the end.
 * Or an outbox or ledger did not get every revision of a follow, one after the other.
 *
 * Codes of kind `auth`: the credentials or the tokens were refused, or there are none.
 *
 * `token_refused`: A token endpoint refused the credentials.
 * `invalid_token_response`: A token endpoint's response can't be used.
 * `invalid_token_lifetime`: A token's lifetime is not a positive whole number of seconds.
 * `token_rejected`: The service answered 401, even to tokens that had just been fetched.
 * `token_provider_failed`: The caller's own source of tokens failed.
 *
 * Codes of kind `service`: the service or the connection to it has failed.
 *
 * `redirected`: A redirect (3xx); tallyfold follows none.
 * `forbidden`: Status 403; for the destination of a push, also 401.
 * `rate_limited`: Status 429.
 * `retry_later`: The service requests a longer wait than the caller allows.
 * `server_error`: Status 5xx.
 * `unexpected_status`: A status that no other code stands for; for the destination of a push, also
 * a success without the header that confirms it.
 * `network_failed`: The HTTP client could not complete the exchange.
 * `timed_out`: The exchange took longer than the client's timeout.
 * `deadline_exceeded`: The call, including its retries and waits, took longer than its deadline.
 *
 * Codes of kind `response`: a response or a saved table is not a valid result, or could not be
 * processed.
 *
 * `wrong_content_type`: The response has a content type other than JSON.
 * `wrong_content_encoding`: The response uses a content encoding that was not requested, or is
 * compressed more than once.
 * `html_response`: The body is an HTML page instead of JSON.
 * `empty_body`: No bytes at all, or only white space.
 * `truncated_body`: The body ended before its JSON did.
 * `invalid_json`: The body is not JSON.
 * `invalid_utf8`: A string is not UTF-8. (Such a byte outside of a string is `invalid_json`.)
 * `lone_surrogate`: An escape for one half of a surrogate pair without the other half.
 * `byte_order_mark`: A byte order mark before the JSON.
 * `trailing_bytes`: Bytes after the JSON.
 * `duplicate_key`: The same key twice in one object.
 * `missing_field`: A required field is missing.
 * `wrong_type`: A value of the wrong JSON type.
 * `invalid_count`: A count that is not a string of ASCII digits.
 * `count_overflow`: A count above 2^64 - 1, or a count or change that is too large for a column's
 * number type.
 * `inexact_count`: A count above 2^53, for a target that stores 64-bit floats.
 * `sum_overflow`: A sum of counts above 2^64 - 1.
 * `window_mismatch`: The response is for a window other than the one requested.
 * `dimension_mismatch`: An entry's dimensions are not exactly the requested ones.
 * `repeated_combination`: The same combination of dimension values twice.
 * `depth_limit`: Nested deeper than the limit.
 * `string_limit`: A string longer than the limit.
 * `key_limit`: More keys in one object than the limit.
 * `body_limit`: A body longer than the limit.
 * `group_limit`: More groups than the limit.
 * `out_of_memory`: There is not enough memory for what was read.
 * `crashed`: The core crashed during a call: a bug in tallyfold. Only JavaScript can report it.
 * `invalid_table`: A saved table that this version can't read, or that was changed after it was
 * written.
 * `windows_not_additive`: Counts of adjacent windows do not add up to the counts of the whole
 * range.
 */
export type ErrorCode = (typeof errorCodes)[number];

/** The arguments of a client that may come from the environment, and their variables. */
export const environment = {
  clusterEndpoint: "TALLYFOLD_CLUSTER_ENDPOINT",
  clientId: "TALLYFOLD_CLIENT_ID",
  clientSecret: "TALLYFOLD_CLIENT_SECRET",
  controlAudience: "TALLYFOLD_CONTROL_AUDIENCE",
  baseUrl: "TALLYFOLD_BASE_URL",
  authUrl: "TALLYFOLD_AUTH_URL",
  orchestrationAudience: "TALLYFOLD_ORCHESTRATION_AUDIENCE",
  identity: "TALLYFOLD_IDENTITY",
} as const;

/**
 * Whether the counts of the halves of a window add up to the counts of the whole.
 *
 * `additive`: They do. (Windows that include both edges would be detected only if an event
 * happened exactly at the middle.)
 * `double_counted`: Some events were counted in both halves: the service's windows seem to include
 * both edges.
 * `missing`: Some events were counted in neither half.
 * `mixed`: Some groups have more events in the halves and some fewer, for example because late
 * events arrived between the readings.
 * `unknown`: There were no events, so the probe shows nothing.
 */
export type AdditivityVerdict = "additive" | "double_counted" | "missing" | "mixed" | "unknown";

/**
 * One of the two APIs, each with its own audience and tokens (service reference 5.1, point 5).
 *
 * `control`: The Control API, whose token the Event Metrics API takes.
 * `orchestration`: The Orchestration API.
 */
export type Api = "control" | "orchestration";

/**
 * The name of one of the three counts (service reference 2.3).
 *
 * `success`: Events delivered.
 * `errors`: Events not sent due to an error.
 * `filtered`: Events filtered from the stream.
 */
export type CountName = "success" | "errors" | "filtered";

/**
 * What rows are ranked by.
 *
 * `success`: Events delivered.
 * `errors`: Events not sent due to an error.
 * `filtered`: Events filtered from the stream.
 * `undelivered`: Events that were not delivered: errors and filtered together.
 * `error_rate`: The share of errors in the events that were to be sent: of success and errors.
 * `filtered_rate`: The share of filtered in all events.
 */
export type RankBy =
  | "success"
  | "errors"
  | "filtered"
  | "undelivered"
  | "error_rate"
  | "filtered_rate";

/**
 * A group-by field of the Event Metrics API (service reference 2.4).
 *
 * `event_name`: Name of the event.
 * `write_key`: Source write key.
 * `integration`: Destination integration.
 * `reason`: Filtering reason, if applicable; event delivery only.
 */
export type Dimension = "event_name" | "write_key" | "integration" | "reason";

/**
 * Which counts are requested: the two analytics endpoints (service reference 4.4 and 4.5).
 *
 * `event_delivery`: Delivery counts, which have every dimension.
 * `event_ingestion`: Ingestion counts, which have every dimension but `reason`.
 */
export type Metric = "event_delivery" | "event_ingestion";

/**
 * Which of two tables has a group. A table has a group even if all of its counts are 0.
 *
 * `both`: Both have it.
 * `new`: Only the table after has it.
 * `vanished`: Only the table before has it.
 */
export type Presence = "both" | "new" | "vanished";

/**
 * A deviation from the service reference that a Beta might send and that a caller may tolerate.
 * Each occurrence is counted in {@link Notes}.
 *
 * `repeated_combination`: Entries of the same combination of dimension values, which are added up.
 * `null_dimension`: A dimension value of `null`, which is read as an empty string.
 */
export type Tolerance = "repeated_combination" | "null_dimension";

/**
 * A format in which counts are written.
 *
 * `openmetrics`: OpenMetrics text 1.0, for a scrape or for `promtool tsdb create-blocks-from
 * openmetrics`. `remote-write`: Prometheus remote-write 1.0: protobuf messages, compressed with
 * snappy. `remote-write-2`: Prometheus remote-write 2.0: like 1.0, but a message contains each
 * text only once, and it describes each metric.
 * `otlp`: Requests of the OpenTelemetry protocol (OTLP), as protobuf. `otlp-json`: Requests of the
 * OpenTelemetry protocol (OTLP), as JSON.
 * `influx`: InfluxDB's line protocol.
 * `dogstatsd`: DogStatsD datagrams, protocol 1.3, with timestamps.
 * `statsd`: Plain StatsD datagrams, for windows that just ended.
 * `datadog`: The JSON of Datadog's API for metrics, version 2.
 * `csv`: Comma-separated values (RFC 4180).
 * `ndjson`: A JSON object on each line.
 */
export type ExportFormat =
  | "openmetrics"
  | "remote-write"
  | "remote-write-2"
  | "otlp"
  | "otlp-json"
  | "influx"
  | "dogstatsd"
  | "statsd"
  | "datadog"
  | "csv"
  | "ndjson";

/**
 * What happens to a message that was sent but not acknowledged.
 *
 * `at_least_once`: It is sent again, and may be counted twice.
 * `at_most_once`: It is not sent again, and may be lost.
 */
export type Guarantee = "at_least_once" | "at_most_once";

/**
 * The kind of a note about an export.
 *
 * `inexact_count`: A count is above 2^53, and the target stores 64-bit floats.
 * `windows_left_out`: Windows were left out, because their counts may still change or because they
 * are not fully covered.
 * `long_value`: A value is longer than a system that reads the format accepts.
 * `label_limit`: There are more labels, or longer names of labels, than a system that reads the
 * format accepts.
 */
export type NoteKind = "inexact_count" | "windows_left_out" | "long_value" | "label_limit";

/**
 * Which windows are written.
 *
 * `settled`: Windows that are fully covered and whose counts no longer change.
 * `all`: All windows.
 */
export type ExportWindows = "settled" | "all";

/**
 * What a rule looks for.
 *
 * `threshold`: A count or a share above or below a fixed limit.
 * `rate`: A share that differs from the same windows of earlier weeks.
 * `volume`: A count that differs from the same windows of earlier weeks.
 * `day_off`: A group whose parts all decline for a day, as on a holiday.
 * `ratio`: A number of deliveries per ingested event that differs from earlier weeks.
 * `silent`: No events at a time when there usually are some.
 * `vanished`: A group that always had events, and has none now.
 * `new`: A group that had no events before.
 * `budget`: Errors that use up a budget too fast.
 * `undelivered`: Events that were ingested, but neither delivered, failed nor filtered.
 * `reconciliation`: Reported totals that differ from the sums of their rows.
 */
export type RuleKind =
  | "threshold"
  | "rate"
  | "volume"
  | "day_off"
  | "ratio"
  | "silent"
  | "vanished"
  | "new"
  | "budget"
  | "undelivered"
  | "reconciliation";

/**
 * How bad a finding is.
 *
 * `info`: Good to know.
 * `warning`: Somebody should look at it in working hours.
 * `critical`: Somebody should look at it now.
 */
export type Severity = "info" | "warning" | "critical";

/**
 * The stage of a finding or of an incident.
 *
 * `pending`: Bad, but not yet for as many windows as the rule requires.
 * `firing`: Bad for as many windows as the rule requires, or more.
 * `unjudged`: It fired, but later windows have too few events to show whether it is over.
 * `resolved`: It fired and is over, which is reported only once.
 */
export type Status = "pending" | "firing" | "unjudged" | "resolved";

/**
 * A number that is made from the three counts (service reference 2.3): a volume, or a rate.
 *
 * `success`: Events delivered.
 * `errors`: Events not sent due to an error.
 * `filtered`: Events filtered from the stream.
 * `events`: All events: delivered, failed and filtered.
 * `error_rate`: The share of attempts (delivered and failed) that failed.
 * `filtered_rate`: The share of all events that was filtered.
 */
export type Measure = "success" | "errors" | "filtered" | "events" | "error_rate" | "filtered_rate";

/**
 * A change of an incident.
 *
 * `began`: Its first finding began to fire.
 * `joined`: Another finding joined it.
 * `worse`: It became more severe.
 * `ended`: All findings were over.
 * `reopened`: It came back.
 */
export type IncidentChange = "began" | "joined" | "worse" | "ended" | "reopened";

/**
 * A kind of receiver of alerts.
 *
 * `alertmanager`: An Alertmanager, by its API version 2.
 * `webhook`: Any address that accepts JSON.
 * `slack`: An incoming webhook of Slack.
 * `pagerduty`: A PagerDuty service, by its Events API version 2.
 * `opsgenie`: An Opsgenie team, by its Alert API version 2.
 * `teams`: A channel of Microsoft Teams, by the webhook of a workflow.
 */
export type ReceiverKind =
  | "alertmanager"
  | "webhook"
  | "slack"
  | "pagerduty"
  | "opsgenie"
  | "teams";

/**
 * An endpoint of the sandbox. All of them share one origin, so the sandbox's address serves as
 * `clusterEndpoint`, `baseUrl` and `authUrl` alike.
 *
 * `control_token`: A Control API token (service reference 4.3).
 * `orchestration_token`: An Orchestration API token (service reference 4.1).
 * `event_delivery`: Event delivery metrics (service reference 4.4).
 * `event_ingestion`: Event ingestion metrics (service reference 4.5).
 * `audit_logs`: The audit-log listing (service reference 4.2).
 */
export type SandboxEndpoint =
  | "control_token"
  | "orchestration_token"
  | "event_delivery"
  | "event_ingestion"
  | "audit_logs";

/** One request of a call that has ended, successful or not. It holds no secret. */
export interface Attempt {
  /** Where it was sent: an endpoint of the API, or a token endpoint. */
  readonly target: "token" | "event_delivery" | "event_ingestion" | "audit_logs";
  /** The window that the call is about; absent for audit logs. */
  readonly window?: Window;
  /** The number of the request among this call's requests to the same target, from 1. */
  readonly number: number;
  /** The status, if there was one. */
  readonly status?: number;
  /** What was wrong; absent if the request succeeded. */
  readonly code?: ErrorCode;
  /**
   * The call tries again after this many milliseconds or later; absent if it does not try again.
   * If it is one of a collect or follow that waits for a service that is down, these try again.
   */
  readonly waitMs?: number;
  /** How the caller's wall clock differs from the `Date` of the response, if by more than a minute. */
  readonly clock?: ClockDifference;
}

/**
 * A half-open time window `[start, end)` in UTC.
 *
 * It is an assumption that the service uses half-open windows: its reference does not say whether
 * the edges belong to the window.
 */
export interface Window {
  /** The start, which is part of it, as ISO 8601 that ends in `Z`. */
  readonly start: string;
  /** The end, which is not part of it, as ISO 8601 that ends in `Z`. */
  readonly end: string;
}

/**
 * How the caller's wall clock differs from the service's `Date`. No window settles before its time
 * by either of them.
 */
export interface ClockDifference {
  /** By how much the caller's clock is ahead; a negative number if it is behind. In milliseconds. */
  readonly aheadMs: number;
  /** Whether they differ by more than five minutes: a warning, and otherwise a note. */
  readonly isAlarming: boolean;
  /** A sentence about it. */
  readonly message: string;
}

/** The count after minus the count before, for each of the three: from -(2^64 - 1) to 2^64 - 1. */
export interface Deltas {
  /** The change of events delivered. */
  readonly success: bigint;
  /** The change of events not sent due to an error. */
  readonly errors: bigint;
  /** The change of events filtered. */
  readonly filtered: bigint;
}

/** The number of deviations that were tolerated at the caller's request. */
export interface Notes {
  /**
   * Entries that repeated a combination of dimension values in the same response; they were added
   * up.
   */
  readonly repeatedCombinations: bigint;
  /** Dimension values that were `null`; they were read as empty strings. */
  readonly nullDimensions: bigint;
}

/**
 * The fractions of events that were delivered, failed or were filtered, each from 0 to 1.
 *
 * If there are no events to divide by, a rate is `null`, never 0, 1 or NaN. The service's
 * reference shows no rates; the definitions are ours (`docs/assumptions.md`).
 *
 * Each rate is the `f64` nearest to the exact quotient. It is 0 only if its count is 0. If the
 * denominator is below 2^54, it is 1 only if all events of the denominator are in the count.
 * (Above that, a rate may round to 1.) Because of rounding, `delivery` and `error` may not add up
 * to exactly 1.
 */
export interface Rates {
  /** `success / (success + errors)`: of the events that were to be sent. */
  readonly delivery: number | null;
  /** `errors / (success + errors)`: of the events that were to be sent. */
  readonly error: number | null;
  /** `filtered / (success + errors + filtered)`: of all events. */
  readonly filter: number | null;
}

/** Whether the totals that the service reports are the sums of its counts. */
export type Reconciliation =
  | { readonly verdict: "balanced" }
  | {
      readonly verdict: "unbalanced";
      readonly success: bigint;
      readonly errors: bigint;
      readonly filtered: bigint;
    }
  | { readonly verdict: "unavailable" };

/**
 * The part of the change of each total that a group causes: the group's delta divided by the
 * total's delta.
 *
 * A share is negative if the group changed in the opposite direction to the total; it may be above
 * 1 if other groups did. Apart from rounding, the shares of all groups add up to 1. If the total
 * did not change, the share is `null`, never 0, infinite or NaN. Each is the `f64` nearest to the
 * exact quotient.
 */
export interface Shares {
  /** The part of the change of events delivered. */
  readonly success: number | null;
  /** The part of the change of events not sent due to an error. */
  readonly errors: number | null;
  /** The part of the change of events filtered. */
  readonly filtered: number | null;
}

/** How far a collect is, in windows. */
export interface WindowCounts {
  /** All windows: it grows by 1 when a window is halved. */
  readonly planned: number;
  /** The windows whose counts are known, also from `have` or a checkpoint. */
  readonly done: number;
  /** The windows that have failed. */
  readonly failed: number;
  /** The windows whose calls have been given to workers and are not settled. */
  readonly underWay: number;
  /**
   * While the collect waits for a service that is down: how many milliseconds it waits before the
   * next try, counted from when a window was last settled. Otherwise it is absent.
   */
  readonly waitingMs?: number;
}

/** What a caller should know about an export. */
export interface Note {
  /** The kind of the note. */
  readonly kind: NoteKind;
  /** A sentence for people. */
  readonly message: string;
}

/** The result of a push. */
export interface PushReport {
  /** Messages that were taken. */
  readonly messages: bigint;
  /** Samples in them: the counts of a group in a window are one sample. */
  readonly samples: bigint;
  /** Bytes of their bodies. */
  readonly bytes: bigint;
  /** Messages that were sent again. */
  readonly retries: bigint;
  /**
   * Samples that were sent but not acknowledged, and are not sent again: only if each is to be
   * sent at most once.
   */
  readonly unsure: bigint;
  /** What the destination rejected in messages that it took otherwise. This is not sent again. */
  readonly rejected: readonly Rejected[];
}

/** What a destination rejected in a message that it took otherwise. */
export interface Rejected {
  /** How many data points, if the destination says so. */
  readonly points?: bigint;
  /** What it says, as one line; empty if it says nothing. */
  readonly message: string;
}

/** Events of a group in one time range. */
export interface Amount {
  /** The events that are counted. */
  readonly part: bigint;
  /** For a rate, the events that they are a share of. */
  readonly whole?: bigint;
}

/** A combination of attribute values, and what it explains. */
export interface Cause {
  /** The values, in the order of the attributes. Attributes that are not named may have any value. */
  readonly where: Readonly<Record<string, string>>;
  /** Its events before. */
  readonly before: Amount;
  /** Its events now. */
  readonly now: Amount;
  /** The expected number of counted events now. */
  readonly expected: number;
  /** The events now minus the expected ones, rounded to whole events. */
  readonly events: bigint;
  /** The share of these events in the whole change; 0 if nothing changed. */
  readonly share: number;
  /**
   * How much better the counts are explained with this cause than without it: a difference of log
   * likelihoods, for ranking only.
   */
  readonly score: number;
}

/** What a check has found. */
export interface Check {
  /**
   * The findings that are firing, unjudged, pending or just resolved, sorted by status (in this
   * order), severity and evidence.
   */
  readonly findings: readonly Finding[];
  /**
   * The incidents that the findings belong to, sorted by status and severity. A receiver of alerts
   * gets one alert for each incident.
   */
  readonly incidents: readonly Incident[];
  /**
   * How many windows all rules together have judged; each group counts its own windows. Each check
   * judges the windows whose counts may still change, and counts them again.
   */
  readonly judged: bigint;
  /**
   * Whether all is well. False if a warning or critical finding fires or is unjudged, unless the
   * finding is silenced or provisional. Also false if there are no recent counts, or if no rule
   * can judge the counts.
   */
  readonly healthy: boolean;
  /** Rules that could not judge anything, with the reason. */
  readonly unjudged: readonly Unjudged[];
  /** How many findings were left out, because there are too many. */
  readonly leftOut: bigint;
  /** The state for the next check, as a document with a checksum: pass it as `state`. */
  readonly state: string;
}

/** What a rule has found about a group of events. */
export interface Finding {
  /**
   * An identifier of 16 hexadecimal digits that depends only on the rule and the group: a finding
   * that comes back has the same identifier.
   */
  readonly id: string;
  /** The name of the rule. */
  readonly rule: string;
  /** What the rule looks for. */
  readonly kind: RuleKind;
  /** The severity of the finding. */
  readonly severity: Severity;
  /** Whether the finding is pending, firing, unjudged or resolved. */
  readonly status: Status;
  /** The values of the rule's dimensions. */
  readonly group: Readonly<Record<string, string>>;
  /**
   * The time range of the numbers: the last bad window, or several windows that were judged
   * together.
   */
  readonly window: Window;
  /** When the finding began: the start of the first bad window. */
  readonly since: string;
  /**
   * When the finding began to fire: the end of the bad window that made it fire; none while it is
   * pending.
   */
  readonly fired?: string;
  /**
   * When the finding ended: the end of the last window that showed no recovery, such as a bad
   * window.
   */
  readonly resolved?: string;
  /** The end of the last window that had enough events to judge the group. */
  readonly seen: string;
  /** The measure that the rule judges. */
  readonly measure: Measure;
  /** The counted events. */
  readonly observed: Amount;
  /**
   * The counted events from `since` until the end of `window`, or until `resolved`. None if that
   * time is longer than two days (for a resolved finding, a week), if counts are missing, or if
   * this kind of rule has no totals. If a rule has very many findings, only some of them have
   * totals.
   */
  readonly total?: Amount;
  /** The expected number of counted events. */
  readonly expected: number;
  /** The fewest counted events that would be normal. */
  readonly low: bigint;
  /** The most counted events that would be normal; none without an upper limit. */
  readonly high?: bigint;
  /**
   * The natural logarithm of the probability of these counts if nothing is wrong; none for fixed
   * limits.
   */
  readonly lnP?: number;
  /** The parts of the group that explain the finding, most important first. */
  readonly causes: readonly Cause[];
  /**
   * For dimensions that the group does not name, the values that nearly all events of the group
   * had on the day before the finding began, or since then if the group is new; empty if there are
   * causes.
   */
  readonly within: Readonly<Record<string, string>>;
  /** The events of the change that no cause explains. */
  readonly unexplained: bigint;
  /**
   * The earlier time ranges that the finding was compared with to find its causes: the same time
   * in earlier weeks, or the time just before if the counts of those weeks are unknown. Empty if
   * the finding is not explained.
   */
  readonly compared: readonly Window[];
  /** Whether a silence covers the finding, or its incident is acknowledged or silenced. */
  readonly silenced: boolean;
  /** Whether the counts may still change. The severity of such a finding is at most `warning`. */
  readonly provisional: boolean;
  /** The labels of the rules file and of the rule. */
  readonly labels: Readonly<Record<string, string>>;
  /** The note of the rule, if it has one. */
  readonly note?: string;
  /** The address of the rule's runbook, if it has one. */
  readonly runbook?: string;
  /** The identifier of the finding's incident; none while the finding is pending. */
  readonly incident?: string;
  /** The finding in one sentence. */
  readonly sentence: string;
  /** The query for the counts of the finding. */
  readonly query: Query;
}

/** The query for the counts of a finding. */
export interface Query {
  /** The endpoint. */
  readonly metric: Metric;
  /** The start of the range. */
  readonly start: string;
  /** The end of the range. */
  readonly end: string;
  /** The dimensions to group by. */
  readonly dimensions: readonly Dimension[];
  /** The values to keep, by dimension. */
  readonly where: Readonly<Record<string, readonly string[]>>;
}

/**
 * Findings that belong together.
 *
 * An incident keeps its identifier from check to check, even if it is over and comes back soon.
 */
export interface Incident {
  /** An identifier of 16 hexadecimal digits, which no other incident has. */
  readonly id: string;
  /**
   * The highest severity that its parts have had since it began or came back. Silenced and
   * provisional parts don't raise it. If all open parts are silenced or all are provisional, the
   * next part that is neither sets it anew.
   */
  readonly severity: Severity;
  /**
   * Firing if a part fires; otherwise unjudged if a part is unjudged, and resolved if all parts
   * are resolved.
   */
  readonly status: Status;
  /** When the incident began: the start of the first bad window of all parts. */
  readonly since: string;
  /** When the first part began to fire. */
  readonly fired: string;
  /** The end of the last bad window of all parts so far. */
  readonly until: string;
  /** The identifier of the part that explains more of the other parts than any other one. */
  readonly headline: string;
  /**
   * The sentence of the headline, with the names of the other findings. If the incident came back,
   * these are the findings since then.
   */
  readonly sentence: string;
  /**
   * Whether silences cover all parts that are not over, or the incident is acknowledged or
   * silenced.
   */
  readonly silenced: boolean;
  /** Whether the incident depends on counts that may still change. */
  readonly provisional: boolean;
  /**
   * Whether the incident began, or came back, and ended between two checks. Then no receiver was
   * notified that it fires.
   */
  readonly missed: boolean;
  /**
   * The acknowledgement or silence of the incident. While it is in force, no receiver is notified
   * that the incident fires.
   */
  readonly hold?: IncidentHold;
  /** The findings that belong to the incident, sorted by their identifiers. */
  readonly parts: readonly IncidentPart[];
  /**
   * What happened to the incident, in chronological order. A long history keeps the first and the
   * latest entries.
   */
  readonly history: readonly IncidentEvent[];
}

/** The acknowledgement or silence of an incident. */
export interface IncidentHold {
  /**
   * When the silence ends. An acknowledgement has no such time: it ends when the incident becomes
   * more severe or comes back.
   */
  readonly until?: string;
  /** Who knows of the incident, or what is done about it. */
  readonly note?: string;
}

/** A finding that belongs to an incident, as it was last reported. */
export interface IncidentPart {
  /** The identifier of the finding. */
  readonly id: string;
  /** The name of the rule. */
  readonly rule: string;
  /** The severity of the finding. */
  readonly severity: Severity;
  /** Whether the finding is firing, unjudged or resolved. */
  readonly status: Status;
  /** The values of the rule's dimensions. */
  readonly group: Readonly<Record<string, string>>;
  /**
   * The values of the main cause; without causes, the values that nearly all events of the finding
   * have.
   */
  readonly cause: Readonly<Record<string, string>>;
  /** The measure that the rule judges. */
  readonly measure: Measure;
  /** By how many events the count differs from the expected count, rounded. */
  readonly events: bigint;
  /** When the finding began: the start of the first bad window. */
  readonly since: string;
  /** The end of the last bad window so far. */
  readonly until: string;
  /** Whether a silence covers the finding. */
  readonly silenced: boolean;
  /** Whether the counts of the finding may still change. */
  readonly provisional: boolean;
  /** The finding in one sentence. */
  readonly sentence: string;
}

/** Something that happened to an incident. */
export interface IncidentEvent {
  /** When it happened: the end of a window. */
  readonly at: string;
  /** What happened. */
  readonly change: IncidentChange;
  /** The severity of the incident from then on. */
  readonly severity: Severity;
  /** The identifier of the finding that caused the change. */
  readonly finding: string;
}

/** A rule that could not judge anything. */
export interface Unjudged {
  /**
   * The name of the rule, or `recent counts` if the counts are too old to show whether all is well
   * now.
   */
  readonly rule: string;
  /** The reason, as a sentence. */
  readonly reason: string;
}

/** How many events may fail or be filtered, according to a rule of kind `budget`. */
export interface ErrorBudget {
  /** The name of the rule. */
  readonly rule: string;
  /** The endpoint. */
  readonly metric: Metric;
  /** Which events the budget limits. */
  readonly measure: Measure;
  /** The dimensions to group by. Each group has its own budget. */
  readonly dimensions: readonly Dimension[];
  /** For each restricted dimension, the values to keep. */
  readonly where: Readonly<Record<string, readonly string[]>>;
  /** The share of events that may fail or be filtered: 0.05 for 5%. */
  readonly share: number;
}

/** What is usual in a slot of time: numbers of events for a volume, shares for a rate. */
export interface Usual {
  /** When the slot begins. */
  readonly start: string;
  /** When it ends. */
  readonly end: string;
  /** The expected value. */
  readonly expected: number;
  /** The lowest usual value. */
  readonly low: number;
  /** The highest usual value. */
  readonly high: number;
}

/** What explains a change: its causes, with exact numbers of events. */
export interface Explanation {
  /** What changed. */
  readonly measure: Measure;
  /** All events before. */
  readonly before: Amount;
  /** All events now. */
  readonly now: Amount;
  /**
   * The events now minus the expected events: for a volume, the events before; for a rate, the
   * events at the rate before.
   */
  readonly change: bigint;
  /**
   * The causes, most important first. No event belongs to two of them: each counts only events
   * that belong to no cause before it.
   */
  readonly causes: readonly Cause[];
  /**
   * Further candidates that were not named, best first. They may overlap with causes and with each
   * other.
   */
  readonly others: readonly Cause[];
  /** The part of the change that no cause explains: `change` minus the `events` of all causes. */
  readonly unexplained: bigint;
  /** Whether all groups changed alike, so that there is no narrower cause. */
  readonly isGlobal: boolean;
  /** Whether counts vary this much by chance alone. If so, no cause is named. */
  readonly isNormal: boolean;
  /** The probability, from 0 to 1, that all events together vary at least this much by chance. */
  readonly probability: number;
  /**
   * The earlier windows that were left out because their rate is unusual. A window that is also
   * one of the current windows is never left out.
   */
  readonly leftOut: readonly Window[];
  /** The explanation in one sentence. */
  readonly sentence: string;
}

/** The counts of one endpoint that rules need. */
export interface Need {
  /** The endpoint. */
  readonly metric: Metric;
  /** The dimensions that all rules together need. */
  readonly dimensions: readonly Dimension[];
  /** The length of the windows, such as `15m`: a divisor of the window length of each rule. */
  readonly window: TimeStep;
  /** How long before now the first window starts. In milliseconds. */
  readonly backMs: number;
}

/** The result of the messages to a receiver. */
export interface Receipt {
  /** The kind of receiver and its name, such as `slack:data-team`. */
  readonly receiver: string;
  /** How many messages the receiver accepted. */
  readonly messages: bigint;
  /** How many messages were sent again. */
  readonly retries: bigint;
  /**
   * The error code of the first message that the receiver did not accept. The next call sends this
   * message again, unless the receiver refused a message about an incident that began and ended
   * between two checks.
   */
  readonly code?: string;
  /** The status of the response to this message. */
  readonly status?: number;
  /** The error of this message, as a sentence. */
  readonly error?: string;
}

/** What checks would have found in a range. */
export interface Replay {
  /**
   * Each finding as it was when it began to fire, with the time when it was resolved. The order is
   * chronological; findings with the same times are sorted by severity and evidence. Findings that
   * were only pending are left out.
   */
  readonly findings: readonly Finding[];
  /**
   * The incidents that the findings belong to, as they were at the end of the range, in
   * chronological order.
   */
  readonly incidents: readonly Incident[];
  /** How many windows all rules together have judged; each group counts its own windows. */
  readonly judged: bigint;
  /** The range. */
  readonly range: Window;
  /** Rules that could not judge anything, with the reason. */
  readonly unjudged: readonly Unjudged[];
  /** How many findings were left out, because there are too many. */
  readonly leftOut: bigint;
}

/** What an {@link Aggregator} needs to know, apart from the dimensions of the response. */
export interface AggregatorArguments {
  /** The endpoint that the bytes are from; the table remembers it. */
  readonly metric?: Metric | undefined;
  /**
   * The dimensions to keep, in this order; an empty list gives one grand total. By default, all
   * are kept.
   *
   * If fewer are kept than were requested, a repeated combination is not detected.
   */
  readonly groupBy?: readonly string[] | undefined;
  /** The requested `start` and `end`, which the response is checked against. */
  readonly window?: { readonly start: Instant; readonly end: Instant } | undefined;
  /** How much is read before the response is refused. */
  readonly limits?: Limits | undefined;
  /** Which deviations to tolerate. */
  readonly tolerate?: readonly Tolerance[] | undefined;
}

/** Which page of the audit logs to list (service reference 4.2). */
export interface AuditLogsArguments {
  /** The number of the page, at least 1. */
  readonly page?: number | undefined;
  /** How many records a page has, at least 1. */
  readonly perPage?: number | undefined;
  /**
   * How long the whole call may take, including retries and waits, counted from its start.
   *
   * After that, it fails with `deadline_exceeded`. In milliseconds. `Infinity`, the default, for
   * no limit.
   */
  readonly deadlineMs?: number | undefined;
}

/** What to collect. */
export interface CollectArguments {
  /** Which counts. */
  readonly metric: Metric;
  /** The start of the range, UTC ISO 8601. */
  readonly start: Instant;
  /** The end of the range, which is not part of it, UTC ISO 8601. */
  readonly end: Instant;
  /** The dimensions to request, one to four. */
  readonly dimensions: readonly string[];
  /**
   * The dimensions to keep, in this order; an empty list gives one grand total.
   *
   * By default, all are kept.
   */
  readonly groupBy?: readonly string[] | undefined;
  /**
   * The length of the windows that are read; they start at multiples of it, counted from midnight
   * UTC.
   *
   * The service's documentation recommends 5 to 15 minutes. Default: `15m`.
   */
  readonly window?: TimeStep | undefined;
  /** How many windows are read at the same time. Default: `8`. */
  readonly concurrency?: number | undefined;
  /**
   * The shortest windows to read: a window whose response is too large or too slow is halved down
   * to this length.
   *
   * A window is halved at a multiple of this length, counted from midnight UTC. Default: `1m`.
   */
  readonly finest?: TimeStep | undefined;
  /**
   * Which part of the windows this machine collects, and how many parts there are, when several
   * machines share the work.
   *
   * The first part is 0.
   */
  readonly part?: readonly [index: number, of: number] | undefined;
  /**
   * For how long after a window's end its counts may still change.
   *
   * If a window is read earlier, its counts are used, but the window is marked as provisional. In
   * milliseconds. Default: `3,600,000`.
   */
  readonly settleMs?: number | undefined;
  /**
   * What is kept of the windows that were read: `windows`, a step such as `1h` or `1d`, or
   * `total`.
   *
   * `windows` keeps each by itself; a step, which is a multiple of `window`, keeps the sums of its
   * windows; `total` keeps their sum. With a step or `total`, windows are added up as they settle,
   * so memory grows with the number of groups and steps, not of windows. Default: `windows`.
   */
  readonly keep?: "windows" | "total" | TimeStep | undefined;
  /**
   * About how many bytes the counts may take: the stored counts, and the counts of the responses
   * being read.
   *
   * The bytes that the stored counts do not take are divided equally among the windows that are
   * read at the same time. A window that needs more than its share is read alone. If that is not
   * enough, or if the stored counts alone take more, reading ends with an error. Default:
   * `1,073,741,824`.
   */
  readonly memoryLimit?: number | undefined;
  /**
   * Removes the counts of a checkpoint that lie entirely before the range.
   *
   * By default they stay, so that a later run over an earlier range can use them.
   */
  readonly dropOld?: boolean | undefined;
  /**
   * First tests, with one more call, that the counts of two adjacent windows add up to the counts
   * of both together.
   *
   * The test uses the first two adjacent windows that are settled and have not been read yet.
   * Without such a pair, nothing is tested.
   */
  readonly probe?: boolean | undefined;
  /**
   * How long to wait for a service that is down; after that, reading ends.
   *
   * While the service is down, the workers pause, and one call at a time is tried again, with
   * increasing waits of up to a minute. When the service responds again, all workers resume. With
   * 0, a window fails once its own retries are used up. In milliseconds. `Infinity` for no limit.
   * Default: `900,000`.
   */
  readonly patienceMs?: number | undefined;
  /**
   * How long reading may take in all, including waits, counted from its start.
   *
   * After that, reading ends with `deadline_exceeded`, and the windows that were not read are
   * missing. In milliseconds. `Infinity`, the default, for no limit.
   */
  readonly deadlineMs?: number | undefined;
}

/** How to search for causes. */
export interface ExplainArguments {
  /** The maximum number of causes. Default: `5`. */
  readonly most?: number | undefined;
  /** The maximum number of further candidates, best first. Default: `5`. */
  readonly others?: number | undefined;
  /**
   * Also compares with earlier windows whose rate is unusual.
   *
   * By default, they are left out, so that an earlier incident does not count as normal.
   */
  readonly keepUnusual?: boolean | undefined;
}

/** What is exported, and how. */
export interface ExportArguments {
  /** The format. */
  readonly format: ExportFormat;
  /**
   * Labels for each sample, such as the cluster.
   *
   * Names consist of ASCII letters, digits and underscores. They must differ from the names of
   * dimensions.
   */
  readonly labels?: Readonly<Record<string, string>> | Iterable<readonly string[]> | undefined;
  /**
   * The prefix of metric names, instead of `tallyfold` and the endpoint.
   *
   * It consists of up to 100 ASCII letters, digits and underscores, and does not begin with a
   * digit. The names of the dimensions follow it, as in `tallyfold_event_delivery_by_integration`.
   * Counts by other dimensions therefore have another metric name, and no sum over a metric counts
   * an event twice.
   */
  readonly name?: string | undefined;
  /**
   * Which windows are written.
   *
   * By default, StatsD and formats of files, such as CSV, contain all windows. Formats of other
   * systems contain only settled windows, because counts that another system has stored can't be
   * withdrawn. Revisions of a follow are always written.
   */
  readonly windows?: ExportWindows | undefined;
  /**
   * Refuses counts above 2^53 if the destination stores 64-bit floats.
   *
   * By default, such counts are written, with a note.
   */
  readonly exact?: boolean | undefined;
  /**
   * The approximate maximum size of a message in bytes, before compression.
   *
   * By default, as many as the destination accepts.
   */
  readonly maxBytes?: number | undefined;
}

/** What to follow. */
export interface FollowArguments {
  /** Which counts. */
  readonly metric: Metric;
  /**
   * The start of the first window, UTC ISO 8601.
   *
   * It may be in the past or in the future. If it is not at an edge of a window, the first window
   * is shorter.
   */
  readonly start: Instant;
  /** The dimensions to request, one to four. */
  readonly dimensions: readonly string[];
  /** The length of the windows; they start at multiples of it, counted from midnight UTC. */
  readonly window: TimeStep;
  /**
   * The end of the last window.
   *
   * By default, the follow has no end.
   */
  readonly end?: Instant | undefined;
  /**
   * The dimensions to keep, in this order; an empty list gives one grand total.
   *
   * By default, all are kept.
   */
  readonly groupBy?: readonly string[] | undefined;
  /** How long after its end a window is first read. In milliseconds. Default: `0`. */
  readonly delayMs?: number | undefined;
  /**
   * How long after a reading, successful or failed, a window is read again.
   *
   * By default, the length of `window`. In milliseconds.
   */
  readonly rereadMs?: number | undefined;
  /**
   * For how long after a window's end its counts may still change.
   *
   * A window is read again until then. In milliseconds. Default: `3,600,000`.
   */
  readonly settleMs?: number | undefined;
  /**
   * Settles a window early if its counts have not changed for at least the length of a window.
   *
   * This needs fewer requests, but loses the events that arrive after the last reading.
   */
  readonly settleWhenUnchanged?: boolean | undefined;
  /**
   * The state of an earlier follow of the same query.
   *
   * This one resumes there, and `start` has no effect.
   */
  readonly state?: string | undefined;
  /**
   * How long to wait for a service that is down; after that, the reading fails.
   *
   * While the service is down, one reading at a time is tried again, with increasing waits of up
   * to a minute, and all others wait. With 0, a reading fails once its own retries are used up. If
   * a window fails repeatedly while others can be read, its reading fails, too. In milliseconds.
   * `Infinity`, the default, for no limit.
   */
  readonly patienceMs?: number | undefined;
}

/** How much of a response is read before it is refused. */
export interface Limits {
  /** How deeply objects and arrays may be nested (`depth_limit`). Default: `32`. */
  readonly depth?: number | undefined;
  /** The bytes of one string once its escapes are resolved (`string_limit`). Default: `65,536`. */
  readonly stringBytes?: number | undefined;
  /** The keys of one object (`key_limit`). Default: `1,000`. */
  readonly keys?: number | undefined;
  /** The bytes of one body (`body_limit`). Default: `4,294,967,296`. */
  readonly bodyBytes?: number | undefined;
  /** The groups of one table (`group_limit`). Default: `4,000,000`. */
  readonly groups?: number | undefined;
  /**
   * The bytes of one table: for each distinct value, its own bytes and 32 more; for each group, 64
   * (`group_limit`). Default: `536,870,912`.
   */
  readonly tableBytes?: number | undefined;
}

/**
 * The options of a {@link Machine}. The arguments of an API that is not used may be left out; a
 * call to that API then fails and names the missing ones.
 */
export interface MachineArguments {
  /**
   * The address of your deployment, for the Control API and the Event Metrics API.
   *
   * https, or http on this machine.
   */
  readonly clusterEndpoint?: string | Url | undefined;
  /** The Client ID that the operator of the service has issued, for all APIs. */
  readonly clientId?: string | undefined;
  /**
   * The Client Secret that was issued with the Client ID.
   *
   * It can't be read back.
   */
  readonly clientSecret?: string | undefined;
  /** The audience identifier of the Control API. */
  readonly controlAudience?: string | undefined;
  /** The address of the Orchestration API. */
  readonly baseUrl?: string | Url | undefined;
  /** The address of the authorization server, which issues the tokens of the Orchestration API. */
  readonly authUrl?: string | Url | undefined;
  /** The audience identifier of the Orchestration API. */
  readonly orchestrationAudience?: string | undefined;
  /**
   * A name for the cluster and the client whose counts are read, such as `production`.
   *
   * Tables and states contain it. Tables and states with another name are refused. By default, it
   * consists of the address, the Client ID, and a checksum of the headers that you add to
   * requests. Set it if the address of a cluster changes, or if you provide the access tokens,
   * which decide whose counts are read.
   */
  readonly identity?: string | undefined;
  /** Whether the host provides the tokens, instead of a client secret. */
  readonly hostTokens?: boolean | undefined;
  /**
   * Whether requests carry no token, because the address is that of a server of yours that adds
   * it.
   *
   * Such a server is `tallyfold/server` of the npm package, or `tallyfold.asgi`. In a page,
   * requests carry the cookies of the page's own origin.
   */
  readonly tokenless?: boolean | undefined;
  /** Whether the host is a page in a browser, where every visitor can read what it holds. */
  readonly inBrowser?: boolean | undefined;
  /**
   * Lets a page hold the client secret.
   *
   * Only for pages that nobody else can open.
   */
  readonly dangerouslyAllowBrowser?: boolean | undefined;
  /** Allows secrets and tokens to be sent over plain http to other machines. */
  readonly dangerouslyAllowHttp?: boolean | undefined;
  /** The lifetime of a token whose response names none. In seconds. Default: `3,600`. */
  readonly defaultTokenLifetime?: number | undefined;
  /** How much of a response is read before it is refused. */
  readonly limits?: Limits | undefined;
  /** Which deviations to tolerate in metrics responses, because the API is Beta. */
  readonly tolerate?: readonly Tolerance[] | undefined;
  /**
   * The maximum number of retries of one call, including its token requests; 0 for none.
   *
   * A call is retried after statuses 408, 429, 500, 502, 503 and 504, and after a broken
   * connection or a timeout. All calls of a client share a budget of retries, so that a service
   * that is down gets only a few more requests than usual. Default: `3`.
   */
  readonly maxRetries?: number | undefined;
  /**
   * The longest `Retry-After` for which a call waits.
   *
   * If the service requests a longer wait, the call fails with `retry_later`. Other waits between
   * retries are limited by this, too. In milliseconds. Default: `60,000`.
   */
  readonly longestRetryWaitMs?: number | undefined;
  /**
   * How long one request may take, from connecting to the last byte of the response; at most a
   * day.
   *
   * It also limits the wait for a token that another call fetches. In milliseconds. `Infinity` for
   * no limit. Default: `30,000`.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Headers that go with every request, also with token requests, such as the key of a gateway.
   *
   * Headers that the client sets itself are refused, such as `authorization` and `content-type`.
   */
  readonly headers?: Readonly<Record<string, string>> | Iterable<readonly string[]> | undefined;
}

/** What is added to alerts, and how they are sent. */
export interface NotifyArguments {
  /** The name of the cluster, which becomes a label of each alert. */
  readonly cluster?: string | undefined;
  /** More labels of each alert. */
  readonly labels?: Readonly<Record<string, string>> | Iterable<readonly string[]> | undefined;
  /**
   * How long an Alertmanager keeps an alert that no later call sends again.
   *
   * It should be longer than a few intervals between calls. In milliseconds. Default: `7,200,000`.
   */
  readonly alertForMs?: number | undefined;
  /**
   * How long to keep retrying when a receiver fails.
   *
   * A later call sends the messages that were not accepted. In milliseconds. `Infinity` for no
   * limit. Default: `5,000`.
   */
  readonly patienceMs?: number | undefined;
}

/** What pages may ask, and how much of what the service answers is kept. */
export interface PagesArguments {
  /** Whether pages get access tokens: `POST` to `token/control` and `token/orchestration`. */
  readonly handOutTokens?: boolean | undefined;
  /** Whether pages may list audit logs. */
  readonly auditLogs?: boolean | undefined;
  /**
   * How long an answer is kept if its window ended less than an hour ago, so that its counts may
   * still change.
   *
   * Answers for older windows are kept until there is no room. In milliseconds. Default: `5,000`.
   */
  readonly provisionalMs?: number | undefined;
  /**
   * How many calls to the service may be under way at the same time.
   *
   * Others wait. Default: `8`.
   */
  readonly concurrency?: number | undefined;
  /**
   * How many calls may wait until others have ended.
   *
   * Further requests get status 503 with `Retry-After`. Default: `64`.
   */
  readonly queue?: number | undefined;
  /** How many bytes of answers are kept in memory. Default: `67,108,864`. */
  readonly memoryBytes?: number | undefined;
}

/** A range, and the step by which it is cut. */
export interface PlanArguments {
  /** The start of the range, UTC ISO 8601. */
  readonly start: Instant;
  /** The end of the range, which is not part of it. */
  readonly end: Instant;
  /**
   * The step of the UTC day at whose edges the range is cut. The service advises windows of 5 to
   * 15 minutes (service reference 8).
   */
  readonly window: TimeStep;
}

/** What to probe: the counts between three timestamps. */
export interface ProbeArguments {
  /** Which counts. */
  readonly metric: Metric;
  /** The start of the first half, UTC ISO 8601. */
  readonly start: Instant;
  /** The timestamp at which the second half starts. */
  readonly middle: Instant;
  /** The end of both halves, which is not part of them. */
  readonly end: Instant;
  /** The dimensions to request, one to four. */
  readonly dimensions: readonly string[];
}

/** Where an export is sent, and what happens when something fails. */
export interface PushArguments {
  /**
   * The whole address that messages are sent to, with its path.
   *
   * Such as `https://…/api/v1/write`, or `udp://host:8125` for StatsD and DogStatsD.
   */
  readonly url: string | Url;
  /**
   * Headers of each request, such as `authorization`.
   *
   * No message quotes their values.
   */
  readonly headers?: Readonly<Record<string, string>> | Iterable<readonly string[]> | undefined;
  /**
   * Allows headers, or a password in the address, to be sent by plain http to another machine.
   *
   * Others on the network can then read them.
   */
  readonly allowHttp?: boolean | undefined;
  /**
   * What happens to a message that was sent but not acknowledged, because the connection broke.
   *
   * `at_least_once` sends it again, so it may be counted twice. `at_most_once` does not, so it may
   * be lost. Prometheus, VictoriaMetrics and InfluxDB accept a repeated message without harm: for
   * them, it is always sent again, and this option is refused. For other destinations, the default
   * is `at_most_once`, because a loss is reported, but nothing shows a count that was added twice.
   */
  readonly guarantee?: Guarantee | undefined;
  /**
   * How long to wait in total for a destination that fails or requests pauses. In milliseconds.
   * `Infinity` for no limit. Default: `900,000`.
   */
  readonly patienceMs?: number | undefined;
}

/** Which counts to request, in one window (service reference 4.4 and 4.5). */
export interface QueryArguments {
  /** The start of the window, UTC ISO 8601. */
  readonly start: Instant;
  /**
   * The end of the window, which is not part of it.
   *
   * The service advises windows of 5 to 15 minutes.
   */
  readonly end: Instant;
  /**
   * The dimensions to request: one to four of `event_name`, `write_key`, `integration` and
   * `reason`.
   *
   * Event ingestion does not have `reason`.
   */
  readonly dimensions: readonly string[];
  /**
   * The dimensions to keep while the response streams in, in this order; an empty list gives one
   * grand total.
   *
   * By default, all are kept. Memory grows with the number of kept groups, not with the response.
   */
  readonly groupBy?: readonly string[] | undefined;
  /**
   * How long the whole call may take, including retries and waits, counted from its start.
   *
   * After that, it fails with `deadline_exceeded`. In milliseconds. `Infinity`, the default, for
   * no limit.
   */
  readonly deadlineMs?: number | undefined;
}

/** A receiver of alerts. */
export interface ReceiverArguments {
  /**
   * The name under which the state remembers what the receiver was notified of.
   *
   * With another name, the receiver is notified of all firing alerts again.
   */
  readonly name: string;
  /**
   * The whole address. An Alertmanager's address may omit `/api/v2/alerts`. PagerDuty and Opsgenie
   * have default addresses.
   *
   * The address of a chat tool is often a secret: no message shows more of it than its host.
   */
  readonly url?: string | Url | undefined;
  /**
   * Headers of each request, such as `authorization`.
   *
   * No message quotes their values.
   */
  readonly headers?: Readonly<Record<string, string>> | Iterable<readonly string[]> | undefined;
  /**
   * Allows messages to be sent by plain http to another machine.
   *
   * Others on the network can then read them.
   */
  readonly allowHttp?: boolean | undefined;
  /** The message of a webhook: JSON with placeholders such as `{{sentence}}`. */
  readonly template?: string | undefined;
  /**
   * The integration key of a PagerDuty service (Events API v2).
   *
   * No message quotes it.
   */
  readonly routingKey?: string | undefined;
}

/** `count` equal events to store. */
export interface SandboxEvent {
  /** When they happened, as ISO 8601 with `Z` or an offset from UTC. */
  readonly timestamp: Instant;
  /** Their outcome. */
  readonly outcome: CountName;
  /** The name of the event. */
  readonly eventName: string;
  /** The write key of their source. */
  readonly writeKey: string;
  /** The integration that they were for. */
  readonly integration: string;
  /** Why they were filtered. */
  readonly reason?: string | undefined;
  /** How many events to store. Default: `1`. */
  readonly count?: number | bigint | undefined;
}

/** The options of a sandbox. The default has the demo credentials and no seeded traffic. */
export interface SandboxArguments {
  /**
   * The seed of realistic generated traffic: the same seed generates the same counts.
   *
   * By default, no traffic is generated.
   */
  readonly seed?: number | bigint | undefined;
  /**
   * An incident in the generated traffic, during the hours before the first request.
   *
   * Without a seed, the seed is 1.
   */
  readonly scene?:
    | "outage"
    | "consent_filter"
    | "schema_mismatch"
    | "silent_source"
    | "late_data"
    | undefined;
  /** The client id that both token endpoints accept. Default: `sandbox-client`. */
  readonly clientId?: string | undefined;
  /**
   * The client secret.
   *
   * The default is public and is valid only for a sandbox.
   */
  readonly clientSecret?: string | undefined;
  /** The audience identifier of the Control API. Default: `sandbox-control`. */
  readonly controlAudience?: string | undefined;
  /**
   * The audience identifier of the Orchestration API.
   *
   * It must differ from the other one, because a token has one audience. Default: `sandbox-
   * orchestration`.
   */
  readonly orchestrationAudience?: string | undefined;
  /** How long a token is valid. In seconds. Default: `86,400`. */
  readonly tokenLifetime?: number | undefined;
  /**
   * Whether an event at the `end` of a window also counts in it.
   *
   * Then the assumption `half_open_window` is false, and adjacent windows count some events twice.
   */
  readonly closedWindows?: boolean | undefined;
}

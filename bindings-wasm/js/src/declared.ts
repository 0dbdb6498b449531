// Written by scripts/declare.py from what the Rust crates declare. Change it there.

import type { TimeStep } from "./step.js";

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
  "sum_overflow",
  "window_mismatch",
  "dimension_mismatch",
  "repeated_combination",
  "depth_limit",
  "string_limit",
  "key_limit",
  "body_limit",
  "group_limit",
  "invalid_table",
  "windows_not_additive",
] as const;

/** What went wrong: one of {@link errorCodes}. */
export type ErrorCode = (typeof errorCodes)[number];

/**
 * Whether the halves of a window have the counts of the whole.
 *
 * `additive`: They do. Windows that share their edges would show only where an event is at the
 * middle, to the precision of the service's clock.
 * `double_counted`: Events were counted in both halves: the service's windows seem to be closed at
 * both ends.
 * `missing`: Events were counted in neither half.
 * `mixed`: Some groups have more events in the halves and some fewer, as when late events came
 * between the readings.
 * `unknown`: There were no events, which says nothing.
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
 * A group-by field of the Event Metrics API (service reference 2.4).
 *
 * `event_name`: Name of the event.
 * `write_key`: Source write key.
 * `integration`: Destination integration.
 * `reason`: Filtering reason, if applicable; event delivery only.
 */
export type Dimension = "event_name" | "write_key" | "integration" | "reason";

/**
 * Which counts are asked for: the two analytics endpoints (service reference 4.4 and 4.5).
 *
 * `event_delivery`: Delivery counts, which have every dimension.
 * `event_ingestion`: Ingestion counts, which have every dimension but `reason`.
 */
export type Metric = "event_delivery" | "event_ingestion";

/**
 * Which of two tables has a group. A group whose counts are 0 is there.
 *
 * `both`: Both have it.
 * `new`: Only the table after has it.
 * `vanished`: Only the table before has it.
 */
export type Presence = "both" | "new" | "vanished";

/**
 * A deviation from the service reference that a Beta might send, and that a caller lets pass. Each
 * pass is counted in {@link Notes}.
 *
 * `repeated_combination`: Entries of the same combination of dimension values, which are added up.
 * `null_dimension`: A dimension value of `null`, which is read as an empty string.
 */
export type Tolerance = "repeated_combination" | "null_dimension";

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

/** One request of a call, good or not, once it has ended. It holds no secret. */
export interface Attempt {
  /** What was asked: the API, or a token endpoint on its behalf. */
  readonly target: "token" | "event_delivery" | "event_ingestion" | "audit_logs";
  /** The window that the call is about; absent for audit logs. */
  readonly window?: Window;
  /** Which request of the call to that target it was, from 1. */
  readonly number: number;
  /** The status, if there was one. */
  readonly status?: number;
  /** What was wrong; absent if it was good. */
  readonly code?: ErrorCode;
  /** After how many milliseconds the call will try again, at the earliest; absent if it won't. */
  readonly waitMs?: number;
}

/**
 * A half-open time window `[start, end)` in UTC.
 *
 * That the service reads `start` and `end` so is an assumption: its reference does not say whether
 * the edges belong to the window.
 */
export interface Window {
  /** The first instant inside, as ISO 8601 that ends in `Z`. */
  readonly start: string;
  /** The first instant after, as ISO 8601 that ends in `Z`. */
  readonly end: string;
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

/** What was let pass because the caller asked for tolerance. */
export interface Notes {
  /**
   * Entries whose combination of dimension values stood in the response before; they were added
   * up.
   */
  readonly repeatedCombinations: bigint;
  /** Dimension values that were `null`; they were read as empty strings. */
  readonly nullDimensions: bigint;
}

/**
 * What part of the events were delivered, failed and were filtered: each from 0 to 1.
 *
 * A rate of no events is `null`: never 0, never 1, never NaN. The service's reference shows no
 * rates; the definitions are ours (`docs/assumptions.md`).
 *
 * Each rate is the `f64` nearest to the exact quotient. It is 0 only if its count is 0. It is 1
 * only if no other event is in its denominator, as long as the denominator is below 2^54; of more
 * events, one in 2^54 is too few to be seen. A rounded pair adds up to 1 only nearly.
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
 * What part of the change of each total a group causes: its delta divided by the total's.
 *
 * A share is negative for a group that moves against the total, and above 1 where other groups do.
 * The shares of all groups, if none was rounded, add up to 1. Of a total that did not change there
 * is no share: `null`, never 0, infinite or NaN. Each is the `f64` nearest to the exact quotient.
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
  /** All of them: it grows by 1 when a window is halved. */
  readonly planned: number;
  /** Those whose counts are there, also from before. */
  readonly done: number;
  /** Those that have failed. */
  readonly failed: number;
  /** Those whose calls have been given and not been settled. */
  readonly underWay: number;
}

/** What an {@link Aggregator} has to know, but for the dimensions of the response. */
export interface AggregatorArguments {
  /** The endpoint that the bytes are from, if the table is to know it. */
  readonly metric?: Metric | undefined;
  /**
   * The dimensions to keep, in this order; none for one grand total. Without it, all.
   *
   * Where fewer are kept than were requested, a repeated combination can't be seen.
   */
  readonly groupBy?: readonly string[] | undefined;
  /** The requested `start` and `end`, if the response is to be held to them. */
  readonly window?: { readonly start: Date | string; readonly end: Date | string } | undefined;
  /** How much is read before the response is refused. */
  readonly limits?: Limits | undefined;
  /** What to let pass. */
  readonly tolerate?: readonly Tolerance[] | undefined;
}

/** Which page of the audit logs to list (service reference 4.2). */
export interface AuditLogsArguments {
  /** The number of the page, at least 1. */
  readonly page?: number | undefined;
  /** How many records a page has, at least 1. */
  readonly perPage?: number | undefined;
}

/** What to collect, and how. */
export interface CollectArguments {
  /** Which counts. */
  readonly metric: Metric;
  /** The start of the range, UTC ISO 8601 (service reference 4.4). */
  readonly start: Date | string;
  /** The first instant after the range, UTC ISO 8601. */
  readonly end: Date | string;
  /** The dimensions to ask for, one to four. */
  readonly dimensions: readonly string[];
  /** Those of the dimensions to keep, in this order; none for one grand total. Without it, all. */
  readonly groupBy?: readonly string[] | undefined;
  /**
   * The step of the UTC day at whose edges the range is cut (service reference 8 advises windows
   * of 5 to 15 minutes). `15m` unless told otherwise.
   */
  readonly window?: TimeStep | undefined;
  /**
   * How many windows are read at the same time; 1 for one after the other. `8` unless told
   * otherwise.
   */
  readonly concurrency?: number | undefined;
  /**
   * The step at whose edges a window is halved if its response is too large or too slow: no window
   * is cut inside such a step. `1m` unless told otherwise.
   */
  readonly finest?: TimeStep | undefined;
  /**
   * Which part of the plan to collect, and how many parts there are, for `of` machines that share
   * the work: see {@link Plan.part}.
   */
  readonly part?: readonly [index: number, of: number] | undefined;
  /**
   * For how long after a window's end its counts may still change. A window that is read earlier
   * counts, but a checkpoint marks it as provisional. In milliseconds. `3,600,000` unless told
   * otherwise.
   */
  readonly settleMs?: number | undefined;
  /**
   * Whether to find out first if the counts of two windows add up, with one more call: see {@link
   * Probe}. They are the first two that meet, are settled by the wall clock, and of which nothing
   * is there yet; without such a pair, there is no probe.
   */
  readonly probe?: boolean | undefined;
}

/** What to follow, and how. */
export interface FollowArguments {
  /** Which counts. */
  readonly metric: Metric;
  /**
   * The start of the first window, UTC ISO 8601 (service reference 4.4). It may be long ago, or
   * still to come; the first window is shorter if this is not at an edge of the step.
   */
  readonly start: Date | string;
  /** The dimensions to ask for, one to four. */
  readonly dimensions: readonly string[];
  /** The step of the UTC day at whose edges windows start and end. */
  readonly window: TimeStep;
  /** The end of the last window. Without it, there is none. */
  readonly end?: Date | string | undefined;
  /** Those of the dimensions to keep, in this order; none for one grand total. Without it, all. */
  readonly groupBy?: readonly string[] | undefined;
  /** How long after its end a window is first read. In milliseconds. `0` unless told otherwise. */
  readonly delayMs?: number | undefined;
  /**
   * How long after a reading, also a failed one, a window is read again. Without it, the length of
   * `window`. In milliseconds.
   */
  readonly rereadMs?: number | undefined;
  /**
   * For how long after a window's end its counts may still change. In milliseconds. `3,600,000`
   * unless told otherwise.
   */
  readonly settleMs?: number | undefined;
}

/** The most that a response may hold; more is an error. */
export interface Limits {
  /** How deeply objects and arrays may be nested (`depth_limit`). `32` unless told otherwise. */
  readonly depth?: number | undefined;
  /**
   * The bytes of one string once its escapes are resolved (`string_limit`). `65,536` unless told
   * otherwise.
   */
  readonly stringBytes?: number | undefined;
  /** The keys of one object (`key_limit`). `1,000` unless told otherwise. */
  readonly keys?: number | undefined;
  /** The bytes of one body (`body_limit`). `4,294,967,296` unless told otherwise. */
  readonly bodyBytes?: number | undefined;
  /** The groups of one table (`group_limit`). `4,000,000` unless told otherwise. */
  readonly groups?: number | undefined;
}

/** What a {@link Machine} has to know. */
export interface MachineArguments {
  /**
   * The base address of the customer's own deployment, for the Control API and the Event Metrics
   * API: `{cluster_endpoint}` of the service reference. https, or http on this machine.
   */
  readonly clusterEndpoint?: string | undefined;
  /**
   * The Client ID that the operator of the service has issued, for both APIs (service reference
   * 5).
   */
  readonly clientId?: string | undefined;
  /** The Client Secret that was issued with it. It can't be read back. */
  readonly clientSecret?: string | undefined;
  /** The audience identifier of the Control API (service reference 4.3). */
  readonly controlAudience?: string | undefined;
  /** The base address of the Orchestration API: `{base_url}` of the service reference. */
  readonly baseUrl?: string | undefined;
  /** The address of the authorization server: `{auth_url}` of the service reference. */
  readonly authUrl?: string | undefined;
  /** The audience identifier of the Orchestration API (service reference 4.1). */
  readonly orchestrationAudience?: string | undefined;
  /** Whether the host has tokens from elsewhere, in place of a secret. */
  readonly hostTokens?: boolean | undefined;
  /** Whether the host is a page whose every visitor can read what it holds. */
  readonly inBrowser?: boolean | undefined;
  /** Lets a page hold the client secret. Only for pages that nobody else can open. */
  readonly dangerouslyAllowBrowser?: boolean | undefined;
  /** Lets secrets and tokens go over plain http to other machines. */
  readonly dangerouslyAllowHttp?: boolean | undefined;
  /** The lifetime in seconds of a token that comes without one. `3,600` unless told otherwise. */
  readonly defaultTokenLifetime?: number | undefined;
  /** How much of a response is read before it is refused. */
  readonly limits?: Limits | undefined;
  /** What to let pass in metrics responses, as the API is Beta. */
  readonly tolerate?: readonly Tolerance[] | undefined;
  /**
   * How often one call is tried again at most, its token requests included: after statuses 408,
   * 429, 500, 502, 503 and 504, a broken exchange or one that took too long; 0 for never. All
   * calls of a client share a budget of retries, so that a service that is down is not asked much
   * more than usual. `3` unless told otherwise.
   */
  readonly maxRetries?: number | undefined;
  /**
   * The longest `Retry-After` that is waited for; a longer one ends the call with `retry_later`.
   * Waits that the service did not ask for are no longer than this either. In milliseconds.
   * `60,000` unless told otherwise.
   */
  readonly longestRetryWaitMs?: number | undefined;
  /**
   * How long one exchange may take, from connecting to the last byte of the body, and the wait for
   * a token that another call fetches: up to a day. The host keeps the time. In milliseconds.
   * `Infinity` for no limit. `30,000` unless told otherwise.
   */
  readonly timeoutMs?: number | undefined;
}

/** A range, and the step that it is cut by. */
export interface PlanArguments {
  /** The first instant of the range, UTC ISO 8601. */
  readonly start: Date | string;
  /** The first instant after the range. */
  readonly end: Date | string;
  /**
   * The step of the UTC day at whose edges the range is cut. The service advises windows of 5 to
   * 15 minutes (service reference 8).
   */
  readonly window: TimeStep;
}

/** What to probe: the counts between three instants. */
export interface ProbeArguments {
  /** Which counts. */
  readonly metric: Metric;
  /** The first instant, UTC ISO 8601. */
  readonly start: Date | string;
  /** The instant at which the second half starts. */
  readonly middle: Date | string;
  /** The first instant after both halves. */
  readonly end: Date | string;
  /** The dimensions to ask for, one to four. */
  readonly dimensions: readonly string[];
}

/** What both metrics calls ask for (service reference 4.4 and 4.5). */
export interface QueryArguments {
  /** The first instant of the window, UTC ISO 8601 (service reference 4.4). */
  readonly start: Date | string;
  /**
   * The first instant after the window. The service advises windows of 5 to 15 minutes (service
   * reference 8).
   */
  readonly end: Date | string;
  /**
   * The dimensions to ask for: one to four of `event_name`, `write_key`, `integration` and
   * `reason`, which event ingestion does not have (service reference 2.4).
   */
  readonly dimensions: readonly string[];
  /**
   * Those of the dimensions to keep while the response streams in, in this order; none for one
   * grand total. Without it, all. Memory grows with what is kept, not with the response.
   */
  readonly groupBy?: readonly string[] | undefined;
}

/** Events to store: `count` of them, alike. */
export interface SandboxEvent {
  /** When they happened, UTC ISO 8601. */
  readonly timestamp: Date | string;
  /** What became of them. */
  readonly outcome: CountName;
  /** The name of the event. */
  readonly eventName: string;
  /** The write key of their source. */
  readonly writeKey: string;
  /** The integration that they were for. */
  readonly integration: string;
  /** Why they were filtered. */
  readonly reason?: string | undefined;
  /** How many. `1` unless told otherwise. */
  readonly count?: number | bigint | undefined;
}

/** What a {@link Sandbox} is made of. All of it has defaults. */
export interface SandboxArguments {
  /**
   * Makes believable traffic at any time: the same seed gives the same counts. Without it, there
   * is none.
   */
  readonly seed?: number | bigint | undefined;
  /** The client id that both token endpoints know. `sandbox-client` unless told otherwise. */
  readonly clientId?: string | undefined;
  /** Its secret. That of the demo is public, and opens nothing but a sandbox. */
  readonly clientSecret?: string | undefined;
  /** The audience identifier of the Control API. `sandbox-control` unless told otherwise. */
  readonly controlAudience?: string | undefined;
  /**
   * The audience identifier of the Orchestration API; another one, as tokens have one audience.
   * `sandbox-orchestration` unless told otherwise.
   */
  readonly orchestrationAudience?: string | undefined;
  /**
   * How long a token is valid, in seconds: 24 hours (service reference 8). `86,400` unless told
   * otherwise.
   */
  readonly tokenLifetime?: number | undefined;
  /**
   * Whether an event at the `end` of a window counts in it too: the service that
   * `half_open_window` does not hold for, on which adjacent windows count some events twice.
   */
  readonly closedWindows?: boolean | undefined;
}

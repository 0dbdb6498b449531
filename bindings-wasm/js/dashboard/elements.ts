/** The types of the dashboard's elements. The entry `tallyfold/dashboard` defines the elements when it is imported. */

import type { CountTable, SavedTable } from "../src/tables/table.js";
import type { TimeStep } from "../src/values/time.js";
import type { Dimension, Metric, Window } from "../src/values/types.js";

/** What a view shows of each group: numbers of events, or their shares. */
export type Unit = "counts" | "percent";

/** Which rows a view shows: those with one of the values, for each dimension named. */
export type Where = { readonly [N in Dimension]?: readonly string[] };

/** The counts that a view requests from its server. */
export interface DashboardQuery {
  readonly metric: Metric;
  readonly dimensions: readonly Dimension[];
  /** The first timestamp of the range, and the first one after it, as ISO 8601 that ends in `Z`. */
  readonly start: string;
  readonly end: string;
  /** The length of the windows that are read. */
  readonly window: TimeStep;
}

/** How the counts of a view are loaded. */
export interface LoadOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called when a window has been read. */
  readonly onProgress?: ((done: number, planned: number) => void) | undefined;
}

/**
 * What all elements of the dashboard have in common. Each property has the attribute of the same name, unless it says
 * otherwise.
 */
export interface DashboardElement extends HTMLElement {
  /** The path under which the server for web apps is mounted, such as `/tallyfold`. */
  src: string;
  /**
   * The time that is shown: a length that ends now, such as `24h` or `7d`, or two timestamps with a `/` between them:
   * `2026-01-01T00:00:00Z/2026-01-02T00:00:00Z`. Default: `24h`.
   */
  period: string;
  /** The dimension whose values are compared. */
  by: Dimension;
  unit: Unit;
  /** The time zone of all times: `UTC`, `local` for the viewer's own, or a name such as `Europe/Berlin`. */
  zone: string;
  /** The language in which numbers and times are written. By default, that of the page. */
  locale: string | undefined;
  /** Rules as TOML, for the views that need some. In `<tallyfold-dashboard>`, the attribute `rules` is an address instead: {@link TallyfoldDashboard.rulesSrc}. */
  rules: string | undefined;
}

/** A single view. Inside of `<tallyfold-dashboard>` it gets its counts from there; alone, it reads them from `src`. */
export interface DashboardView extends DashboardElement {
  /** The counts: a table by the dimension `by` and any others, window by window. No attribute. */
  table: CountTable | SavedTable | undefined;
  /** The counts of the same time a week before. No attribute. */
  tableBefore: CountTable | SavedTable | undefined;
  /** The range that was read. No attribute. */
  range: Window | undefined;
  /** Which rows are shown. No attribute. */
  where: Where;
  /** Whether counts are being read. No attribute. */
  loading: boolean;
  /** What went wrong when they were last read. No attribute. */
  error: unknown;
  /** Reads the counts again. */
  refresh(): Promise<void>;
}

/** The chart over time. */
export interface DashboardTrend extends DashboardView {
  /** Which events the line shows before the visitor selects others. Default: `failed`. */
  measure: "failed" | "filtered" | "delivered" | undefined;
}

/** A cluster that the dashboard can show. */
export interface DashboardCluster {
  readonly name: string;
  /** The path of its server for web apps. */
  readonly src: string;
}

/** The whole dashboard. */
export interface TallyfoldDashboard extends DashboardElement {
  /** The clusters to switch between, instead of `src`. The attribute is JSON. */
  clusters: readonly DashboardCluster[];
  /** The address of a file of rules. If it can't be read, no other rules apply. Its attribute is `rules`. */
  rulesSrc: string | undefined;
  /** The name of the cluster that is shown. */
  cluster: string | undefined;
  /** Which rows are shown. No attribute. */
  where: Where;
  /** Which page of the dashboard is open, such as `overview`. */
  view: string;
  /** Where the state is stored: after the `#` or the `?` of the address, or nowhere. Default: `hash`. */
  address: "hash" | "query" | "none";
  /** The title. Default: `Event delivery`. */
  heading: string;
  /** Whether it reads windows as they close. */
  live: boolean;
  /** Reads the counts again. */
  refresh(): Promise<void>;
}

/** A value that was chosen, to show only its rows. */
export type SelectEvent = CustomEvent<{ readonly dimension: Dimension; readonly value: string }>;
/** A range that was marked in a chart. */
export type BrushEvent = CustomEvent<Window>;
/** A part of the state that belongs in the address: undefined for what has its default again. */
export type StateEvent = CustomEvent<{ readonly [name: string]: string | undefined }>;
/** Counts that were read, and are on the page now. If only some could be read, an event of the failure follows. */
export type LoadEvent = CustomEvent<{
  readonly query: DashboardQuery;
  readonly table: CountTable;
}>;
/** What went wrong. Its text is on the page now; if the rules could not be read, on the page of the alerts. */
export type FailureEvent = CustomEvent<{ readonly error: unknown }>;

declare global {
  interface HTMLElementTagNameMap {
    "tallyfold-dashboard": TallyfoldDashboard;
    "tallyfold-destinations": DashboardView;
    "tallyfold-pipeline": DashboardView;
    "tallyfold-reasons": DashboardView;
    "tallyfold-heatmap": DashboardView;
    "tallyfold-trend": DashboardTrend;
    "tallyfold-values": DashboardView;
    "tallyfold-silent": DashboardView;
    "tallyfold-cause": DashboardView;
    "tallyfold-corrections": DashboardView;
    "tallyfold-budget": DashboardView;
    "tallyfold-timeline": DashboardView;
  }
  interface HTMLElementEventMap {
    "tallyfold-select": SelectEvent;
    "tallyfold-brush": BrushEvent;
    "tallyfold-state": StateEvent;
    "tallyfold-load": LoadEvent;
    "tallyfold-error": FailureEvent;
  }
}

/** The types of the dashboard's elements. The entry `tallyfold/dashboard` defines the elements when it is imported. */

import type { CountTable, SavedTable } from "../src/tables/table.js";
import type { TimeStep } from "../src/values/time.js";
import type { Dimension, Metric, Window } from "../src/values/types.js";

/** Whether views show numbers of events or shares. */
export type Unit = "counts" | "percent";

/** Which rows a view shows: rows that have one of the given values in each given dimension. */
export type Where = { readonly [N in Dimension]?: readonly string[] };

/** The counts that a view requests from its server. */
export interface DashboardQuery {
  readonly metric: Metric;
  readonly dimensions: readonly Dimension[];
  /** The start of the range (included) and its end (excluded), as ISO 8601 that ends in `Z`. */
  readonly start: string;
  readonly end: string;
  /** The length of the windows that are read. */
  readonly window: TimeStep;
}

/** Options for loading counts. */
export interface LoadOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called when a window has been read. */
  readonly onProgress?: ((done: number, planned: number) => void) | undefined;
}

/**
 * The properties that all elements of the dashboard have. Each property has an attribute of the same name, unless its
 * description says otherwise.
 */
export interface DashboardElement extends HTMLElement {
  /** The path under which the server for web apps is mounted, such as `/tallyfold`. */
  src: string;
  /**
   * The range that is shown: a length of time that ends now, such as `24h` or `7d`, or two timestamps with a `/` between them:
   * `2026-01-01T00:00:00Z/2026-01-02T00:00:00Z`. The longest range is 90 days. Default: `24h`.
   */
  period: string;
  /** The dimension whose values are compared. */
  by: Dimension;
  unit: Unit;
  /** The time zone of all times: `UTC`, `local` for the viewer's own, or a name such as `Europe/Berlin`. */
  zone: string;
  /** The language of numbers and times. Default: the language of the page, or of the browser if the page declares none. */
  locale: string | undefined;
  /**
   * Rules as TOML, for the views that need rules. In `<tallyfold-dashboard>`, the attribute `rules` is the address of a file
   * instead: {@link TallyfoldDashboard.rulesSrc}.
   */
  rules: string | undefined;
}

/**
 * A single view. Inside `<tallyfold-dashboard>`, it gets its counts from the dashboard. On its own, it reads them from `src`,
 * or the page sets `table`.
 */
export interface DashboardView extends DashboardElement {
  /** The counts, window by window: a table with the dimension `by` and any others. No attribute. */
  table: CountTable | SavedTable | undefined;
  /** The counts of the same time a week before. No attribute. */
  tableBefore: CountTable | SavedTable | undefined;
  /** The range that was read. No attribute. */
  range: Window | undefined;
  /** Which rows are shown. No attribute. */
  where: Where;
  /** Whether counts are being read. No attribute. */
  loading: boolean;
  /** The error of the last reading. No attribute. */
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
  /**
   * The address of a rules file. If the file can't be read, no other rules apply. The attribute of this property is `rules`.
   */
  rulesSrc: string | undefined;
  /** The name of the cluster that is shown. */
  cluster: string | undefined;
  /** Which rows are shown, unless the page's address names others. No attribute. */
  where: Where;
  /** Which page of the dashboard is open, such as `overview`. */
  view: string;
  /** Where the state is stored: after the `#` or the `?` of the address, or nowhere. Default: `hash`. */
  address: "hash" | "query" | "none";
  /** The title. Default: `Event delivery`. */
  heading: string;
  /** Whether the dashboard reads new windows as they close. Default: `true`. */
  live: boolean;
  /** Reads the counts again. */
  refresh(): Promise<void>;
}

/** The viewer has selected a value, to show only its rows. */
export type SelectEvent = CustomEvent<{ readonly dimension: Dimension; readonly value: string }>;
/** The viewer has marked a range in a chart. */
export type BrushEvent = CustomEvent<Window>;
/** Changes of a view's state for the address. `undefined` means that a value is its default again. */
export type StateEvent = CustomEvent<{ readonly [name: string]: string | undefined }>;
/** Counts were read, and the page shows them. If some could not be read, a `tallyfold-error` event follows. */
export type LoadEvent = CustomEvent<{
  readonly query: DashboardQuery;
  readonly table: CountTable;
}>;
/**
 * Something went wrong, and the page shows the text of the error. If the rules could not be read, the dashboard shows it on the
 * page of the alerts.
 */
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

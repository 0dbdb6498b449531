/// <reference lib="esnext.disposable" preserve="true" />

/**
 * Clients, tables, long ranges and the sandbox.
 * @module tallyfold
 */

export type { Call, DriveStep, MachineRequest, Step } from "./calls/call.js";
export type { DriverOptions } from "./calls/driver.js";
export { Client, type ClientOptions } from "./client/client.js";
export type { Environment } from "./client/environment.js";
export { type HostOptions, Machine, type MachineOptions } from "./client/machine.js";
export type { Checkpoint, StoredSegment } from "./files/checkpoint.js";
export { type BrowserCheckpoint, indexedDbCheckpoint } from "./files/indexed_db.js";
export type { WasmSource } from "./loading/compile.js";
export { init, version } from "./loading/library.js";
export {
  type Collect,
  type CollectQuery,
  type CollectStep,
  type DimensionOf,
  type RangeQuery,
  type Segment,
  type Settled,
  segmentName,
} from "./ranges/collect.js";
export type { CollectOptions } from "./ranges/collect_run.js";
export type { Follow, FollowQuery, FollowStep, Revision } from "./ranges/follow.js";
export { Plan, type PlanOptions } from "./ranges/plan.js";
export type { Additivity, Probe, ProbeQuery } from "./ranges/probe.js";
export type { Following, FollowOptions } from "./ranges/revisions.js";
export {
  Sandbox,
  type SandboxFault,
  type SandboxOptions,
  type SandboxRequest,
  type SandboxResponse,
} from "./sandbox.js";
export { Aggregator, type AggregatorOptions } from "./tables/aggregator.js";
export type {
  CountColumns,
  DeltaColumns,
  DictionaryColumn,
  NumberColumns,
  PerDimension,
  RateColumns,
  ShareColumns,
} from "./tables/columns.js";
export {
  Comparison,
  type ComparisonColumns,
  type ComparisonReport,
  type ComparisonRow,
  compare,
} from "./tables/comparison.js";
export type { Counts, Row, SavedCounts } from "./tables/counts.js";
export {
  Series,
  type SeriesColumns,
  type SeriesReport,
  type SeriesRow,
  type SeriesWindow,
} from "./tables/series.js";
export { type Columns, CountTable, type SavedTable } from "./tables/table.js";
export {
  type AdditivityVerdict,
  type ErrorCode,
  errorCodes,
  type SandboxEndpoint,
  type SandboxEvent,
  type WindowCounts,
} from "./values/declared.js";
export { type ErrorKind, type Failure, TallyfoldError } from "./values/error.js";
export type { WasmModule, WebRequest, WebResponse } from "./values/host.js";
export { digits } from "./values/printing.js";
export type { Instant, Now, TemporalInstant, TimeRange, TimeStep } from "./values/time.js";
export type * from "./values/types.js";

/// <reference lib="esnext.disposable" preserve="true" />
export { Aggregator, type AggregatorOptions } from "./aggregator.js";
export type { Call, DriveStep, MachineRequest, Step } from "./call.js";
export type { Checkpoint, StoredSegment } from "./checkpoint.js";
export { Client, type ClientOptions } from "./client.js";
export {
  type Collect,
  type CollectQuery,
  type CollectStep,
  type DimensionOf,
  type RangeQuery,
  type Segment,
  type Settled,
  segmentName,
} from "./collect.js";
export type { CollectOptions } from "./collecting.js";
export type {
  CountColumns,
  DeltaColumns,
  DictionaryColumn,
  NumberColumns,
  RateColumns,
  ShareColumns,
} from "./columns.js";
export {
  Comparison,
  type ComparisonColumns,
  type ComparisonReport,
  type ComparisonRow,
  compare,
} from "./comparison.js";
export type { Counts, SavedCounts } from "./counts.js";
export {
  type ErrorCode,
  errorCodes,
  type SandboxEndpoint,
  type SandboxEvent,
  type WindowCounts,
} from "./declared.js";
export type { DriverOptions } from "./driver.js";
export type { Environment } from "./environment.js";
export { type ErrorKind, type Failure, TallyfoldError } from "./error.js";
export type { Follow, FollowQuery, FollowStep, Revision } from "./follow.js";
export type { Following, FollowOptions } from "./following.js";
export { type BrowserCheckpoint, indexedDbCheckpoint } from "./indexed_db.js";
export { init, type WasmSource } from "./init.js";
export type { Instant, TemporalInstant } from "./instant.js";
export { Machine, type MachineOptions } from "./machine.js";
export type { Additivity, Probe, ProbeQuery } from "./probe.js";
export type { Row } from "./row.js";
export {
  Sandbox,
  type SandboxFault,
  type SandboxOptions,
  type SandboxRequest,
  type SandboxResponse,
} from "./sandbox.js";
export {
  Series,
  type SeriesColumns,
  type SeriesReport,
  type SeriesRow,
  type SeriesWindow,
} from "./series.js";
export { type Columns, CountTable, type SavedTable } from "./table.js";
export type * from "./types.js";
export { version } from "./version.js";
export { Plan, type PlanOptions } from "./windows.js";

/// <reference lib="esnext.disposable" preserve="true" />
import { core } from "./wasm.js";

export { Aggregator, type AggregatorOptions } from "./aggregator.js";
export { Client, type ClientOptions } from "./client.js";
export type {
  CountColumns,
  DictionaryColumn,
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
export type { Counts } from "./counts.js";
export { type ErrorCode, type ErrorKind, errorCodes, TallyfoldError } from "./error.js";
export {
  type Call,
  Machine,
  type MachineOptions,
  type MachineRequest,
  type Step,
} from "./machine.js";
export {
  Sandbox,
  type SandboxEndpoint,
  type SandboxEvent,
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
export { type Columns, CountTable, type Row, type SavedCounts, type SavedTable } from "./table.js";
export type * from "./types.js";

/** The version of this package. */
export function version(): string {
  return core().version();
}

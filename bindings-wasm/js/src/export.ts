/**
 * Exact counts in the formats of other systems. Only programs that import this entry load its WebAssembly.
 * @module tallyfold/export
 */

export {
  Export,
  type ExportOptions,
  exportCounts,
  exportCounts as export,
  init,
} from "./export/exporting.js";
export {
  type Counter,
  type CounterOptions,
  Ledger,
  type LedgerAddOptions,
  type LedgerPushOptions,
  type PromRegistry,
} from "./export/ledger.js";
export { Outbox, type OutboxOptions } from "./export/outbox.js";
export { type PushOptions, push } from "./export/push.js";
export type { Store } from "./export/store.js";
export type { Exportable } from "./export/transfer.js";
export type {
  ExportFormat,
  ExportWindows,
  Guarantee,
  Note,
  NoteKind,
  PushReport,
  Rejected,
} from "./values/declared.js";

// Exact counts in the formats of observability systems: an entry of its own, with a WebAssembly of its own, so that
// nobody loads it unasked.

export type {
  ExportFormat,
  ExportWindows,
  Guarantee,
  Note,
  NoteKind,
  PushReport,
  Rejected,
} from "./declared.js";
export { Export, type ExportOptions, exportCounts, exportCounts as export } from "./exporting.js";
export { init } from "./formats.js";
export { type Counter, type CounterOptions, Ledger, type PromRegistry } from "./ledger.js";
export { Outbox, type OutboxOptions } from "./outbox.js";
export { type PushOptions, push } from "./push.js";
export type { Exportable } from "./rows.js";

// Exact counts in the formats of observability systems: a module of its own, with a WebAssembly of its own, so that
// nobody loads it unasked.

export type { ExportFormat, Note } from "./declared.js";
export { Export, type ExportOptions, exportCounts, exportCounts as export } from "./exporting.js";
export { init } from "./formats.js";
export type { Exportable } from "./rows.js";

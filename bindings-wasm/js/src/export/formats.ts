// The WebAssembly module of exports, which is compiled when something is exported, and not before.

import { type Glue, glue } from "../../wasm/tallyfold_export.js";
import source from "../../wasm/tallyfold_export_bg.wasm";
import { Module } from "../loading/start.js";

const module = new Module(glue, source, "coreexport_new");

/** @internal The core of exports. The first call compiles it. */
export function formats(): Glue {
  return module.glue;
}

/**
 * Compiles the WebAssembly of exports off the main thread. Without it, the first export compiles it at once, which a
 * page on a slow phone notices.
 *
 * @example
 * await init();
 * const text = exportCounts(table, { format: "openmetrics" }).text();
 */
export function init(): Promise<void> {
  return module.compile();
}

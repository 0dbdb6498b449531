// The WebAssembly module of exports, which is compiled when something is exported, and not before.

import { type Glue, glue } from "../wasm/tallyfold_export.js";
import source from "../wasm/tallyfold_export_bg.wasm";
import { Module } from "./start.js";

let module: Module<Glue> | undefined;

/** A memory of more bytes is given back when nothing is in it: it never shrinks. */
const LARGE = 64 << 20;

function loaded(): Module<Glue> {
  module ??= new Module(glue, source, "coreexport_new");
  return module;
}

/** @internal The core of exports. The first call compiles it. */
export function formats(): Glue {
  const it = loaded();
  const { memory, population } = it.instance;
  if (memory.buffer.byteLength > LARGE && population.objects === 0) it.end();
  return it.instance.glue;
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
  return loaded().compile();
}

// The WebAssembly module of health, which is compiled when something is judged or explained, and not before.

import type { CoreTable } from "../../wasm/tallyfold_health.js";
import { type Glue, glue } from "../../wasm/tallyfold_health.js";
import source from "../../wasm/tallyfold_health_bg.wasm";
import { Module } from "../loading/start.js";
import { isTable, ofTable } from "../tables/transfer.js";
import { invalidArgument } from "../values/error.js";

const module = new Module(glue, source, "explainChange");

/** @internal The core of health. The first call compiles it. */
export function judge(): Glue {
  return module.glue;
}

/**
 * Compiles the WebAssembly of health off the main thread. Without it, the first use compiles it at once, which a page
 * on a slow phone notices.
 *
 * @example
 * await init();
 * const { sentence } = explain(table, table, "error_rate");
 */
export function init(): Promise<void> {
  return module.compile();
}

/** @internal A copy of a table in the memory of health, with all that the table knows of its windows. */
export function handedOver(glue: Glue, argument: string, table: unknown): CoreTable {
  if (!isTable(table)) throw invalidArgument(argument, "want a CountTable");
  const totals = table.groupBy();
  try {
    return new glue.CoreTable(ofTable(glue, table), JSON.stringify(totals));
  } finally {
    totals[Symbol.dispose]();
  }
}

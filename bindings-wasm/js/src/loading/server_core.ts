// The WebAssembly module of what only servers need: the answers to pages, and the locks of files.

import { type Glue, glue } from "../../wasm/tallyfold_pages.js";
import source from "../../wasm/tallyfold_pages_bg.wasm";
import { Module } from "./start.js";

const module = new Module(glue, source, "pageQuestion");

/** @internal The core of what only servers need. The first call compiles it. */
export function serverCore(): Glue {
  return module.glue;
}

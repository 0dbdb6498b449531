// The WebAssembly module of a server for pages, which pages themselves do without.

import { type Glue, glue } from "../../wasm/tallyfold_pages.js";
import source from "../../wasm/tallyfold_pages_bg.wasm";
import { Module } from "../loading/start.js";

const module = new Module(glue, source, "pageQuestion");

/** The core of a server for pages. The first call compiles it. */
export function rules(): Glue {
  return module.glue;
}

// The WebAssembly module of the sandbox, which whoever only talks to the service does without.

import { type Glue, glue } from "../../wasm/tallyfold_sandbox.js";
import source from "../../wasm/tallyfold_sandbox_bg.wasm";
import { Module } from "../loading/start.js";

const module = new Module(glue, source, "coresandbox_new");

/** The core of the sandbox. The first call compiles it. */
export function replica(): Glue {
  return module.glue;
}

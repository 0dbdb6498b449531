// The WebAssembly module of the sandbox, which whoever only talks to the service does without.

import * as glue from "../wasm/tallyfold_sandbox.js";
import base64 from "../wasm/tallyfold_sandbox_bg.wasm";
import { start } from "./start.js";

let isStarted = false;

/** The core of the sandbox. The first call compiles it. */
export function replica(): typeof glue {
  if (!isStarted) start(glue, base64);
  isStarted = true;
  return glue;
}

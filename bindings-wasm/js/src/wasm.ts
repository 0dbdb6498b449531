// Starts the WebAssembly module: at first use, synchronously, without top-level await.

import * as glue from "../wasm/tallyfold_wasm.js";
import base64 from "../wasm/tallyfold_wasm_bg.wasm";
import { type ErrorFields, TallyfoldError } from "./error.js";

let started = false;

/** The core. The first call compiles it, so that an import costs nothing and changes nothing. */
export function core(): typeof glue {
  if (!started) {
    glue.initSync({ module: decoded(base64) });
    glue.setErrorFactory((fields: ErrorFields) => TallyfoldError.of(fields));
    started = true;
  }
  return glue;
}

function decoded(base64: string): Uint8Array {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

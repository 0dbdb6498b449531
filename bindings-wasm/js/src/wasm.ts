// The WebAssembly module of the library: all but the sandbox.

import * as glue from "../wasm/tallyfold_wasm.js";
import base64 from "../wasm/tallyfold_wasm_bg.wasm";
import { start } from "./start.js";

let memory: WebAssembly.Memory | undefined;

/** The core. The first call compiles it, so that an import costs nothing and changes nothing. */
export function core(): typeof glue {
  memory ??= start(glue, base64);
  return glue;
}

/** How many bytes the core has staged for chunks, and they themselves. */
const STAGING = 64 * 1024;
let staging = new Uint8Array();

/**
 * Writes bytes where the core reads chunks, as many as fit at a time, and says how many. Each byte
 * is copied once, and of a chunk of any size the core's memory holds a part.
 */
export function stage(bytes: Uint8Array, take: (length: number) => unknown): void {
  let from = 0;
  do {
    const piece = bytes.length <= STAGING ? bytes : bytes.subarray(from, from + STAGING);
    // A growing memory leaves the views of it empty.
    if (staging.length === 0) {
      const address = core().staging();
      staging = new Uint8Array((memory as WebAssembly.Memory).buffer, address, STAGING);
    }
    staging.set(piece);
    take(piece.length);
    from += STAGING;
  } while (from < bytes.length);
}

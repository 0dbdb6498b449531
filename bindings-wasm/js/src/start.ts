// Starts a WebAssembly module: at first use, synchronously, without top-level await.

import type { InitOutput, SyncInitInput } from "../wasm/tallyfold_wasm.js";
import { type ErrorFields, TallyfoldError } from "./error.js";

/** What the glue of every module has. */
interface Glue {
  initSync(options: { module: SyncInitInput }): Pick<InitOutput, "memory">;
  setErrorFactory(factory: (fields: ErrorFields) => unknown): void;
}

/** Compiles a module that came as base64, and gives its memory. */
export function start(glue: Glue, base64: string): WebAssembly.Memory {
  const { memory } = glue.initSync({ module: decoded(base64) });
  glue.setErrorFactory((fields) => TallyfoldError.of(fields));
  return memory;
}

function decoded(base64: string): Uint8Array<ArrayBuffer> {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

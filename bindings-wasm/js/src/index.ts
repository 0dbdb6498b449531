import * as wasm from "./wasm.js";

/** The version of this package. */
export function version(): string {
  return wasm.version();
}

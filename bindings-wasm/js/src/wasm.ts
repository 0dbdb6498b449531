// Starts the WebAssembly module, once, at import: synchronously, without top-level await.

import { initSync } from "../wasm/tallyfold_wasm.js";
import module from "../wasm/tallyfold_wasm_bg.wasm";

initSync({ module });

export * from "../wasm/tallyfold_wasm.js";

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { errorCodes } from "tallyfold";
import * as glue from "../wasm/tallyfold_wasm.js";

test("the declared error codes are those of the core, in its order", async () => {
  const wasm = new URL("../wasm/tallyfold_wasm_bg.wasm", import.meta.url);
  glue.initSync({ module: await readFile(wasm) });
  assert.deepEqual(errorCodes, glue.errorCodes());
});

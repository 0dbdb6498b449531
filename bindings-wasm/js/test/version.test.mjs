import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { version } from "tallyfold";

test("the module reports the version of its package", async () => {
  const manifest = await readFile(new URL("../package.json", import.meta.url), "utf8");
  assert.equal(version(), JSON.parse(manifest).version);
});

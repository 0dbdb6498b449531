// How many bytes a page loads, by bundler. `make test-hosts` prints the numbers.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { run } from "../test/installed.mjs";
import { bundlers, sizes } from "./bundlers.mjs";

describe("the packed package, as a bundler ships it", () => {
  let home;

  before(async () => {
    home = await mkdtemp(join(import.meta.dirname, "bytes-"));
    const place = join(home, "node_modules/tallyfold");
    await mkdir(place, { recursive: true });
    const tarball = process.env.TALLYFOLD_TARBALL;
    assert.ok(tarball, "TALLYFOLD_TARBALL names the packed package");
    await run("tar", ["xf", tarball, "-C", place, "--strip-components=1"]);
  });
  after(() => rm(home, { recursive: true, force: true }));

  test("at most 159 kB gzipped for the WebAssembly of the library", async () => {
    const wasm = await readFile(join(home, "node_modules/tallyfold/dist/tallyfold.wasm"));
    const { length } = gzipSync(wasm, { level: 9 });
    assert.ok(length <= 159_000, `${length} bytes gzipped`);
    assert.ok(length > 100_000, `${length} bytes gzipped: where is the library?`);
  });

  for (const [name, bundle] of Object.entries(bundlers)) {
    test(`${name}: at most 3 kB for errorCodes`, async () => {
      const text = await bundle(await entry(name, "errorCodes"));
      assert.ok(text.includes("token_refused"));
      assert.ok(text.length <= 3_000, `${text.length} bytes`);
    });

    test(`${name}: at most 177 kB gzipped for Client, without the sandbox`, async () => {
      const text = await bundle(await entry(name, "Client"));
      const { gzip } = sizes(text);
      assert.ok(gzip <= 177_000, `${gzip} bytes gzipped`);
      assert.ok(gzip > 100_000, `${gzip} bytes gzipped: where is the wasm?`);
      assert.ok(text.includes("corecounttable_"), "this is the glue of the library");
      assert.ok(!text.includes("coresandbox_"), "this is the glue of the sandbox");
      assert.ok(!text.includes("coreexport_"), "this is the glue of exports");
      assert.ok(!text.includes("corerules_"), "this is the glue of health");
    });

    test(`${name}: at most 143 kB gzipped for exportCounts, without the library`, async () => {
      const text = await bundle(await entry(name, "exportCounts", "tallyfold/export"));
      const { gzip } = sizes(text);
      assert.ok(gzip <= 143_000, `${gzip} bytes gzipped`);
      assert.ok(text.includes("coreexport_"), "where is the glue of exports?");
      assert.ok(!text.includes("corecounttable_"), "this is the glue of the library");
    });

    test(`${name}: at most 298 kB gzipped for Rules, without the library`, async () => {
      const text = await bundle(await entry(name, "Rules", "tallyfold/health"));
      const { gzip } = sizes(text);
      assert.ok(gzip <= 298_000, `${gzip} bytes gzipped`);
      assert.ok(text.includes("corerules_"), "where is the glue of health?");
      assert.ok(!text.includes("corecounttable_"), "this is the glue of the library");
      assert.ok(!text.includes("coreexport_"), "this is the glue of exports");
    });
  }

  async function entry(bundler, name, from = "tallyfold") {
    const path = join(home, `${bundler}-${name}.js`);
    await writeFile(path, `import { ${name} } from "${from}";\nglobalThis.shown = ${name};\n`);
    return path;
  }
});

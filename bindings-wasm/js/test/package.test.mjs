// The packed tarball in Node: from an ES module, from CommonJS, as a command, through a bundler.

import assert from "node:assert/strict";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { build } from "vite";
import { install, run } from "./installed.mjs";

const { version } = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8"));

/** What a stranger's program does, in either module system. */
const program = `
  const sandbox = new Sandbox({ seed: 3 });
  const server = await serve(sandbox);
  const client = new Client({ ...sandbox.credentials, clusterEndpoint: server.url });
  const window = { start: "2026-03-01T12:00:00Z", end: "2026-03-01T12:15:00Z" };
  const table = await client.eventDelivery({ ...window, dimensions: ["integration"] });
  await server.close();
  console.log(version(), table.length > 5, table.reconciliation.verdict);`;

describe("the packed package", () => {
  let home;

  before(async () => {
    home = await install();
  });
  after(() => rm(home, { recursive: true, force: true }));

  test("works in an ES module", async () => {
    const script = `
      import { Client, Sandbox, version } from "tallyfold";
      import { serve } from "tallyfold/node";
      ${program}`;
    assert.equal(await output("main.mjs", script), `${version} true balanced`);
  });

  test("works in a CommonJS script", async () => {
    const script = `
      const { Client, Sandbox, version } = require("tallyfold");
      const { serve } = require("tallyfold/node");
      (async () => { ${program} })();`;
    assert.equal(await output("main.cjs", script), `${version} true balanced`);
  });

  for (const [system, name, head] of [
    [
      "an ES module",
      "export.mjs",
      `import { CountTable } from "tallyfold";
       import { export as write } from "tallyfold/export";
       import { Ledger } from "tallyfold/export";`,
    ],
    [
      "a CommonJS script",
      "export.cjs",
      `const { CountTable } = require("tallyfold");
       const { export: write, Ledger } = require("tallyfold/export");`,
    ],
  ]) {
    test(`exports from ${system}`, async () => {
      const url = new URL("../../../tests/vectors/exports.json", import.meta.url);
      const { tables, cases } = JSON.parse(await readFile(url, "utf8"));
      const script = `${head}
        const table = CountTable.fromJSON(${JSON.stringify(tables.odd)});
        console.log(JSON.stringify(write(table, { format: "ndjson" }).text()));
        console.log(new Ledger().save().length > 0);`;
      const expected = cases.find(({ name }) => name === "ndjson: a table").pieces.join("");
      assert.equal(await output(name, script), `${JSON.stringify(expected)}\ntrue`);
    });
  }

  test("has types that need neither the DOM's nor Node's", async () => {
    const program = `
      import { Client, type CountTable } from "tallyfold";
      import { exportCounts } from "tallyfold/export";
      import { Rules } from "tallyfold/health";
      import { pageServer } from "tallyfold/server";
      const client = new Client({ clusterEndpoint: "https://cluster.example", tokenless: true });
      const query = { start: "2026-01-01T00:00:00Z", end: "2026-01-01T01:00:00Z" };
      export const table: Promise<CountTable<"reason">> = client.eventDelivery({ ...query, dimensions: ["reason"] });
      export const text = table.then((counts) => exportCounts(counts, { format: "csv" }).text());
      export const names: string[] = Rules.standard().names;
      export const handle = pageServer({ client, authorize: ({ url }) => url === "/" });`;
    await writeFile(join(home, "types.mts"), program);
    const compilerOptions = { strict: true, noEmit: true, target: "es2022", module: "nodenext" };
    for (const lib of [["es2022"], ["es2022", "dom"]]) {
      const options = {
        compilerOptions: { ...compilerOptions, lib, types: [] },
        files: ["types.mts"],
      };
      await writeFile(join(home, "tsconfig.json"), JSON.stringify(options));
      const tsc = new URL("../node_modules/typescript/bin/tsc", import.meta.url).pathname;
      const { stdout } = await run(process.execPath, [tsc, "-p", home]).catch((error) => error);
      assert.equal(stdout, "", lib.join());
    }
  });

  test("has a command", async () => {
    const { stdout } = await run("npx", ["--offline", "tallyfold", "--version"], { cwd: home });
    assert.equal(stdout.trim(), `tallyfold ${version}`);
  });

  test("does nothing when it is imported, and leaves out what is not used", async () => {
    const built = await bundled("unused", 'export { errorCodes } from "tallyfold";');
    assert.ok(built.includes("token_refused"));
    assert.ok(built.length <= 3_000, `${built.length} bytes: the wasm has no business here`);
  });

  test("leaves the sandbox out of a page that has no use for it", async () => {
    const client = await bundled("client", 'export { Client } from "tallyfold";');
    const sandbox = await bundled("sandbox", 'export { Sandbox } from "tallyfold";');
    const both = await bundled("both", 'export { Client, Sandbox } from "tallyfold";');
    const [least, more] = [80_000, client.length + 80_000];
    assert.ok(sandbox.length > least, `${sandbox.length} bytes: a sandbox has a module of its own`);
    assert.ok(
      both.length > more,
      `${client.length} and ${both.length} bytes: it is not the client's`,
    );
  });

  test("has exports in a module of their own, which carries nothing of the library's", async () => {
    const client = await bundled("without", 'export { Client } from "tallyfold";');
    assert.ok(!client.includes("coreexport_"), "this is the glue of exports");
    const exports = await bundled("exports", 'export { exportCounts } from "tallyfold/export";');
    assert.ok(exports.includes("coreexport_"), "where is the glue of exports?");
    assert.ok(!exports.includes("corecounttable_"), "this is the glue of the library");
    assert.ok(!exports.includes("coresandbox_"), "this is the glue of the sandbox");
  });

  test("has health in a module of its own, which carries nothing of the library's", async () => {
    const client = await bundled("without health", 'export { Client } from "tallyfold";');
    assert.ok(!client.includes("corerules_"), "this is the glue of health");
    const health = await bundled("health", 'export { explain } from "tallyfold/health";');
    assert.ok(health.includes("corerules_"), "where is the glue of health?");
    assert.ok(!health.includes("corecounttable_"), "this is the glue of the library");
    assert.ok(!health.includes("coreexport_"), "this is the glue of exports");
  });

  for (const [system, name, head] of [
    [
      "an ES module",
      "health.mjs",
      'import * as tallyfold from "tallyfold";\nimport * as health from "tallyfold/health";',
    ],
    [
      "a CommonJS script",
      "health.cjs",
      'const tallyfold = require("tallyfold");\nconst health = require("tallyfold/health");',
    ],
  ]) {
    test(`explains a change from ${system}`, async () => {
      const url = new URL("../../../tests/vectors/health.json", import.meta.url);
      const { tables } = JSON.parse(await readFile(url, "utf8"));
      const [before, now] = [tables.before, tables["Mail fails"]].map((it) => JSON.stringify(it));
      const script = `${head}
        const [before, now] = [${before}, ${now}].map((it) => tallyfold.CountTable.fromJSON(it));
        const { change, causes } = health.explain(before, now, "errors");
        const { judged } = health.Rules.standard().check();
        console.log(change, causes[0].where.integration, judged);`;
      assert.equal(await output(name, script), "1230n Mail 0n");
    });
  }

  /** What a bundler makes of a script. */
  async function bundled(name, script) {
    const root = join(home, name);
    await mkdir(root);
    const entry = join(root, "main.js");
    await writeFile(entry, script);
    const lib = { entry, formats: ["es"], fileName: () => "built.js" };
    await build({ root, logLevel: "error", build: { lib } });
    return readFile(join(root, "dist/built.js"), "utf8");
  }

  async function output(name, script) {
    await writeFile(join(home, name), script);
    const { stdout } = await run(process.execPath, [name], { cwd: home });
    return stdout.trim();
  }
});

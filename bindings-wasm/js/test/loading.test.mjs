// How the WebAssembly comes into use: at once, off the main thread of a page, or as the caller's own file.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Machine } from "tallyfold";
import { isUsual } from "../dist/precheck.js";
import { run } from "./installed.mjs";

const usual = { clusterEndpoint: "https://cluster.example", hostTokens: true, inBrowser: true };
/** For each option, values that a page may have, and others. */
const values = {
  clusterEndpoint: [
    "https://a.example/prefix/",
    "https://xn--a-1ga.example:8443",
    "http://127.0.0.1:40123",
    "http://localhost/x",
    "https://ab-c.d1.example:65535",
    "https://1.2.3.4",
    "https://a.b.3",
    "https://a.0x1",
    "https://a.example:0",
    "https://a.example:65536",
    "https://a.example:99999",
    "https://-a.example",
    "https://a..example",
    "https://a.example//",
    "https://a.example/../b",
    "https://user@a.example",
    "https://a.example?x",
    "http://a.example",
    "ftp://a.example",
    "https://",
    "/api",
    "",
    5,
    null,
    new URL("https://a.example"),
  ],
  clientId: ["id", "", 5, null],
  clientSecret: ["secret", "", null],
  controlAudience: ["https://control.example", "", {}, null],
  orchestrationAudience: ["a-b", "", []],
  timeoutMs: [1, 30_000, 1e6, 0, -1, 0.5, 1e12, Number.NaN, Number.POSITIVE_INFINITY, "5", 5n],
  maxRetries: [1, 1e6, 0, -1, 1.5, 1e12, "5"],
  longestRetryWaitMs: [1, 1e6, 1e12, -1, "5"],
  hostTokens: [true, false, undefined, 1],
  tokenless: [true, false, undefined, 1],
  inBrowser: [true, false, 1],
  timeout: [5],
  constructor: [5],
  limits: [{}, { depth: -1 }, 5],
  tolerate: [["null_dimension"], ["x"], 5],
};

describe("options that a page does not ask the core about at once", () => {
  test("are the usual ones", () => {
    assert.ok(isUsual(usual));
    assert.ok(isUsual({ ...usual, controlAudience: "https://control.example", timeoutMs: 5000 }));
    assert.ok(!isUsual({ ...usual, clientSecret: "a secret" }));
    assert.ok(!isUsual({ hostTokens: true }));
    assert.ok(isUsual({ ...usual, hostTokens: false, tokenless: true, headers: undefined }));
    assert.ok(!isUsual({ ...usual, tokenless: true }));
  });

  test("are only such as the core takes", () => {
    let sound = 0;
    for (const [name, all] of Object.entries(values)) {
      for (const value of all) {
        const options = { ...usual, [name]: value };
        if (!isUsual(options)) continue;
        sound += 1;
        assert.doesNotThrow(() => new Machine(options), `${name}: ${String(value)}`);
      }
    }
    assert.ok(sound > 10, `${sound}`);
  });
});

describe("init", () => {
  const wasm = fileURLToPath(import.meta.resolve("tallyfold/tallyfold.wasm"));

  /** What a program prints that has used nothing of the package yet. */
  async function printed(body) {
    const program = `
      import { readFile } from "node:fs/promises";
      import { CountTable, init, version, Sandbox } from "tallyfold";
      const bytes = await readFile(${JSON.stringify(wasm)});
      const sandbox = await readFile(${JSON.stringify(wasm.replace("tallyfold.wasm", "sandbox.wasm"))});
      const empty = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
      const counted = { compile: 0, now: 0 };
      const { compile, Module } = WebAssembly;
      WebAssembly.compile = (it) => {
        // Node compiles a parser of its own.
        if (it.byteLength === bytes.length) counted.compile += 1;
        return compile.call(WebAssembly, it);
      };
      WebAssembly.Module = new Proxy(Module, {
        construct(target, given) { counted.now += 1; return new target(...given); },
      });
      const codeOf = (it) => init(it).then(() => "none", ({ code, argument }) => code + " " + argument);
      ${body}`;
    const home = fileURLToPath(new URL("..", import.meta.url));
    const given = ["--input-type=module", "--eval", program];
    return JSON.parse((await run(process.execPath, given, { cwd: home })).stdout);
  }

  test("compiles off the main thread, once", async () => {
    const counted = await printed(`
      await Promise.all([init(), init()]);
      version();
      console.log(JSON.stringify(counted));`);
    assert.deepEqual(counted, { compile: 1, now: 0 });
  });

  test("is not needed", async () => {
    const counted = await printed("version(); await init(); console.log(JSON.stringify(counted));");
    assert.deepEqual(counted, { compile: 0, now: 1 });
  });

  const sources = [
    "bytes",
    "Promise.resolve(bytes)",
    "bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)",
    "new Response(bytes)",
    "new Module(bytes)",
  ];
  for (const source of sources) {
    test(`takes ${source}`, async () => {
      const counted = await printed(`
        await init(${source});
        version();
        console.log(JSON.stringify(counted));`);
      assert.deepEqual(counted, { compile: source === "new Module(bytes)" ? 0 : 1, now: 0 });
    });
  }

  test("refuses anything else, and what is inside is used then", async () => {
    const codes = await printed(`
      const all = [sandbox, empty, new Uint8Array(3), "x", 5, null, {}, new Response("", { status: 404 })];
      const codes = [];
      for (const it of all) codes.push(await codeOf(it));
      codes.push(version());
      console.log(JSON.stringify(codes));`);
    const { version } = JSON.parse(await readFile(new URL("../package.json", import.meta.url)));
    assert.deepEqual(codes, [...Array(8).fill("invalid_argument module"), version]);
  });
});

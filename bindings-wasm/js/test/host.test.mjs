// What the package finds out about the program that it runs in, in contexts made for the purpose.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { createContext, runInNewContext, Script } from "node:vm";

const url = new URL("../dist/index.cjs", import.meta.url);
const script = new Script(await readFile(url, "utf8"));

const servers = {
  "plain JavaScript": {},
  "Node with a document, as in tests": { document: {}, process: { versions: { node: "20.0.0" } } },
  Bun: { WorkerGlobalScope: class {}, process: { versions: { bun: "1.2.0" } } },
  Deno: { WorkerGlobalScope: class {}, Deno: {} },
  "Cloudflare Workers": {
    WorkerGlobalScope: class {},
    navigator: { userAgent: "Cloudflare-Workers" },
  },
};
const browsers = {
  "a page": { document: {} },
  "a worker": { WorkerGlobalScope: class {} },
  "a page whose bundler brings a process": { document: {}, process: { versions: {}, env: {} } },
};

describe("a client secret", () => {
  for (const [host, globals] of Object.entries(servers)) {
    test(`may be held in ${host}`, () => {
      const { Client } = load(globals);
      new Client(options);
    });
  }
  for (const [host, globals] of Object.entries(browsers)) {
    test(`is refused in ${host}, unless that is asked for`, () => {
      const { Client, Machine, TallyfoldError } = load(globals);
      for (const Refusing of [Client, Machine]) {
        assert.throws(
          () => new Refusing(options),
          (error) => TallyfoldError.is(error) && error.code === "secret_in_browser",
        );
        new Refusing({ ...options, dangerouslyAllowBrowser: true });
      }
    });
  }
});

describe("importing the package", () => {
  test("gives every class the name that it is imported by", async () => {
    for (const exported of [load({}), await import("tallyfold")]) {
      const classes = Object.entries(exported).filter(([name]) => /^[A-Z]/.test(name));
      assert.ok(classes.length >= 6);
      for (const [name, it] of classes) assert.equal(it.name, name);
    }
  });

  test("compiles nothing before there is something to do", () => {
    let compiled = 0;
    const Module = class extends WebAssembly.Module {
      constructor(bytes) {
        super(bytes);
        compiled += 1;
      }
    };
    const { CountTable, Sandbox, errorCodes } = load({ WebAssembly: { ...wasm(), Module } });
    assert.ok(CountTable && errorCodes.length > 0);
    assert.equal(compiled, 0);
    new Sandbox();
    new Sandbox();
    assert.equal(compiled, 1);
  });

  test("works where there is no Symbol.dispose yet, as transpilers have it", () => {
    assert.equal(runInNewContext("Symbol.dispose"), undefined, "or else this is no test");
    const { Sandbox, ...rest } = load({});
    const dispose = Symbol.for("Symbol.dispose");
    for (const name of ["Aggregator", "Client", "CountTable", "Machine"]) {
      assert.equal(typeof rest[name].prototype[dispose], "function", name);
    }
    new Sandbox()[dispose]();
  });
});

const options = {
  clusterEndpoint: "https://cluster.example",
  clientId: "id",
  clientSecret: "secret",
  controlAudience: "control",
};

/** The package, loaded into a context with nothing but the language, what it needs, and `globals`. */
function load(globals) {
  const needed = { TextDecoder, TextEncoder, atob, performance };
  const module = { exports: {} };
  const context = createContext({ ...needed, module, exports: module.exports, ...globals });
  script.runInContext(context);
  return module.exports;
}

function wasm() {
  const names = Object.getOwnPropertyNames(WebAssembly);
  return Object.fromEntries(names.map((name) => [name, WebAssembly[name]]));
}

// The packed tarball in Chromium: built by Vite, and without a bundler.

import assert from "node:assert/strict";
import { cp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { Client, CountTable, Sandbox } from "tallyfold";
import { exportCounts } from "tallyfold/export";
import { explain, Rules } from "tallyfold/health";
import { serve } from "tallyfold/node";
import { build } from "vite";
import { CHROMIUM, PAGE_MS } from "./chromium.mjs";
import { install } from "./installed.mjs";

const { version } = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8"));
const pages = fileURLToPath(new URL("page", import.meta.url));
const query = {
  start: "2026-03-01T12:00:00Z",
  end: "2026-03-01T13:00:00Z",
  dimensions: ["integration", "reason"],
};

describe("the packed package in a browser", () => {
  let home;
  let browser;

  before(async () => {
    home = await install();
    browser = await chromium.launch(CHROMIUM);
  });
  after(async () => {
    await browser?.close();
    await rm(home, { recursive: true, force: true });
  });

  test("shows what Node gives, in a page that Vite built, and takes no secret", async (t) => {
    const sandbox = new Sandbox({ seed: 3 });
    const server = await serve(sandbox);
    t.after(() => server.close());
    const clusterEndpoint = server.url;
    // The page has a token, and so its client no ID.
    const identity = clusterEndpoint;
    const client = new Client({ ...sandbox.credentials, clusterEndpoint, identity });
    const table = await client.eventDelivery(query);
    assert.ok(table.length > 5);

    const root = join(home, "page");
    await cp(pages, root, { recursive: true });
    await build({ root, logLevel: "error", build: { target: "esnext" } });
    const given = { clusterEndpoint, query, accessToken: await controlToken(sandbox) };
    const tab = await open(t, join(root, "dist"), given);
    await tab.waitForFunction("document.title !== ''");
    assert.equal(await tab.title(), version);
    const shown = JSON.parse(await tab.locator("pre").textContent());
    assert.equal(JSON.stringify(shown.table), JSON.stringify(table));
    const errors = Array.from(table, (row) => String(row.errors));
    assert.deepEqual(shown.rows, errors);
    assert.deepEqual(shown.resumed, shown.collected);
    assert.deepEqual(shown.collected.totals, shown.table.totals);
    assert.equal(shown.collected.windows.length, 4);
    assert.equal(shown.hasToken, false);
    const codes = ["secret_in_browser", "redirected", "network_failed", "timed_out"];
    assert.deepEqual(shown.codes, codes);
  });

  test("compiles off the main thread where a call is awaited", async (t) => {
    const sandbox = new Sandbox({ seed: 3 });
    const server = await serve(sandbox);
    t.after(() => server.close());
    const given = { clusterEndpoint: server.url, accessToken: await controlToken(sandbox), query };
    const tab = await open(t, join(home, "node_modules/tallyfold/dist"), given);
    const found = await tab.evaluate(async () => {
      const found = { atOnce: 0, codes: [] };
      WebAssembly.Module = new Proxy(WebAssembly.Module, {
        construct(Module, given) {
          found.atOnce += 1;
          return new Module(...given);
        },
      });
      const { Client } = await import("/index.js");
      const { accessToken, query, ...rest } = globalThis.given;
      const options = { ...rest, accessToken: () => ({ accessToken, expiresIn: 600 }) };
      const client = new Client(options);
      const own = { ...query, start: new Date(query.start), dimensions: [...query.dimensions] };
      const call = client.eventDelivery(own);
      const collect = client.collect({ ...own, metric: "event_delivery", window: "15m" });
      // A call under way has the query that it began with, and still runs to its end.
      own.start.setTime(0);
      own.dimensions.pop();
      own.end = query.start;
      client[Symbol.dispose]();
      await client.eventDelivery(query).catch(({ code }) => found.codes.push(code));
      found.rows = [(await call).length, (await collect).length];
      found.waited = found.atOnce;
      try {
        new Client({ ...options, clusterEndpoint: "https://a.example/?" });
      } catch ({ code }) {
        found.codes.push(code);
      }
      return found;
    });
    const codes = ["out_of_order", "invalid_base_address"];
    const { length } = await table();
    assert.deepEqual(found, { atOnce: 0, waited: 0, codes, rows: [length, length] });
  });

  test("works without a bundler, under a content security policy, and in a worker", async (t) => {
    const root = join(home, "node_modules/tallyfold/dist");
    await cp(join(pages, "worker.js"), join(root, "worker.js"));
    const tab = await open(t, root, {}, "script-src 'self' 'wasm-unsafe-eval'");
    const found = await tab.evaluate("import('/index.js').then((it) => it.version())");
    assert.equal(found, version);
    const code = await tab.evaluate(
      `new Promise((resolve) => {
        const worker = new Worker("/worker.js", { type: "module" });
        worker.onmessage = ({ data }) => resolve(data);
      })`,
    );
    assert.equal(code, "secret_in_browser");
  });

  test("says what a content security policy has to allow", async (t) => {
    const root = join(home, "node_modules/tallyfold/dist");
    const tab = await open(t, root, {}, "script-src 'self'");
    const found = await tab.evaluate(async () => {
      const { Client, TallyfoldError, init, version } = await import("/index.js");
      const errors = [];
      const keep = (error) => errors.push([TallyfoldError.is(error), error.code, error.message]);
      try {
        version();
      } catch (error) {
        keep(error);
      }
      await init().catch(keep);
      const accessToken = async () => ({ accessToken: "a" });
      const client = new Client({ clusterEndpoint: "https://cluster.example", accessToken });
      const query = { start: "2026-01-01T00:00:00Z", end: "2026-01-01T01:00:00Z" };
      await client.eventDelivery({ ...query, dimensions: ["reason"] }).catch(keep);
      return errors;
    });
    assert.equal(found.length, 3);
    for (const [isOurs, code, message] of found) {
      assert.deepEqual([isOurs, code], [true, "wasm_forbidden"]);
      assert.match(message, /'wasm-unsafe-eval' in script-src/);
    }
  });

  test("shows the rows of a table in the console, and says why a table can't be posted", async (t) => {
    const root = join(home, "node_modules/tallyfold/dist");
    const tab = await open(t, root, { json: JSON.stringify(await table()) });
    const console = await tab.context().newCDPSession(tab);
    const logged = new Promise((resolve) => console.once("Runtime.consoleAPICalled", resolve));
    await console.send("Runtime.enable");
    const refused = await tab.evaluate(async () => {
      const { CountTable } = await import("/index.js");
      const table = CountTable.fromJSON(globalThis.given.json);
      console.log(table);
      try {
        globalThis.postMessage(table);
      } catch (error) {
        return `${error.name}: ${error.message}`;
      }
      return "";
    });
    assert.match(refused, /^DataCloneError: .*send its toJSON\(\) or its rows instead/);
    // What the console shows when its reader opens the object.
    // The console shows each property of the object's own; a click on this one shows the rows.
    const [{ preview, objectId }] = (await logged).args;
    const property = preview.properties.find(({ name }) => name === "rows");
    assert.equal(property?.type, "accessor");
    const { result } = await console.send("Runtime.callFunctionOn", {
      objectId,
      functionDeclaration: "function () { return this.rows.map(({ errors }) => String(errors)); }",
      returnByValue: true,
    });
    assert.deepEqual(
      result.value,
      Array.from(await table(), ({ errors }) => String(errors)),
    );
  });

  test("exports what Node exports, compiled off the main thread by init", async (t) => {
    const root = join(home, "node_modules/tallyfold/dist");
    const shown = await table();
    const tab = await open(t, root, { json: JSON.stringify(shown) });
    const found = await tab.evaluate(async () => {
      const { CountTable } = await import("/index.js");
      const { exportCounts, init } = await import("/export.js");
      const table = CountTable.fromJSON(globalThis.given.json);
      let atOnce = 0;
      WebAssembly.Module = new Proxy(WebAssembly.Module, {
        construct(Module, given) {
          atOnce += 1;
          return new Module(...given);
        },
      });
      await init();
      const csv = exportCounts(table, { format: "csv" });
      const file = await csv.writeTo("here").catch(({ argument }) => argument);
      return { atOnce, file, text: csv.text(), streamed: await new Response(csv.stream()).text() };
    });
    const text = exportCounts(shown, { format: "csv" }).text();
    assert.deepEqual(found, { atOnce: 0, file: "path", text, streamed: text });
  });

  test("finds what Node finds, and loads health only when it is asked for", async (t) => {
    const url = new URL("../../../tests/vectors/health.json", import.meta.url);
    const { tables, rules } = JSON.parse(await readFile(url, "utf8"));
    const given = {
      before: tables.before,
      now: tables["Mail fails"],
      delivery: tables.delivery,
      rules: rules["all kinds"],
      at: "2026-02-24T00:00:00Z",
    };
    const tab = await open(t, join(home, "node_modules/tallyfold/dist"), given);
    const asked = [];
    tab.on("request", (request) => asked.push(new URL(request.url()).pathname));
    const found = await tab.evaluate(async () => {
      const { before, now, delivery, rules, at } = globalThis.given;
      const { CountTable } = await import("/index.js");
      const [earlier, later] = [before, now].map((it) => CountTable.fromJSON(it));
      const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
      const { explain, init, Rules } = await import("/health.js");
      await init();
      const explained = explain(earlier, later, "error_rate");
      const check = Rules.parse(rules).check({ delivery: CountTable.fromJSON(delivery), now: at });
      const early = loaded.filter((name) => /health|judge|rules/.test(name));
      return { early, texts: [explained, check].map((it) => JSON.stringify(it)) };
    });
    assert.deepEqual(found.early, []);
    assert.ok(
      asked.some((path) => path.includes("tallyfold_health_bg")),
      asked,
    );
    const [before, now, delivery] = [given.before, given.now, given.delivery].map((it) =>
      CountTable.fromJSON(it),
    );
    const check = Rules.parse(given.rules).check({ delivery, now: given.at });
    assert.ok(check.findings.length > 2);
    const texts = [explain(before, now, "error_rate"), check].map((it) => JSON.stringify(it));
    assert.deepEqual(found.texts, texts);
  });

  test("says what a cluster would have to send that sends no CORS headers", async (t) => {
    const silent = createServer((_, response) => response.end("{}"));
    await new Promise((resolve) => silent.listen(0, "127.0.0.1", resolve));
    t.after(() => silent.close());
    const clusterEndpoint = `http://127.0.0.1:${silent.address().port}`;
    const root = join(home, "node_modules/tallyfold/dist");
    const tab = await open(t, root, { clusterEndpoint, query });
    const ask = async () => {
      const { Client } = await import("/index.js");
      const { clusterEndpoint, query } = globalThis.given;
      const accessToken = () => ({ accessToken: "a-token" });
      const client = new Client({ clusterEndpoint, accessToken, maxRetries: 0 });
      const { code, message, cause } = await client.eventDelivery(query).catch((error) => error);
      return { code, message, cause: String(cause), origin: location.origin };
    };
    const told = await tab.evaluate(ask);
    assert.equal(told.code, "network_failed");
    assert.ok(
      told.message.includes(`\`Access-Control-Allow-Origin: ${told.origin}\``),
      told.message,
    );
    assert.match(told.message, /`Access-Control-Allow-Headers: authorization, content-type`/);
    assert.equal(told.cause, "TypeError: Failed to fetch");
    await tab.context().setOffline(true);
    assert.match((await tab.evaluate(ask)).message, /the browser is offline/);
  });

  test("goes on after WebAssembly had no more memory", async (t) => {
    const root = join(home, "node_modules/tallyfold/dist");
    await cp(new URL("small_memory.mjs", import.meta.url), join(root, "small_memory.js"));
    const tab = await open(t, root, { json: JSON.stringify(await table()) });
    const found = await tab.evaluate(async () => {
      const { limitMemory } = await import("/small_memory.js");
      limitMemory(16 << 20);
      const { CountTable, TallyfoldError } = await import("/index.js");
      const codes = [];
      for (let round = 0; round < 3; round++) {
        const held = CountTable.fromJSON(globalThis.given.json);
        for (const act of [() => CountTable.fromJSON("x".repeat(16 << 20)), () => held.length]) {
          try {
            act();
          } catch (error) {
            codes.push(TallyfoldError.is(error) ? error.code : String(error));
          }
        }
        codes.push(CountTable.fromJSON(globalThis.given.json).length);
      }
      return codes;
    });
    const each = ["out_of_memory", "out_of_order", (await table()).length];
    assert.deepEqual(found, [...each, ...each, ...each]);
  });

  test("keeps a month of windows in IndexedDB, for one collect of all tabs", async (t) => {
    const root = join(home, "node_modules/tallyfold/dist");
    const first = await open(t, root, {});
    const found = await first.evaluate(async () => {
      const { Client, indexedDbCheckpoint, Sandbox } = await import("/index.js");
      const sandbox = new Sandbox({ seed: 3 });
      const options = {
        ...sandbox.credentials,
        clusterEndpoint: "http://localhost",
        dangerouslyAllowBrowser: true,
      };
      const checkpoint = indexedDbCheckpoint("january");
      const month = {
        metric: "event_delivery",
        start: "2026-01-01T00:00:00Z",
        end: "2026-02-01T00:00:00Z",
        dimensions: ["integration", "reason"],
        patienceMs: 0,
        checkpoint,
      };
      const codeOf = (promise) => promise.then(String, (error) => error.code);
      const client = new Client({ ...options, fetch: sandbox.fetch });
      // Another one, while the first one runs.
      let second;
      const onProgress = ({ done }) => {
        if (done === 1) second = codeOf(client.collect(month));
      };
      const table = await client.collect({ ...month, onProgress });
      let asked = 0;
      const offline = new Client({
        ...options,
        maxRetries: 0,
        fetch: () => {
          asked += 1;
          return Promise.reject(new TypeError("offline"));
        },
      });
      const again = await offline.collect(month);
      const { usage } = await navigator.storage.estimate();
      return {
        windows: table.windows.length,
        isSame: JSON.stringify(again) === JSON.stringify(table),
        asked,
        second: await second,
        usage,
      };
    });
    t.diagnostic(`${found.usage} bytes are stored`);
    const { usage, ...rest } = found;
    assert.deepEqual(rest, {
      windows: 2_976,
      isSame: true,
      asked: 0,
      second: "invalid_checkpoint",
    });

    // From another tab, while the lock is held in the first one.
    const other = await first.context().newPage();
    await other.goto(first.url());
    await first.evaluate(() => {
      globalThis.held = new Promise((resolve) => {
        navigator.locks.request("tallyfold/january/lock", () => new Promise(resolve));
      });
    });
    const codes = await other.evaluate(async () => {
      const { Client, indexedDbCheckpoint } = await import("/index.js");
      const accessToken = () => ({ accessToken: "token" });
      const client = new Client({ clusterEndpoint: location.origin, accessToken });
      const query = {
        metric: "event_delivery",
        start: "2026-01-01T00:00:00Z",
        end: "2026-01-02T00:00:00Z",
        dimensions: ["integration"],
      };
      const checkpoint = indexedDbCheckpoint("january");
      const error = await client.collect({ ...query, checkpoint }).catch((reason) => reason);
      await checkpoint.clear();
      return [error.code, error.message, await checkpoint.load("segment-00000.json")];
    });
    assert.equal(codes[0], "invalid_checkpoint");
    assert.match(codes[1], /another tab, is using the checkpoint january$/);
    assert.equal(codes[2], undefined);
  });

  async function table() {
    const sandbox = new Sandbox({ seed: 3 });
    const options = { ...sandbox.credentials, fetch: sandbox.fetch };
    return new Client({ ...options, clusterEndpoint: "http://localhost" }).eventDelivery(query);
  }

  /** Serves `root` on loopback and opens it. The test fails on any error of the page. */
  async function open(t, root, given, policy) {
    const server = createServer((request, response) => answer(root, policy, request, response));
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const context = await browser.newContext();
    context.setDefaultTimeout(PAGE_MS);
    const tab = await context.newPage();
    const errors = [];
    tab.on("pageerror", (error) => errors.push(error));
    t.after(async () => {
      await context.close();
      server.close();
      server.closeAllConnections();
      assert.deepEqual(errors, []);
    });
    await tab.addInitScript((it) => {
      globalThis.given = it;
    }, given);
    await tab.goto(`http://127.0.0.1:${server.address().port}/`);
    return tab;
  }
});

/** A file of `root`, or one of the ways in which a service may fail a page. */
async function answer(root, policy, request, response) {
  const path = request.url === "/" ? "/index.html" : request.url;
  if (path.startsWith("/redirect")) return response.writeHead(302, { location: "/" }).end();
  if (path.startsWith("/broken")) return response.destroy();
  if (path.startsWith("/silent")) return;
  const types = { ".html": "text/html", ".js": "text/javascript" };
  response.setHeader("content-type", types[extname(path)] ?? "text/plain");
  if (policy) response.setHeader("content-security-policy", policy);
  response.end(await readFile(join(root, path)).catch(() => ""));
}

/** A token as a page's own server would hand it out. */
async function controlToken(sandbox) {
  const { clientId, clientSecret, controlAudience } = sandbox.credentials;
  const fields = { client_id: clientId, client_secret: clientSecret, audience: controlAudience };
  const response = await sandbox.fetch("http://localhost/v1.1/oauth/token", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(fields),
  });
  const { access_token: token } = await response.json();
  return token;
}

// Cloudflare's Workers: the package in workerd, which is what Cloudflare runs, with many requests at once. No request there may wait for
// what another one does, and the code of a request whose visitor has left stops where it is.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { request as connect, createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as passed } from "node:timers/promises";
import { promisify } from "node:util";
import { build } from "esbuild";
import { Plan, Sandbox } from "tallyfold";
import { Miniflare } from "../hosts/node_modules/miniflare/dist/src/index.js";

const DAY = { start: "2026-03-01T00:00:00Z", end: "2026-03-02T00:00:00Z" };
const WINDOWS = [...new Plan({ ...DAY, window: "15m" })];
const AT_ONCE = 64;

/** As the guide has it, and next to it a server for web apps. */
const WORKER = `
  import { Client } from "tallyfold";
  import { pageServer } from "tallyfold/server";
  let client, pages;
  // Outside of requests, a Worker has no random numbers, timers or I/O.
  const nobody = new Client({ clusterEndpoint: "https://cluster.example", tokenless: true });
  const closed = pageServer({ client: nobody, authorize: () => false });
  const kept = new Map();
  const store = {
    get: (key) => kept.get(key),
    async set(key, text) {
      await scheduler.wait(50);
      kept.set(key, text);
    },
  };
  export default {
    async fetch(request, env) {
      client ??= Client.fromEnv({ env: { ...env } });
      pages ??= pageServer({ client, authorize: () => true, store });
      const { pathname, searchParams } = new URL(request.url);
      if (pathname.startsWith("/closed")) return closed(request);
      if (pathname === "/kept") return new Response(String(kept.size));
      if (pathname !== "/top") return pages(request);
      const table = await client.eventDelivery({
        start: searchParams.get("start"),
        end: searchParams.get("end"),
        dimensions: ["integration"],
      });
      return Response.json([...table.top(5, { by: "errors" })]);
    },
  };`;

let home;
before(async () => {
  home = await mkdtemp(join(tmpdir(), "tallyfold-workers-"));
  await build({
    stdin: { contents: WORKER, resolveDir: import.meta.dirname },
    outdir: home,
    entryNames: "worker",
    outExtension: { ".js": ".mjs" },
    bundle: true,
    format: "esm",
    conditions: ["workerd", "worker", "browser"],
    loader: { ".wasm": "copy" },
    logLevel: "error",
  });
});
after(() => rm(home, { recursive: true }));

/** A sandbox whose answers wait as long as a test says, and a Worker that asks it. */
async function world() {
  const sandbox = new Sandbox({ seed: 3 });
  const held = [];
  const upstream = {
    sandbox,
    /** Says how long a request waits for its answer, a promise or milliseconds. */
    waits: () => 0,
    underWay: 0,
    most: 0,
    /** Resolves when so many requests wait. */
    reached: (count) => new Promise((done) => held.push({ count, done })),
  };
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray();
    upstream.underWay += 1;
    upstream.most = Math.max(upstream.most, upstream.underWay);
    for (const { count, done } of held) if (upstream.underWay >= count) done();
    const wait = upstream.waits(request.url);
    await (typeof wait === "number" ? passed(wait) : wait);
    const { method, url: target, headers } = request;
    const body = Buffer.concat(chunks);
    const answer = sandbox.handle({ method, target, headers: Object.entries(headers), body });
    upstream.underWay -= 1;
    response.writeHead(answer.status, answer.headers.flat()).end(answer.body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { clientId, clientSecret, controlAudience } = sandbox.credentials;
  const miniflare = new Miniflare({
    modules: true,
    rootPath: home,
    modulesRoot: home,
    scriptPath: "worker.mjs",
    modulesRules: [{ type: "CompiledWasm", include: ["**/*.wasm"] }],
    compatibilityDate: "2026-01-01",
    bindings: {
      TALLYFOLD_CLUSTER_ENDPOINT: `http://127.0.0.1:${server.address().port}`,
      TALLYFOLD_CLIENT_ID: clientId,
      TALLYFOLD_CLIENT_SECRET: clientSecret,
      TALLYFOLD_CONTROL_AUDIENCE: controlAudience,
    },
  });
  const end = async () => {
    server.close();
    server.closeAllConnections();
    await miniflare.dispose();
  };
  const { origin } = await miniflare.ready.catch((error) =>
    end().then(() => Promise.reject(error)),
  );
  return { upstream, origin, [Symbol.asyncDispose]: end };
}

/** A visitor with a connection of its own: what it is answered, and how it leaves. */
function visitor(origin, path, body) {
  const request = connect(`${origin}${path}`, {
    agent: false,
    method: body ? "POST" : "GET",
    headers: { "content-type": "application/json" },
  });
  const answer = new Promise((resolve, reject) => {
    request.on("error", reject);
    request.on("response", async (response) => {
      const chunks = await response.toArray();
      resolve({ status: response.statusCode, text: Buffer.concat(chunks).toString() });
    });
  });
  answer.catch(() => {});
  request.end(body && JSON.stringify(body));
  // Only a reset tells workerd at once: without one it would notice when it writes.
  return { answer, leave: () => request.socket.resetAndDestroy() };
}

const top = (origin, { start, end } = WINDOWS[0]) => {
  const query = new URLSearchParams({ start, end });
  return visitor(origin, `/top?${query}`);
};

const page = (origin, { start, end } = WINDOWS[0]) => {
  const path = "/counts/v1.1/analytics/event_delivery";
  return visitor(origin, path, { start, end, dimensions: ["integration"] });
};

/** Whether all were answered well; otherwise what they were answered. */
async function answered(visitors) {
  const answers = await Promise.all(visitors.map(({ answer }) => answer));
  const bad = answers.filter(({ status }) => status !== 200);
  assert.deepEqual(bad.slice(0, 3), [], `${bad.length} of ${answers.length} failed`);
  return answers.map(({ text }) => text);
}

/** A Worker, for the time of a test. */
function inWorkerd(name, run) {
  test(name, async () => {
    const made = await world();
    try {
      await run(made);
    } finally {
      await made[Symbol.asyncDispose]();
    }
  });
}

inWorkerd("a server may be made outside of requests", async ({ origin }) => {
  const { status } = await visitor(origin, "/closed/v1.1/analytics/event_delivery", {}).answer;
  assert.equal(status, 403);
});

inWorkerd("64 requests at once share one client and one token", async ({ upstream, origin }) => {
  upstream.waits = (url) => (url.includes("oauth") ? 300 : 20);
  await answered(WINDOWS.slice(0, AT_ONCE).map((window) => top(origin, window)));
  const { control_token: tokens, event_delivery: calls } = upstream.sandbox.stats;
  assert.deepEqual([tokens, calls], [1, AT_ONCE]);
});

inWorkerd("64 pages at once are answered, eight at a time", async ({ upstream, origin }) => {
  // The first eight wait for each other, and a ninth would come while they wait a little longer.
  const eight = upstream.reached(8).then(() => passed(20));
  upstream.waits = (url) => (url.includes("oauth") ? 20 : Promise.all([eight, passed(20)]));
  await answered(WINDOWS.slice(0, AT_ONCE).map((window) => page(origin, window)));
  assert.deepEqual([upstream.sandbox.stats.event_delivery, upstream.most], [AT_ONCE, 8]);
  assert.deepEqual(await answered([visitor(origin, "/kept")]), [String(AT_ONCE)]);
  const same = await answered(Array.from({ length: AT_ONCE }, () => page(origin, WINDOWS.at(-1))));
  assert.equal(new Set(same).size, 1);
  assert.equal(upstream.sandbox.stats.event_delivery, AT_ONCE + 1);
});

inWorkerd("a visitor who leaves while its token comes holds nobody up", async (made) => {
  const { upstream, origin } = made;
  const never = new Promise(() => {});
  upstream.waits = () => never;
  const leaving = Array.from({ length: 16 }, () => top(origin));
  await upstream.reached(1);
  upstream.waits = () => 0;
  const staying = Array.from({ length: 16 }, () => top(origin));
  for (const { leave } of leaving) leave();
  await answered(staying);
  await answered([top(origin)]);
  // One of those who left, and one of those who stayed.
  assert.equal(upstream.sandbox.stats.control_token, 1);
});

inWorkerd("the turns of visitors who have left are given to others", async (made) => {
  const { upstream, origin } = made;
  await answered([top(origin)]);
  const never = new Promise(() => {});
  upstream.waits = () => never;
  const leaving = WINDOWS.slice(0, 16).map((window) => page(origin, window));
  await upstream.reached(8);
  // It waits for the same as the first one.
  const same = page(origin, WINDOWS[0]);
  upstream.waits = () => 0;
  for (const { leave } of leaving) leave();
  await answered([same, ...WINDOWS.slice(0, 32).map((window) => page(origin, window))]);
});

inWorkerd("a Worker that was paused goes on", async ({ upstream, origin }) => {
  upstream.waits = () => 500;
  const visitors = [
    ...WINDOWS.slice(0, 24).map((window) => page(origin, window)),
    ...WINDOWS.slice(0, 8).map((window) => top(origin, window)),
  ];
  await upstream.reached(1);
  await signalled("STOP");
  await passed(4000);
  await signalled("CONT");
  await answered(visitors);
});

/** Stops this test's workerd, or has it go on. */
async function signalled(name) {
  const run = promisify(execFile);
  const { stdout } = await run("pgrep", ["-P", String(process.pid), "workerd"]);
  for (const pid of stdout.trim().split("\n")) process.kill(Number(pid), `SIG${name}`);
}

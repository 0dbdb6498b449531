// The server for web apps, over real HTTP on this machine: pages, the server, and the served sandbox behind it.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { Hono } from "hono";
import { Client, Plan, Sandbox, TallyfoldError } from "tallyfold";
import { nodeListener, serve } from "tallyfold/node";
import { pageServer } from "tallyfold/server";
import { thrownBy } from "./responses.mjs";
import { clientOf, clocks, rejectionOf, service } from "./world.mjs";

const DAY = { start: "2026-01-01T00:00:00Z", end: "2026-01-02T00:00:00Z" };
const WINDOW = { start: "2026-01-01T00:00:00Z", end: "2026-01-01T00:15:00Z" };
const query = { ...WINDOW, dimensions: ["integration"] };
const authorize = () => true;
const JSON_TYPE = { "content-type": "application/json" };

/** A server for web apps on a port, mounted below a path. */
async function listening(handle, path = "/tallyfold") {
  const server = createServer(nodeListener(handle)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = `http://127.0.0.1:${server.address().port}${path}`;
  return { address, [Symbol.asyncDispose]: async () => server.close().closeAllConnections() };
}

function pageOf(address, options) {
  return new Client({ clusterEndpoint: address, tokenless: true, maxRetries: 0, ...options });
}

/** A page's client of a server without a port. */
function direct(handle, options) {
  const fetch = (url, { redirect: _, ...init }) => {
    // No network decompresses what is answered.
    const headers = init.headers.filter(([name]) => name !== "accept-encoding");
    return handle(new Request(url, { ...init, headers }));
  };
  return pageOf("http://localhost/api", { fetch, ...options });
}

/** What a plain request of a page is answered. */
function post(handle, path, body, headers = { "content-type": "application/json" }) {
  const init = { method: "POST", headers, body: JSON.stringify(body) };
  return handle(new Request(`http://localhost${path}`, init));
}

const delivery = "/tallyfold/v1.1/analytics/event_delivery";

test("a body that is too long blocks no later request on its connection", async () => {
  const client = clientOf(new Sandbox({ seed: 1 }));
  const server = await listening(pageServer({ client, authorize }));
  const { hostname, port } = new URL(server.address);
  // A proxy sends requests of many visitors over one connection.
  const socket = connect(Number(port), hostname);
  try {
    const bodies = ["y".repeat(4_000_000), JSON.stringify(query), "y".repeat(20_000), ""];
    for (const body of bodies) {
      const head = `POST ${delivery} HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json`;
      socket.write(`${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    }
    const statuses = [];
    let text = "";
    for await (const chunk of socket) {
      text += chunk;
      statuses.splice(0, 4, ...[...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code]) => code));
      if (statuses.length === bodies.length) break;
    }
    assert.deepEqual(statuses, ["400", "200", "400", "400"]);
  } finally {
    socket.destroy();
    await server[Symbol.asyncDispose]();
  }
});

test("a thousand requests of pages for a day are one call a window", async () => {
  const sandbox = new Sandbox({ seed: 1 });
  const upstream = await serve(sandbox);
  const client = new Client({ ...sandbox.credentials, clusterEndpoint: upstream.url });
  const server = await listening(pageServer({ client, authorize }));
  try {
    const windows = [...new Plan({ ...DAY, window: "15m" })];
    const page = pageOf(server.address);
    const ask = (window) => page.eventDelivery({ ...window, dimensions: ["integration"] });
    const asked = Array.from({ length: 1000 }, (_, index) => windows[index % windows.length]);
    // Fifty at a time, of which many ask the same.
    const tables = [];
    const work = async () => {
      for (let window = asked.pop(); window; window = asked.pop()) {
        tables.push(await ask(window));
      }
    };
    await Promise.all(Array.from({ length: 50 }, work));
    const { control_token: tokens, event_delivery: calls } = sandbox.stats;
    assert.deepEqual([tables.length, tokens, calls], [1000, 1, windows.length]);
    const expected = await client.eventDelivery({ ...windows[3], dimensions: ["integration"] });
    assert.deepEqual((await ask(windows[3])).rows, expected.rows);
    // A long range of the page is answered from what is kept.
    const options = {
      ...DAY,
      metric: "event_delivery",
      dimensions: ["integration"],
      window: "15m",
    };
    const day = await page.collect(options);
    assert.equal(day.windows.length, 96);
    assert.equal(sandbox.stats.event_delivery, calls + 1);
  } finally {
    await server[Symbol.asyncDispose]();
    await upstream.close();
  }
});

test("fifty pages that ask the same at the same time are one call", async () => {
  const sandbox = service();
  const page = direct(pageServer({ client: clientOf(sandbox), authorize }));
  const tables = await Promise.all(Array.from({ length: 50 }, () => page.eventDelivery(query)));
  assert.equal(new Set(tables.map((table) => JSON.stringify(table))).size, 1);
  assert.equal(sandbox.stats.event_delivery, 1);
});

test("the page gets the bytes that the service has sent", async () => {
  let sent;
  const sandbox = service();
  const fetch = async (url, init) => {
    const response = await sandbox.fetch(url, init);
    if (url.includes("analytics")) sent = await response.clone().text();
    return response;
  };
  const handle = pageServer({ client: clientOf(sandbox, { fetch }), authorize });
  const response = await post(handle, delivery, query);
  assert.equal(response.status, 200);
  assert.equal(await response.text(), sent);
  assert.equal(response.headers.get("content-type"), "application/json");
  assert.equal(response.headers.get("cache-control"), "no-store");
});

test("what authorize does not allow costs the service nothing", async () => {
  const sandbox = service();
  const client = clientOf(sandbox);
  const noes = [() => false, () => undefined, () => "yes", async () => false, async () => 1];
  for (const authorize of noes) {
    const handle = pageServer({ client, authorize, handOutTokens: true, auditLogs: true });
    const error = await rejectionOf(direct(handle).eventDelivery(query));
    assert.deepEqual([error.code, error.kind, error.status], ["forbidden", "service", 403]);
    assert.equal((await post(handle, "/token/control")).status, 403);
  }
  const broken = new Error("the session store is down");
  const handle = pageServer({ client, authorize: async () => Promise.reject(broken) });
  assert.equal(await rejectionOf(post(handle, delivery, query)), broken);
  assert.deepEqual(Object.values(sandbox.stats), Object.values(service().stats));
  const asked = [];
  const looking = pageServer({ client, authorize: async (request) => asked.push(request) > 0 });
  await direct(looking).eventDelivery(query);
  assert.ok(asked[0] instanceof Request && asked[0].url.includes("event_delivery"));
});

test("without authorize, and with options that can't be used, there is no server", () => {
  const client = clientOf(service());
  for (const [options, argument] of [
    [{ client }, "authorize"],
    [{ client, authorize: true }, "authorize"],
    [{ authorize }, "client"],
    [{ client: {}, authorize }, "client"],
    [{ client, authorize, store: {} }, "store"],
    [{ client, authorize, store: "" }, "store"],
    [{ client, authorize, store: 0 }, "store"],
    [{ client, authorize, concurrency: 0 }, "concurrency"],
    [{ client, authorize, concurency: 1 }, "concurency"],
    [{ client, authorize, provisionalMs: -1 }, "provisionalMs"],
    [undefined, "client"],
  ]) {
    assert.throws(
      () => pageServer(options),
      (error) => TallyfoldError.is(error) && error.kind === "config" && error.argument === argument,
    );
  }
});

test("a request that is wrong is refused before anything is sent", async () => {
  const sandbox = service();
  const handle = pageServer({ client: clientOf(sandbox), authorize });
  const json = { "content-type": "application/json" };
  for (const [status, path, body, headers] of [
    [400, delivery, { ...query, dimensions: ["colour"] }],
    [400, delivery, { ...query, end: query.start }],
    [400, delivery, { ...query, more: 1 }],
    [400, delivery, "x".repeat(100_000)],
    [400, delivery, query, { "content-type": "text/plain" }],
    [400, "/v1.1/oauth/token", {}],
    [400, "/token/control", {}],
    [403, delivery, query, { ...json, "sec-fetch-site": "cross-site" }],
    [403, delivery, query, { ...json, origin: "https://evil.example" }],
    [200, delivery, query, { ...json, origin: "http://localhost" }],
  ]) {
    const response = await post(handle, path, body, headers);
    assert.equal(response.status, status, `${path} ${JSON.stringify(body).slice(0, 99)}`);
    assert.doesNotThrow(async () => response.json());
  }
  const get = await handle(new Request(`http://localhost${delivery}`));
  assert.equal(get.status, 400);
  assert.equal(sandbox.stats.event_delivery, 1);
});

test("errors keep their code, kind and status", async () => {
  for (const [fault, code, kind, status] of [
    [{ kind: "status", status: 503 }, "server_error", "service", 503],
    [{ kind: "status", status: 429, retryAfter: "7" }, "rate_limited", "service", 429],
    [{ kind: "status", status: 403 }, "forbidden", "service", 403],
    [{ kind: "status", status: 418 }, "unexpected_status", "service", 418],
  ]) {
    const sandbox = service();
    sandbox.inject({ ...fault, endpoint: "event_delivery", every: 1n });
    const client = clientOf(sandbox);
    const own = await rejectionOf(client.eventDelivery(query));
    const seen = await rejectionOf(direct(pageServer({ client, authorize })).eventDelivery(query));
    for (const error of [own, seen]) {
      assert.deepEqual([error.code, error.kind, error.status], [code, kind, status]);
    }
    assert.equal(seen.retryAfter, own.retryAfter);
  }
  const refused = clientOf(service(), { clientSecret: "wrong" });
  const error = await rejectionOf(
    direct(pageServer({ client: refused, authorize })).eventDelivery(query),
  );
  assert.deepEqual([error.code, error.kind], ["token_refused", "auth"]);
  const fetch = async () => {
    throw Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } });
  };
  const down = clientOf(service(), { fetch });
  const lost = await rejectionOf(
    direct(pageServer({ client: down, authorize })).eventDelivery(query),
  );
  assert.deepEqual([lost.code, lost.kind, lost.status], ["network_failed", "service", undefined]);
});

test("a failed call is not kept", async () => {
  const sandbox = service();
  sandbox.inject({ kind: "status", status: 503, endpoint: "event_delivery" });
  const page = direct(pageServer({ client: clientOf(sandbox), authorize }));
  assert.equal((await rejectionOf(page.eventDelivery(query))).code, "server_error");
  assert.equal((await page.eventDelivery(query)).totals.success, 7n);
});

test("an answer is kept for good only if it is settled by the service's clock, too", async () => {
  const sandbox = service();
  // By this machine's clock, the window ended long ago; by the service's, it goes on.
  let monotonicMs = 0;
  const unixMs = Date.parse(query.end) + 2 * 3_600_000;
  const now = () => ({ monotonicMs, unixMs: unixMs + monotonicMs });
  const fetch = async (url, init) => {
    const response = await sandbox.fetch(url, init);
    const headers = new Headers(response.headers);
    headers.set("date", new Date(Date.parse(query.end) - 300_000).toUTCString());
    return new Response(response.body, { status: response.status, headers });
  };
  const stored = [];
  const store = { get: async () => undefined, set: async (key) => stored.push(key) };
  const warned = once(process, "warning");
  const client = clientOf(sandbox, { now, fetch });
  const handle = pageServer({ client, authorize, provisionalMs: 2000, store });
  for (const [atMs, calls] of [
    [0, 1],
    [1999, 1],
    [2001, 2],
  ]) {
    monotonicMs = atMs;
    assert.equal((await post(handle, delivery, query)).status, 200);
    assert.equal(sandbox.stats.event_delivery, calls);
  }
  assert.deepEqual(stored, []);
  const [warning] = await warned;
  assert.equal(warning.name, "ClockWarning");
  assert.match(warning.message, /125 min ahead of the service's/);
});

test("a provisional answer is kept for seconds, a settled one for good", async () => {
  const sandbox = service();
  const now = clocks();
  const handle = pageServer({ client: clientOf(sandbox, { now }), authorize, provisionalMs: 2000 });
  const page = direct(handle);
  const asked = async (seconds) => {
    now.pass(seconds);
    await page.eventDelivery(recent);
    return sandbox.stats.event_delivery;
  };
  const end = now().unixMs;
  const recent = { ...query, start: new Date(end - 900_000), end: new Date(end) };
  assert.deepEqual([await asked(0), await asked(1.9), await asked(0.1)], [1, 1, 2]);
  assert.deepEqual([await asked(3600), await asked(0), await asked(80_000)], [3, 3, 3]);
});

test("a store keeps settled answers for another server, and does no harm if it fails", async () => {
  const sandbox = service();
  const map = new Map();
  const store = {
    get: async (key) => map.get(key),
    set: async (key, text) => map.set(key, text),
  };
  const serverOf = (store) => direct(pageServer({ client: clientOf(sandbox), authorize, store }));
  const first = await serverOf(store).eventDelivery(query);
  assert.equal(map.size, 1);
  const [[key, text]] = map;
  const { clientId } = sandbox.credentials;
  assert.ok(key.startsWith(`http://localhost, client ${clientId}/v1.1/analytics/event_delivery `));
  assert.ok(!`${key}${text}`.includes(sandbox.credentials.clientSecret));
  const second = await serverOf(store).eventDelivery(query);
  assert.deepEqual(
    [JSON.stringify(second), sandbox.stats.event_delivery],
    [JSON.stringify(first), 1],
  );
  const failing = [
    { get: () => text.slice(0, -1), set() {} },
    { get: () => 7, set() {} },
    {
      get: () => {
        throw new Error("down");
      },
      set: () => {
        throw new Error("down");
      },
    },
    {
      get: async () => {
        throw new Error("down");
      },
      set: async () => {
        throw new Error("down");
      },
    },
    { get: () => new Promise(() => {}), set: () => new Promise(() => {}) },
  ];
  for (const store of failing) {
    const table = await serverOf(store).eventDelivery(query);
    assert.equal(JSON.stringify(table), JSON.stringify(first));
  }
  assert.equal(sandbox.stats.event_delivery, 1 + failing.length);
});

test("a shared store gives nobody the answers of another", async () => {
  const map = new Map();
  const store = { get: (key) => map.get(key), set: (key, text) => map.set(key, text) };
  const seen = new Set();
  const tenants = [
    [service({ seed: 1 }), {}],
    [service({ seed: 2, clientId: "tenant-b" }), {}],
    [service({ seed: 3 }), { headers: { "x-tenant": "c" } }],
    [service({ seed: 4 }), { headers: { "x-tenant": "d" } }],
    [service({ seed: 5 }), { identity: "e" }],
  ];
  for (const [sandbox, options] of tenants) {
    const client = clientOf(sandbox, options);
    const table = await direct(pageServer({ client, authorize, store })).eventDelivery(query);
    seen.add(JSON.stringify(table.totals));
    assert.equal(sandbox.stats.event_delivery, 1);
  }
  assert.deepEqual([map.size, seen.size], [tenants.length, tenants.length]);
  // Its tokens don't show whose counts they give.
  const options = { clusterEndpoint: "http://localhost", accessToken: () => ["token", 3600] };
  const refused = (more) =>
    thrownBy(() => pageServer({ client: new Client({ ...options, ...more }), authorize, store }));
  const { code, argument } = refused({});
  assert.deepEqual([code, argument], ["missing_argument", "identity"]);
  pageServer({ client: new Client({ ...options, identity: "f" }), authorize, store });
  pageServer({ client: new Client(options), authorize });
});

test("answers give way when there is no room", async () => {
  const sandbox = service();
  const client = clientOf(sandbox);
  const page = direct(pageServer({ client, authorize, memoryBytes: 2500 }));
  const ask = (dimensions) => page.eventDelivery({ ...WINDOW, dimensions });
  const all = [["integration"], ["reason"], ["write_key"], ["event_name"]];
  for (const dimensions of all) await ask(dimensions);
  await ask(["event_name"]);
  assert.equal(sandbox.stats.event_delivery, 4);
  await ask(["integration"]);
  assert.equal(sandbox.stats.event_delivery, 5);
});

test("no more calls than allowed are under way", async () => {
  const sandbox = service();
  let [underWay, most] = [0, 0];
  const fetch = async (url, init) => {
    underWay += 1;
    most = Math.max(most, underWay);
    const response = await sandbox.fetch(url, init);
    await new Promise((done) => setImmediate(done));
    underWay -= 1;
    return response;
  };
  const page = direct(
    pageServer({ client: clientOf(sandbox, { fetch }), authorize, concurrency: 3 }),
  );
  const windows = [...new Plan({ ...DAY, window: "1h" })];
  await Promise.all(
    windows.map((window) => page.eventDelivery({ ...window, dimensions: ["reason"] })),
  );
  assert.deepEqual([most, sandbox.stats.event_delivery], [3, 24]);
});

test("a page that goes away takes nothing from those that wait for the same", async () => {
  const sandbox = service();
  let go;
  const gate = new Promise((resolve) => {
    go = resolve;
  });
  let reached;
  const begun = new Promise((resolve) => {
    reached = resolve;
  });
  const fetch = async (url, init) => {
    if (url.includes("analytics")) {
      reached();
      await gate;
    }
    init.signal.throwIfAborted();
    return sandbox.fetch(url, init);
  };
  const handle = pageServer({ client: clientOf(sandbox, { fetch }), authorize });
  const server = await listening(handle, "");
  try {
    const page = pageOf(server.address);
    const leaving = new AbortController();
    const first = page.eventDelivery({ ...query, signal: leaving.signal });
    await begun;
    const second = page.eventDelivery(query);
    leaving.abort(new Error("closed"));
    assert.equal((await rejectionOf(first)).message, "closed");
    go();
    assert.equal((await second).totals.success, 7n);
    assert.equal(sandbox.stats.event_delivery, 1);
  } finally {
    await server[Symbol.asyncDispose]();
  }
});

test("pages get tokens and audit logs only if that is switched on", async () => {
  const sandbox = service();
  const client = clientOf(sandbox);
  const handle = pageServer({ client, authorize, handOutTokens: true, auditLogs: true });
  const accessToken = async (api) => (await post(handle, `/x/token/${api}`, {})).json();
  const page = clientOf(sandbox, {
    clientId: undefined,
    clientSecret: undefined,
    accessToken,
  });
  assert.equal((await page.eventDelivery(query)).totals.success, 7n);
  assert.deepEqual(await accessToken("control"), await client.token("control"));
  const unknown = { code: "unknown_argument", argument: "sginal" };
  await assert.rejects(client.token("control", { sginal: AbortSignal.abort() }), unknown);
  assert.equal(sandbox.stats.control_token, 1);
  const logs = direct(handle, { baseUrl: "http://localhost/api" });
  assert.deepEqual(
    await logs.auditLogs({ page: 1, perPage: 2 }),
    await client.auditLogs({ page: 1, perPage: 2 }),
  );
});

test("requests for tokens wait for their turn, and fail at once after a refusal", async () => {
  const sandbox = service();
  const client = clientOf(sandbox, { clientSecret: "wrong" });
  const options = { handOutTokens: true, concurrency: 1, queue: 1 };
  const handle = pageServer({ client, authorize, ...options });
  const ask = async () => (await post(handle, "/x/token/control", {})).json();
  const codes = (await Promise.all([ask(), ask(), ask()])).map(({ code }) => code);
  assert.deepEqual(codes.sort(), ["server_error", "token_refused", "token_refused"]);
  assert.equal((await ask()).code, "token_refused");
  // Like a query, a request for a token sends nothing for ten seconds after a refusal.
  assert.equal(sandbox.stats.control_token, 1);
});

test("a token comes with its lifetime, once for all who ask", async () => {
  const sandbox = service();
  const now = clocks();
  const client = clientOf(sandbox, { now });
  const tokens = await Promise.all([1, 2, 3].map(() => client.token("control")));
  assert.equal(new Set(tokens.map(({ accessToken }) => accessToken)).size, 1);
  assert.equal(tokens[0].expiresIn, 86_400);
  now.pass(100);
  assert.equal((await client.token("control")).expiresIn, 86_300);
  now.pass(86_001);
  assert.notEqual((await client.token("control")).accessToken, tokens[0].accessToken);
  assert.notEqual((await client.token("orchestration")).accessToken, tokens[0].accessToken);
  const { control_token: control, orchestration_token: other } = sandbox.stats;
  assert.deepEqual([control, other], [2, 1]);
  const error = await rejectionOf(client.token("contrl"));
  assert.deepEqual([error.kind, error.argument], ["config", "api"]);
});

test("a client without tokens sends none, but the cookies of its own origin", async () => {
  const sent = [];
  const fetch = async (_url, init) => {
    sent.push(init);
    return new Response(null, { status: 401 });
  };
  const page = pageOf("http://localhost", { fetch });
  const error = await rejectionOf(page.eventDelivery(query));
  assert.deepEqual([error.code, error.status, sent.length], ["token_rejected", 401, 1]);
  assert.equal(sent[0].credentials, "same-origin");
  assert.ok(sent[0].headers.every(([name]) => name !== "authorization"));
});

test("the server imports nothing of a host", async () => {
  const seen = new Set();
  const look = async (url) => {
    if (seen.has(url.href)) return;
    seen.add(url.href);
    const text = await readFile(url, "utf8");
    assert.doesNotMatch(text, /(?:from|import)\s*\(?["']node:/, url.href);
    for (const [, path] of text.matchAll(/from "(\.[^"]*\.js)"/g)) await look(new URL(path, url));
  };
  await look(new URL("../dist/workerd/server.js", import.meta.url));
  assert.ok(seen.size > 5, `${seen.size} files`);
});

test("Hono mounts it under a path, and a page asks for a session's counts", async () => {
  const sandbox = service();
  const authorize = (request) => request.headers.get("cookie") === "session=right";
  const handle = pageServer({ client: clientOf(sandbox), authorize });
  const app = new Hono();
  app.get("/", (context) => context.text("home"));
  app.all("/deep/tallyfold/*", (context) => handle(context.req.raw));
  const server = await listening(app.fetch, "/deep/tallyfold");
  try {
    const of = (cookie) => {
      const fetch = (url, init) =>
        globalThis.fetch(url, { ...init, headers: [...init.headers, ["cookie", cookie]] });
      return pageOf(server.address, { fetch });
    };
    assert.equal((await of("session=right").eventDelivery(query)).totals.success, 7n);
    const error = await rejectionOf(of("session=wrong").eventDelivery(query));
    assert.equal(error.code, "forbidden");
    assert.equal(sandbox.stats.event_delivery, 1);
  } finally {
    await server[Symbol.asyncDispose]();
  }
});

test("a request to the adapter can't choose a host, and a bug of the server is a 500", async () => {
  const seen = [];
  const server = await listening((request) => {
    seen.push(request.url);
    if (request.url.endsWith("/bug")) throw new Error("a bug, on purpose");
    return new Response("good", {
      headers: [
        ["set-cookie", "a=1"],
        ["set-cookie", "b=2"],
      ],
    });
  }, "");
  try {
    const response = await fetch(`${server.address}//evil.example/x`, {
      method: "POST",
      body: "y",
    });
    assert.equal(await response.text(), "good");
    assert.deepEqual(response.headers.getSetCookie(), ["a=1", "b=2"]);
    assert.deepEqual(seen, [`${server.address}/evil.example/x`]);
    const log = console.error;
    console.error = () => {};
    assert.equal((await fetch(`${server.address}/bug`)).status, 500);
    console.error = log;
  } finally {
    await server[Symbol.asyncDispose]();
  }
});

/** What the console is told while something runs. */
async function told(run) {
  const log = console.error;
  const lines = [];
  console.error = (...words) => lines.push(words);
  try {
    await run();
  } finally {
    console.error = log;
  }
  return lines;
}

/** A request, byte by byte: what it is answered, until the connection ends. */
async function raw(address, text, { leave = false } = {}) {
  const { hostname, port } = new URL(address);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  socket.write(text);
  if (leave) {
    await new Promise((done) => setTimeout(done, 50));
    socket.destroy();
    return "";
  }
  const chunks = await socket.toArray();
  return Buffer.concat(chunks).toString();
}

test("the adapter keeps the host, and refuses what the web does not know", async () => {
  const seen = [];
  const server = await listening((request) => {
    seen.push(request.url);
    return new Response("good");
  }, "");
  const close = "Connection: close\r\n\r\n";
  try {
    const lines = await told(async () => {
      const good = await raw(
        server.address,
        `GET /a?b HTTP/1.1\r\nHost: app.example:81\r\n${close}`,
      );
      assert.match(good, /^HTTP\/1.1 200 .*good/s);
      for (const host of ["user@app.example", "app.example/path", "a b", "?"]) {
        const refused = await raw(server.address, `GET / HTTP/1.1\r\nHost: ${host}\r\n${close}`);
        assert.match(refused, /^HTTP\/1.1 400 /, host);
      }
      const traced = await raw(server.address, `TRACE / HTTP/1.1\r\nHost: a.example\r\n${close}`);
      assert.match(traced, /^HTTP\/1.1 501 /);
    });
    assert.deepEqual(seen, ["http://app.example:81/a?b"]);
    assert.deepEqual(lines, []);
    for (const target of ["//", "/\\", "/\\/", "//\\"]) {
      const head = `GET ${target}evil.example/x HTTP/1.1\r\nHost: app.example\r\n${close}`;
      assert.match(await raw(server.address, head), /^HTTP\/1.1 200 /, target);
      assert.equal(seen.at(-1), "http://app.example/evil.example/x");
    }
  } finally {
    await server[Symbol.asyncDispose]();
  }
});

test("an address is https only if its connection is encrypted", async () => {
  const listener = nodeListener((request) => new Response(request.url));
  const server = createServer((request, response) => {
    // Every socket of Bun has this property.
    request.socket.encrypted = request.url === "/encrypted";
    listener(request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const origin = `127.0.0.1:${server.address().port}`;
    const addressOf = async (path) => (await fetch(`http://${origin}${path}`)).text();
    assert.equal(await addressOf("/plain"), `http://${origin}/plain`);
    assert.equal(await addressOf("/encrypted"), `https://${origin}/encrypted`);
  } finally {
    server.close().closeAllConnections();
  }
});

test("a visitor who leaves in the middle of a request is no error of the server", async () => {
  const handles = [
    pageServer({ client: clientOf(service()), authorize }),
    pageServer({ client: clientOf(service()), authorize: async (request) => request.json() }),
    async (request) => new Response(await request.text()),
  ];
  for (const handle of handles) {
    const server = await listening(handle, "");
    try {
      const lines = await told(async () => {
        const head = `POST ${delivery} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n`;
        await raw(server.address, `${head}Content-Length: 100\r\n\r\n{"start":`, { leave: true });
        await new Promise((done) => setTimeout(done, 100));
      });
      assert.deepEqual(lines, []);
    } finally {
      await server[Symbol.asyncDispose]();
    }
  }
});

test("authorize may read the body", async () => {
  const sandbox = service();
  const seen = [];
  const authorize = async (request) => {
    seen.push((await request.json()).dimensions);
    return true;
  };
  const handle = pageServer({ client: clientOf(sandbox), authorize });
  const server = await listening(handle, "");
  try {
    assert.equal((await pageOf(server.address).eventDelivery(query)).totals.success, 7n);
    assert.equal((await direct(handle).eventDelivery(query)).totals.success, 7n);
    assert.deepEqual(seen, [["integration"], ["integration"]]);
  } finally {
    await server[Symbol.asyncDispose]();
  }
});

test("a long answer is compressed for those who take it", async () => {
  const sandbox = new Sandbox({ seed: 1 });
  const handle = pageServer({ client: clientOf(sandbox), authorize });
  const json = { "content-type": "application/json" };
  const body = { ...DAY, dimensions: ["integration", "reason", "event_name"] };
  const asked = (coding) => post(handle, delivery, body, { ...json, "accept-encoding": coding });
  const plain = await (await asked("identity")).text();
  assert.ok(plain.length > 10_000);
  for (const [coding, isCompressed] of [
    ["gzip, deflate, br", true],
    ["br;q=1.0, GZIP;q=0.5", true],
    ["gzip;q=0", false],
    ["br, *;q=0.1", false],
    ["", false],
  ]) {
    const response = await asked(coding);
    assert.equal(response.headers.get("content-encoding"), isCompressed ? "gzip" : null, coding);
    assert.equal(response.headers.get("vary"), "accept-encoding");
    const bytes = Buffer.from(await response.arrayBuffer());
    assert.equal(String(isCompressed ? gunzipSync(bytes) : bytes), plain);
    if (isCompressed) assert.ok(bytes.length * 4 < plain.length);
  }
  const small = pageServer({ client: clientOf(service()), authorize });
  const short = await post(small, delivery, query, { ...json, "accept-encoding": "gzip" });
  assert.equal(short.headers.has("content-encoding"), false);
  const server = await listening(handle, "");
  try {
    assert.equal((await pageOf(server.address).eventDelivery(body)).length > 0, true);
  } finally {
    await server[Symbol.asyncDispose]();
  }
});

test("a compressed range is sent line by line", { timeout: 60_000 }, async () => {
  const sandbox = new Sandbox({ seed: 1 });
  let go;
  const gate = new Promise((resolve) => {
    go = resolve;
  });
  let asked = 0;
  const fetch = async (url, init) => {
    if (url.includes("analytics") && asked++ > 0) await gate;
    return sandbox.fetch(url, init);
  };
  const handle = pageServer({ client: clientOf(sandbox, { fetch }), authorize, concurrency: 1 });
  const server = await listening(handle);
  try {
    const address = server.address.replace("/tallyfold", rangeOf({ ...DAY, window: "6h" }));
    const response = await globalThis.fetch(address, { headers: { "accept-encoding": "gzip" } });
    assert.equal(response.headers.get("content-encoding"), "gzip");
    let text = "";
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      // The first window has arrived, and the others are still asked for.
      if (text.split("\n").length > 2) go();
    }
    const lines = text.split("\n").slice(0, -1);
    assert.deepEqual([lines.length, lines.at(-1)], [9, '{"done":true}']);
    const { lines: plain } = await ranged(handle, { ...DAY, window: "6h" });
    assert.deepEqual(lines, plain);
    const left = await globalThis.fetch(address, { headers: { "accept-encoding": "gzip" } });
    await left.body.cancel();
  } finally {
    await server[Symbol.asyncDispose]();
  }
});

test("a range is not compressed where its lines would wait for its end", async (t) => {
  t.mock.method(process, "getBuiltinModule", () => undefined);
  const handle = pageServer({ client: clientOf(new Sandbox({ seed: 1 })), authorize });
  const { response, lines } = await ranged(handle, DAY, { "accept-encoding": "gzip" });
  assert.equal(response.headers.get("content-encoding"), null);
  assert.equal(response.headers.get("vary"), "accept-encoding");
  assert.equal(lines.at(-1), '{"done":true}');
});

test("a visitor who leaves while authorize decides costs the service nothing", async () => {
  const sandbox = new Sandbox({ seed: 1 });
  const leaving = new AbortController();
  const authorize = async () => {
    leaving.abort();
    return true;
  };
  const handle = pageServer({ client: clientOf(sandbox), authorize });
  const url = `http://localhost${rangeOf(DAY)}`;
  const response = await handle(new Request(url, { signal: leaving.signal }));
  assert.equal(response.status, 499);
  const { control_token: tokens, event_delivery: calls } = sandbox.stats;
  assert.deepEqual([tokens, calls], [0, 0]);
});

test("work ends when its visitor leaves", async () => {
  const sandbox = service();
  let hanging = 0;
  let ended = 0;
  const fetch = (url, init) => {
    if (!url.includes("analytics")) return sandbox.fetch(url, init);
    hanging += 1;
    return new Promise((_, reject) => {
      init.signal.addEventListener("abort", () => {
        ended += 1;
        reject(init.signal.reason);
      });
    });
  };
  const handle = pageServer({ client: clientOf(sandbox, { fetch }), authorize, concurrency: 2 });
  const server = await listening(handle, "");
  try {
    const page = pageOf(server.address);
    const leaving = new AbortController();
    const windows = [...new Plan({ ...DAY, window: "1h" })].slice(0, 6);
    const asked = windows.map((window) =>
      rejectionOf(page.eventDelivery({ ...query, ...window, signal: leaving.signal })),
    );
    while (hanging < 2) await new Promise(setImmediate);
    leaving.abort(new Error("closed"));
    for (const error of await Promise.all(asked)) assert.equal(error.message, "closed");
    // The server learns of one after the other: in between, those who waited for their turn may have got it.
    while (ended < 2 || ended < hanging) await new Promise(setImmediate);
    const staying = page.eventDelivery({ ...query, signal: AbortSignal.timeout(60_000) });
    const before = hanging;
    while (hanging === before) await new Promise(setImmediate);
    assert.equal(hanging - ended, 1);
    staying.catch(() => {});
  } finally {
    await server[Symbol.asyncDispose]();
  }
});

test("what a queue can't hold is to come again", async () => {
  const sandbox = service();
  let go;
  const gate = new Promise((resolve) => {
    go = resolve;
  });
  const fetch = async (url, init) => {
    if (url.includes("analytics")) await gate;
    return sandbox.fetch(url, init);
  };
  const options = { authorize, concurrency: 2, queue: 3 };
  const handle = pageServer({ client: clientOf(sandbox, { fetch }), ...options });
  const windows = [...new Plan({ ...DAY, window: "1h" })];
  const asked = windows.map((window) => post(handle, delivery, { ...query, ...window }));
  // Those that are refused are answered at once.
  const refused = await Promise.all(asked.slice(5));
  for (const response of refused) {
    assert.deepEqual([response.status, response.headers.get("retry-after")], [503, "1"]);
  }
  const page = direct(handle);
  const late = await rejectionOf(page.eventDelivery({ ...query, dimensions: ["reason"] }));
  assert.deepEqual([late.code, late.status, late.retryAfter], ["server_error", 503, 1]);
  go();
  for (const response of await Promise.all(asked.slice(0, 5))) assert.equal(response.status, 200);
  assert.equal((await page.eventDelivery({ ...query, dimensions: ["reason"] })).totals.success, 7n);
  // A page that may try again is answered in the end.
  const patient = pageOf("http://localhost/api", {
    maxRetries: 3,
    fetch: (url, { redirect: _, ...init }) => handle(new Request(url, init)),
  });
  assert.equal((await patient.eventDelivery(query)).totals.success, 7n);
});

test("what the service and the network say stays inside, under a reference", async () => {
  const body = '{"error": "shard-7.internal is out of disk"}';
  const answers = [
    { status: 500, body },
    { status: 403, body },
    { status: 200, body: '{"counts": 7}' },
    undefined,
  ];
  for (const answer of answers) {
    const sandbox = service();
    const fetch = async (url, init) => {
      if (!url.includes("analytics")) return sandbox.fetch(url, init);
      if (answer) return new Response(answer.body, { status: answer.status, headers: JSON_TYPE });
      throw Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } });
    };
    const address = "http://127.0.0.1";
    const client = clientOf(sandbox, { fetch, clusterEndpoint: address });
    const failures = [];
    const onFailure = (...words) => failures.push(words);
    for (const options of [{}, { onFailure }]) {
      const handle = pageServer({ client, authorize, ...options });
      let texts;
      const lines = await told(async () => {
        // All that wait for the same are told the same.
        const responses = await Promise.all([1, 2].map(() => post(handle, delivery, query)));
        texts = await Promise.all(responses.map((response) => response.text()));
      });
      assert.equal(new Set(texts).size, 1);
      const [text] = texts;
      assert.doesNotMatch(text, /127\.|shard|ECONN|disk|counts/);
      const [reference] = /[0-9a-f]{16}/.exec(JSON.parse(text).message);
      const [message, shown] = options.onFailure
        ? [failures[0][0].message, failures[0][1]]
        : [lines[0][0], /reference ([0-9a-f]{16})/.exec(lines[0][0])[1]];
      assert.equal(shown, reference);
      assert.match(message, /127\.0\.0\.1|shard-7|counts/);
      assert.equal(lines.length, options.onFailure ? 0 : 1);
    }
    assert.equal(failures.length, 1);
  }
  // What is wrong with its own request, a page is told.
  const handle = pageServer({ client: clientOf(service()), authorize });
  const wrong = await post(handle, delivery, { ...query, dimensions: ["colour"] });
  assert.match((await wrong.json()).message, /colour/);
});

test("an outage is a line of the console in ten seconds, and its reference is that of all requests", async () => {
  const sandbox = service();
  const now = clocks();
  const fetch = async (url, init) => {
    if (!url.includes("analytics")) return sandbox.fetch(url, init);
    throw Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } });
  };
  const handle = pageServer({ client: clientOf(sandbox, { fetch, now }), authorize });
  /** What the console gets of a day's windows, and the references that the page gets. */
  const day = async () => {
    const references = new Set();
    const lines = await told(async () => {
      for (const { start, end } of new Plan({ ...DAY, window: "15m" })) {
        const refused = await post(handle, delivery, { ...query, start, end });
        references.add(/[0-9a-f]{16}/.exec((await refused.json()).message)[0]);
      }
    });
    return { lines: lines.map(([line]) => line), references: [...references] };
  };
  const first = await day();
  assert.equal(first.lines.length, 1, first.lines.slice(0, 3).join("\n"));
  assert.equal(first.references.length, 1);
  assert.match(first.lines[0], new RegExp(`reference ${first.references[0]}`));
  now.pass(10);
  const second = await day();
  assert.equal(second.lines.length, 1);
  assert.match(second.lines[0], /; 95 equal errors since the last line$/);
  assert.notDeepEqual(second.references, first.references);
});

test("refused credentials cost the windows of a page one token request in ten seconds", async () => {
  const sandbox = service();
  const now = clocks();
  const client = clientOf(sandbox, { clientSecret: "revoked", now });
  const handle = pageServer({ client, authorize, onFailure() {} });
  const day = async () => {
    const codes = new Set();
    for (const { start, end } of new Plan({ ...DAY, window: "15m" })) {
      const refused = await post(handle, delivery, { ...query, start, end });
      codes.add((await refused.json()).code);
    }
    return [...codes];
  };
  for (const requests of [1, 2]) {
    assert.deepEqual(await day(), ["token_refused"]);
    assert.equal(sandbox.stats.control_token, requests);
    now.pass(10);
  }
});

test("a callback that rejects ends its request, and not the process", async () => {
  const sandbox = service();
  sandbox.inject({ kind: "status", status: 500, endpoint: "event_delivery" });
  const client = clientOf(sandbox, { maxRetries: 0 });
  const down = new Error("the error tracker is down");
  const unhandled = [];
  const note = (error) => unhandled.push(error);
  process.on("unhandledRejection", note);
  try {
    const handle = pageServer({ client, authorize, onFailure: () => Promise.reject(down) });
    assert.equal(await rejectionOf(post(handle, delivery, query)), down);
    // Node reports what nobody handles after all promises of this turn.
    await new Promise(setImmediate);
    assert.deepEqual(unhandled, []);
  } finally {
    process.off("unhandledRejection", note);
  }
});

/** The address of a range question. */
function rangeOf({ start, end, window = "15m", dimensions = ["integration", "reason"], ...more }) {
  const query = new URLSearchParams({ start, end, window, dimensions, ...more });
  return `${delivery}/windows?${query}`;
}

test("a visitor who does not read holds only a few large windows", async () => {
  const sandbox = new Sandbox();
  const common = { outcome: "success", integration: "warehouse", writeKey: "", reason: "" };
  // A megabyte in each window.
  const names = Array.from("abcdefghijklmnop", (letter) => letter.repeat(65_000));
  for (const { start: timestamp } of new Plan({ ...DAY, window: "15m" })) {
    for (const eventName of names) sandbox.record({ ...common, timestamp, eventName });
  }
  const handle = pageServer({ client: clientOf(sandbox), authorize });
  const url = `http://localhost${rangeOf({ ...DAY, dimensions: ["event_name"] })}`;
  const reader = (await handle(new Request(url))).body.getReader();
  const calls = () => sandbox.stats.event_delivery;
  for (let read = 1; read <= 3; read++) {
    await reader.read();
    for (let idle = 0, before = calls(); idle < 100; idle++) {
      await new Promise(setImmediate);
      if (calls() > before) [idle, before] = [0, calls()];
    }
    assert.ok(calls() >= read && calls() <= 12, `${calls()} windows were read`);
  }
  await reader.cancel();
});

/** What a range is answered: the response, and its lines. */
async function ranged(handle, question, headers = {}) {
  const response = await handle(new Request(`http://localhost${rangeOf(question)}`, { headers }));
  const text = await response.text();
  assert.ok(text === "" || text.endsWith("\n"));
  return { response, lines: text.split("\n").slice(0, -1) };
}

/** The client of a page that gets the lines of a range in the place of the answers of the service. */
function pageOfLines(lines) {
  const bodies = new Map();
  for (let place = 0; place + 1 < lines.length; place += 2) {
    bodies.set(JSON.parse(lines[place]).start, lines[place + 1]);
  }
  const fetch = async (_url, { body }) =>
    new Response(bodies.get(JSON.parse(new TextDecoder().decode(body)).start), {
      headers: JSON_TYPE,
    });
  return pageOf("http://localhost", { fetch });
}

const dimensions = ["integration", "reason"];

/** A client by whose clock the day has just ended. */
function atTheEnd(sandbox, options) {
  const unixMs = Date.parse(DAY.end);
  const now = () => ({ monotonicMs: 0, unixMs });
  const fetch = async (url, init) => {
    const response = await sandbox.fetch(url, init);
    return new Response(response.body, { status: response.status, headers: JSON_TYPE });
  };
  return clientOf(sandbox, { now, fetch, ...options });
}

test("a day in one request has the same counts as its windows one by one", async () => {
  const sandbox = new Sandbox({ seed: 1 });
  const upstream = await serve(sandbox);
  const client = new Client({ ...sandbox.credentials, clusterEndpoint: upstream.url });
  const server = await listening(pageServer({ client, authorize }));
  try {
    const response = await fetch(server.address.replace("/tallyfold", rangeOf(DAY)));
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-type"), "application/x-ndjson");
    assert.equal(response.headers.get("cache-control"), "private, no-cache");
    assert.equal(response.headers.get("content-encoding"), "gzip");
    assert.ok(response.headers.get("date"));
    const lines = (await response.text()).split("\n");
    assert.deepEqual(lines.splice(-2), ['{"done":true}', ""]);
    const windows = [...new Plan({ ...DAY, window: "15m" })];
    const seen = lines.filter((_, place) => place % 2 === 0).map((line) => JSON.parse(line));
    assert.deepEqual(
      seen,
      windows.map(({ start, end }) => ({ start, end, settled: true })),
    );
    assert.equal(sandbox.stats.event_delivery, 96);
    const asked = { ...DAY, metric: "event_delivery", dimensions, window: "15m" };
    const expected = await client.collect(asked);
    assert.deepEqual((await pageOfLines(lines).collect(asked)).rows, expected.rows);
    // What was asked as a range is kept for those who ask for a window, and the other way round.
    const calls = sandbox.stats.event_delivery;
    await pageOf(server.address).eventDelivery({ ...windows[7], dimensions });
    await (await fetch(server.address.replace("/tallyfold", rangeOf(DAY)))).text();
    assert.equal(sandbox.stats.event_delivery, calls);
  } finally {
    await server[Symbol.asyncDispose]();
    await upstream.close();
  }
});

test("equal windows of ranges and requests at the same time are one call", async () => {
  const sandbox = service();
  const handle = pageServer({ client: clientOf(sandbox), authorize });
  const hour = { start: DAY.start, end: "2026-01-01T01:00:00Z" };
  const one = { ...WINDOW, dimensions };
  const all = await Promise.all([
    ranged(handle, hour),
    direct(handle).eventDelivery(one),
    ranged(handle, hour),
    ranged(handle, { ...hour, end: WINDOW.end }),
  ]);
  assert.equal(sandbox.stats.event_delivery, 4);
  assert.deepEqual(all[0].lines, all[2].lines);
  assert.deepEqual(all[3].lines.slice(0, 2), all[0].lines.slice(0, 2));
});

test("a range waits for a full queue, also if it shares a window with a request that does not", async () => {
  const sandbox = service();
  let answer;
  let find;
  const answered = new Promise((resolve) => {
    answer = resolve;
  });
  const found = new Promise((resolve) => {
    find = resolve;
  });
  const fetch = async (url, init) => {
    if (url.includes("analytics")) await answered;
    return sandbox.fetch(url, init);
  };
  const [shared, ...others] = [...new Plan({ ...DAY, window: "15m" })];
  // What the requests look up in the store, in this order: the two that fill the queue find nothing at once.
  let lookups = 0;
  const store = { get: () => (++lookups > 2 ? found : undefined), set() {} };
  const options = { authorize, store, concurrency: 1, queue: 1 };
  const handle = pageServer({ client: clientOf(sandbox, { fetch }), ...options });
  const ask = (window) => post(handle, delivery, { ...window, dimensions });
  const filling = others.slice(0, 2).map(ask);
  while (lookups < 2) await new Promise(setImmediate);
  const single = ask(shared);
  while (lookups < 3) await new Promise(setImmediate);
  const range = ranged(handle, { ...shared });
  await new Promise((done) => setTimeout(done, 50));
  find();
  assert.equal((await single).status, 503);
  answer();
  for (const response of await Promise.all(filling)) assert.equal(response.status, 200);
  const { lines } = await range;
  assert.deepEqual([lines.length, lines.at(-1)], [3, '{"done":true}']);
});

/** A service that answers one call each time that `release` is called. `starts` are the windows that it was asked for. */
function counted() {
  const sandbox = new Sandbox({ seed: 1 });
  const [starts, waiting] = [[], []];
  let released = 0;
  const serve = () => {
    while (released > 0 && waiting.length > 0) {
      released -= 1;
      waiting.shift()();
    }
  };
  const fetch = async (url, init) => {
    if (url.includes("analytics")) {
      starts.push(JSON.parse(new TextDecoder().decode(init.body)).start.slice(0, 16));
      await new Promise((answer) => {
        waiting.push(answer);
        serve();
      });
    }
    return sandbox.fetch(url, init);
  };
  const release = (calls) => {
    released += calls;
    serve();
  };
  return { client: clientOf(sandbox, { fetch }), starts, release };
}

/** Lets everything happen that waits for nothing but promises. */
async function settle() {
  for (let turns = 0; turns < 50; turns += 1) await new Promise(setImmediate);
}

/** Asks for the days from the first to the last of January, and reads the answers. */
function days(handle, first, last) {
  const day = (number) => `2026-01-${String(number).padStart(2, "0")}T00:00:00Z`;
  for (let number = first; number <= last; number += 1) {
    ranged(handle, { start: day(number), end: day(number + 1) }).catch(() => {});
  }
}

for (const [name, window] of [
  ["its own", { start: "2026-02-01T00:00:00Z", end: "2026-02-01T00:15:00Z" }],
  ["the eighth of a range", { start: "2026-01-25T01:45:00Z", end: "2026-01-25T02:00:00Z" }],
]) {
  test(`ranges do not delay a single request, however many there are: ${name}`, async () => {
    const { client, starts, release } = counted();
    const handle = pageServer({ client, authorize, concurrency: 2, queue: 1 });
    days(handle, 1, 25);
    while (starts.length < 2) await settle();
    await settle();
    let response;
    const single = post(handle, delivery, { ...window, dimensions }).then((answered) => {
      response = answered;
    });
    let calls = 0;
    for (await settle(); response === undefined && calls < 1000; await settle()) {
      release(1);
      calls += 1;
    }
    await single;
    assert.equal(response.status, 200);
    // Two calls were under way, two of ranges were in line, and one is its own.
    assert.ok(calls <= 5, `${calls} calls`);
  });
}

test("a range waits for one window of each other range", async () => {
  const { client, starts, release } = counted();
  const handle = pageServer({ client, authorize, concurrency: 4 });
  days(handle, 1, 5);
  while (starts.length < 4) await settle();
  days(handle, 6, 6);
  await settle();
  release(40);
  while (starts.length < 40) await settle();
  // Four calls were under way, four were in line, and each of the five ranges sent one more.
  const before = starts.indexOf("2026-01-06T00:00");
  assert.ok(before >= 0 && before <= 4 + 4 + 5, `${before} calls`);
});

test("a range that the browser has is 304 until a provisional window changes", async () => {
  const sandbox = new Sandbox({ seed: 1 });
  const handle = pageServer({ client: atTheEnd(sandbox), authorize, provisionalMs: 0 });
  const first = await ranged(handle, DAY);
  const etag = first.response.headers.get("etag");
  const settled = first.lines.filter((line) => line.includes('"settled":true')).length;
  assert.deepEqual([settled, sandbox.stats.event_delivery], [92, 96]);
  const again = await ranged(handle, DAY, { "if-none-match": etag });
  assert.deepEqual([again.response.status, again.lines], [304, []]);
  assert.equal(again.response.headers.get("etag"), etag);
  // Only the windows that may have changed were asked for.
  assert.equal(sandbox.stats.event_delivery, 100);
  const other = await ranged(handle, { ...DAY, window: "1h" }, { "if-none-match": etag });
  assert.equal(other.response.status, 200);
  let more = "";
  const changed = pageServer({
    client: atTheEnd(sandbox, {
      fetch: async (url, init) => {
        const response = await sandbox.fetch(url, init);
        const body = (await response.text()) + more;
        return new Response(body, { status: response.status, headers: JSON_TYPE });
      },
    }),
    authorize,
    provisionalMs: 0,
  });
  const before = (await ranged(changed, DAY)).response.headers.get("etag");
  assert.notEqual(before, etag, "each server has tags of its own");
  more = "\n ";
  const after = await ranged(changed, DAY, { "if-none-match": before });
  assert.equal(after.response.status, 200);
  assert.notEqual(after.response.headers.get("etag"), before);
});

test("a window that fails has a line of its own, and is asked for again", async () => {
  const sandbox = new Sandbox({ seed: 1 });
  const failing = new Set(["2026-01-01T03:00:00Z", "2026-01-01T23:45:00Z"]);
  const fetch = async (url, init) => {
    const body = init.body ? new TextDecoder().decode(init.body) : "";
    const isFailing = [...failing].some((start) => body.includes(`"start":"${start}`));
    if (isFailing) return new Response("shard-7 is down", { status: 503 });
    return sandbox.fetch(url, init);
  };
  const failures = [];
  const handle = pageServer({
    client: atTheEnd(sandbox, { fetch, maxRetries: 0 }),
    authorize,
    onFailure: (...parts) => failures.push(parts),
  });
  const first = await ranged(handle, DAY);
  assert.equal(first.lines.length, 94 * 2 + 2 + 1);
  assert.equal(first.lines.at(-1), '{"done":true}');
  const failed = first.lines.map((line) => JSON.parse(line)).filter(({ error }) => error);
  assert.deepEqual(
    failed.map(({ start }) => start),
    [...failing],
  );
  const [{ error }] = failed;
  assert.deepEqual([error.code, error.kind, error.status], ["server_error", "service", 503]);
  assert.ok(failures.some(([, reference]) => error.message.includes(reference)));
  assert.doesNotMatch(first.lines.join(""), /shard/);
  // Without all provisional windows there is no tag, and nothing is kept by the browser.
  assert.equal(first.response.headers.get("etag"), null);
  assert.equal(first.response.headers.get("cache-control"), "no-store");
  failing.delete("2026-01-01T23:45:00Z");
  const second = await ranged(handle, DAY);
  const etag = second.response.headers.get("etag");
  assert.ok(etag);
  failing.clear();
  // A settled window had failed after the tag was sent: the tag is not that of a whole range.
  const third = await ranged(handle, DAY, { "if-none-match": etag });
  assert.deepEqual([third.response.status, third.lines.length], [200, 193]);
  const known = third.response.headers.get("etag");
  const fourth = await ranged(handle, DAY, { "if-none-match": known });
  assert.equal(fourth.response.status, 304);
});

test("a range of a service that is down ends at once, and has the windows of the store", async () => {
  const morning = { start: DAY.start, end: "2026-01-01T12:00:00Z" };
  const refuse = () => {
    throw Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } });
  };
  const fail = (headers) => () => new Response("", { status: 503, headers });
  for (const [answer, mayComeAgain] of [
    [refuse, true],
    [fail({}), true],
    [fail({ "retry-after": "30" }), false],
  ]) {
    for (const endpoint of ["analytics", "token"]) {
      const sandbox = new Sandbox({ seed: 1 });
      const stored = new Map();
      const store = { get: (key) => stored.get(key), set: (key, text) => stored.set(key, text) };
      await ranged(pageServer({ client: clientOf(sandbox), authorize, store }), morning);
      let isDown = true;
      let requests = 0;
      const fetch = async (url, init) => {
        if (!isDown || !url.includes(endpoint)) return sandbox.fetch(url, init);
        requests += 1;
        return answer();
      };
      const client = clientOf(sandbox, { fetch, maxRetries: 3 });
      const handle = pageServer({ client, authorize, store, onFailure: () => {} });
      const begun = performance.now();
      const { lines } = await ranged(handle, DAY);
      assert.ok(performance.now() - begun < 15_000);
      const parsed = lines.map((line) => JSON.parse(line));
      assert.equal(parsed.filter(({ settled }) => settled).length, 48);
      assert.equal(parsed.filter(({ error }) => error?.kind === "service").length, 48);
      assert.ok(requests <= 16, `${requests} requests`);
      isDown = false;
      if (!mayComeAgain) continue;
      const after = await ranged(handle, DAY);
      assert.equal(after.lines.length, 193);
      assert.ok(!after.lines.some((line) => line.includes('"error":')));
    }
  }
});

test("a range takes its turns, and its work ends when its visitor leaves", async () => {
  const sandbox = new Sandbox({ seed: 1 });
  let hanging = 0;
  let most = 0;
  let go;
  const gate = new Promise((resolve) => {
    go = resolve;
  });
  const fetch = async (url, init) => {
    if (!url.includes("analytics")) return sandbox.fetch(url, init);
    hanging += 1;
    most = Math.max(most, hanging);
    try {
      await new Promise((resolve, reject) => {
        gate.then(resolve);
        init.signal.addEventListener("abort", () => reject(init.signal.reason));
      });
      return await sandbox.fetch(url, init);
    } finally {
      hanging -= 1;
    }
  };
  const client = clientOf(sandbox, { fetch });
  const handle = pageServer({ client, authorize, concurrency: 3, queue: 1 });
  const server = await listening(handle);
  try {
    const leaving = new AbortController();
    const address = server.address.replace("/tallyfold", rangeOf(DAY));
    const response = await globalThis.fetch(address, { signal: leaving.signal });
    while (hanging < 3) await new Promise(setImmediate);
    leaving.abort();
    await rejectionOf(response.text());
    while (hanging > 0) await new Promise((done) => setTimeout(done, 5));
    assert.equal(most, 3);
    // Two ranges at the same time wait for each other, although so many calls can't wait.
    const both = [ranged(handle, DAY), ranged(handle, { ...DAY, window: "1h" })];
    go();
    for (const { lines } of await Promise.all(both)) assert.equal(lines.at(-1), '{"done":true}');
    assert.equal(most, 3);
  } finally {
    await server[Symbol.asyncDispose]();
  }
});

test("an answer that is cut has no last line", async () => {
  const sandbox = new Sandbox({ seed: 1 });
  const down = new Error("the error tracker is down");
  const fetch = async (url, init) => {
    const body = init.body ? new TextDecoder().decode(init.body) : "";
    if (body.includes('"start":"2026-01-01T20:')) return new Response("", { status: 503 });
    return sandbox.fetch(url, init);
  };
  const client = clientOf(sandbox, { fetch, maxRetries: 0 });
  const onFailure = () => Promise.reject(down);
  const server = await listening(pageServer({ client, authorize, onFailure }));
  const lines = await told(async () => {
    const address = server.address.replace("/tallyfold", rangeOf(DAY));
    const response = await globalThis.fetch(address, {
      headers: { "accept-encoding": "identity" },
    });
    let text = "";
    const decoder = new TextDecoder();
    await assert.rejects(async () => {
      for await (const chunk of response.body) text += decoder.decode(chunk, { stream: true });
    });
    assert.ok(text.includes('"settled":true') && !text.includes("done"));
  });
  assert.equal(lines[0][0], down);
  await server[Symbol.asyncDispose]();
});

test("kept and stored windows of a range come at once, while others are asked for", async () => {
  const sandbox = new Sandbox({ seed: 1 });
  const store = new Map();
  const morning = { start: DAY.start, end: "2026-01-01T12:00:00Z" };
  const shared = {
    get: async (key) => store.get(key),
    set: async (key, text) => store.set(key, text),
  };
  await ranged(pageServer({ client: clientOf(sandbox), authorize, store: shared }), morning);
  assert.equal(store.size, 48);
  let go;
  const gate = new Promise((resolve) => {
    go = resolve;
  });
  const fetch = async (url, init) => {
    if (url.includes("analytics")) await gate;
    return sandbox.fetch(url, init);
  };
  const handle = pageServer({ client: clientOf(sandbox, { fetch }), authorize, store: shared });
  const response = await handle(new Request(`http://localhost${rangeOf(DAY)}`));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (text.split("\n").length < 48 * 2 + 1) text += (await reader.read()).value;
  assert.equal(sandbox.stats.event_delivery, 48);
  go();
  for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value;
  assert.ok(text.endsWith('{"done":true}\n'));
  assert.equal(sandbox.stats.event_delivery, 96);
});

test("a user sees some rows only, whatever the page asks", async () => {
  const sandbox = new Sandbox({ seed: 1 });
  const client = clientOf(sandbox);
  const asked = { ...DAY, metric: "event_delivery", window: "15m" };
  const truth = await client.collect({ ...asked, dimensions: ["integration", "write_key"] });
  const keys = truth.groupBy("write_key").rows.map((row) => row.dimensions.write_key);
  assert.ok(keys.length > 2);
  const visible = { a: keys.slice(0, 1), b: keys.slice(1), all: keys, none: [] };
  const authorize = async ({ headers }) => {
    const user = headers.get("user");
    return user in visible ? { write_key: visible[user] } : user === "root";
  };
  const kept = new Map();
  const store = { get: (key) => kept.get(key), set: (key, text) => kept.set(key, text) };
  const handle = pageServer({ client, authorize, store });
  const ask = (user, dimensions, headers) => {
    const url = `http://localhost${rangeOf({ ...DAY, dimensions })}`;
    return handle(new Request(url, { headers: { user, ...headers } }));
  };
  const etags = new Set();
  for (const [user, own] of Object.entries(visible)) {
    const expected = truth.filter({ write_key: own }).groupBy("integration");
    const response = await ask(user, "integration");
    const text = await response.text();
    const bodies = text
      .split("\n")
      .slice(0, -2)
      .filter((_, place) => place % 2 === 1)
      .map((line) => JSON.parse(line));
    const counts = bodies.flatMap((body) => body.counts);
    for (const name of ["success", "errors", "filtered"]) {
      const sum = counts.reduce((sum, row) => sum + BigInt(row[name]), 0n);
      assert.equal(sum, expected.totals[name]);
    }
    const errors = bodies.reduce((sum, body) => sum + BigInt(body.totalErrors), 0n);
    assert.equal(errors, expected.totals.errors);
    const others = keys.filter((key) => !own.includes(key));
    assert.ok(!others.some((key) => text.includes(key)));
    etags.add(response.headers.get("etag"));
    for (const dimensions of [["write_key"], ["integration"], ["reason", "write_key"]]) {
      const single = await post(
        handle,
        delivery,
        { ...WINDOW, dimensions },
        { ...JSON_TYPE, user },
      );
      assert.equal(single.status, 200);
      const text = await single.text();
      assert.ok(!others.some((key) => text.includes(key)));
    }
  }
  assert.equal(etags.size, 4);
  const again = await ask("a", "integration", { "if-none-match": [...etags][1] });
  assert.equal(again.status, 200);
  await again.text();
  const calls = sandbox.stats.event_delivery;
  await (await ask("root", "integration,write_key")).text();
  assert.equal(sandbox.stats.event_delivery, calls);
  assert.equal((await ask("nobody", "integration")).status, 403);
});

test("permissions that are wrong answer nothing", async () => {
  const sandbox = service();
  const ask = (allowed, path = delivery, options = {}) => {
    const client = clientOf(sandbox);
    return post(pageServer({ client, authorize: () => allowed, ...options }), path, query);
  };
  for (const allowed of [
    {},
    { colour: "red" },
    { write_key: null },
    { write_key: 7 },
    // Without it, the user would see more.
    { write_key: undefined, integration: "email" },
  ]) {
    const error = await rejectionOf(ask(allowed));
    assert.equal(error.kind, "config", JSON.stringify(allowed));
  }
  for (const truthy of [1, "yes", () => true, Symbol("yes")]) {
    assert.equal((await ask(truthy)).status, 403);
  }
  assert.equal(
    (await ask({ write_key: "web" }, "/token/control", { handOutTokens: true })).status,
    403,
  );
  const ingestion = delivery.replace("delivery", "ingestion");
  assert.equal((await ask({ reason: "consent" }, ingestion)).status, 403);
  assert.equal(sandbox.stats.event_delivery, 0);
});

test("a range that is wrong, or of another origin, is refused before anything is sent", async () => {
  const sandbox = service();
  const asked = [];
  const may = () => asked.push(1) < 9;
  const handle = pageServer({ client: clientOf(sandbox), authorize: may });
  for (const [question, headers, status, argument] of [
    [{ ...DAY, window: "7m" }, {}, 400, "window"],
    [{ ...DAY, window: "1s" }, {}, 400, "window"],
    [{ ...DAY, end: DAY.start }, {}, 400, "start"],
    [DAY, { "sec-fetch-site": "cross-site" }, 403, "origin"],
    [DAY, {}, 403, "authorize"],
  ]) {
    const { response, lines } = await ranged(handle, question, headers).catch(async () => {
      const request = new Request(`http://localhost${rangeOf(question)}`, { headers });
      const response = await handle(request);
      return { response, lines: [await response.text()] };
    });
    assert.equal(response.status, status);
    assert.match(lines[0], new RegExp(argument));
  }
  assert.equal(sandbox.stats.event_delivery, 0);
});

import assert from "node:assert/strict";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { Sandbox, TallyfoldError } from "tallyfold";
import { serve } from "tallyfold/node";
import { bytes, thrownBy, window } from "./responses.mjs";
import { clientOf, query, rejectionOf, service } from "./world.mjs";

describe("a sandbox", () => {
  test("makes the same traffic of the same seed, and other traffic of another", async () => {
    const fold = async (seed) =>
      JSON.stringify(await clientOf(new Sandbox({ seed })).eventDelivery(query));
    const [first, again, other, large] = await Promise.all([1, 1, 2, 2n ** 64n - 1n].map(fold));
    assert.equal(first, again);
    assert.notEqual(first, other);
    assert.notEqual(first, large);
  });

  test("refuses what can't be recorded, made or injected", () => {
    const sandbox = new Sandbox();
    const event = {
      timestamp: window.start,
      outcome: "success",
      eventName: "order",
      writeKey: "web",
      integration: "warehouse",
    };
    const wrong = [
      [
        () => sandbox.record({ ...event, timestamp: "yesterday" }),
        "invalid_timestamp",
        "timestamp",
      ],
      [() => sandbox.record({ ...event, outcome: "lost" }), "invalid_argument", "outcome"],
      [() => sandbox.record({ ...event, eventName: undefined }), "missing_argument", "eventName"],
      [() => sandbox.record({ ...event, writeKey: 5 }), "invalid_argument", "writeKey"],
      [() => sandbox.record({ ...event, count: -1 }), "invalid_argument", "count"],
      [() => sandbox.record({ ...event, count: 2n ** 64n }), "invalid_argument", "count"],
      [() => sandbox.record(), "invalid_argument", "event"],
      [() => sandbox.inject({ kind: "earthquake" }), "invalid_argument", "kind"],
      [() => sandbox.inject({ kind: "status", status: 99 }), "invalid_argument", "status"],
      [() => new Sandbox({ seed: -1 }), "invalid_argument", "seed"],
      [() => new Sandbox({ tokenLifetime: 0 }), "invalid_argument", "tokenLifetime"],
      [() => sandbox.handle({ method: "GET" }), "missing_argument", "target"],
      [() => sandbox.handle(), "missing_argument", "method"],
      [() => sandbox.inject(), "invalid_argument", "fault"],
      [
        () => sandbox.handle({ method: "GET", target: "/", body: "text" }),
        "invalid_argument",
        "body",
      ],
    ];
    for (const [act, code, argument] of wrong) {
      const error = thrownBy(act);
      assert.ok(TallyfoldError.is(error), String(error));
      assert.deepEqual([error.code, error.argument], [code, argument], String(act));
    }
  });

  test("handles requests without a network", () => {
    const { status, headers, body, delayMs, cutAt } = service().handle({
      method: "GET",
      target: "/api/v1/audit-logs?page=1",
    });
    assert.equal(status, 401);
    assert.deepEqual(headers, [["content-type", "application/json"]]);
    assert.equal(typeof JSON.parse(new TextDecoder().decode(body)), "object");
    assert.deepEqual([delayMs, cutAt], [0, undefined]);
  });

  test("injects faults once, for every k-th request, and for one endpoint", async () => {
    const sandbox = service();
    const client = clientOf(sandbox);
    sandbox.inject({ kind: "status", status: 503, endpoint: "event_delivery" });
    assert.equal((await rejectionOf(client.eventDelivery(query))).code, "server_error");
    await client.eventDelivery(query);
    sandbox.inject({ kind: "wrong_total", amount: 3, endpoint: "event_delivery", every: 2 });
    const verdicts = [];
    for (let i = 0; i < 4; i++) {
      verdicts.push((await client.eventDelivery(query)).reconciliation.verdict);
    }
    assert.deepEqual(verdicts, ["balanced", "unbalanced", "balanced", "unbalanced"]);
    sandbox.inject({ kind: "content_type", contentType: "text/csv", endpoint: "audit_logs" });
    assert.equal((await rejectionOf(client.auditLogs())).code, "wrong_content_type");
    sandbox.inject({ kind: "revoke_token", endpoint: "event_ingestion" });
    await client.eventIngestion({ ...query, dimensions: ["write_key"] });
    assert.equal(sandbox.stats.control_token, 2);
  });

  test("delays no request that is aborted by then", async () => {
    const sandbox = service();
    const url = "http://localhost/api/v1/audit-logs";
    sandbox.inject({ kind: "delay", milliseconds: 3_600_000, every: 1 });
    const aborted = sandbox.fetch(url, { signal: AbortSignal.abort("enough") });
    assert.equal(await rejectionOf(aborted), "enough");
    const timers = process.getActiveResourcesInfo().filter((name) => name === "Timeout");
    const controller = new AbortController();
    const waiting = sandbox.fetch(url, { signal: controller.signal });
    setImmediate(() => controller.abort("enough"));
    assert.equal(await rejectionOf(waiting), "enough");
    const left = process.getActiveResourcesInfo().filter((name) => name === "Timeout");
    assert.equal(left.length, timers.length);
  });

  test("is readable when inspected, also when disposed of", () => {
    const sandbox = service();
    assert.match(inspect(sandbox), /^Sandbox \{\s+stats/);
    sandbox[Symbol.dispose]();
    assert.equal(inspect(sandbox), "Sandbox (disposed of)");
  });
});

describe("a served sandbox", () => {
  test("is for this machine only, and frees its port", async () => {
    const server = await serve(service());
    assert.equal(server.url, `http://127.0.0.1:${server.port}`);
    const taken = await rejectionOf(serve(service(), { port: server.port }));
    assert.equal(taken.code, "EADDRINUSE");
    await server.close();
    await (await serve(service(), { port: server.port })).close();
    await server.close();
  });

  test("lets pages of any origin in", async (t) => {
    const server = await serve(service());
    t.after(() => server.close());
    const target = `${server.url}/v1.1/analytics/event_delivery`;
    const preflight = await fetch(target, {
      method: "OPTIONS",
      headers: {
        origin: "http://page.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
      },
    });
    assert.equal(preflight.status, 204);
    const allowed = preflight.headers.get("access-control-allow-headers").split(", ");
    assert.deepEqual(allowed, ["authorization", "content-type"]);
    assert.match(preflight.headers.get("access-control-allow-methods"), /POST/);
    const refused = await fetch(target, { method: "POST", body: "{}" });
    assert.equal(refused.status, 401);
    for (const response of [preflight, refused]) {
      assert.equal(response.headers.get("access-control-allow-origin"), "*");
    }
  });

  test("announces all of a body that it cuts, and sends exactly so much of it", async (t) => {
    const sandbox = service();
    const server = await serve(sandbox);
    t.after(() => server.close());
    for (const cut of [0, 1, 17]) {
      sandbox.inject({ kind: "truncate", bytes: cut, endpoint: "audit_logs" });
      const text = await rawly(server.port, "GET /api/v1/audit-logs HTTP/1.1\r\nhost: a\r\n\r\n");
      const [head, body] = text.split("\r\n\r\n");
      assert.match(head, /^HTTP\/1\.1 401 /);
      assert.ok(Number(/content-length: (\d+)/i.exec(head)[1]) > 17);
      assert.equal(body.length, cut);
    }
  });

  test("waits before it answers, if a fault says so", async (t) => {
    const sandbox = service();
    const server = await serve(sandbox);
    t.after(() => server.close());
    sandbox.inject({ kind: "delay", milliseconds: 50 });
    const before = performance.now();
    await fetch(`${server.url}/api/v1/audit-logs`);
    assert.ok(performance.now() - before > 45);
  });

  test("survives what is no request of either API", async (t) => {
    const server = await serve(service());
    t.after(() => server.close());
    assert.match(await rawly(server.port, "NONSENSE\r\n\r\n"), /^HTTP\/1\.1 400/);
    const long = bytes("x".repeat((1 << 20) + 1));
    const target = `${server.url}/v1.1/oauth/token`;
    await rejectionOf(fetch(target, { method: "POST", body: long }));
    assert.equal((await fetch(`${server.url}/nowhere`)).status, 404);
    assert.equal((await fetch(target)).status, 405);
  });
});

/** Everything that a connection answers until it closes. */
async function rawly(port, request) {
  const socket = connect(port, "127.0.0.1");
  socket.end(request);
  const chunks = [];
  for await (const chunk of socket) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

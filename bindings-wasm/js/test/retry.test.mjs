// What is tried again, how the client waits for it, and what can be seen of it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { describe, test } from "node:test";
import { Client, Machine } from "tallyfold";
import { serve } from "tallyfold/node";
import { thrownBy, window } from "./responses.mjs";
import { clientOf, clocks, query, rejectionOf, service } from "./world.mjs";

/** A client that tries again without waiting for long. */
function hasty(sandbox, options) {
  return clientOf(sandbox, { maxRetries: undefined, longestRetryWaitMs: 10, ...options });
}

describe("a client", () => {
  for (const status of [408, 429, 500, 502, 503, 504]) {
    test(`tries again after status ${status}, of either endpoint`, async () => {
      const sandbox = service();
      for (const endpoint of ["control_token", "event_delivery"]) {
        sandbox.inject({ kind: "status", status, endpoint });
      }
      assert.equal((await hasty(sandbox).eventDelivery(query)).totals.success, 7n);
      const { control_token, event_delivery } = sandbox.stats;
      assert.deepEqual([control_token, event_delivery], [2, 2]);
    });
  }

  test("tries again over loopback when the connection breaks", async (t) => {
    const sandbox = service();
    const server = await serve(sandbox);
    t.after(() => server.close());
    const attempts = [];
    const onAttempt = (attempt) => attempts.push([attempt.status, attempt.code]);
    const remote = { clusterEndpoint: server.url, fetch: undefined, onAttempt };
    sandbox.inject({ kind: "truncate", bytes: 100, endpoint: "event_delivery" });
    const table = await hasty(sandbox, remote).eventDelivery(query);
    assert.equal(table.totals.success, 7n);
    assert.deepEqual(attempts, [
      [200, undefined],
      [200, "network_failed"],
      [200, undefined],
    ]);
  });

  test("tries again when an exchange took too long", async () => {
    const sandbox = service();
    sandbox.inject({ kind: "delay", milliseconds: 60_000, endpoint: "event_delivery" });
    const client = hasty(sandbox, { timeoutMs: 50 });
    assert.equal((await client.eventDelivery(query)).totals.success, 7n);
  });

  test("waits, unless it is told not to, for a quarter of a second and more", async () => {
    const sandbox = service();
    sandbox.inject({ kind: "status", status: 503, endpoint: "event_delivery" });
    const begin = performance.now();
    await clientOf(sandbox, { maxRetries: undefined }).eventDelivery(query);
    assert.ok(performance.now() - begin >= 249);
  });

  test("waits as long as the service asks for, by the clocks that it is given", async () => {
    const now = clocks();
    const sandbox = service({ now });
    sandbox.inject({ kind: "status", status: 429, retryAfter: "7", endpoint: "event_delivery" });
    const client = clientOf(sandbox, { now });
    const { code, retryAfter } = await rejectionOf(client.eventDelivery(query));
    assert.deepEqual([code, retryAfter], ["rate_limited", 7]);
    const signal = AbortSignal.timeout(50);
    const early = await rejectionOf(client.eventDelivery({ ...query, signal }));
    assert.equal(early.name, "TimeoutError");
    assert.equal(sandbox.stats.event_delivery, 1);
    now.pass(7);
    assert.equal((await client.eventDelivery(query)).totals.success, 7n);
  });

  test("says when to come back if that is later than it may wait", async () => {
    const sandbox = service();
    const fault = { kind: "status", status: 503, endpoint: "event_delivery" };
    for (const [retryAfter, seconds] of [
      ["3600", 3600],
      ["9".repeat(30), Number.MAX_SAFE_INTEGER],
    ]) {
      sandbox.inject({ ...fault, retryAfter });
      const error = await rejectionOf(clientOf(sandbox).eventDelivery(query));
      assert.deepEqual(
        [error.code, error.kind, error.status, error.retryAfter],
        ["retry_later", "service", 503, seconds],
      );
      assert.equal(
        error.message,
        `retry_later: retry later, ${seconds} seconds (status 503: {"error":"injected_fault","message":"a fault of the test"})`,
      );
    }
  });

  test("is aborted at once while it waits, and keeps no process alive", async () => {
    const sandbox = service();
    const fault = { kind: "status", status: 503, retryAfter: "60", endpoint: "event_delivery" };
    sandbox.inject(fault);
    const client = clientOf(sandbox, { maxRetries: 3 });
    const controller = new AbortController();
    const begin = performance.now();
    const waiting = client.eventDelivery({ ...query, signal: controller.signal });
    setTimeout(() => controller.abort("enough"), 50);
    assert.equal(await rejectionOf(waiting), "enough");
    assert.ok(performance.now() - begin < 10_000);

    const code = `
      import { clientOf, query, service } from "./world.mjs";
      const sandbox = service();
      sandbox.inject(${JSON.stringify(fault)});
      const client = clientOf(sandbox, { maxRetries: 3 });
      const controller = new AbortController();
      setTimeout(() => controller.abort("enough"), 50);
      await client.eventDelivery({ ...query, signal: controller.signal }).catch(console.log);
    `;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
      cwd: import.meta.dirname ?? new URL(".", import.meta.url).pathname,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let printed = "";
    child.stdout.on("data", (chunk) => {
      printed += chunk;
    });
    const exit = await new Promise((resolve) => child.once("close", resolve));
    assert.deepEqual([exit, printed], [0, "enough\n"]);
    assert.ok(performance.now() - begin < 30_000);
  });

  test("lets a hundred calls that wait for a token try again with one request", async () => {
    const sandbox = service();
    sandbox.inject({ kind: "status", status: 503, endpoint: "control_token" });
    const client = hasty(sandbox);
    await Promise.all(Array.from({ length: 100 }, () => client.eventDelivery(query)));
    assert.equal(sandbox.stats.control_token, 2);
  });

  test("tells of each request when it has ended", async () => {
    const sandbox = service();
    sandbox.inject({ kind: "status", status: 500, endpoint: "event_delivery" });
    sandbox.inject({ kind: "revoke_token", endpoint: "event_delivery" });
    sandbox.inject({ kind: "status", status: 403, endpoint: "audit_logs" });
    const attempts = [];
    const client = hasty(sandbox, { onAttempt: (attempt) => attempts.push(attempt) });
    await client.eventDelivery(query);
    const [, { waitMs }] = attempts;
    assert.ok(waitMs >= 5 && waitMs <= 10, `${waitMs}`);
    assert.deepEqual(attempts, [
      { target: "token", window, number: 1, status: 200 },
      { target: "event_delivery", window, number: 1, status: 500, code: "server_error", waitMs },
      {
        target: "event_delivery",
        window,
        number: 2,
        status: 401,
        code: "token_rejected",
        waitMs: 0,
      },
      { target: "token", window, number: 2, status: 200 },
      { target: "event_delivery", window, number: 3, status: 200 },
    ]);
    await rejectionOf(client.auditLogs());
    assert.deepEqual(attempts.at(-1), {
      target: "audit_logs",
      number: 1,
      status: 403,
      code: "forbidden",
    });
  });

  test("rejects with what onAttempt throws", async () => {
    const reason = new RangeError("enough");
    const onAttempt = () => {
      throw reason;
    };
    const client = clientOf(service(), { onAttempt });
    assert.equal(await rejectionOf(client.eventDelivery(query)), reason);
  });

  test("has a budget of retries for all of its calls", async () => {
    let sent = 0;
    const fetch = async () => {
      sent += 1;
      return new Response("<html>", { status: 502, headers: { "content-type": "text/html" } });
    };
    const accessToken = () => ({ accessToken: "a-token" });
    const clusterEndpoint = "http://localhost";
    const client = new Client({ clusterEndpoint, accessToken, fetch, longestRetryWaitMs: 0 });
    const messages = [];
    for (let call = 0; call < 100; call++) {
      messages.push((await rejectionOf(client.eventDelivery(query))).message);
    }
    // Ten retries from the start, and nine more that a hundred calls have earned.
    assert.ok([18, 19].includes(sent - 100), `${sent} requests`);
    assert.match(messages.at(-1), /the retry budget is used up/);
  });

  test("refuses options by their names", () => {
    for (const [name, values] of [
      ["maxRetries", [-1, 0.5, 2 ** 32, "3", Number.NaN]],
      ["longestRetryWaitMs", [-1, 0.5, 2 ** 31, Number.POSITIVE_INFINITY, "60"]],
      ["onAttempt", [5, "log", {}]],
    ]) {
      for (const value of values) {
        const error = thrownBy(() => clientOf(service(), { [name]: value }));
        assert.deepEqual([error.code, error.argument], ["invalid_argument", name], String(value));
        assert.match(error.message, new RegExp(`: ${name}: `));
      }
    }
    clientOf(service(), { maxRetries: null, longestRetryWaitMs: 2 ** 31 - 1, onAttempt: null });
  });
});

test("a machine says for how long to wait, and tells of each request once", () => {
  const machine = new Machine({ clusterEndpoint: "http://localhost", hostTokens: true });
  const call = machine.eventDelivery(query);
  const at = (monotonicMs) => ({ monotonicMs, unixMs: 0 });
  call.step(at(0));
  call.token({ accessToken: "a-token", expiresIn: 60 });
  call.step(at(0));
  assert.equal(call.attempt(), undefined);
  assert.equal(call.head(503, [["retry-after", "7"]]), false);
  const { waitMs } = call.attempt();
  assert.ok(waitMs >= 7000 && waitMs <= 7250, `${waitMs}`);
  assert.equal(call.attempt(), undefined);
  assert.deepEqual(call.step(at(0)), { type: "wait", ms: waitMs });
  // Another call of the machine waits for what the service has asked for, and no longer.
  assert.deepEqual(machine.eventDelivery(query).step(at(1000)), { type: "wait", ms: 6000 });
});

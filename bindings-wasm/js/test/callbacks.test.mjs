// The caller's own functions, which may be asynchronous: each is awaited, and what it rejects with ends the call.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { window } from "./responses.mjs";
import { clientOf, query, rejectionOf, service } from "./world.mjs";

const range = { ...query, metric: "event_delivery", end: "2026-01-01T00:30:00Z", patienceMs: 0 };

/** A function that notes what it was called with, some turns of the event loop later. */
function noting(seen, { throws } = {}) {
  return async (given) => {
    await turn();
    seen.push(given);
    if (throws !== undefined) throw throws;
  };
}

describe("onAttempt", () => {
  test("is awaited before the call goes on", async () => {
    const seen = [];
    const client = clientOf(service(), { onAttempt: noting(seen) });
    await client.eventDelivery(query);
    assert.deepEqual(
      seen.map(({ target, status }) => [target, status]),
      [
        ["token", 200],
        ["event_delivery", 200],
      ],
    );
  });

  test("ends a call, a collect and a follow with what it rejects with", async () => {
    const throws = new RangeError("mine");
    const client = clientOf(service(), { onAttempt: noting([], { throws }) });
    assert.equal(await rejectionOf(client.eventDelivery(query)), throws);
    assert.equal(await rejectionOf(client.collect(range)), throws);
    const follow = client.follow({ ...range, window: "15m" });
    assert.equal(await rejectionOf(follow.next()), throws);
    await follow.return();
  });

  test("that never ends is left when the signal aborts", async () => {
    const abort = new AbortController();
    const onAttempt = () => {
      abort.abort(new Error("enough"));
      return new Promise(() => {});
    };
    const client = clientOf(service(), { onAttempt });
    const { signal } = abort;
    assert.equal((await rejectionOf(client.eventDelivery({ ...query, signal }))).message, "enough");
    assert.equal((await rejectionOf(client.collect({ ...range, signal }))).message, "enough");
  });
});

describe("onProgress", () => {
  test("is awaited, one at a time and in order", async () => {
    const [seen, underWay] = [[], new Set()];
    const onProgress = async (progress) => {
      assert.equal(underWay.size, 0);
      underWay.add(progress);
      await turn();
      underWay.delete(progress);
      seen.push(progress.done);
    };
    const end = "2026-01-01T02:00:00Z";
    await clientOf(service()).collect({ ...range, end, concurrency: 4, onProgress });
    assert.deepEqual(seen, [1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test("ends the collect with what it rejects with", async () => {
    const throws = new RangeError("mine");
    const onProgress = noting([], { throws });
    assert.equal(await rejectionOf(clientOf(service()).collect({ ...range, onProgress })), throws);
  });

  test("that never ends is left when the signal aborts", async () => {
    const abort = new AbortController();
    const onProgress = () => {
      abort.abort(new Error("enough"));
      return new Promise(() => {});
    };
    const collect = clientOf(service()).collect({ ...range, onProgress, signal: abort.signal });
    assert.equal((await rejectionOf(collect)).message, "enough");
  });
});

describe("a checkpoint", () => {
  for (const name of ["load", "save"]) {
    test(`whose ${name} never ends is left when the signal aborts`, async () => {
      const abort = new AbortController();
      const checkpoint = { load: () => undefined, save: () => {} };
      checkpoint[name] = () => {
        queueMicrotask(() => abort.abort(new Error("enough")));
        return new Promise(() => {});
      };
      const collect = clientOf(service()).collect({ ...range, checkpoint, signal: abort.signal });
      assert.equal((await rejectionOf(collect)).message, "enough");
    });
  }
});

test("a load that returns neither text nor bytes is named", async () => {
  const checkpoint = { load: () => 5, save() {} };
  const error = await rejectionOf(clientOf(service()).collect({ ...range, checkpoint }));
  assert.deepEqual([error.code, error.argument], ["invalid_argument", "checkpoint"]);
  assert.match(error.message, /want a load that returns a string, a Uint8Array or undefined/);
});

test("onFailure is awaited, and next rejects with what it rejects with", async () => {
  for (const throws of [undefined, new RangeError("mine")]) {
    const sandbox = service();
    sandbox.inject({ kind: "status", status: 403, endpoint: "event_delivery" });
    const seen = [];
    const onFailure = noting(seen, { throws });
    const query = { ...range, window: "15m", rereadMs: 1, onFailure };
    const follow = clientOf(sandbox).follow(query);
    if (throws === undefined) {
      // The next window may come before a millisecond has passed and the first one is read again.
      const { start } = (await follow.next()).value.window;
      assert.ok([window.start, "2026-01-01T00:15:00Z"].includes(start), start);
    } else assert.equal(await rejectionOf(follow.next()), throws);
    assert.equal(seen.length, 1);
    await follow.return();
  }
});

describe("a stack shows the caller", () => {
  test("of a call whose arguments are refused", async () => {
    async function myDashboard() {
      await clientOf(service()).eventDelivery({ ...query, start: 5 });
    }
    const { stack } = await rejectionOf(myDashboard());
    assert.match(stack, /myDashboard.*callbacks\.test/);
    assert.doesNotMatch(stack, /wasm:\/\//);
  });

  test("of a call that the service refuses", async () => {
    const sandbox = service();
    sandbox.inject({ kind: "status", status: 403, endpoint: "event_delivery" });
    async function myDashboard() {
      await clientOf(sandbox).eventDelivery(query);
    }
    assert.match((await rejectionOf(myDashboard())).stack, /at async myDashboard.*callbacks\.test/);
  });

  test("of a call whose response is not valid", async () => {
    const sandbox = service();
    sandbox.inject({ kind: "body", body: '{"counts": [}', endpoint: "event_delivery" });
    async function myDashboard() {
      await clientOf(sandbox).eventDelivery(query);
    }
    assert.match((await rejectionOf(myDashboard())).stack, /at async myDashboard.*callbacks\.test/);
  });

  test("of a collect that fails", async () => {
    const sandbox = service();
    sandbox.inject({ kind: "status", status: 403, endpoint: "event_delivery", every: 1 });
    async function myJob() {
      await clientOf(sandbox).collect(range);
    }
    assert.match((await rejectionOf(myJob())).stack, /at async myJob.*callbacks\.test/);
  });

  test("of what is thrown at once", async () => {
    const table = await clientOf(service()).eventDelivery(query);
    function myReport() {
      return table.groupBy("write_key");
    }
    assert.throws(myReport, ({ stack }) => /at myReport.*callbacks\.test/.test(stack));
    const limit = Error.stackTraceLimit;
    assert.throws(() => table.top(-1), { code: "invalid_argument" });
    assert.equal(Error.stackTraceLimit, limit);
  });
});

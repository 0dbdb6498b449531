// Windows as they close, in a time that passes when a test says so.

import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, mock, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Sandbox } from "tallyfold";
import { thrownBy } from "./responses.mjs";
import { clientOf, rejectionOf } from "./world.mjs";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");
const startMs = Date.parse("2026-01-01T00:00:00Z");
const minute = 60_000;
const query = {
  metric: "event_delivery",
  start: new Date(startMs),
  dimensions: ["integration"],
  window: "5m",
  settleMs: 20 * minute,
};
const event = { outcome: "success", eventName: "order", writeKey: "web", integration: "email" };

/** A sandbox, a client, and a clock that `pass` and a waiting client move. */
function world(options) {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  let atMs = startMs;
  const now = () => ({ monotonicMs: atMs - startMs, unixMs: atMs });
  const sandbox = new Sandbox({ now });
  const client = clientOf(sandbox, { now, timeoutMs: Number.POSITIVE_INFINITY, ...options });
  const pass = (ms) => {
    atMs += ms;
    mock.timers.tick(ms);
  };
  return { sandbox, client, now, pass };
}

/** What a promise comes to, while time passes in minutes. */
async function inTime(promise, pass, ms = minute) {
  let isPending = true;
  const done = () => {
    isPending = false;
  };
  promise.then(done, done);
  while (isPending) {
    await settled();
    if (isPending) pass(ms);
  }
  return promise;
}

/** Lets everything happen that needs no time. */
async function settled() {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
}

describe("a follow", () => {
  test("of a day with late events has a running sum that is the truth", async (t) => {
    t.after(() => mock.timers.reset());
    const { sandbox, client, now, pass } = world();
    const end = new Date(startMs + 24 * 60 * minute);
    const revisions = client.follow({ ...query, end });
    const [newest, numbers] = [new Map(), new Map()];
    let [sum, truth, late, settledWindows] = [0n, 0, 0, 0];
    let recorded = 0;
    // One event per minute when it happens, and every seventh one a quarter of an hour late.
    const record = () => {
      for (; recorded < (now().unixMs - startMs) / minute && recorded < 24 * 60; recorded++) {
        const isLate = recorded >= 15 && recorded % 7 === 0;
        const timestamp = new Date(startMs + (recorded - (isLate ? 15 : 0)) * minute);
        sandbox.record({ ...event, timestamp });
        truth += 1;
        late += isLate ? 1 : 0;
      }
    };
    for (;;) {
      const { done, value } = await inTime(revisions.next(), (ms) => {
        pass(ms);
        record();
      });
      if (done) break;
      sum += value.changes.totalDelta.success;
      newest.set(value.window.start, value.table.totals.success);
      settledWindows += value.settled ? 1 : 0;
      assert.equal(value.number, numbers.get(value.window.start) ?? 0);
      numbers.set(value.window.start, value.number + 1);
      assert.equal(
        sum,
        [...newest.values()].reduce((all, one) => all + one),
      );
    }
    assert.ok(late > 100);
    assert.equal(settledWindows, 288);
    assert.equal(newest.size, 288);
    const { start, dimensions } = query;
    const whole = await client.eventDelivery({ start, end, dimensions });
    assert.equal(whole.totals.success, BigInt(truth));
    assert.equal(sum, whole.totals.success);
    assert.deepEqual(await revisions.next(), { done: true, value: undefined });
  });

  test("gives late events as signed changes", async (t) => {
    t.after(() => mock.timers.reset());
    const { sandbox, client, pass } = world();
    sandbox.record({ ...event, timestamp: query.start, count: 3 });
    const end = new Date(startMs + 5 * minute);
    const revisions = client.follow({ ...query, end })[Symbol.asyncIterator]();
    const first = (await inTime(revisions.next(), pass)).value;
    assert.deepEqual(
      [first.window.start, first.table.totals.success, first.changes.totalDelta.success],
      ["2026-01-01T00:00:00Z", 3n, 3n],
    );
    assert.equal(first.settled, false);
    sandbox.record({ ...event, timestamp: query.start, count: 2 });
    const second = (await inTime(revisions.next(), pass)).value;
    assert.deepEqual([second.changes.totalDelta.success, second.settled], [2n, false]);
    // It is read again until its settle time is over, also if nothing changes.
    for (const settled of [false, false, true]) {
      const { value } = await inTime(revisions.next(), pass);
      assert.deepEqual([value.changes.totalDelta.success, value.settled], [0n, settled]);
    }
    assert.equal((await inTime(revisions.next(), pass)).done, true);
  });

  test("settles a window early only if it is asked to", async (t) => {
    t.after(() => mock.timers.reset());
    const { client, pass } = world();
    const end = new Date(startMs + 5 * minute);
    const revisions = client.follow({ ...query, end, settleWhenUnchanged: true });
    const settled = [];
    for (let n = 0; n < 2; n++) {
      settled.push((await inTime(revisions.next(), pass)).value.settled);
    }
    assert.deepEqual(settled, [false, true]);
  });

  test("goes by the service's clock if this machine's is ahead", async (t) => {
    t.after(() => mock.timers.reset());
    const attempts = [];
    const { sandbox, client, now, pass } = world({
      onAttempt: (attempt) => attempts.push(attempt),
    });
    sandbox.inject({ kind: "date", milliseconds: 60 * minute, every: 1 });
    pass(90 * minute);
    const warned = once(process, "warning");
    const revisions = client.follow(query);
    const seen = [];
    for (let n = 0; n < 6; n++) {
      const { value } = await inTime(revisions.next(), pass);
      seen.push([value.window.start.slice(11, 16), value.settled]);
    }
    // By the service's clock it is half past twelve: two windows have been over for twenty minutes.
    assert.deepEqual(seen, [
      ["00:00", true],
      ["00:05", true],
      ["00:10", false],
      ["00:15", false],
      ["00:20", false],
      ["00:25", false],
    ]);
    const [warning] = await warned;
    assert.equal(warning.name, "ClockWarning");
    const { clock } = attempts[0];
    assert.deepEqual([clock.aheadMs, clock.isAlarming], [60 * minute, true]);
    assert.match(clock.message, /60 min ahead of the service's/);
    const state = revisions.state();
    await revisions.return();
    const behind = { ...now(), unixMs: startMs };
    const early = clientOf(sandbox, { now: () => behind });
    const error = await rejectionOf(early.follow({ ...query, state }).next());
    assert.deepEqual([error.code, error.argument], ["invalid_checkpoint", "state"]);
    assert.match(error.message, /from the future/);
  });

  test("waits for a window that has ended only by this machine's clock", async (t) => {
    t.after(() => mock.timers.reset());
    const { sandbox, client, now, pass } = world();
    sandbox.inject({ kind: "date", milliseconds: 60 * minute, every: 1 });
    pass(62 * minute);
    const revisions = client.follow({ ...query, settleMs: 0 });
    const { value } = await inTime(revisions.next(), pass);
    assert.deepEqual([value.window.start, value.settled], ["2026-01-01T00:00:00Z", true]);
    assert.equal((now().unixMs - startMs) / minute, 65);
    await revisions.return();
    const early = client.follow({ ...query, start: value.window.end, once: true });
    assert.deepEqual(await early.next(), { done: true, value: undefined });
  });

  test("goes on from its state, however often it is stopped", async (t) => {
    t.after(() => mock.timers.reset());
    const { sandbox, client, now, pass } = world();
    const end = new Date(startMs + 2 * 60 * minute);
    const options = { ...query, end };
    let recorded = 0;
    const record = (ms) => {
      pass(ms);
      for (; recorded < 120 && recorded < (now().unixMs - startMs) / minute; recorded++) {
        // Every third event comes a quarter of an hour late.
        const late = recorded >= 15 && recorded % 3 === 0 ? 15 : 0;
        sandbox.record({ ...event, timestamp: new Date(startMs + (recorded - late) * minute) });
      }
    };
    let [sum, state, follows, isOver] = [0n, undefined, 0, false];
    const numbers = new Map();
    while (!isOver) {
      follows += 1;
      const revisions = client.follow({ ...options, state });
      for (let taken = 0; taken < 5 && !isOver; taken++) {
        const { done, value } = await inTime(revisions.next(), record);
        isOver = done;
        if (done) break;
        sum += value.changes.totalDelta.success;
        assert.equal(value.number, numbers.get(value.window.start) ?? 0);
        numbers.set(value.window.start, value.number + 1);
      }
      state = revisions.state();
      await revisions.return();
    }
    assert.ok(follows > 4);
    // Read until 20 minutes after its end, each of the 24 windows has several revisions.
    assert.ok(numbers.size === 24 && Math.min(...numbers.values()) > 3);
    assert.equal(sum, 120n);
    const other = { ...options, dimensions: ["reason"], state };
    assert.throws(() => client.follow(other), { code: "invalid_checkpoint", argument: "state" });
    const cut = { ...options, state: state.slice(0, -2) };
    assert.throws(() => client.follow(cut), { code: "invalid_checkpoint", argument: "state" });
  });

  test("goes on after a reading that failed", async (t) => {
    t.after(() => mock.timers.reset());
    const { sandbox, client, pass } = world();
    sandbox.record({ ...event, timestamp: query.start });
    sandbox.inject({ kind: "status", status: 500, endpoint: "event_delivery" });
    const revisions = client.follow({ ...query, patienceMs: 0 });
    const error = await rejectionOf(inTime(revisions.next(), pass));
    assert.equal(error.code, "server_error");
    const { value } = await inTime(revisions.next(), pass);
    assert.equal(value.table.totals.success, 1n);
    assert.equal(value.window.start, "2026-01-01T00:00:00Z");
    await revisions.return();
  });

  test("reads a window again whose revision nobody got", async (t) => {
    t.after(() => mock.timers.reset());
    const reason = new Error("a log that is full");
    let attempts = 0;
    const onAttempt = ({ target }) => {
      attempts += 1;
      if (target === "event_delivery" && attempts === 2) throw reason;
    };
    const { sandbox, client, pass } = world({ onAttempt });
    sandbox.record({ ...event, timestamp: query.start });
    const revisions = client.follow(query);
    assert.equal(await rejectionOf(inTime(revisions.next(), pass)), reason);
    const { value } = await inTime(revisions.next(), pass);
    assert.equal(value.changes.totalDelta.success, 1n);
    assert.equal(value.number, 0);
    await revisions.return();
  });

  test("gives its revisions one after the other to who asks for several", async (t) => {
    t.after(() => mock.timers.reset());
    const { client, pass } = world();
    const revisions = client.follow(query);
    const several = Promise.all([revisions.next(), revisions.next(), revisions.next()]);
    const windows = (await inTime(several, pass)).map(({ value }) =>
      value.window.start.slice(11, 16),
    );
    assert.deepEqual(windows, ["00:00", "00:00", "00:05"]);
    await revisions.return();
  });

  for (const [how, close] of [
    ["return", (revisions) => revisions.return()],
    ["throw", (revisions) => rejectionOf(revisions.throw(new Error("enough")))],
    [
      "dispose",
      (revisions) => revisions[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")](),
    ],
  ]) {
    test(`ends a wait at once by ${how}`, async (t) => {
      t.after(() => mock.timers.reset());
      const { client, sandbox } = world();
      const revisions = client.follow(query);
      const pending = revisions.next();
      await settled();
      await close(revisions);
      assert.deepEqual(await pending, { done: true, value: undefined });
      assert.deepEqual(await revisions.next(), { done: true, value: undefined });
      assert.equal(sandbox.stats.control_token, 0);
    });
  }

  test("ends with its signal, in a wait and in a reading", async (t) => {
    t.after(() => mock.timers.reset());
    const reason = new Error("enough");
    const controller = new AbortController();
    const { signal } = controller;
    const { client } = world();
    const pending = client.follow({ ...query, signal }).next();
    await settled();
    controller.abort(reason);
    assert.equal(await rejectionOf(pending), reason);
    const other = new AbortController();
    const fetch = (_, init) =>
      new Promise((_, reject) => {
        init.signal.addEventListener("abort", () => reject(init.signal.reason));
        setImmediate(() => other.abort(reason));
      });
    const { client: hanging, pass } = world({ fetch });
    const reading = hanging.follow({ ...query, signal: other.signal }).next();
    assert.equal(await rejectionOf(inTime(reading, pass)), reason);
    const thrown = () => client.follow({ ...query, signal });
    assert.throws(thrown, reason);
  });

  test("that was left is freed while its signal lives", async (t) => {
    t.after(() => mock.timers.reset());
    const { client, pass } = world();
    pass(5 * minute);
    const { signal } = new AbortController();
    const left = await (async () => {
      const revisions = client.follow({ ...query, signal });
      assert.equal((await revisions.next()).done, false);
      return new WeakRef(revisions);
    })();
    for (let turns = 0; turns < 20 && left.deref(); turns++) {
      await turn();
      gc();
    }
    assert.equal(left.deref(), undefined);
    assert.equal(signal.aborted, false);
  });

  test("gives what is due once, and goes on with its state", async (t) => {
    t.after(() => mock.timers.reset());
    const { sandbox, client, pass } = world();
    sandbox.record({ ...event, timestamp: new Date(startMs), count: 5 });
    let state;
    const sums = [];
    for (const minutes of [4, 2, 0, 10, 60]) {
      pass(minutes * minute);
      const revisions = client.follow({ ...query, state, once: true });
      let sum = 0n;
      let count = 0;
      for await (const { changes } of revisions) {
        sum += changes.totalDelta.success;
        count += 1;
      }
      state = revisions.state();
      sums.push([count, sum]);
    }
    assert.deepEqual(sums.slice(0, 3), [
      [0, 0n],
      [1, 5n],
      [0, 0n],
    ]);
    assert.ok(sums[3][0] >= 2 && sums[4][0] >= 12, `${sums}`);
    assert.equal(sums[3][1] + sums[4][1], 0n);
  });

  test("with nothing but what is due ends with the error, if the service is down", async (t) => {
    t.after(() => mock.timers.reset());
    const { sandbox, client, pass } = world();
    pass(6 * minute);
    sandbox.inject({ kind: "status", status: 503, endpoint: "event_delivery", every: 1n });
    const revisions = client.follow({ ...query, once: true });
    assert.equal((await rejectionOf(revisions.next())).code, "server_error");
    const wrong = thrownBy(() => client.follow({ ...query, once: "yes" }));
    assert.deepEqual([wrong.code, wrong.argument], ["invalid_argument", "once"]);
  });

  test("ends with the loop that it is in", async (t) => {
    t.after(() => mock.timers.reset());
    const { client, pass } = world();
    const revisions = client.follow(query);
    const loop = async () => {
      for await (const { window } of revisions) return window.start;
    };
    assert.equal(await inTime(loop(), pass), "2026-01-01T00:00:00Z");
    assert.equal((await revisions.next()).done, true);
  });

  for (const [argument, value] of [
    ["window", "7m"],
    ["window", undefined],
    ["rereadMs", 0],
    ["delayMs", -1],
    ["end", query.start],
    ["metric", "events"],
    ["signal", {}],
  ]) {
    test(`refuses ${argument} ${JSON.stringify(value)}`, () => {
      const { client } = world();
      mock.timers.reset();
      const wanted = argument === "end" ? "start" : argument;
      const isIt = (error) => error.kind === "config" && error.argument === wanted;
      assert.throws(() => client.follow({ ...query, [argument]: value }), isIt);
    });
  }
});

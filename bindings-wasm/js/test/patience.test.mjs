// Collects and follows of a service that is down now and then, in a time that waits move.

import assert from "node:assert/strict";
import { afterEach, describe, mock, test } from "node:test";
import { Sandbox } from "tallyfold";
import { atOnce, hour, rowsOf } from "./ranges.mjs";
import { clientOf, rejectionOf } from "./world.mjs";

const startMs = Date.parse("2026-06-01T00:00:00Z");
const windows = 2880;
const month = { ...hour, end: "2026-01-31T00:00:00Z", window: "15m" };
const day = { ...hour, end: "2026-01-02T00:00:00Z", window: "15m" };

/** Ten outages of 0.3 to 120 s, and one of an hour, by how many requests were answered before. */
const elevenOutages = [
  [100, 36_000],
  [350, 300],
  [351, 4_700],
  [700, 120_000],
  [900, 1_200],
  [1_300, 3_600_000],
  [1_700, 71_000],
  [1_900, 600],
  [2_200, 9_300],
  [2_500, 18_000],
  [2_878, 2_400],
];

/** A sandbox with outages, its client, and the requests and clock of both. */
function fragile(outages, { way = "status", ...options } = {}) {
  const sandbox = new Sandbox({ seed: 3 });
  const world = { sandbox, ms: 0, requests: 0, answered: 0, left: [...outages], attempts: [] };
  let untilMs = 0;
  const fetch = async (url, init) => {
    world.ms += 10;
    world.requests += 1;
    await new Promise(setImmediate);
    const { start } = JSON.parse(await new Response(init.body).text());
    const status = world.statusOf?.(start);
    if (status !== undefined) return new Response("", { status });
    if (world.left.length > 0 && world.left[0][0] <= world.answered) {
      untilMs = Math.max(untilMs, world.ms + world.left.shift()[1]);
    }
    if (world.ms >= untilMs) {
      world.answered += 1;
      return sandbox.fetch(url, init);
    }
    if (way === "network") throw new TypeError("fetch failed");
    const headers = way === "retryAfter" ? { "retry-after": "20" } : {};
    return new Response("", { status: 503, headers });
  };
  world.client = clientOf(sandbox, {
    fetch,
    now: () => ({ monotonicMs: world.ms, unixMs: startMs + world.ms }),
    onAttempt: (attempt) => world.attempts.push(attempt),
    timeoutMs: Number.POSITIVE_INFINITY,
    maxRetries: 3,
    ...options,
  });
  return world;
}

/** Lets every wait pass at once, on the clock of a world. */
function hurry(world) {
  const timers = new Map();
  mock.method(globalThis, "setTimeout", (act, ms) => {
    world.ms += ms;
    const timer = {};
    timers.set(timer, setImmediate(act));
    return timer;
  });
  mock.method(globalThis, "clearTimeout", (timer) => clearImmediate(timers.get(timer)));
  return world;
}

describe("with patience", () => {
  afterEach(() => mock.restoreAll());

  for (const way of ["status", "retryAfter", "network"]) {
    test(`a month with outages is whole (${way})`, async () => {
      const world = hurry(fragile(elevenOutages, { way }));
      const expected = await atOnce(world.sandbox, month);
      const table = await world.client.collect({ ...month, patienceMs: 7_200_000 });
      assert.deepEqual(rowsOf(table), rowsOf(expected));
      assert.deepEqual(table.coverage, expected.coverage);
      assert.equal(world.left.length, 0);
      assert.ok(world.ms > 3_800_000);
      const ratio = world.requests / windows;
      console.log(`${way}: ${world.requests} requests, ${ratio.toFixed(4)} for each window`);
      assert.ok(ratio <= 1.1, `${ratio}`);
    });
  }

  test("0 ends a collect at the first outage", async () => {
    const world = hurry(fragile([[20, 100_000]]));
    const error = await rejectionOf(world.client.collect({ ...day, patienceMs: 0 }));
    assert.equal(error.status, 503);
    assert.ok(error.gaps.length > 0);
  });

  test("that is over, a collect ends with what it has, and has told that it waits", async () => {
    const world = hurry(fragile([[20, 1e9]]));
    const seen = [];
    const onProgress = (progress) => seen.push(progress);
    const error = await rejectionOf(world.client.collect({ ...day, onProgress }));
    assert.match(
      error.message,
      /; the service has been down for 9\d\d s, longer than the patience/,
    );
    assert.equal(error.partial.windows.length, 19);
    assert.ok(world.ms >= 900_000 && world.ms < 1_000_000);
    const waits = seen.map(({ waitingMs }) => waitingMs).filter((ms) => ms !== undefined);
    assert.ok(Math.max(...waits) > 15_000);
    assert.equal(seen[0].waitingMs, undefined);
    const failed = world.attempts.filter(({ code }) => code === "server_error");
    assert.ok(failed.every(({ waitMs }) => waitMs >= 250));
  });

  test("one bad window stalls nothing", async () => {
    const world = hurry(fragile([], { maxRetries: 0 }));
    const bad = "2026-01-01T23:45:00Z";
    world.statusOf = (start) => (start === bad ? 500 : undefined);
    const patienceMs = Number.POSITIVE_INFINITY;
    const error = await rejectionOf(world.client.collect({ ...day, patienceMs }));
    assert.deepEqual(
      error.gaps.map(({ start }) => start),
      [bad],
    );
    assert.ok(world.ms < 60_000);
  });

  test("a follow that catches up rejects with nothing", async () => {
    const outages = [
      [10, 400_000],
      [50, 3_000],
      [70, 600],
    ];
    const world = hurry(fragile(outages));
    let [sum, read] = [0n, 0];
    for await (const { changes } of world.client.follow(day)) {
      sum += changes.totalDelta.success;
      read += 1;
    }
    assert.equal(read, 96);
    assert.equal(sum, (await atOnce(world.sandbox, day)).totals.success);
    // Waits are random: 300 runs took 22 to 25 requests more than windows.
    assert.ok(world.requests < 96 + 35, `${world.requests} requests`);
  });

  test("that is over, a follow rejects and goes on", async () => {
    const world = hurry(fragile([[10, 450_000]]));
    const revisions = world.client.follow({ ...day, patienceMs: 300_000 });
    const errors = [];
    let read = 0;
    for (;;) {
      try {
        const { done } = await revisions.next();
        if (done) break;
        read += 1;
      } catch (error) {
        errors.push(error.message);
      }
    }
    assert.equal(read, 96);
    assert.equal(errors.length, 1);
    assert.match(errors[0], /down for 3\d\d s/);
  });

  test("an aborted signal ends the wait at once", async () => {
    const world = fragile([[5, 1e9]]);
    const controller = new AbortController();
    const collecting = world.client.collect({ ...day, signal: controller.signal });
    while (world.requests < 12) await new Promise((resolve) => setTimeout(resolve, 1));
    const beginMs = performance.now();
    controller.abort(new Error("enough"));
    const error = await rejectionOf(collecting);
    assert.equal(error.message, "enough");
    assert.ok(performance.now() - beginMs < 30_000);
  });
});

describe("onFailure", () => {
  afterEach(() => mock.restoreAll());

  /** A follow of a day of which one window can't be read until `times` readings have failed. */
  function failing(times, onFailure) {
    const world = hurry(fragile([]));
    const bad = "2026-01-01T05:00:00Z";
    const failures = [];
    world.statusOf = (start) => (start === bad && failures.length < times ? 418 : undefined);
    const take = (window, error) => {
      failures.push({ window, error });
      onFailure?.(window, error);
    };
    return { world, bad, failures, revisions: world.client.follow({ ...day, onFailure: take }) };
  }

  test("takes the error, and the loop goes on", async () => {
    const { world, bad, failures, revisions } = failing(3);
    let read = 0;
    for await (const _ of revisions) read += 1;
    assert.equal(read, 96);
    assert.deepEqual(
      failures.map(({ window, error }) => [window.start, error.status]),
      [bad, bad, bad].map((start) => [start, 418]),
    );
    assert.ok(world.ms >= 3 * 900_000);
  });

  test("ends the loop if it throws", async () => {
    const { revisions } = failing(1, () => {
      throw new Error("no more");
    });
    let read = 0;
    const loop = async () => {
      for await (const _ of revisions) read += 1;
    };
    assert.equal((await rejectionOf(loop())).message, "no more");
    assert.equal(read, 20);
  });

  test("is a function, and no other option's name", () => {
    const { client } = fragile([]);
    assert.throws(() => client.follow({ ...day, onFailure: 1 }), { argument: "onFailure" });
    assert.throws(() => client.follow({ ...day, onFailur: () => {} }), /did you mean onFailure/);
  });
});

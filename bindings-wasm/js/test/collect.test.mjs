// Long ranges: workers, failures, cancellation and probes, in one process.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CountTable, Plan, Sandbox, TallyfoldError } from "tallyfold";
import { atOnce, hour, memory, rowsOf, watched } from "./ranges.mjs";
import { thrownBy } from "./responses.mjs";
import { clientOf, rejectionOf } from "./world.mjs";

const seeded = () => new Sandbox({ seed: 3 });

describe("a collect", () => {
  test("of 30 days with 5% faults is the sandbox's own answer", async () => {
    const sandbox = seeded();
    const month = { ...hour, end: "2026-01-31T00:00:00Z", window: "15m" };
    const expected = await atOnce(sandbox, month);
    for (const [every, fault] of [
      [41, { kind: "status", status: 503 }],
      [43, { kind: "truncate", bytes: 100 }],
    ]) {
      sandbox.inject({ ...fault, every, endpoint: "event_delivery" });
    }
    const before = sandbox.stats.event_delivery;
    const { client } = watched(sandbox);
    const table = await client.collect(month);
    assert.equal(table.windows.length, 2880);
    assert.deepEqual(table.coverage, expected.coverage);
    assert.deepEqual(rowsOf(table), rowsOf(expected));
    const retries = sandbox.stats.event_delivery - before - 2880;
    assert.ok(retries > 100 && retries < 200, `${retries} retries`);
  });

  for (const concurrency of [1, 3, 8, 100]) {
    test(`reads ${concurrency} windows at a time`, async () => {
      const sandbox = seeded();
      let [underWay, most] = [0, 0];
      const fetch = async (url, init) => {
        if (String(url).includes("oauth")) return sandbox.fetch(url, init);
        underWay += 1;
        most = Math.max(most, underWay);
        await new Promise((resolve) => setTimeout(resolve, 5));
        underWay -= 1;
        return sandbox.fetch(url, init);
      };
      const table = await clientOf(sandbox, { fetch }).collect({ ...hour, concurrency });
      assert.equal(most, Math.min(concurrency, 12));
      assert.deepEqual(rowsOf(table), rowsOf(await atOnce(sandbox, hour)));
    });
  }

  test("goes on with as many windows when a probe or halves leave room", async () => {
    const sandbox = seeded();
    let [underWay, most] = [0, 0];
    const fetch = async (url, init) => {
      underWay += 1;
      most = Math.max(most, underWay);
      await new Promise((resolve) => setTimeout(resolve, 5));
      underWay -= 1;
      return sandbox.fetch(url, init);
    };
    await clientOf(sandbox, { fetch }).collect({ ...hour, concurrency: 4, probe: true });
    assert.equal(most, 4);
  });

  test("that fails has a partial table and gaps, and a second one reads only those", async () => {
    const sandbox = seeded();
    const expected = rowsOf(await atOnce(sandbox, hour));
    const { client, asked } = watched(sandbox, { maxRetries: 0 });
    sandbox.inject({ kind: "status", status: 500, endpoint: "event_delivery", every: 5 });
    const error = await rejectionOf(client.collect({ ...hour, concurrency: 1, patienceMs: 0 }));
    assert.ok(TallyfoldError.is(error));
    assert.deepEqual([error.code, error.status], ["server_error", 500]);
    const failed = asked.filter(({ code }) => code === "server_error").map(({ start }) => start);
    assert.equal(failed.length, 2);
    assert.deepEqual(
      error.failures.map(({ window, error: { code } }) => [window.start, code]),
      failed.map((start) => [start, "server_error"]),
    );
    assert.deepEqual(
      error.gaps.map(({ start }) => start),
      failed,
    );
    assert.deepEqual(error.partial.gaps(hour), error.gaps);
    assert.equal(error.partial.windows.length, 10);

    asked.length = 0;
    const table = await client.collect({ ...hour, concurrency: 1, have: error.partial });
    assert.deepEqual(
      asked.map(({ start }) => start),
      failed,
    );
    assert.deepEqual(table.gaps(hour), []);
    assert.deepEqual(rowsOf(table), expected);
    // It still can be read: what was handed over was a copy.
    assert.equal(error.partial.windows.length, 10);
  });

  test("that reads nothing has no partial table", async () => {
    const sandbox = seeded();
    sandbox.inject({ kind: "status", status: 403, endpoint: "event_delivery", every: 1 });
    const error = await rejectionOf(watched(sandbox).client.collect({ ...hour, concurrency: 1 }));
    assert.deepEqual([error.code, error.partial], ["forbidden", undefined]);
    assert.deepEqual(error.gaps, [{ start: hour.start, end: hour.end }]);
    assert.equal(sandbox.stats.event_delivery, 1);
  });

  test("halves a window whose response comes too late", async () => {
    const sandbox = seeded();
    const lengthOf = ({ start, end }) => (Date.parse(end) - Date.parse(start)) / 60_000;
    const fetch = async (url, init) => {
      const { start, end } = JSON.parse(new TextDecoder().decode(init.body));
      const isLate = start !== undefined && lengthOf({ start, end }) > 15;
      return isLate ? new Response("", { status: 504 }) : sandbox.fetch(url, init);
    };
    const { client, asked } = watched(sandbox, { fetch, maxRetries: 0 });
    const table = await client.collect({ ...hour, window: "1h" });
    assert.deepEqual(table.windows.map(lengthOf), [15, 15, 15, 15]);
    assert.equal(asked.length, 7);
    assert.deepEqual(rowsOf(table), rowsOf(await atOnce(sandbox, hour)));
  });

  test("shows why the host has no token", async () => {
    const cause = new Error("no cookie");
    const accessToken = () => {
      throw cause;
    };
    const options = { clientId: undefined, clientSecret: undefined, accessToken };
    const client = clientOf(seeded(), options);
    const error = await rejectionOf(client.collect(hour));
    assert.deepEqual([error.code, error.cause], ["token_provider_failed", cause]);
  });

  test("has no failures where an error is another one", () => {
    const error = thrownBy(() => new Plan({ ...hour, window: "7m" }));
    assert.deepEqual([error.partial, error.gaps, error.failures], [undefined, [], []]);
    assert.deepEqual(Object.keys(error).sort(), ["argument", "code", "kind"]);
  });

  test("tells of each window, in order, and how far it is", async () => {
    const sandbox = seeded();
    const told = [];
    const { client } = watched(sandbox, { maxRetries: 0 });
    sandbox.inject({ kind: "status", status: 500, endpoint: "event_delivery" });
    const onProgress = (progress) => told.push(progress);
    await rejectionOf(client.collect({ ...hour, onProgress, patienceMs: 0 }));
    assert.equal(told.length, 12);
    for (const [index, progress] of told.entries()) {
      const { planned, done, failed, underWay, elapsedMs } = progress;
      assert.ok(Object.isFrozen(progress));
      assert.deepEqual([planned, done + failed], [12, index + 1]);
      assert.ok(underWay <= 8 && elapsedMs >= (told[index - 1]?.elapsedMs ?? 0));
    }
    assert.equal(new Set(told.map(({ window }) => window.start)).size, 12);
    const { done, failed, underWay } = told.at(-1);
    assert.deepEqual([done, failed, underWay], [11, 1, 0]);
  });

  for (const [argument, value] of [
    ["concurrency", 0],
    ["concurrency", 1.5],
    ["concurrency", "8"],
    ["checkpoint", 5],
    ["checkpoint", { load() {} }],
    ["onProgress", 1],
    ["signal", {}],
    ["window", "7m"],
    ["finest", "7m"],
    ["window", 5],
    ["metric", "events"],
    ["metric", undefined],
    ["part", [2, 2]],
    ["part", [0]],
    ["part", 1],
    ["have", {}],
    ["settleMs", -1],
    ["start", "2026-01-01"],
  ]) {
    test(`refuses ${argument} ${JSON.stringify(value)}`, async () => {
      const sandbox = seeded();
      const error = await rejectionOf(clientOf(sandbox).collect({ ...hour, [argument]: value }));
      assert.deepEqual([error.kind, error.argument], ["config", argument], error.message);
      assert.ok(error.message.includes(`: ${argument}: `), error.message);
      assert.deepEqual(sandbox.stats.control_token, 0);
    });
  }
});

describe("a collect that is ended", () => {
  const reason = new Error("enough");

  test("before it begins sends nothing", async () => {
    const sandbox = seeded();
    const signal = AbortSignal.abort(reason);
    assert.equal(await rejectionOf(clientOf(sandbox).collect({ ...hour, signal })), reason);
    assert.deepEqual(sandbox.stats.control_token, 0);
  });

  /** Hangs in one place until it is aborted. */
  function hanging(sandbox, isPlace, controller) {
    return async (url, init) => {
      if (!isPlace(String(url))) return sandbox.fetch(url, init);
      setTimeout(() => controller.abort(reason), 10);
      return new Promise((_, reject) => {
        init.signal.addEventListener("abort", () => reject(init.signal.reason));
      });
    };
  }

  for (const [phase, place] of [
    ["fetching a token", "oauth"],
    ["waiting for a response", "analytics"],
  ]) {
    test(`while ${phase} stops at once`, async () => {
      const sandbox = seeded();
      const controller = new AbortController();
      const fetch = hanging(sandbox, (url) => url.includes(place), controller);
      const client = clientOf(sandbox, { fetch, timeoutMs: 60_000 });
      const { signal } = controller;
      assert.equal(await rejectionOf(client.collect({ ...hour, signal })), reason);
    });
  }

  test("while it waits for a retry stops at once", async () => {
    const sandbox = seeded();
    const fault = { kind: "status", status: 503, retryAfter: "50", endpoint: "event_delivery" };
    sandbox.inject({ ...fault, every: 1 });
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 30);
    const client = clientOf(sandbox, { maxRetries: 3 });
    const begin = performance.now();
    const { signal } = controller;
    assert.equal(await rejectionOf(client.collect({ ...hour, signal })), reason);
    assert.ok(performance.now() - begin < 10_000);
  });

  test("while it loads a checkpoint sends nothing", async () => {
    const sandbox = seeded();
    const controller = new AbortController();
    const { signal } = controller;
    const load = async () => controller.abort(reason);
    const checkpoint = { load, save() {} };
    const collect = clientOf(sandbox).collect({ ...hour, signal, checkpoint });
    assert.equal(await rejectionOf(collect), reason);
    assert.deepEqual(sandbox.stats.control_token, 0);
  });

  for (const [what, options] of [
    ["its signal", ({ signal }) => ({ signal })],
    ["onProgress", ({ onProgress }) => ({ onProgress })],
  ]) {
    test(`by ${what} has stored what was read, and goes on from there`, async () => {
      const sandbox = seeded();
      const { client, asked } = watched(sandbox);
      const controller = new AbortController();
      const onProgress = ({ done }) => {
        if (done === 5) throw reason;
      };
      const checkpoint = memory();
      const save = checkpoint.save;
      let saved = 0;
      checkpoint.save = (name, json) => {
        save(name, json);
        saved += 1;
        if (what === "its signal" && saved === 5) controller.abort(reason);
      };
      const { signal } = controller;
      const collect = client.collect({
        ...hour,
        concurrency: 1,
        checkpoint,
        ...options({ signal, onProgress }),
      });
      assert.equal(await rejectionOf(collect), reason);
      assert.equal(asked.length, 5);
      const table = await client.collect({ ...hour, checkpoint });
      assert.equal(asked.length, 12);
      assert.equal(new Set(asked.map(({ start }) => start)).size, 12);
      assert.deepEqual(rowsOf(table), rowsOf(await atOnce(sandbox, hour)));
    });
  }

  test("by onAttempt rejects with what it throws, even after a good response", async () => {
    const sandbox = seeded();
    let attempts = 0;
    const onAttempt = () => {
      attempts += 1;
      if (attempts === 4) throw reason;
    };
    const checkpoint = memory();
    const client = clientOf(sandbox, { onAttempt });
    const collect = client.collect({ ...hour, concurrency: 1, checkpoint });
    assert.equal(await rejectionOf(collect), reason);
    assert.equal(attempts, 4);
    const { windows } = JSON.parse(checkpoint.documents.get("segment-00000.json")).table;
    assert.ok(windows.length >= 2);
  });

  test("by a clock that breaks rejects with what it throws", async () => {
    const sandbox = seeded();
    // Once, wherever it is read.
    for (let breaking = 1; breaking <= 40; breaking++) {
      let readings = 0;
      const now = () => {
        readings += 1;
        if (readings === breaking) throw reason;
        return { monotonicMs: readings, unixMs: Date.now() };
      };
      assert.equal(await rejectionOf(clientOf(sandbox, { now }).collect(hour)), reason);
    }
  });

  test("leaves the client good for other calls", async () => {
    const sandbox = seeded();
    const controller = new AbortController();
    const fetch = async (url, init) => {
      controller.abort(reason);
      return sandbox.fetch(url, init);
    };
    const client = clientOf(sandbox, { fetch });
    const { signal } = controller;
    await rejectionOf(client.collect({ ...hour, signal }));
    assert.equal((await client.collect(hour)).windows.length, 12);
  });
});

describe("a checkpoint", () => {
  test("that can't be written ends the collect with the host's error", async () => {
    const sandbox = seeded();
    const reason = Object.assign(new Error("disk full"), { code: "ENOSPC" });
    const checkpoint = { load: () => null, save: async () => Promise.reject(reason) };
    assert.equal(await rejectionOf(clientOf(sandbox).collect({ ...hour, checkpoint })), reason);
    assert.ok(sandbox.stats.event_delivery <= 8);
  });

  for (const [what, change] of [
    ["torn", (json) => json.slice(0, -20)],
    ["foreign", (json) => json.replace("integration", "write_key")],
    ["no text", () => 7],
  ]) {
    test(`that is ${what} is refused before anything is sent`, async () => {
      const sandbox = seeded();
      const checkpoint = memory();
      await clientOf(sandbox).collect({ ...hour, checkpoint });
      const [[name, json]] = checkpoint.documents;
      checkpoint.documents.set(name, change(json));
      const before = sandbox.stats;
      const error = await rejectionOf(clientOf(sandbox).collect({ ...hour, checkpoint }));
      const code = what === "no text" ? "invalid_argument" : "invalid_checkpoint";
      assert.equal(error.code, code, error.message);
      assert.deepEqual(sandbox.stats, before);
    });
  }

  test("is written one document after the other, and holds no secret", async () => {
    const sandbox = seeded();
    const checkpoint = memory();
    const save = checkpoint.save;
    let writing = 0;
    checkpoint.save = async (name, json) => {
      writing += 1;
      assert.equal(writing, 1);
      await new Promise((resolve) => setTimeout(resolve, 1));
      save(name, json);
      writing -= 1;
    };
    const fine = { ...hour, dimensions: ["event_name", "write_key"], window: "1m" };
    const table = await clientOf(sandbox).collect({ ...fine, checkpoint });
    assert.ok(checkpoint.documents.size >= 1);
    const { clientSecret } = sandbox.credentials;
    for (const json of checkpoint.documents.values()) {
      for (const secret of [clientSecret, "sandbox.control"]) {
        assert.ok(!json.includes(secret), secret);
      }
    }
    const { client, asked } = watched(sandbox);
    const again = await client.collect({ ...fine, checkpoint });
    assert.equal(JSON.stringify(again), JSON.stringify(table));
    assert.deepEqual(asked, []);
  });
});

describe("a probe", () => {
  const middle = "2026-01-01T00:15:00Z";
  const edges = { start: "2026-01-01T00:00:00Z", middle, end: "2026-01-01T00:30:00Z" };
  const query = { ...edges, metric: "event_delivery", dimensions: ["integration"] };
  const event = { outcome: "success", eventName: "e", writeKey: "w", integration: "i" };

  function recorded(options) {
    const sandbox = new Sandbox(options);
    for (const timestamp of [edges.start, middle]) sandbox.record({ ...event, timestamp });
    return sandbox;
  }

  test("finds out whether windows are closed at both ends", async () => {
    for (const [closedWindows, verdict, delta] of [
      [false, "additive", 0n],
      [true, "double_counted", 1n],
    ]) {
      const client = clientOf(recorded({ closedWindows }));
      const found = await client.probeAdditivity(query);
      assert.equal(found.verdict, verdict);
      assert.equal(found.whole.totals.success, 2n);
      assert.equal(found.difference.totalDelta.success, delta);
    }
    const nothing = await clientOf(new Sandbox()).probeAdditivity(query);
    assert.equal(nothing.verdict, "unknown");
  });

  test("rejects as any call does, and ends with its signal", async () => {
    const error = await rejectionOf(
      clientOf(recorded()).probeAdditivity({ ...query, middle: edges.end }),
    );
    assert.deepEqual([error.code, error.argument], ["invalid_window", "middle"]);
    const sandbox = recorded();
    sandbox.inject({ kind: "status", status: 500, endpoint: "event_delivery" });
    const failed = await rejectionOf(clientOf(sandbox).probeAdditivity(query));
    assert.equal(failed.code, "server_error");
    const signal = AbortSignal.abort("enough");
    assert.equal(
      await rejectionOf(clientOf(sandbox).probeAdditivity({ ...query, signal })),
      "enough",
    );
  });

  test("comes first in a collect that wants one, and ends it where counts do not add up", async () => {
    const { middle: _, ...range } = query;
    const long = { ...range, window: "15m", probe: true };
    const table = await clientOf(recorded()).collect(long);
    assert.equal(table.totals.success, 2n);
    const closed = clientOf(recorded({ closedWindows: true }));
    assert.equal((await rejectionOf(closed.collect(long))).code, "windows_not_additive");
  });
});

describe("a plan", () => {
  test("has windows, and parts of them", () => {
    const range = { start: new Date("2026-01-01T00:10:00Z"), end: "2026-01-01T00:50:00Z" };
    const plan = new Plan({ ...range, window: "15m" });
    const starts = ["00:10", "00:15", "00:30", "00:45"].map((time) => `2026-01-01T${time}:00Z`);
    assert.deepEqual(
      Array.from(plan, ({ start }) => start),
      starts,
    );
    assert.equal(plan.length, 4);
    assert.equal(plan.at(-1).start, starts[3]);
    assert.deepEqual(
      [plan.at(4), plan.at(-5), plan.at(Number.NaN)?.start],
      [undefined, undefined, starts[0]],
    );
    const parts = [0, 1].map((index) => Array.from(plan.part(index, 2), ({ start }) => start));
    assert.deepEqual(parts, [
      [starts[0], starts[2]],
      [starts[1], starts[3]],
    ]);
    assert.equal(plan.part(0, 2).part(1, 2).at(0).start, starts[2]);
    for (const [index, of, argument] of [
      [2, 2, "part"],
      [0, 0, "part"],
      [-1, 2, "index"],
      [0.5, 2, "index"],
    ]) {
      const error = thrownBy(() => plan.part(index, of));
      assert.deepEqual([error.code, error.argument], ["invalid_argument", argument]);
    }
    const long = new Plan({
      start: "0000-01-01T00:00:00Z",
      end: "9999-12-31T23:59:59Z",
      window: "1s",
    });
    assert.equal(long.length, 315_569_519_999);
    assert.equal(long.at(long.length - 1).end, "9999-12-31T23:59:59Z");
  });

  test("makes parts of a collect that add up to the whole", async () => {
    const sandbox = seeded();
    const { client } = watched(sandbox);
    const parts = await Promise.all(
      [0, 1, 2].map((index) => client.collect({ ...hour, part: [index, 3] })),
    );
    const whole = await client.collect(hour);
    for (const tables of [parts, parts.toReversed?.() ?? [...parts].reverse()]) {
      assert.equal(JSON.stringify(CountTable.mergeAll(tables)), JSON.stringify(whole));
    }
    assert.deepEqual(parts[0].gaps(hour).length, 4);
    assert.equal(thrownBy(() => CountTable.mergeAll([])).code, "missing_argument");
    assert.equal(thrownBy(() => CountTable.mergeAll([whole, whole])).code, "overlapping_coverage");
    assert.equal(thrownBy(() => CountTable.mergeAll(whole.length)).argument, "tables");
    assert.equal(thrownBy(() => CountTable.mergeAll([{}])).argument, "tables");
    assert.equal(thrownBy(() => whole.gaps({ start: "now", end: hour.end })).argument, "start");
  });
});

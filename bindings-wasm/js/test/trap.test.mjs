// One call takes all the memory that WebAssembly has, or stops in its middle: what becomes of it, of the
// others, and of those that come after.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Aggregator, CountTable, compare, Machine, Plan, Sandbox, TallyfoldError } from "tallyfold";
import { atOnce, hour, memory, rowsOf } from "./ranges.mjs";
import { bytes, entry, foldOf, response, thrownBy } from "./responses.mjs";
// Before the package.
import { limitMemory } from "./small_memory.mjs";
import { clientOf, query, rejectionOf, service } from "./world.mjs";

const MOST = 16 << 20;
limitMemory(MOST);
setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");

const json = [["content-type", "application/json"]];
/** Longer than the memory, and not to be read in parts. */
const range = { start: hour.start, end: hour.end, window: hour.window };
const long = "x".repeat(MOST);

/** Takes all the memory in one call. */
const exhaust = () => CountTable.fromJSON(long);
const fold = () => foldOf(response());

/** A client whose next audit logs are longer than the memory. */
function clientOfTooMuch(options) {
  const sandbox = service();
  const own = { tooMuch: true, tokens: 0 };
  const fetch = async (url, init) => {
    if (url.includes("oauth")) own.tokens += 1;
    if (!url.includes("audit-logs") || !own.tooMuch) return sandbox.fetch(url, init);
    own.tooMuch = false;
    const entry = `"${"x".repeat(60_000)}"`;
    return new Response(`[${`${entry},`.repeat(MOST / 60_000)}${entry}]`, { headers: json });
  };
  return { client: clientOf(sandbox, { fetch, ...options }), own };
}

function resolvers() {
  const own = {};
  own.promise = new Promise((resolve) => Object.assign(own, { resolve }));
  return own;
}

function assertFull(error) {
  assert.ok(TallyfoldError.is(error), inspect(error));
  assert.deepEqual([error.code, error.kind], ["out_of_memory", "response"]);
  assert.match(error.message, /^out_of_memory: WebAssembly has no more memory/);
  assert.ok(error.cause instanceof WebAssembly.RuntimeError);
}

/** @param cause Whether the error says what has ended the instance. */
function assertEnded(error, cause = true) {
  assert.ok(TallyfoldError.is(error), inspect(error));
  assert.deepEqual([error.code, error.kind], ["out_of_order", "config"]);
  assert.match(error.message, /its WebAssembly instance has ended/);
  if (cause) assertFull(error.cause);
}

describe("a call that takes all the memory", () => {
  test("throws what happened, and the next one works, again and again", () => {
    for (let round = 0; round < 5; round++) {
      assertFull(thrownBy(exhaust));
      assert.equal(fold().totals.success, 11n);
      assert.equal(CountTable.fromJSON(JSON.stringify(fold())).length, 3);
      assert.equal(new Plan(range).length, 12);
    }
  });

  test("rejects in a client, which then goes on with new tokens", async () => {
    const { client, own } = clientOfTooMuch();
    assert.equal((await client.eventDelivery(query)).totals.success, 7n);
    assert.equal(own.tokens, 1);
    assertFull(await rejectionOf(client.auditLogs()));
    assert.equal((await client.eventDelivery(query)).totals.success, 7n);
    await client.auditLogs();
    assert.equal(own.tokens, 4);
  });

  test("ends every other call under way, whose client goes on", async () => {
    const { client } = clientOfTooMuch();
    const sandbox = service();
    const asked = resolvers();
    const wait = resolvers();
    const fetch = async (url, init) => {
      if (url.includes("event_delivery")) {
        asked.resolve();
        await wait.promise;
      }
      return sandbox.fetch(url, init);
    };
    const other = clientOf(sandbox, { fetch });
    const ended = rejectionOf(other.eventDelivery(query));
    await asked.promise;
    assertFull(await rejectionOf(client.auditLogs()));
    wait.resolve();
    assertEnded(await ended);
    assert.equal((await other.eventDelivery(query)).totals.success, 7n);
    assert.equal((await client.eventDelivery(query)).totals.success, 7n);
  });

  test("ends a collect with that error, and a checkpoint continues it", async () => {
    const sandbox = new Sandbox({ seed: 3 });
    const rows = rowsOf(await atOnce(sandbox, hour));
    let asked = 0;
    const fetch = async (url, init) => {
      if (url.includes("event_delivery")) asked += 1;
      if (asked === 7) {
        asked += 1;
        assertFull(thrownBy(exhaust));
      }
      return sandbox.fetch(url, init);
    };
    const client = clientOf(sandbox, { fetch });
    const checkpoint = memory();
    const collect = { ...hour, checkpoint, concurrency: 2 };
    assertFull(await rejectionOf(client.collect(collect)));
    assert.ok(checkpoint.documents.size > 0);
    const before = asked;
    assert.deepEqual(rowsOf(await client.collect(collect)), rows);
    assert.ok(asked - before <= 8, `${asked - before} windows were read again`);
  });

  test("ends a follow with that error", async () => {
    const { client } = clientOfTooMuch();
    const revisions = client.follow(hour);
    await revisions.next();
    assertFull(thrownBy(exhaust));
    assertEnded(await rejectionOf(revisions.next()));
    await revisions.return();
    assert.equal((await client.follow(hour).next()).done, false);
  });

  test("leaves no object that could be used or freed in the next memory", async () => {
    const table = fold();
    const held = {
      table,
      series: table.byWindow(),
      comparison: compare(table, fold()),
      plan: new Plan(range),
      aggregator: new Aggregator({ dimensions: ["reason"] }),
      machine: new Machine({ clusterEndpoint: "https://a.example", hostTokens: true }),
    };
    const call = held.machine.eventDelivery(query);
    assertFull(thrownBy(exhaust));
    // They would have the same addresses.
    const next = [fold(), fold(), new Plan(range), fold().byWindow()];
    for (const use of [
      () => held.table.length,
      () => [...held.table],
      () => CountTable.mergeAll([next[0], held.table]),
      () => JSON.stringify(held.table),
      () => held.series.totals,
      () => held.comparison.totalDelta,
      () => held.plan.at(0),
      () => held.aggregator.push(bytes("{")),
      () => held.aggregator.finish(),
      () => call.step(),
    ]) {
      assertEnded(thrownBy(use));
    }
    const machine = new Machine({ clusterEndpoint: "https://a.example", hostTokens: true });
    const collect = machine.collect(hour);
    for (const use of [
      () => held.table.merge(next[0]),
      () => next[0].merge(held.table),
      () => compare(next[0], held.table),
      () => compare(held.table, next[0]),
      () => machine.collect({ ...hour, have: held.table }),
      () => collect.settle(collect.next().task, call),
    ]) {
      assertEnded(thrownBy(use), false);
    }
    for (const it of ["table", "series", "comparison", "plan"]) {
      assert.match(inspect(held[it]), /\(ended\)$/);
    }
    call.close();
    assert.equal(call.attempt.length, 0);
    assert.equal(held.machine.tokenEpoch, 0n);
    for (const it of Object.values(held)) it[Symbol.dispose]();
    assert.equal(thrownBy(() => held.machine.tokenEpoch).message.includes("disposed"), true);
    assert.deepEqual([next[0].length, next[1].totals.success, next[2].length], [3, 11n, 12]);
  });

  test("leaves nothing to the garbage collector that it would free in the next memory", async () => {
    for (let round = 0; round < 3; round++) {
      let lost = Array.from({ length: 200 }, fold);
      await new Promise((resolve) => setTimeout(resolve));
      assertFull(thrownBy(exhaust));
      const tables = Array.from({ length: 200 }, fold);
      assertEnded(thrownBy(() => lost[7].length));
      lost = undefined;
      for (let turn = 0; turn < 5; turn++) {
        gc();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      for (const table of tables) assert.equal(table.totals.success, 11n);
      for (const table of tables) table[Symbol.dispose]();
    }
  });

  test("is met in the middle of another one, which is lost too", () => {
    const options = {
      ...range,
      get start() {
        assertFull(thrownBy(exhaust));
        // The next instance is there while the last one still runs.
        assert.equal(fold().totals.success, 11n);
        return range.start;
      },
    };
    const error = thrownBy(() => new Plan(options).length);
    assert.ok(TallyfoldError.is(error), inspect(error));
    assert.equal(new Plan(range).length, 12);
    assert.equal(fold().totals.success, 11n);
  });

  test("of the sandbox leaves the library alone", () => {
    const table = fold();
    const sandbox = service();
    const body = new Uint8Array(MOST);
    assertFull(thrownBy(() => sandbox.handle({ method: "POST", target: "/", body })));
    assertEnded(thrownBy(() => sandbox.stats));
    assert.match(inspect(sandbox), /\(ended\)$/);
    sandbox[Symbol.dispose]();
    assert.equal(service().stats.event_delivery, 0);
    assert.equal(table.totals.success, 11n);
  });
});

describe("too many groups for the memory", () => {
  test("end in an error, and take no other table with them", () => {
    const table = fold();
    const aggregator = new Aggregator({ dimensions: ["integration", "reason"] });
    const error = thrownBy(() => {
      const [head] = response().split('"counts"');
      aggregator.push(bytes(`${head}"counts":[`));
      for (let number = 0; ; number++) {
        const dimensions = { integration: `${number}${"x".repeat(20_000)}`, reason: "" };
        aggregator.push(bytes(`${JSON.stringify(entry(dimensions, 1n))},`));
      }
    });
    assert.deepEqual([error.code, error.kind], ["out_of_memory", "response"]);
    assert.equal(error.cause, undefined);
    assert.match(error.path, /^\$\.counts\[\d+\]/);
    assert.equal(table.totals.success, 11n);
    aggregator[Symbol.dispose]();
    assert.equal(fold().totals.success, 11n);
  });
});

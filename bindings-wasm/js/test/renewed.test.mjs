// An instance of WebAssembly that stops, and one whose memory has become large: the next call gets another one.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { CountTable, Plan, Sandbox } from "tallyfold";
import { Rules } from "tallyfold/health";
import { hour } from "./ranges.mjs";
import { foldOf, response, thrownBy } from "./responses.mjs";
// Before the package.
import { instances } from "./small_memory.mjs";
import { clientOf, query, rejectionOf, service } from "./world.mjs";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");

const range = { start: hour.start, end: hour.end, window: hour.window };

/** What each call of an export throws, if it throws. */
let stopping;
instances.wrap = (exports) => {
  const wrapped = Object.entries(exports).map(([name, own]) => {
    if (typeof own !== "function") return [name, own];
    const call = (...given) => {
      if (stopping !== undefined) throw stopping;
      return own(...given);
    };
    return [name, call];
  });
  return Object.fromEntries(wrapped);
};

describe("a call that stops for another reason than its memory", () => {
  for (const [what, thrown] of [
    ["a mistake of tallyfold", new WebAssembly.RuntimeError("unreachable")],
    ["a stack that is full", new RangeError("Maximum call stack size exceeded")],
  ]) {
    test(`says so: ${what}`, () => {
      const plan = new Plan(range);
      stopping = thrown;
      const error = thrownBy(() => plan.length);
      stopping = undefined;
      assert.deepEqual([error.code, error.kind, error.cause], ["crashed", "response", thrown]);
      assert.match(error.message, /^crashed: .*please report its cause/);
      assert.equal(thrownBy(() => plan.at(0)).cause, error);
      assert.equal(new Plan(range).length, 12);
    });
  }

  test("goes on if it is the caller's own, however often", () => {
    const own = new RangeError("own");
    const fail = () => {
      throw own;
    };
    const failing = (target, trap) => new Proxy(target, { [trap]: fail });
    const revoked = (target) => {
      const { proxy, revoke } = Proxy.revocable(target, {});
      revoke();
      return proxy;
    };
    const table = foldOf(response());
    const sandbox = new Sandbox();
    const calls = {
      options: () => new Plan(failing(range, "ownKeys")),
      property: () => table.filter(failing({ integration: "crm" }, "getOwnPropertyDescriptor")),
      list: () => table.filter({ integration: failing(["crm"], "get") }),
      event: () => sandbox.record(failing({}, "ownKeys")),
    };
    for (const [name, call] of Object.entries(calls)) {
      for (let times = 0; times < 1100; times++) assert.equal(thrownBy(call), own, name);
    }
    for (let times = 0; times < 1100; times++) {
      assert.ok(thrownBy(() => table.filter(revoked({}))) instanceof TypeError);
      assert.ok(thrownBy(() => table.filter({ integration: revoked([]) })) instanceof TypeError);
    }
    assert.equal(table.length, 3);
    assert.equal(sandbox.stats.event_delivery, 0);
    table[Symbol.dispose]();
  });
});

describe("a memory that has become large", () => {
  /** What is held for a moment, and is longer than what is kept for ever. */
  function grow() {
    const error = thrownBy(() => CountTable.fromJSON("x".repeat(260 << 20)));
    assert.equal(error.code, "invalid_table");
  }

  /** How many instances a body makes. */
  async function renewals(body = () => {}) {
    const before = instances.made;
    await body();
    new Plan(range)[Symbol.dispose]();
    return instances.made - before;
  }

  async function collected() {
    for (let turn = 0; turn < 5; turn++) {
      gc();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  test("is given back once nothing is in it", async () => {
    await collected();
    await renewals();
    assert.equal(await renewals(), 0);
    assert.equal(await renewals(grow), 1);
    assert.equal(await renewals(), 0);
  });

  test("is given back by a module of its own, too", () => {
    const made = (text) => {
      const before = instances.made;
      assert.equal(thrownBy(() => Rules.parse(text)).code, "invalid_rules");
      return instances.made - before;
    };
    made("?");
    assert.equal(made("?".repeat(260 << 20)), 0);
    assert.equal(made("?"), 1);
    assert.equal(made("?"), 0);
  });

  test("is kept for what is in it", async () => {
    await collected();
    const table = foldOf(response());
    assert.equal(await renewals(grow), 0);
    assert.equal(table.totals.success, 11n);
    table[Symbol.dispose]();
    await collected();
    assert.equal(await renewals(), 1);
  });

  test("is given back when the garbage collector has found the last of it", async () => {
    let tables = Array.from({ length: 20 }, () => foldOf(response()));
    await new Promise((resolve) => setTimeout(resolve));
    assert.equal(await renewals(grow), 0);
    assert.equal(tables[7].length, 3);
    tables = undefined;
    await collected();
    assert.equal(await renewals(), 1);
  });

  test("is given back under a client, which fetches its tokens again", async () => {
    const sandbox = service();
    const client = clientOf(sandbox);
    const read = async () => {
      const table = await client.eventDelivery(query);
      assert.equal(table.totals.success, 7n);
      table[Symbol.dispose]();
    };
    await collected();
    await read();
    await read();
    assert.equal(sandbox.stats.control_token, 1);
    assert.equal(await renewals(grow), 1);
    await read();
    assert.equal(sandbox.stats.control_token, 2);
    client[Symbol.dispose]();
    assert.equal(thrownBy(() => client.follow({ ...hour })).code, "out_of_order");
  });

  test("is kept under a call, and under a client that has to remember a failure", async () => {
    const sandbox = service();
    let wait = Promise.resolve();
    const fetch = async (url, init) => {
      await wait;
      return sandbox.fetch(url, init);
    };
    const client = clientOf(sandbox, { fetch });
    await collected();
    await renewals();
    let go;
    wait = new Promise((resolve) => {
      go = resolve;
    });
    const call = client.eventDelivery(query);
    assert.equal(await renewals(grow), 0);
    go();
    (await call)[Symbol.dispose]();
    assert.equal(await renewals(), 1);

    sandbox.inject({ kind: "status", status: 503, endpoint: "event_delivery", every: 1 });
    assert.equal((await rejectionOf(client.eventDelivery(query))).code, "server_error");
    assert.equal(await renewals(grow), 0);
  });
});

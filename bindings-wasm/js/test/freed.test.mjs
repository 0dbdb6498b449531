// Objects of the core that the package makes for itself: each is freed when its work is over, and not by the garbage collector.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

// Undici looks for finalizers at its first use.
new Response();
AbortSignal.any([AbortSignal.timeout(1)]);
// Without finalizers, only `free` ends an object.
const { FinalizationRegistry: Finalizers } = globalThis;
delete globalThis.FinalizationRegistry;
const { Module } = await import("../dist/start.js");
const { CountTable } = await import("tallyfold");
const { exportCounts } = await import("tallyfold/export");
const { pageServer } = await import("tallyfold/server");
const { foldOf, response } = await import("./responses.mjs");
const { clientOf, query, rejectionOf, service } = await import("./world.mjs");
const { hour } = await import("./ranges.mjs");

const modules = new Set();
const { get } = Object.getOwnPropertyDescriptor(Module.prototype, "instance");
before(() => {
  Object.defineProperty(Module.prototype, "instance", {
    configurable: true,
    get() {
      modules.add(this);
      return get.call(this);
    },
  });
});
after(() => {
  Object.defineProperty(Module.prototype, "instance", { get });
  globalThis.FinalizationRegistry = Finalizers;
});

/** How many objects all modules have. */
function population() {
  return [...modules].reduce((sum, module) => sum + get.call(module).population.objects, 0);
}

/** Fails if `work` leaves an object behind. The first run makes what stays. */
async function leavesNothing(work) {
  await work();
  const objects = population();
  for (let round = 0; round < 3; round++) await work();
  assert.equal(population() - objects, 0);
  assert.ok(modules.size > 0);
}

const range = { ...hour, metric: "event_delivery", dimensions: ["integration"], window: "15m" };
const client = clientOf(service());

test("the table that a response for a web app is judged by", async () => {
  const handle = pageServer({ client, authorize: () => true, memoryBytes: 1 });
  await leavesNothing(async () => {
    const body = JSON.stringify({ ...query, dimensions: ["integration"] });
    const headers = { "content-type": "application/json" };
    const path = "http://localhost/v1.1/analytics/event_delivery";
    const answer = await handle(new Request(path, { method: "POST", headers, body }));
    assert.equal(answer.status, 200);
  });
});

test("the rows that a user may see", async () => {
  const handle = pageServer({ client, authorize: () => ({ integration: ["email"] }) });
  const path = "http://localhost/v1.1/analytics/event_delivery";
  await leavesNothing(async () => {
    const body = JSON.stringify({ ...query, dimensions: ["integration"] });
    const headers = { "content-type": "application/json" };
    const answer = await handle(new Request(path, { method: "POST", headers, body }));
    assert.equal(answer.status, 200);
  });
});

test("the rows that a user may see of a range that is read, left, or known already", async () => {
  const handle = pageServer({ client, authorize: () => ({ integration: ["email"] }) });
  const { start, end, window } = range;
  const asked = new URLSearchParams({ start, end, window, dimensions: "integration" });
  const url = `http://localhost/v1.1/analytics/event_delivery/windows?${asked}`;
  const windows = (init) => handle(new Request(url, init));
  await leavesNothing(async () => {
    assert.match(await (await windows()).text(), /"done":true/);
    const answer = await windows();
    const tag = answer.headers.get("etag");
    await answer.body.cancel();
    assert.equal((await windows({ headers: { "if-none-match": tag } })).status, 304);
    const leaving = new AbortController();
    const unread = await windows({ signal: leaving.signal });
    leaving.abort();
    await unread.text().catch(() => {});
  });
});

test("a part of a series", async () => {
  const table = foldOf(response());
  const series = table.byWindow("1d", { zone: "Asia/Kolkata" });
  await leavesNothing(() => {
    const parts = [series.between(query)];
    parts.push(parts[0].between(query));
    parts.push(parts[1].fillZeros(), series.fillZeros());
    parts.push(parts[2].between(query), parts[3].between(query));
    for (const part of parts) {
      assert.deepEqual(part.totals, table.totals);
      part[Symbol.dispose]();
    }
  });
});

test("a probe", async () => {
  const [start, middle, end] = ["00", "05", "10"].map((minute) => `2026-01-01T00:${minute}:00Z`);
  const { metric, dimensions } = range;
  await leavesNothing(async () => {
    const probed = client.probeAdditivity({ metric, dimensions, start, middle, end });
    const { whole, difference } = await probed;
    whole[Symbol.dispose]();
    difference[Symbol.dispose]();
    const signal = AbortSignal.abort();
    await rejectionOf(client.probeAdditivity({ metric, dimensions, start, middle, end, signal }));
  });
});

test("a follow at its end, whose state stays", async () => {
  let last;
  await leavesNothing(async () => {
    const revisions = client.follow({ ...range, once: true });
    for await (const { table, changes } of revisions) {
      table[Symbol.dispose]();
      changes[Symbol.dispose]();
    }
    const state = revisions.state();
    assert.match(state, /tallyfold/);
    assert.equal((await revisions.next()).done, true);
    assert.equal(revisions.state(), state);
    last = revisions;
  });
  await last.return();
  assert.throws(() => last.state(), { code: "out_of_order" });
});

test("a follow whose signal has aborted", async () => {
  await leavesNothing(async () => {
    assert.throws(() => client.follow({ ...range, signal: AbortSignal.abort() }));
    assert.throws(() => client.follow({ ...range, once: "yes" }));
    const controller = new AbortController();
    const revisions = client.follow({ ...range, signal: controller.signal });
    const { value } = await revisions.next();
    value.table[Symbol.dispose]();
    value.changes[Symbol.dispose]();
    const state = revisions.state();
    const reason = new Error("enough");
    controller.abort(reason);
    for (let times = 0; times < 2; times++) {
      assert.equal(await rejectionOf(revisions.next()), reason);
    }
    assert.equal(revisions.state(), state);
  });
});

test("the pieces of an export as a stream, read or not", async () => {
  const table = CountTable.fromJSON(foldOf(response()).toJSON());
  await leavesNothing(async () => {
    const counts = exportCounts(table, { format: "csv" });
    await counts.stream().cancel();
    await new Response(counts.stream()).text();
    counts[Symbol.dispose]();
  });
});

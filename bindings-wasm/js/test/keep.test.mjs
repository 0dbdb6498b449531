// What a collect keeps, how much memory that takes, and checkpoints of ranges that move.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CountTable, Sandbox } from "tallyfold";
import { checkpointDirectory } from "tallyfold/node";
import { atOnce, hour, memory, rowsOf, watched } from "./ranges.mjs";
import { rejectionOf } from "./world.mjs";

const day = { ...hour, end: "2026-01-02T00:00:00Z", window: "15m" };
const HOUR_MS = 3_600_000;

test("windows are added up to what is kept", async () => {
  const sandbox = new Sandbox({ seed: 11 });
  const whole = rowsOf(await atOnce(sandbox, day));
  for (const [keep, windows] of Object.entries({ windows: 96, "6h": 4, "1d": 1, total: 1 })) {
    const table = await watched(sandbox).client.collect({ ...day, keep });
    assert.equal(table.windows.length, windows);
    assert.deepEqual(rowsOf(table), whole);
    assert.deepEqual(table.provisional, []);
  }
});

test("what can't be kept is refused", async () => {
  const { client, asked } = watched(new Sandbox({ seed: 11 }));
  for (const keep of ["10m", "all", "", 5]) {
    const error = await rejectionOf(client.collect({ ...day, keep }));
    assert.equal(error.code, "invalid_argument");
    assert.equal(error.argument, "keep");
  }
  assert.deepEqual(asked, []);
});

test("too much memory names keep", async () => {
  const { client } = watched(new Sandbox({ seed: 11 }));
  const error = await rejectionOf(client.collect({ ...day, memoryLimit: 2_000 }));
  assert.equal(error.code, "memory_limit");
  assert.match(error.message, /memoryLimit, 2000 bytes.* keep,/);
  assert.ok(error.partial.windows.length > 0 && error.partial.windows.length < 96);
});

test("a window that needs more than its share is read alone", async () => {
  const sandbox = new Sandbox();
  for (let number = 0; number < 20_000; number++) {
    for (const minute of ["01", "31"]) {
      sandbox.record({
        timestamp: `2026-01-01T00:${minute}:00Z`,
        outcome: "success",
        eventName: "Order Completed",
        writeKey: "web",
        integration: `integration ${number}`,
      });
    }
  }
  const query = { ...hour, window: "15m", keep: "total" };
  const { client, asked } = watched(sandbox);
  const table = await client.collect({ ...query, memoryLimit: 8 << 20 });
  assert.deepEqual(rowsOf(table), rowsOf(await atOnce(sandbox, hour)));
  assert.ok(asked.length > 4);
  // What does not fit even alone ends the collect with the limit's own error.
  const error = await rejectionOf(client.collect({ ...query, memoryLimit: 2 << 20 }));
  assert.equal(error.code, "memory_limit");
  assert.ok(error.partial);
});

test("a window of today is provisional, and read again", async () => {
  const endMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
  const query = {
    ...day,
    start: new Date(endMs - 4 * HOUR_MS),
    end: new Date(endMs),
    window: "1h",
  };
  const sandbox = new Sandbox({ seed: 4 });
  const table = await watched(sandbox).client.collect(query);
  assert.equal(table.provisional.length, 1);
  assert.equal(Date.parse(table.provisional[0].end), endMs);
  const loaded = CountTable.fromJSON(JSON.parse(JSON.stringify(table)));
  assert.deepEqual(loaded.provisional, table.provisional);
  const marks = table.byWindow("1h").windows.map(({ provisional }) => provisional);
  assert.deepEqual(marks, [false, false, false, true]);
  const { client, asked } = watched(sandbox);
  const again = await client.collect({ ...query, have: loaded });
  assert.deepEqual(
    asked.map(({ start }) => start),
    [table.provisional[0].start],
  );
  assert.deepEqual(rowsOf(again), rowsOf(table));
  const alone = await atOnce(sandbox, query);
  assert.equal(alone.provisional.length, 1);
});

test("a range that moves reads what is new, and drops what is old", async (t) => {
  const sandbox = new Sandbox({ seed: 9 });
  for (const keep of ["windows", "1h"]) {
    const home = await mkdtemp(join(tmpdir(), "tallyfold-keep-"));
    t.after(() => rm(home, { recursive: true }));
    const counts = [];
    for (const [from, to] of [
      [0, 12],
      [3, 15],
      [6, 18],
      [6, 18],
    ]) {
      const at = (of) => `2026-01-01T${String(of).padStart(2, "0")}:00:00Z`;
      const query = { ...day, start: at(from), end: at(to) };
      const { client, asked } = watched(sandbox);
      const checkpoint = checkpointDirectory(home);
      const table = await client.collect({ ...query, keep, checkpoint, dropOld: true });
      assert.deepEqual(rowsOf(table), rowsOf(await atOnce(sandbox, query)));
      counts.push(asked.length);
    }
    assert.deepEqual(counts, [48, 12, 12, 0]);
    const names = (await readdir(home)).filter((name) => name.startsWith("segment"));
    const segments = await Promise.all(names.map((name) => readFile(join(home, name), "utf8")));
    const tables = segments.map((json) => JSON.parse(json).table).filter((table) => table !== null);
    const kept = tables.flatMap(({ windows }) => windows.map(({ start }) => start)).sort();
    // A segment of hours is dropped hour by hour, one of single windows when all of it is old.
    assert.equal(kept[0] >= "2026-01-01T06", keep === "1h");
  }
});

test("an error of a checkpoint names the file and what to do", async (t) => {
  const home = await mkdtemp(join(tmpdir(), "tallyfold-keep-"));
  t.after(() => rm(home, { recursive: true }));
  const { client } = watched(new Sandbox({ seed: 9 }));
  const inMemory = memory();
  for (const checkpoint of [home, inMemory, { ...inMemory, place: (name) => `shelf 3, ${name}` }]) {
    await client.collect({ ...hour, checkpoint });
    const error = await rejectionOf(client.collect({ ...hour, checkpoint, keep: "1h" }));
    assert.equal(error.code, "invalid_checkpoint");
    const name = "segment-00000.json";
    const place = checkpoint === home ? join(home, name) : (checkpoint.place?.(name) ?? name);
    assert.ok(error.message.includes(`(in ${place})`), error.message);
    assert.match(error.message, /use another checkpoint, or remove this segment/);
  }
});

const MEMORY = `
import { Client } from "tallyfold";
const [keep, days] = process.argv.slice(1);
const rows = Array.from({ length: 1_200 }, (_, n) => ({
  success: String(7 * n + 40_000), errors: String(n % 90), filtered: "3",
  dimensions: { integration: "integration " + (n % 40), reason: "a reason of failure, number " + Math.floor(n / 40),
    event_name: "Event " + (n % 17), write_key: "wk_" + (n % 5) },
}));
const sum = (name) => rows.reduce((sum, row) => sum + BigInt(row[name]), 0n);
const totals = { totalDelivered: String(sum("success")), totalErrors: String(sum("errors")), totalFiltered: String(sum("filtered")) };
const rest = new TextEncoder().encode("," + JSON.stringify({ ...totals, counts: rows }).slice(1));
const headers = { "content-type": "application/json" };
async function fetch(url, { body }) {
  if (String(url).endsWith("/oauth/token")) return Response.json({ access_token: "t", token_type: "Bearer", expires_in: 86_400 });
  const { start, end } = JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body));
  const head = new TextEncoder().encode(JSON.stringify({ start, end }).slice(0, -1));
  const pieces = [head, rest];
  const stream = new ReadableStream({ pull(to) { const piece = pieces.shift(); piece ? to.enqueue(piece) : to.close(); } });
  return new Response(stream, { headers });
}
const client = new Client({ clusterEndpoint: "https://cluster.example", clientId: "i", clientSecret: "s", controlAudience: "c", fetch });
const query = { metric: "event_delivery", start: "2025-01-01T00:00:00Z", dimensions: ["integration", "reason", "event_name", "write_key"] };
await client.collect({ ...query, end: "2025-01-03T00:00:00Z" });
globalThis.gc();
const idle = process.memoryUsage().rss;
let peak = idle;
const onProgress = () => { peak = Math.max(peak, process.memoryUsage().rss); };
const end = new Date(Date.UTC(2025, 0, Number(days) + 1));
const table = await client.collect({ ...query, end, keep, onProgress });
onProgress();
const right = table.totals.success === sum("success") * 96n * BigInt(days);
console.log(JSON.stringify({ right, windows: table.windows.length, grown: (peak - idle) / 2 ** 20 }));
`;

test("a month of 1,200 groups takes at most 100 MiB, and little if days are kept", () => {
  for (const [keep, windows, most] of [
    ["windows", 2_880, 100],
    ["1d", 30, 60],
  ]) {
    const options = ["--expose-gc", "--input-type=module", "-e", MEMORY, keep, "30"];
    const result = JSON.parse(execFileSync(process.execPath, options, { encoding: "utf8" }));
    assert.ok(result.right);
    assert.equal(result.windows, windows);
    assert.ok(result.grown < most, `${keep}: ${result.grown} MiB`);
  }
});

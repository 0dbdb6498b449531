// Running totals: counters that never go down, in a text of their own and in a registry of prom-client.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Counter, Registry } from "prom-client";
import { CountTable, compare, Sandbox } from "tallyfold";
import { Ledger, Outbox } from "tallyfold/export";
import { serve, stateFile } from "tallyfold/node";
import { receiver } from "./receiver.mjs";
import { thrownBy } from "./responses.mjs";
import { clientOf, service } from "./world.mjs";

const quarters = ["00", "15", "30", "45"].map((minute) => `2026-01-01T10:${minute}:00Z`);

/** A revision of the first, the second or the third quarter of an hour. */
function revision(quarter, counts, settled = true) {
  const window = { start: quarters[quarter], end: quarters[quarter + 1] };
  const table = saved(window, counts);
  return { window, table, changes: compare(saved(window, {}), table), settled, number: 0 };
}

function saved(window, counts) {
  const rows = Object.entries(counts).sort();
  const sum = (at) => String(rows.reduce((sum, [, of]) => sum + BigInt(of[at]), 0n));
  const totals = { success: sum(0), errors: sum(1), filtered: sum(2) };
  return CountTable.fromJSON({
    format: "tallyfold-table/1",
    metric: "event_delivery",
    dimensions: ["integration"],
    filter: [],
    totals,
    windows: [
      {
        ...window,
        reported: null,
        notes: { repeated_combinations: 0, null_dimensions: 0 },
        rows: rows.map(([value, [success, errors, filtered]]) => ({
          values: [value],
          success: String(success),
          errors: String(errors),
          filtered: String(filtered),
        })),
      },
    ],
  });
}

const large = 2n ** 60n + 1n;

/** For tests in which no process ends. */
const store = () => {};

describe("a ledger", () => {
  test("adds settled windows alone, and shows all digits", async () => {
    const ledger = new Ledger();
    assert.deepEqual(ledger.counters(), []);
    assert.equal(ledger.openmetrics(), "# EOF\n");
    await ledger.add(revision(0, { email: [large, 1, 0] }, false), "first", store);
    assert.equal(ledger.settledUntil, undefined);
    await ledger.add(revision(0, { email: [large, 1, 0] }), "second", store);
    await ledger.add(revision(1, { email: [2, 0, 0], 'a "b"': [5, 0, 7] }), "third", store);
    assert.deepEqual([ledger.state, ledger.settledUntil], ["third", quarters[2]]);
    const [success, errors] = ledger.counters({ labels: { cluster: "c" } });
    assert.equal(success.name, "tallyfold_event_delivery_by_integration_success_settled_events");
    assert.deepEqual(success.labelNames, ["cluster", "integration"]);
    assert.deepEqual(success.values, [
      { labels: { cluster: "c", integration: 'a "b"' }, value: 5n },
      { labels: { cluster: "c", integration: "email" }, value: large + 2n },
    ]);
    assert.equal(errors.values[1].value, 1n);
    const text = ledger.openmetrics({ labels: { cluster: "c" }, name: "own" });
    const line = `own_by_integration_success_settled_events_total{cluster="c",integration="email"} ${large + 2n}`;
    assert.ok(text.split("\n").includes(line), text);
    assert.match(ledger.mediaType, /^application\/openmetrics-text/);
  });

  test("goes on from its document, and refuses a damaged one", async () => {
    const ledger = new Ledger(null);
    await ledger.add(revision(0, { email: [large, 1, 0] }), '{"state":1}', store);
    const document = ledger.save();
    const again = new Ledger(document);
    assert.equal(again.save(), document);
    assert.equal(again.state, '{"state":1}');
    await again.add(revision(1, { email: [1, 0, 0] }), "next", store);
    assert.match(again.openmetrics(), new RegExp(` ${large + 1n}\n`));
    for (const bad of [document.slice(0, -5), document.replace("email", "emial"), "{}", ""]) {
      assert.equal(thrownBy(() => new Ledger(bad)).code, "invalid_checkpoint");
    }
    assert.equal(thrownBy(() => new Ledger(5)).argument, "saved");
  });

  test("is unchanged by what it refuses", async () => {
    const ledger = new Ledger();
    await ledger.add(revision(0, { email: [large, 1, 0] }), "first", store);
    const before = ledger.save();
    const of = revision(1, { email: [1, 0, 0] });
    const others = [
      [{ ...of, table: of.table.groupBy() }, "next", "incompatible_tables"],
      [revision(1, { email: [2n ** 64n - 1n, 0, 0] }), "next", "sum_overflow"],
      [revision(0, { email: [large, 1, 0] }), "of a follow that forgot", "overlapping_coverage"],
      [of, undefined, "invalid_argument"],
      [of, "", "invalid_argument"],
      [of, '{"format":"tallyfold-follow/2","digest":"00000000",', "invalid_checkpoint"],
      [of.table, "next", "invalid_argument"],
    ];
    for (const [revision, state, code] of others) {
      await assert.rejects(ledger.add(revision, state, store), { code });
    }
    assert.equal(ledger.save(), before);
    assert.equal(thrownBy(() => ledger.counters({ labels: { "a-b": "" } })).argument, "labels");
    ledger[Symbol.dispose]();
    assert.equal(thrownBy(() => ledger.save()).code, "out_of_order");
  });

  test("refuses a name that is no name of a metric, also before the first revision", async () => {
    const full = new Ledger();
    await full.add(revision(0, { email: [1, 0, 0] }), "first", store);
    const registry = { registerMetric: () => assert.fail("it has a wrong name") };
    const names = ["", "1", "a b", "a.b", "a\0", "a\u202eb", 'a"} 1\nown{x="', "x".repeat(101), 5];
    for (const name of names) {
      for (const ledger of [new Ledger(), full]) {
        for (const act of [
          () => ledger.openmetrics({ name }),
          () => ledger.counters({ name }),
          () => ledger.register(registry, { name }),
        ]) {
          const { code, argument, message } = thrownBy(act);
          assert.deepEqual([code, argument], ["invalid_argument", "name"]);
          assert.match(message, /want/);
          assert.doesNotMatch(message, /[\p{Cc}\p{Cf}]/u);
          assert.ok(message.length < 200, message);
        }
      }
    }
    assert.match(full.openmetrics({ name: "x".repeat(100) }), /x{100}_by_integration_success/);
  });

  test("warns when a total becomes larger than Prometheus holds", async (t) => {
    const warned = t.mock.method(process, "emitWarning", () => {}).mock;
    const ledger = new Ledger();
    for (const [at, count] of [2n ** 53n, 1n, 1n].entries()) {
      await ledger.add(revision(at, { email: [count, 0, 0] }), `state ${at}`, store);
    }
    assert.equal(warned.callCount(), 1);
    const [message, kind] = warned.calls[0].arguments;
    assert.equal(kind, "InexactCountWarning");
    assert.match(message, /\["email"\], 9007199254740993, is above 2\^53/);
  });

  test("shows totals once they are stored, and not before", async () => {
    const ledger = new Ledger();
    let stored = () => {};
    const storing = new Promise((resolve) => {
      stored = resolve;
    });
    const added = ledger.add(revision(0, { email: [1, 0, 0] }), "first", () => storing);
    assert.equal(ledger.openmetrics(), "# EOF\n");
    const other = ledger.add(revision(1, { email: [1, 0, 0] }), "second", store);
    await assert.rejects(other, { code: "out_of_order" });
    stored();
    await added;
    assert.equal(ledger.state, "first");
    const full = new Error("no space left on device");
    const failed = ledger.add(revision(1, { email: [1, 0, 0] }), "second", () => {
      throw full;
    });
    await assert.rejects(failed, full);
    assert.equal(ledger.state, "first");
    await assert.rejects(ledger.add(revision(1, {}), "second"), { argument: "store" });
    const late = ledger.add(revision(1, { email: [1, 0, 0] }), "second", async () => {
      ledger[Symbol.dispose]();
    });
    await late;
    assert.equal(thrownBy(() => ledger.save()).code, "out_of_order");
  });

  test("follows a service over restarts, and counts each window once", async () => {
    const start = "2026-01-01T00:00:00Z";
    const sandbox = service();
    const event = { timestamp: start, eventName: "order", writeKey: "web", reason: "" };
    for (const [minute, count] of [2, 17, 32].map((minute) => [minute, minute])) {
      const timestamp = new Date(Date.parse(start) + minute * 60_000);
      sandbox.record({ ...event, timestamp, outcome: "success", integration: "email", count });
    }
    const now = () => ({ monotonicMs: 0, unixMs: Date.parse("2026-01-02T00:00:00Z") });
    const query = { metric: "event_delivery", dimensions: ["integration"], window: "15m" };
    let document;
    for (let restarts = 0; restarts < 4; restarts++) {
      const ledger = new Ledger(document);
      const client = clientOf(sandbox, { now });
      const end = "2026-01-01T01:00:00Z";
      const revisions = client.follow({ ...query, start, end, state: ledger.state });
      for await (const revision of revisions) {
        await ledger.add(revision, revisions.state(), (saved) => {
          document = saved;
        });
        assert.equal(ledger.save(), document);
        // The process ends here.
        break;
      }
    }
    const [success] = new Ledger(document).counters();
    const email = success.values.find(({ labels }) => labels.integration === "email");
    assert.equal(email.value, 2n + 17n + 32n);
  });

  test("refuses a window that was skipped, and goes on from its state", async () => {
    const start = "2026-01-01T00:00:00Z";
    const sandbox = service();
    const event = { timestamp: start, eventName: "order", writeKey: "web", reason: "" };
    for (const minute of [2, 17, 32]) {
      const timestamp = new Date(Date.parse(start) + minute * 60_000);
      sandbox.record({
        ...event,
        timestamp,
        outcome: "success",
        integration: "email",
        count: minute,
      });
    }
    const now = () => ({ monotonicMs: 0, unixMs: Date.parse("2026-01-02T00:00:00Z") });
    const end = "2026-01-01T01:00:00Z";
    const query = { metric: "event_delivery", dimensions: ["integration"], window: "15m", end };
    const ledger = new Ledger();
    let skipped;
    const first = clientOf(sandbox, { now }).follow({ ...query, start });
    await assert.rejects(
      async () => {
        for await (const revision of first) {
          // The second window gets lost.
          if (ledger.settledUntil !== undefined && skipped === undefined) skipped = revision.window;
          else await ledger.add(revision, first.state(), store);
        }
      },
      (error) => {
        assert.deepEqual([error.code, error.argument], ["out_of_order", "revision"]);
        assert.match(error.message, /was skipped.* resume the follow from the state/s);
        return true;
      },
    );
    assert.notEqual(skipped, undefined);
    const again = clientOf(sandbox, { now }).follow({ ...query, start, state: ledger.state });
    for await (const revision of again) await ledger.add(revision, again.state(), store);
    const [success] = ledger.counters();
    assert.equal(success.values[0].value, 2n + 17n + 32n);
  });

  test("leaves a gap if that is wanted", async () => {
    const ledger = new Ledger();
    await ledger.add(revision(0, { email: [1, 0, 0] }), "first", store);
    const later = revision(2, { email: [4, 0, 0] });
    const skipped = ledger.add(later, "third", store);
    await assert.rejects(skipped, {
      code: "out_of_order",
      message:
        /revision: \[2026-01-01T10:15:00Z, 2026-01-01T10:30:00Z\) was skipped.* set allowGap/s,
    });
    await assert.rejects(ledger.add(later, "third", store, { allowGap: "yes" }), {
      code: "invalid_argument",
      argument: "allowGap",
    });
    assert.equal(ledger.state, "first");
    await ledger.add(later, "third", store, { allowGap: true });
    assert.equal(ledger.counters()[0].values[0].value, 5n);
    // It is there after all.
    await ledger.add(revision(1, { email: [2, 0, 0] }), "second", store);
    assert.equal(ledger.counters()[0].values[0].value, 7n);
  });

  test("refuses to replace what another one has stored", async (t) => {
    const { url, got } = await receiver(t, () => 200);
    // As a table of a database: `UPDATE … SET document = $1 WHERE document = $2`.
    let document = null;
    const replace = async (next, before) => {
      if (document !== before) return false;
      document = next;
    };
    const refused = { code: "invalid_checkpoint", message: /load it again/ };
    // Two processes begin with nothing, and later with the same document.
    for (const at of [0, 1]) {
      const [one, other] = [new Ledger(document), new Ledger(document)];
      const of = revision(at, { email: [1, 0, 0] });
      await one.add(of, `state ${at}`, replace);
      const stored = document;
      await assert.rejects(other.add(of, `state ${at}`, replace), refused);
      const pushed = other.push({ format: "otlp-json", url }, replace);
      await assert.rejects(pushed, refused);
      assert.equal(document, stored);
      assert.equal(other.settledUntil, at === 0 ? undefined : quarters[at]);
    }
    assert.equal(got.length, 0);
    const last = new Ledger(document);
    await last.push({ format: "otlp-json", url }, replace);
    await last.add(revision(2, { email: [1, 0, 0] }), "state 2", replace);
    assert.equal(new Ledger(document).counters()[0].values[0].value, 3n);
  });

  test("names the file of a damaged document", async (t) => {
    const home = await mkdtemp(join(tmpdir(), "tallyfold-totals-"));
    t.after(() => rm(home, { recursive: true }));
    for (const [name, make] of [
      ["totals.json", (saved) => new Ledger(saved)],
      ["outbox.json", (saved) => new Outbox(saved, { format: "influx", store: () => {} })],
    ]) {
      const path = join(home, name);
      const file = stateFile(path);
      await file.store(`{"${name}`);
      const saved = await file.load();
      const refused = thrownBy(() => make(saved));
      assert.equal(refused.code, "invalid_checkpoint");
      assert.ok(refused.message.startsWith(`invalid_checkpoint: ${path}: `), refused.message);
      // Nothing is known of this one.
      assert.ok(!thrownBy(() => make("{")).message.includes(home));
    }
  });

  test("is refused a file that another one has written by the same object", async (t) => {
    const home = await mkdtemp(join(tmpdir(), "tallyfold-totals-"));
    t.after(() => rm(home, { recursive: true }));
    const file = stateFile(join(home, "totals.json"));
    for (const at of [0, 1]) {
      const saved = await file.load();
      const [one, other] = [new Ledger(saved), new Ledger(saved)];
      const of = revision(at, { email: [800, 0, 0] });
      await one.add(of, `state ${at}`, file.store);
      const refused = other.add(of, `state ${at}`, file.store);
      await assert.rejects(refused, { code: "invalid_checkpoint", message: /load it again/ });
    }
    assert.equal(new Ledger(await file.load()).counters()[0].values[0].value, 1600n);
  });
});

/** The points of a message of OTLP: the start, the time, and the total of each count. */
function points({ body }) {
  const { metrics } = JSON.parse(body).resourceMetrics[0].scopeMetrics[0];
  const found = { starts: new Set(), times: new Set(), totals: {} };
  for (const { name, unit, sum } of metrics) {
    assert.deepEqual([unit, sum.aggregationTemporality, sum.isMonotonic], ["{event}", 2, true]);
    for (const point of sum.dataPoints) {
      found.starts.add(point.startTimeUnixNano);
      found.times.add(point.timeUnixNano);
      found.totals[name.split(".").at(-1)] = BigInt(point.asInt);
    }
  }
  const [[start], [time]] = [[...found.starts], [...found.times]];
  assert.deepEqual([found.starts.size, found.times.size], [1, 1]);
  return { start, time: BigInt(time), totals: found.totals };
}

describe("totals that are pushed", () => {
  const format = "otlp-json";
  let unixMs = 0;
  const now = () => ({ monotonicMs: 0, unixMs });

  test("have one start over restarts, and no time twice", async (t) => {
    const { url, got } = await receiver(t, () => 200);
    unixMs = Date.now();
    let document = null;
    const keep = (text) => {
      document = text;
    };
    const first = new Ledger();
    assert.equal((await first.push({ format, url, now }, keep)).messages, 0n);
    for (const [at, step] of [900_000, -240_000, 3_600_000].entries()) {
      unixMs += step;
      const ledger = new Ledger(document);
      await ledger.add(revision(at, { email: [at + 1, at, 0] }), `state ${at}`, keep);
      for (let times = 0; times < 2; times++) {
        const report = await new Ledger(document).push({ format, url, now }, keep);
        assert.deepEqual([report.messages, report.unsure], [1n, 0n]);
      }
    }
    const all = got.map(points);
    assert.equal(new Set(all.map(({ start }) => start)).size, 1);
    for (const [at, { time, totals }] of all.slice(1).entries()) {
      assert.ok(time > all[at].time);
      assert.ok(totals.success >= all[at].totals.success);
    }
    assert.deepEqual(all.at(-1).totals, { success: 6n, errors: 3n, filtered: 0n });
    assert.ok(all.at(-1).time >= BigInt(unixMs) * 1_000_000n);
    unixMs -= 7_200_000;
    const before = document;
    const late = new Ledger(document).push({ format, url, now }, keep);
    await assert.rejects(late, { code: "invalid_checkpoint", message: /from the future/ });
    assert.equal(document, before);
  });

  test("have the service's time if this machine's clock is ahead", async (t) => {
    const { url, got } = await receiver(t, () => 200);
    let document = null;
    const keep = (text) => {
      document = text;
    };
    // Ledgers begin by the clock of the process.
    const [ahead, real] = [3 * 3_600_000, Date.now() - 3 * 3_600_000];
    const read = { ...revision(0, { email: [1, 0, 0] }), clockAheadMs: ahead };
    await new Ledger().add(read, "state", keep);
    for (const clock of [real + ahead + 60_000, real + ahead + 120_000, real + 180_000]) {
      unixMs = clock;
      await new Ledger(document).push({ format, url, now }, keep);
    }
    const all = got.map(points);
    const seconds = (ns) => Math.round((Number(ns) / 1e6 - real) / 1000);
    assert.deepEqual(
      all.map(({ time }) => seconds(time)),
      [60, 120, 120],
    );
    assert.ok(all[2].time > all[1].time);
    assert.ok(all.every(({ start }) => Math.abs(seconds(start)) < 30));
  });

  test("grow to the truth through kills", async (t) => {
    const home = await mkdtemp(join(tmpdir(), "tallyfold-totals-"));
    t.after(() => rm(home, { recursive: true }));
    const sandbox = new Sandbox();
    for (let quarter = 0; quarter < 12; quarter++) {
      const timestamp = new Date(Date.parse(quarters[0]) + (quarter - 40) * 900_000);
      const of = { outcome: "success", eventName: "order", writeKey: "web", integration: "email" };
      sandbox.record({ ...of, timestamp, reason: "", count: quarter + 1 });
    }
    const server = await serve(sandbox);
    t.after(() => server.close());
    let child;
    let left = 2;
    let kills = 0;
    // The process is killed by turns while a message is under way, and a little later.
    const { url, got } = await receiver(t, async () => {
      left -= 1;
      if (left === 0) {
        const ended = once(child, "exit");
        setTimeout(() => child.kill("SIGKILL"), Math.random() * 3);
        if (kills % 2 === 0) await ended;
      }
      return 200;
    });
    const span = { start: "2026-01-01T00:00:00Z", end: "2026-01-01T03:00:00Z" };
    const query = { ...span, metric: "event_delivery", dimensions: ["integration"], window: "15m" };
    const options = { ...sandbox.credentials, clusterEndpoint: server.url };
    const argument = JSON.stringify({ options, query, path: join(home, "totals.json"), url });
    const program = fileURLToPath(new URL("totals.mjs", import.meta.url));
    for (; kills < 40; kills++) {
      child = spawn(process.execPath, [program, argument], {
        stdio: ["ignore", "ignore", "inherit"],
      });
      const [code] = await once(child, "exit");
      if (code !== null) {
        assert.equal(code, 0);
        break;
      }
      left = 2 + (kills % 3);
    }
    assert.ok(kills >= 3, `${kills}`);
    const all = got.map(points);
    assert.equal(new Set(all.map(({ start }) => start)).size, 1);
    for (const [at, { time, totals }] of all.slice(1).entries()) {
      assert.ok(time > all[at].time);
      assert.ok(totals.success >= all[at].totals.success);
    }
    assert.equal(all.at(-1).totals.success, 78n);
  });

  test("may be sent again, and are refused in other formats", async (t) => {
    const fates = [0, 200, 500, 200];
    const { url, got } = await receiver(t, () => fates.shift());
    const ledger = new Ledger();
    await ledger.add(revision(0, { email: [1, 0, 0] }), "first", store);
    // The first connection breaks after the message was taken.
    const report = await ledger.push({ format, url }, store);
    assert.deepEqual([report.retries, report.unsure], [1n, 0n]);
    assert.deepEqual(points(got[0]), points(got[1]));
    const error = await ledger.push({ format, url }, store).catch((error) => error);
    assert.deepEqual([error.code, error.report.unsure], ["server_error", 0n]);
    const guaranteed = ledger.push({ format, url, guarantee: "at_most_once" }, store);
    await assert.rejects(guaranteed, { argument: "guarantee" });
    const other = ledger.push({ format: "remote-write", url }, store);
    await assert.rejects(other, { code: "unsupported_by_format" });
    await assert.rejects(ledger.push({ format, url }), { argument: "store" });
    await ledger.push({ format, url }, store);
    assert.equal(got.length, 4);
  });

  test("are stored first, one push at a time, while revisions are added", async (t) => {
    const ledger = new Ledger();
    await ledger.add(revision(0, { email: [1, 0, 0] }), "first", store);
    const documents = [];
    const { url, got } = await receiver(t, async () => {
      const stored = documents.at(-1);
      assert.equal(new Ledger(stored).save(), stored);
      await ledger.add(revision(1, { email: [2, 0, 0] }), "second", store);
      await assert.rejects(ledger.push({ format, url }, store), { code: "out_of_order" });
      return 200;
    });
    const slow = async (document) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      documents.push(document);
    };
    await ledger.push({ format, url }, slow);
    assert.deepEqual([points(got[0]).totals.success, ledger.state], [1n, "second"]);
    const full = new Error("no space left on device");
    const failed = ledger.push({ format, url }, () => Promise.reject(full));
    await assert.rejects(failed, full);
    assert.equal(got.length, 1);
    // A document that is being stored is waited for, by both.
    const other = await receiver(t, () => 200);
    await Promise.all([
      ledger.add(revision(2, { email: [4, 0, 0] }), "third", slow),
      ledger.push({ format, url: other.url }, slow),
    ]);
    assert.equal(points(other.got[0]).totals.success, 7n);
    assert.equal(new Ledger(documents.at(-1)).state, "third");
    ledger[Symbol.dispose]();
    await assert.rejects(ledger.push({ format, url }, store), { code: "out_of_order" });
  });
});

describe("an abort of a push of totals", () => {
  const aborted = { name: "AbortError" };

  test("is met before anything is stored", async () => {
    const ledger = new Ledger();
    await ledger.add(revision(0, { email: [1, 0, 0] }), "first", store);
    let stored = 0;
    const count = () => {
      stored += 1;
    };
    const to = { format: "otlp", url: "http://127.0.0.1:1/", signal: AbortSignal.abort() };
    await assert.rejects(ledger.push(to, count), aborted);
    assert.equal(stored, 0);
  });

  test("ends the wait for the store, and the next push waits for it", async (t) => {
    const { url, got } = await receiver(t, () => 200);
    const ledger = new Ledger();
    await ledger.add(revision(0, { email: [1, 0, 0] }), "first", store);
    const controller = new AbortController();
    const documents = [];
    let written;
    const slow = (document) => {
      controller.abort();
      documents.push(document);
      return new Promise((resolve) => {
        written = resolve;
      });
    };
    const { signal } = controller;
    await assert.rejects(ledger.push({ format: "otlp", url, signal }, slow), aborted);
    const again = new AbortController();
    const waiting = ledger.push({ format: "otlp", url, signal: again.signal }, slow);
    again.abort();
    await assert.rejects(waiting, aborted);
    const before = [];
    const next = ledger.push({ format: "otlp", url }, (document, last) => {
      documents.push(document);
      before.push(last);
    });
    assert.equal(documents.length, 1);
    written();
    await next;
    assert.deepEqual([documents.length, got.length], [2, 1]);
    assert.deepEqual(before, [documents[0]]);
  });
});

test("options of totals that don't exist are refused", async () => {
  const ledger = new Ledger();
  const unknown = { code: "unknown_argument", argument: "label" };
  assert.throws(() => ledger.counters({ label: { a: "b" } }), unknown);
  assert.throws(() => ledger.openmetrics({ label: { a: "b" } }), unknown);
  assert.throws(() => ledger.register(new Registry(), { label: { a: "b" } }), unknown);
  const added = ledger.add(revision(0, { email: [1, 0, 0] }), "first", store, { allowgap: true });
  await assert.rejects(added, { code: "unknown_argument", argument: "allowgap" });
});

describe("prom-client", () => {
  const exact = 2n ** 53n - 5n;
  for (const [type, eof] of [
    [Registry.PROMETHEUS_CONTENT_TYPE, ""],
    [Registry.OPENMETRICS_CONTENT_TYPE, "# EOF\n"],
  ]) {
    test(`shows the totals of each scrape as counters: ${type}`, async () => {
      const registry = new Registry(type);
      const others = new Counter({ name: "own_total", help: "own", registers: [registry] });
      others.inc(3);
      const ledger = new Ledger();
      // The names of the counters come with the first revision.
      ledger.register(registry, { labels: { cluster: "c" } });
      assert.doesNotMatch(await registry.metrics(), /tallyfold/);
      await ledger.add(revision(0, { email: [exact, 1, 0] }), "first", store);
      const name = "tallyfold_event_delivery_by_integration_success_settled_events";
      const line = (value) => `${name}_total{cluster="c",integration="email"} ${value}\n`;
      for (let scrape = 0; scrape < 2; scrape++) {
        const text = await registry.metrics();
        assert.ok(text.includes(line(exact)), text);
        assert.match(text, /own_total 3/);
        assert.ok(text.endsWith(eof));
      }
      await ledger.add(revision(1, { email: [2, 0, 0] }), "second", store);
      registry.resetMetrics();
      const text = await registry.metrics();
      assert.ok(text.includes(line(exact + 2n)), text);
      assert.equal(text.match(/# TYPE tallyfold/g).length, 4);
      const until = (text) => text.match(/^(?!# UNIT).*_settled_until_seconds.*$/gm);
      const own = until(ledger.openmetrics({ labels: { cluster: "c" } }));
      assert.deepEqual(until(text).sort(), own.map((line) => line.replace(/\.000$/, "")).sort());
      assert.equal(own.length, 3);
      const all = await registry.getMetricsAsJSON();
      const [found] = all.filter(({ name }) => name.includes("success_settled"));
      assert.equal(found.type, "counter");
      assert.equal(found.values[0].value, Number(exact) + 2);
    });
  }

  test("gets the counters at once from a ledger that has some", async () => {
    const ledger = new Ledger();
    await ledger.add(revision(0, { email: [1, 0, 0] }), "first", store);
    const registry = new Registry();
    ledger.register(registry, { name: "own" });
    assert.match(
      await registry.metrics(),
      /^own_by_integration_success_settled_events_total{integration="email"} 1$/m,
    );
    assert.throws(() => ledger.register(registry, { name: "own" }), /already been registered/);
    assert.equal(thrownBy(() => ledger.register({})).argument, "registry");
  });

  test("refuses counters, and the ledger goes on", async (t) => {
    const warned = t.mock.method(process, "emitWarning", () => {}).mock;
    const registry = new Registry();
    const other = new Registry();
    const name = "own_by_integration_success_settled_events_total";
    new Counter({ name, help: "another one of this name", registers: [registry] });
    const ledger = new Ledger();
    ledger.register(registry, { name: "own" });
    ledger.register(other, { name: "own" });
    await ledger.add(revision(0, { email: [1, 0, 0] }), "first", store);
    await ledger.add(revision(1, { email: [2, 0, 0] }), "second", store);
    assert.equal(ledger.state, "second");
    assert.equal(warned.callCount(), 1);
    const [message, kind] = warned.calls[0].arguments;
    assert.equal(kind, "CountersLeftOutWarning");
    assert.match(
      message,
      /own_by_integration_success_settled_events_total has already been registered/,
    );
    assert.match(await other.metrics(), /^own_by_integration_success_settled_events_total{.*} 3$/m);
  });

  test("does not hear of a ledger that was disposed of while it was stored", async (t) => {
    const warned = t.mock.method(process, "emitWarning", () => {}).mock;
    const registry = new Registry();
    const ledger = new Ledger();
    ledger.register(registry);
    await ledger.add(revision(0, { email: [1, 0, 0] }), "first", () => ledger[Symbol.dispose]());
    assert.equal(warned.callCount(), 0);
    assert.equal(await registry.metrics(), "\n");
  });
});

// Revisions that are sent each once, by processes that end at any moment.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Outbox } from "tallyfold/export";
import { receiver } from "./receiver.mjs";
import { thrownBy } from "./responses.mjs";
import { clientOf, service } from "./world.mjs";

const start = "2026-01-01T00:00:00Z";
const end = "2026-01-01T01:00:00Z";
const event = { eventName: "order", writeKey: "web", reason: "", integration: "email" };
const query = { metric: "event_delivery", dimensions: ["integration"], window: "15m", start, end };
const store = () => {};

/** A service with events in three of four quarters of an hour. */
function world() {
  const sandbox = service();
  for (const minute of [2, 17, 32]) {
    const timestamp = new Date(Date.parse(start) + minute * 60_000);
    sandbox.record({ ...event, timestamp, outcome: "success", count: minute });
  }
  const now = () => ({ monotonicMs: 0, unixMs: Date.parse("2026-01-02T00:00:00Z") });
  return clientOf(sandbox, { now });
}

/** Revisions of a follow, each with the state after it. */
async function revisionsOf() {
  const found = [];
  const revisions = world().follow(query);
  for await (const revision of revisions) found.push([revision, revisions.state()]);
  return found;
}

/** A promise, and what fulfils it. */
function held() {
  let release;
  const promise = new Promise((resolve) => {
    release = resolve;
  });
  return { promise, release };
}

/** The sum over the points of the events here, of which InfluxDB keeps the newest value. */
function sumOf(messages) {
  const points = new Map();
  for (const body of messages) {
    for (const line of new TextDecoder().decode(body).trim().split("\n")) {
      const [, series, value, time] = /^(\S+) success=(\d+)i\S* (\d+)$/.exec(line);
      if (series.includes("integration=email")) points.set(`${series} ${time}`, BigInt(value));
    }
  }
  return [...points.values()].reduce((sum, value) => sum + value, 0n);
}

describe("an outbox", () => {
  test("loses nothing and counts nothing twice, whenever the process ends", async (t) => {
    const { url, taken } = await receiver(t);
    const ends = new Error("the process ends here");
    let document;
    let stores = 0;
    let lives = 0;
    for (let isDone = false; !isDone; lives++) {
      // Each life ends after one more document than the one before, before or after it is written.
      let left = lives + 1;
      const outbox = new Outbox(document, {
        format: "influx",
        store: async (next) => {
          if (left === 0 && lives % 2 === 0) throw ends;
          document = next;
          stores++;
          if (left-- === 0) throw ends;
        },
      });
      try {
        await outbox.push({ url });
        const revisions = world().follow({ ...query, state: outbox.state });
        for await (const revision of revisions) {
          await outbox.put(revision, revisions.state());
          assert.equal(outbox.isPending, true);
          const report = await outbox.push({ url });
          assert.equal(report.samples, BigInt(revision.changes.length));
          assert.equal(outbox.isPending, false);
        }
        isDone = true;
      } catch (error) {
        assert.equal(error, ends);
      }
    }
    assert.ok(lives > 3 && stores > 10, `${lives} lives, ${stores} documents`);
    assert.equal(sumOf(taken()), 2n + 17n + 32n);
  });

  test("keeps what could not be sent, goes on with it, or drops it", async (t) => {
    let status = 401;
    const { url, got } = await receiver(t, () => status);
    let document;
    const keep = (next) => {
      document = next;
    };
    const outbox = new Outbox(null, { format: "influx", store: keep });
    assert.equal(await outbox.push({ url }), undefined);
    const revisions = world().follow(query);
    const { value: revision } = await revisions[Symbol.asyncIterator]().next();
    await outbox.put(revision, revisions.state());
    await assert.rejects(outbox.push({ url }), { code: "forbidden" });
    await assert.rejects(outbox.put(revision, "next"), { code: "out_of_order" });
    const again = new Outbox(document, { format: "influx", store: keep });
    assert.equal(again.state, revisions.state());
    const other = thrownBy(() => new Outbox(document, { format: "otlp", store }));
    assert.equal(other.argument, "format");
    status = 204;
    const report = await again.push({ url, labels: { cluster: "c" } });
    assert.equal(report.samples, BigInt(revision.changes.length));
    assert.match(got.at(-1).body.toString(), /,cluster=c,integration=email,revision=0 success=2i/);
    await outbox.drop();
    assert.equal(outbox.isPending, false);
    assert.equal(new Outbox(document, { format: "otlp", store }).isPending, false);
  });

  test("says what was under way when the process ended", async (t) => {
    const [[revision, state]] = await revisionsOf();
    let document;
    const keep = (next) => {
      document = next;
    };
    const first = new Outbox(null, { format: "otlp-json", store: keep });
    await first.put(revision, state);
    const { url, got } = await receiver(t, () => ({ status: 200, text: "{}" }));
    const ends = new AbortController();
    const dying = async (...given) => {
      await fetch(...given);
      ends.abort(new Error("the process ends here"));
      return new Promise(() => {});
    };
    const pushed = first.push({ url, fetch: dying, signal: ends.signal });
    await assert.rejects(pushed, { message: "the process ends here" });
    const second = new Outbox(document, { format: "otlp-json", store: keep });
    const report = await second.push({ url });
    const samples = BigInt(revision.changes.length);
    assert.deepEqual([report.unsure, report.messages, got.length], [samples, 0n, 1]);
    assert.equal(second.isPending, false);
  });

  test("keeps samples in doubt until a push has reported them", async (t) => {
    const [[revision, state]] = await revisionsOf();
    const samples = BigInt(revision.changes.length);
    let document;
    const keep = (next) => {
      document = next;
    };
    const first = new Outbox(null, { format: "otlp-json", store: keep });
    await first.put(revision, state);
    const { url, got } = await receiver(t, () => ({ status: 200, text: "{}" }));
    const ends = new AbortController();
    const dying = async () => {
      ends.abort(new Error("the process ends here"));
      return new Promise(() => {});
    };
    await assert.rejects(first.push({ url, fetch: dying, signal: ends.signal }));
    const inDoubt = document;
    // A push that is over before it has reported anything: wherever it ends, the next one reports the samples.
    const begun = new Outbox(inDoubt, { format: "otlp-json", store: keep });
    await assert.rejects(begun.push({ url, signal: AbortSignal.abort() }));
    for (let fails = 0; ; fails++) {
      document = inDoubt;
      let stores = 0;
      const outbox = new Outbox(document, {
        format: "otlp-json",
        store: (next) => {
          document = next;
          if (stores++ === fails) throw new Error("the process ends here");
        },
      });
      const report = await outbox.push({ url }).catch(() => undefined);
      const next = await new Outbox(document, { format: "otlp-json", store: keep }).push({ url });
      const reported = [report, next].map((one) => one?.unsure ?? 0n);
      assert.equal(reported[0] + reported[1], samples, `${fails}`);
      if (fails >= stores) break;
    }
    // It is reported after a drop, too, and once.
    document = inDoubt;
    const dropped = new Outbox(document, { format: "otlp-json", store: keep });
    await dropped.drop();
    const last = new Outbox(document, { format: "otlp-json", store: keep });
    const report = await last.push({ url });
    assert.deepEqual(report, {
      messages: 0n,
      samples: 0n,
      bytes: 0n,
      retries: 0n,
      unsure: samples,
      rejected: [],
    });
    assert.equal(await last.push({ url }), undefined);
    assert.equal(got.length, 0);
  });

  test("reports samples in doubt once, if a push fails", async (t) => {
    const [[revision, state]] = await revisionsOf();
    let document;
    const keep = (next) => {
      document = next;
    };
    const { url } = await receiver(t, () => ({ status: 200, text: "{}" }));
    const outbox = new Outbox(null, { format: "otlp-json", store: keep });
    await outbox.put(revision, state);
    const broken = async () => {
      throw Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNRESET" } });
    };
    const error = await outbox.push({ url, fetch: broken }).catch((thrown) => thrown);
    assert.equal(error.report.unsure, BigInt(revision.changes.length));
    const report = await new Outbox(document, { format: "otlp-json", store: keep }).push({ url });
    assert.equal(report.unsure, 0n);
  });

  test("does one thing at a time", async (t) => {
    const asked = held();
    const answered = held();
    const { url, got } = await receiver(t, async () => {
      asked.release();
      await answered.promise;
      return 204;
    });
    const outbox = new Outbox(null, { format: "influx", store });
    const [first, second] = await revisionsOf();
    await outbox.put(...first);
    const pushed = outbox.push({ url });
    const others = [() => outbox.push({ url }), () => outbox.put(...second), () => outbox.drop()];
    for (const act of others) await assert.rejects(act(), { code: "out_of_order" });
    await asked.promise;
    for (const act of others) await assert.rejects(act(), { code: "out_of_order" });
    answered.release();
    assert.equal((await pushed).samples, BigInt(first[0].changes.length));
    assert.equal(got.length, 1);
    await outbox.put(...second);
    assert.deepEqual([outbox.isPending, outbox.state], [true, second[1]]);
  });

  test("goes on after an aborted push when its document is stored", async () => {
    const [first, second] = await revisionsOf();
    const begun = held();
    const written = held();
    const seen = [];
    const outbox = new Outbox(null, {
      format: "influx",
      store: async (document) => {
        seen.push(document);
        if (seen.length !== 2) return;
        begun.release();
        await written.promise;
        seen.push("written");
      },
    });
    await outbox.put(...first);
    const fetch = async () => new Response(null, { status: 204 });
    const to = { url: "http://127.0.0.1:1/write", fetch, maxBytes: 1 };
    const controller = new AbortController();
    const aborted = outbox.push({ ...to, signal: controller.signal });
    await begun.promise;
    controller.abort(new Error("enough"));
    await assert.rejects(aborted, { message: "enough" });
    const next = outbox.push(to).then(() => outbox.put(...second));
    // Enough for all that does not wait for the document.
    for (let turn = 0; turn < 100; turn++) await new Promise((done) => setImmediate(done));
    written.release();
    await next;
    assert.equal(seen[2], "written");
    assert.deepEqual([outbox.isPending, outbox.state], [true, second[1]]);
    assert.equal(seen.at(-1).includes(JSON.stringify(second[1])), true);
  });

  test("ends every wait of an aborted push", async (t) => {
    const [first] = await revisionsOf();
    const { url, got } = await receiver(t);
    for (const kind of ["before", "after", "waiting"]) {
      const hangs = { after: 3, waiting: 2 }[kind];
      const controller = new AbortController();
      let stores = 0;
      const written = held();
      const outbox = new Outbox(null, {
        format: "influx",
        store: async () => {
          stores += 1;
          if (stores !== hangs) return;
          controller.abort(new Error("enough"));
          await written.promise;
        },
      });
      await outbox.put(...first);
      if (kind === "before") controller.abort(new Error("enough"));
      const { signal } = controller;
      await assert.rejects(outbox.push({ url, signal }), { message: "enough" }, kind);
      if (kind === "waiting") {
        // The document of the first push is still being stored.
        await assert.rejects(outbox.push({ url, signal }), { message: "enough" });
      }
      written.release();
      await outbox.push({ url });
      assert.equal(outbox.isPending, false);
    }
    assert.equal(got.length, 3);
  });

  test("stays disposed of, also if that was while a document was stored", async () => {
    const [first] = await revisionsOf();
    const outbox = new Outbox(null, {
      format: "influx",
      store: () => outbox[Symbol.dispose](),
    });
    await outbox.put(...first);
    assert.equal(thrownBy(() => outbox.state).code, "out_of_order");
  });

  test("refuses to replace what another one has stored, and sends nothing", async (t) => {
    const { url, got } = await receiver(t, () => 200);
    let document = null;
    // As a table of a database: `UPDATE … SET document = $1 WHERE document = $2`.
    const replace = async (next, before) => {
      if (document !== before) return false;
      document = next;
    };
    const options = { format: "otlp-json", store: replace };
    const refused = { code: "invalid_checkpoint", message: /load it again/ };
    const [first, second] = await revisionsOf();
    const [one, other] = [new Outbox(null, options), new Outbox(null, options)];
    await one.put(...first);
    await assert.rejects(other.put(...first), refused);
    assert.equal(other.isPending, false);
    // Another process that has loaded what is pending.
    const late = new Outbox(document, options);
    await one.push({ url });
    await one.put(...second);
    const stored = document;
    await assert.rejects(late.push({ url }), refused);
    await assert.rejects(late.drop(), refused);
    assert.deepEqual([document, got.length, late.isPending], [stored, 1, true]);
    await one.push({ url });
    assert.equal(got.length, 2);
  });

  test("is found to be an older one where the receiver refuses another value", async (t) => {
    const points = new Map();
    const { url } = await receiver(t, ({ body }) => {
      for (const line of body.toString().trim().split("\n")) {
        const [, series, fields, time] = /^(\S+) (\S+) (\d+)$/.exec(line);
        const key = `${series} ${time}`;
        if ((points.get(key) ?? fields) !== fields) return 400;
        points.set(key, fields);
      }
      return 204;
    });
    const sandbox = service();
    let monotonicMs = 0;
    const now = () => {
      monotonicMs += 1000;
      return { monotonicMs, unixMs: Date.parse(end) + monotonicMs };
    };
    const client = clientOf(sandbox, { now });
    const last = "2026-01-01T00:15:00Z";
    /** A process that reads the first quarter once more, after more events. */
    const live = async (saved, count) => {
      let document;
      const keep = (next) => {
        document = next;
      };
      sandbox.record({ ...event, timestamp: start, outcome: "success", count });
      const outbox = new Outbox(saved, { format: "influx", store: keep });
      const follow = { ...query, end: last, settleMs: 86_400_000, rereadMs: 1 };
      const revisions = client.follow({ ...follow, state: outbox.state });
      for await (const revision of revisions) {
        await outbox.put(revision, revisions.state());
        await outbox.push({ url });
        break;
      }
      return document;
    };
    const older = await live(null, 1);
    await live(older, 2);
    await assert.rejects(live(older, 4), { code: "unexpected_status", status: 400 });
    const values = [...points].filter(([key]) => key.includes("integration=email"));
    assert.deepEqual(
      values.map(([, fields]) => fields.split(",")[0]),
      ["success=1i", "success=2i"],
    );
  });

  test("refuses what is no revision, no document and no function", async () => {
    const outbox = new Outbox(undefined, { format: "influx", store });
    const wrong = [
      [5, "{}", "revision"],
      [{ table: 1 }, "{}", "revision"],
    ];
    for (const [revision, state, argument] of wrong) {
      await assert.rejects(outbox.put(revision, state), { argument });
    }
    await assert.rejects(outbox.put({}, 5), { argument: "state" });
    const [[revision, state]] = await revisionsOf();
    for (const [wrong, code] of [
      ["", "invalid_argument"],
      [state.slice(0, -1), "invalid_checkpoint"],
    ]) {
      await assert.rejects(outbox.put(revision, wrong), { argument: "state", code });
    }
    assert.equal(
      thrownBy(() => new Outbox("{}", { format: "influx", store })).code,
      "invalid_checkpoint",
    );
    assert.equal(thrownBy(() => new Outbox(null, { format: "influx" })).argument, "store");
    assert.equal(thrownBy(() => new Outbox(null, { format: "xml", store })).argument, "format");
    const labelled = { format: "influx", store, labels: { cluster: "eu-1" } };
    const { code, argument } = thrownBy(() => new Outbox(null, labelled));
    assert.deepEqual([code, argument], ["unknown_argument", "labels"]);
  });
});

// Exports that are sent: what arrives, what is sent again, and what is told of it.

import assert from "node:assert/strict";
import dgram from "node:dgram";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { describe, mock, test } from "node:test";
import { inspect } from "node:util";
import { CountTable } from "tallyfold";
import { exportCounts, push } from "tallyfold/export";
import { receiver } from "./receiver.mjs";
import { rejectionOf } from "./world.mjs";

const vectors = JSON.parse(
  await readFile(new URL("../../../tests/vectors/exports.json", import.meta.url), "utf8"),
);
const table = CountTable.fromJSON(vectors.tables.odd);
const influx = { format: "influx", url: "http://127.0.0.1:1/write", allowHttp: true };
const secret = "hunter2-is-secret";

/** The lines of all messages, sorted. */
function lines(messages) {
  const all = messages.map((body) => new TextDecoder().decode(body)).join("");
  return all.split("\n").sort();
}

/** Time that passes as soon as a push waits for it. */
function hurried(t) {
  mock.timers.enable({ apis: ["setTimeout"] });
  let at = 0;
  const beat = setInterval(() => {
    at += 1000;
    mock.timers.tick(1000);
  }, 1);
  t.after(() => {
    clearInterval(beat);
    mock.timers.reset();
  });
  const now = () => ({ monotonicMs: at, unixMs: Date.parse("2026-02-01T00:00:00Z") + at });
  return { now, timeoutMs: Number.POSITIVE_INFINITY };
}

/** How each receiver says that it has taken a message. */
const yes = {
  "remote-write": 200,
  influx: 204,
  otlp: { status: 200, headers: { "content-type": "application/x-protobuf" } },
  "otlp-json": { status: 200, headers: { "content-type": "application/json" }, text: "{}" },
  datadog: { status: 202, text: '{"errors":[]}' },
};

describe("a push", () => {
  for (const format of Object.keys(yes)) {
    test(`takes no web page for the yes of the receiver: ${format}`, async (t) => {
      const page = { headers: { "content-type": "text/html" }, text: "<!doctype html>Sign in" };
      for (const status of [200, 202]) {
        const { url } = await receiver(t, () => ({ status, ...page }));
        let finished = 0n;
        const onFinished = (samples) => {
          finished = samples;
        };
        const error = await rejectionOf(push(table, { format, url, onFinished }));
        assert.deepEqual([error.code, error.status], ["html_response", status]);
        assert.deepEqual([error.report.samples, error.report.unsure, finished], [0n, 0n, 0n]);
      }
    });

    test(`sends each piece as a message over HTTP: ${format}`, async (t) => {
      const { url, got, taken } = await receiver(t, () => yes[format]);
      const options = { format, maxBytes: 600, labels: { cluster: "a" } };
      const headers = { authorization: `Bearer ${secret}` };
      const report = await push(table, { ...options, url: new URL(url), headers });
      const exported = exportCounts(table, options);
      const pieces = [...exported].map((piece) => Buffer.from(piece));
      assert.ok(pieces.length > 1);
      assert.deepEqual(taken(), pieces);
      for (const { headers, method, url } of got) {
        assert.deepEqual([method, url], ["POST", "/in?db=events"]);
        assert.equal(headers["content-type"], exported.mediaType);
        assert.equal(headers.authorization, `Bearer ${secret}`);
        assert.equal(headers["content-encoding"], format === "remote-write" ? "snappy" : undefined);
      }
      assert.equal(report.messages, BigInt(pieces.length));
      assert.equal(report.samples, 10n);
      assert.equal(report.bytes, BigInt(Buffer.concat(pieces).length));
      assert.deepEqual([report.retries, report.unsure, report.rejected], [0n, 0n, []]);
    });
  }

  test("is not in doubt of what never left", async (t) => {
    const { url, got } = await receiver(t, () => 0);
    const unsent = url.replace("http:", "https:");
    const options = { format: "otlp-json", patienceMs: 0 };
    for (const address of [unsent, "http://nowhere.invalid:4318/v1/metrics"]) {
      const error = await rejectionOf(push(table, { ...options, url: address }));
      assert.equal(error.code, "network_failed");
      assert.equal(error.report.unsure, 0n, address);
    }
    const error = await rejectionOf(push(table, { ...options, url }));
    assert.equal(error.report.unsure, 10n);
    assert.equal(got.length, 1);
  });

  test("does not send again what a server has failed on, where that adds up", async (t) => {
    const { url, got } = await receiver(t, () => ({ status: 500, text: "boom" }));
    let finished;
    const onFinished = (samples) => {
      finished = samples;
    };
    const error = await rejectionOf(push(table, { format: "otlp-json", url, onFinished }));
    assert.deepEqual([error.code, error.excerpt], ["server_error", "boom"]);
    assert.deepEqual([error.report.unsure, finished, got.length], [10n, 10n, 1]);
  });

  test("says what the receiver says", async (t) => {
    const { url, got } = await receiver(t, () => ({ status: 500, text: "too old sample\n" }));
    const error = await rejectionOf(push(table, { format: "remote-write", url }));
    assert.match(error.message, /too old sample/);
    assert.equal(got.length, 1);
  });

  test("sends again what a server failed to take, and waits as it asks", async (t) => {
    const host = hurried(t);
    const began = host.now().monotonicMs;
    const answers = [503, { status: 429, headers: { "retry-after": "120" } }, 500, 204];
    const { url, got, taken } = await receiver(t, (_, got) => answers[got.length] ?? 204);
    const report = await push(table, { ...influx, url, ...host });
    assert.equal(got.length, 4);
    assert.deepEqual(lines(taken()), lines([...exportCounts(table, { format: "influx" })]));
    assert.deepEqual([report.messages, report.retries], [1n, 3n]);
    assert.ok(host.now().monotonicMs - began >= 120_000);
  });

  test("cuts what is too large, and nothing is lost", async (t) => {
    const { url, taken } = await receiver(t, ({ body }) => (body.length > 400 ? 413 : 204));
    await push(table, { ...influx, url });
    assert.ok(taken().length > 2);
    assert.deepEqual(
      lines(taken()).filter((line) => line !== ""),
      lines([...exportCounts(table, { format: "influx" })]).filter((line) => line !== ""),
    );
  });

  test("goes on where another one ended", async (t) => {
    const { url, taken } = await receiver(t, (_, got) => (got.length === 2 ? 400 : 204));
    const options = { ...influx, url, maxBytes: 300 };
    const finished = [];
    const onFinished = async (samples) => finished.push(samples);
    const error = await rejectionOf(push(table, { ...options, onFinished }));
    assert.deepEqual([error.code, error.status], ["unexpected_status", 400]);
    assert.equal(finished.length, 2);
    assert.equal(error.report.messages, 2n);
    assert.equal(error.report.samples, finished[1]);
    assert.ok(!Object.keys(error).includes("report"));
    await push(table, { ...options, finished: finished.at(-1) });
    assert.deepEqual(lines(taken()), lines([...exportCounts(table, { format: "influx" })]));
    await assert.rejects(push(table, { ...options, finished: "2" }), { argument: "finished" });
  });

  test("reports what was rejected, and does not send it again", async (t) => {
    const text = JSON.stringify({
      partialSuccess: { rejectedDataPoints: "2", errorMessage: "old" },
    });
    const { url, got } = await receiver(t, () => ({ status: 200, text }));
    const { rejected } = await push(table, { format: "otlp-json", url });
    assert.deepEqual(rejected, [{ points: 2n, message: "old" }]);
    assert.equal(got.length, 1);
  });

  test("waits for all that a receiver says of what it took", async () => {
    const text = JSON.stringify({ errors: ["too old"] });
    let asked = 0;
    const fetch = async () => {
      asked += 1;
      const body = new ReadableStream({
        async pull(controller) {
          // Longer than a refusal's body is waited for.
          await new Promise((resolve) => setTimeout(resolve, 1500));
          controller.enqueue(new TextEncoder().encode(text));
          controller.close();
        },
      });
      return new Response(body, { status: 202 });
    };
    mock.timers.enable({ apis: ["setTimeout"] });
    let report;
    try {
      const pushed = push(table, { format: "datadog", url: influx.url, allowHttp: true, fetch });
      const tick = setInterval(() => mock.timers.tick(100), 1);
      report = await pushed.finally(() => clearInterval(tick));
    } finally {
      mock.timers.reset();
    }
    assert.equal(asked, 1);
    assert.equal(report.rejected.length, 1);
    assert.match(report.rejected[0].message, /too old/);
  });

  test("reads only as much of an endless response as it needs", async () => {
    let chunks = 0;
    const pull = async (controller) => {
      // Lets the time limit end a push that reads everything.
      await new Promise((resolve) => setImmediate(resolve));
      controller.enqueue(new TextEncoder().encode((chunks === 0 ? "{}" : "").padEnd(65_536)));
      chunks += 1;
    };
    const headers = { "content-type": "application/json" };
    const fetch = async () => new Response(new ReadableStream({ pull }), { headers });
    const options = { ...influx, format: "otlp-json", fetch, timeoutMs: 5_000, patienceMs: 0 };
    await push(table, options);
    assert.ok(chunks < 10, `read ${chunks} chunks`);
  });

  test("does not wait for a refusal's body beyond the time limit", async (t) => {
    mock.timers.enable({ apis: ["setTimeout"] });
    t.after(() => mock.timers.reset());
    const fetch = async () => {
      await new Promise((resolve) => setTimeout(resolve, 1_900));
      return new Response(new ReadableStream(), { status: 503 });
    };
    const failed = rejectionOf(push(table, { ...influx, fetch, timeoutMs: 2_000, patienceMs: 0 }));
    let passed = 0;
    const tick = setInterval(() => {
      passed += 50;
      mock.timers.tick(50);
    }, 1);
    const error = await failed.finally(() => clearInterval(tick));
    assert.deepEqual([error.code, error.status], ["server_error", 503]);
    assert.ok(passed < 2_200, `ended after ${passed} ms`);
  });

  test("quotes a refusal, but no header", async (t) => {
    const { url } = await receiver(t, () => ({ status: 401, text: `no ${secret} here` }));
    const headers = [["authorization", secret]];
    const error = await rejectionOf(push(table, { ...influx, url, headers }));
    assert.equal(error.code, "forbidden");
    assert.match(error.excerpt, /no .* here/);
    assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /hunter2/);
  });

  test("tells no secret that a fetch tells", async () => {
    const fetch = async (url, { headers }) => {
      throw Object.assign(new Error(`${url} ${JSON.stringify(headers)}`), { code: "ECONNRESET" });
    };
    const headers = { authorization: `Bearer ${secret}` };
    const error = await rejectionOf(push(table, { ...influx, headers, fetch, patienceMs: 0 }));
    assert.equal(error.code, "network_failed");
    assert.match(error.message, /127\.0\.0\.1/);
    assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /hunter2/);
  });

  test("gives up when its patience is over", async (t) => {
    const host = hurried(t);
    let asked = 0;
    const fetch = async () => {
      asked += 1;
      return new Response(null, { status: 503 });
    };
    const begin = host.now().monotonicMs;
    const error = await rejectionOf(push(table, { ...influx, fetch, patienceMs: 60_000, ...host }));
    assert.deepEqual([error.code, error.status], ["server_error", 503]);
    assert.ok(asked > 3, `asked ${asked} times`);
    assert.ok(host.now().monotonicMs - begin < 70_000);
  });

  test("limits the time of a message", async () => {
    const fetch = (_, { signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    const error = await rejectionOf(push(table, { ...influx, fetch, timeoutMs: 5, patienceMs: 0 }));
    assert.equal(error.code, "timed_out");
  });

  test("has no shorter limit if the limit is longer than a timer", async (t) => {
    const { setTimeout: usual } = globalThis;
    const longest = [];
    t.mock.method(globalThis, "setTimeout", (act, ms, ...given) => {
      longest.push(ms);
      return usual(act, ms, ...given);
    });
    for (const timeoutMs of [2 ** 31, Number.MAX_SAFE_INTEGER]) {
      const fetch = async () => new Response(null, { status: 204 });
      await push(table, { ...influx, fetch, timeoutMs });
    }
    assert.deepEqual(longest, [2 ** 31 - 1, 2 ** 31 - 1]);
  });

  test("ends with the caller's own reason", async () => {
    const controller = new AbortController();
    const fetch = async () => {
      controller.abort(new Error("enough"));
      return new Response(null, { status: 503 });
    };
    const { signal } = controller;
    await assert.rejects(push(table, { ...influx, fetch, signal }), { message: "enough" });
    const onFinished = () => {
      throw new Error("no room");
    };
    const good = async () => new Response(null, { status: 204 });
    await assert.rejects(push(table, { ...influx, fetch: good, onFinished }), {
      message: "no room",
    });
  });

  test("sends datagrams", async (t) => {
    const socket = dgram.createSocket("udp4");
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    t.after(() => socket.close());
    const got = [];
    socket.on("message", (message) => got.push(message));
    const options = { format: "dogstatsd", maxBytes: 300 };
    const url = `udp://127.0.0.1:${socket.address().port}`;
    const pieces = [...exportCounts(table, options)].map((piece) => Buffer.from(piece));
    const slashes = ["", "/", "//"];
    for (const end of slashes) {
      const report = await push(table, { ...options, url: url + end, patienceMs: 0 });
      assert.equal(report.messages, BigInt(pieces.length));
    }
    const all = slashes.flatMap(() => pieces);
    while (got.length < all.length) await once(socket, "message");
    assert.deepEqual(got, all);
  });

  test("counts a datagram that the system refuses as not sent", async () => {
    // The broadcast address needs an option of the socket, which no sender sets; without a network, there is no way to it.
    const options = { format: "dogstatsd", url: "udp://255.255.255.255:9", patienceMs: 0 };
    const error = await rejectionOf(push(table, options));
    assert.match(error.message, /does not permit it|no way to the server/);
    assert.equal(error.report.unsure, 0n);
  });

  test("refuses a datagram that its receiver would cut, or that UDP can't carry", async () => {
    const url = "udp://127.0.0.1:9";
    for (const [length, limit] of [
      [8_000, 8_192],
      [70_000, 65_507],
    ]) {
      const labels = { long: "x".repeat(length) };
      const maxBytes = limit === 8_192 ? undefined : limit;
      const error = await rejectionOf(push(table, { format: "dogstatsd", url, labels, maxBytes }));
      assert.equal(error.code, "unsupported_by_format");
      assert.match(error.message, new RegExp(`the destination reads at most ${limit}`));
    }
  });

  const refused = {
    "no address": [{ url: undefined }, "missing_argument", "url"],
    "an address of no kind": [{ url: "nowhere" }, "invalid_base_address", "url"],
    "headers over plain http to another machine": [
      { url: "http://a.example/", headers: { a: "b" }, allowHttp: false },
      "insecure_base_address",
      "url",
    ],
    "headers of no kind": [{ headers: 5 }, "invalid_argument", "headers"],
    "a format of files": [{ format: "csv" }, "invalid_argument", "format"],
    "a guarantee where none is needed": [
      { guarantee: "at_most_once" },
      "invalid_argument",
      "guarantee",
    ],
    "a misspelt option": [{ patience: 5 }, "unknown_argument", "patience"],
    "no time": [{ timeoutMs: 0 }, "invalid_argument", "timeoutMs"],
    "a fetch of no kind": [{ fetch: 1 }, "invalid_argument", "fetch"],
    "other counts": [{}, "invalid_argument", "counts"],
  };
  for (const [what, [options, code, argument]] of Object.entries(refused)) {
    test(`is refused by name, before anything is sent: ${what}`, async () => {
      const fetch = () => assert.fail("something was sent");
      const counts = what === "other counts" ? [] : table;
      const error = await rejectionOf(push(counts, { fetch, ...influx, ...options }));
      assert.deepEqual([error.code, error.argument], [code, argument]);
    });
  }
});

// Small answers that become gigabytes, over loopback: each ends in an error and in time, holds up nobody, and leaves
// a client that works.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { Client } from "tallyfold";
import { entry, response, window } from "./responses.mjs";
import { watchTurns } from "./turns.mjs";
import { rejectionOf } from "./world.mjs";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");

const DIMENSIONS = ["integration", "reason"];
const [HEAD] = response().split('"counts"');
const of = (integration) => JSON.stringify(entry({ integration, reason: "" }, 1n));

/** Members of gzip, which are one body together. */
function packed(pieces) {
  return Buffer.concat(pieces.map((text) => gzipSync(text, { level: 1 })));
}

/** Many entries, each of a group of its own, whose value has so many bytes. */
function groups(count, bytes) {
  const pieces = [`${HEAD}"counts":[`];
  const padding = "x".repeat(bytes);
  for (let number = 0; number < count; ) {
    let text = "";
    while (number < count && text.length < 1 << 23) text += `${of(number++ + padding)},`;
    pieces.push(text);
  }
  return packed(pieces);
}

/** Objects inside one another, with as many keys as one may have. */
function keys() {
  const pieces = [`${HEAD}"more":`];
  const padding = "k".repeat(60_000);
  for (let depth = 0; depth < 10; depth++) {
    for (let key = 0; key < 999; key += 99) {
      const names = Array.from({ length: 99 }, (_, number) => `"${key + number}${padding}":0`);
      pieces.push(`${key === 0 ? "{" : ","}${names.join()}`);
    }
    pieces.push(',"inner":');
  }
  return packed(pieces);
}

/** One audit log after the other. */
const logs = () => packed(Array(40).fill(`["${"x".repeat(60_000)}",`.repeat(100)));

const TIMEOUT_MS = 2_000;
/** How much later than its time a call may end: a busy machine does not come to it at once. */
const LATER_MS = 5_000;

describe("an answer that becomes gigabytes", () => {
  for (const [what, make, codes, limits] of [
    ["long values", () => groups(9_500, 60_000), ["timed_out", "group_limit"]],
    ["long values", () => groups(1_000, 60_000), ["group_limit"], { tableBytes: 16 << 20 }],
    ["values of a kilobyte", () => groups(500_000, 1_000), ["timed_out", "group_limit"]],
    ["short values", () => groups(1_200_000, 0), ["timed_out", "truncated_body"]],
    ["short values", () => groups(500_000, 0), ["group_limit"], { tableBytes: 16 << 20 }],
    ["long keys", keys, ["key_limit"]],
  ]) {
    const limited = limits ? ", with a lower limit" : "";
    test(`because of ${what}${limited}`, async (t) => {
      const body = make();
      // What ends at a limit may take its time on a busy machine.
      const timeoutMs = codes.includes("timed_out") ? TIMEOUT_MS : 10 * TIMEOUT_MS;
      await attempts(3, async () => {
        const { error, ms, longestMs, rss } = await ask(
          body,
          (client) => client.eventDelivery(query),
          { timeoutMs, ...(limits && { limits }) },
        );
        assert.ok(codes.includes(error.code), String(error));
        if (error.code === "group_limit") assert.match(error.message, /tableBytes/);
        assert.ok(ms < timeoutMs + LATER_MS, `${ms} ms`);
        assert.ok(longestMs < 100, `the loop was held for ${longestMs} ms`);
        const found = `${error.code} after ${ms.toFixed()} ms, longest turn ${longestMs.toFixed()} ms`;
        t.diagnostic(`${body.length} bytes: ${found}, ${(rss / 2 ** 20).toFixed()} MiB resident`);
      });
    });
  }

  test("because of audit logs", async () => {
    const timeoutMs = 10 * TIMEOUT_MS;
    const { error, ms } = await ask(logs(), (client) => client.auditLogs(), { timeoutMs });
    assert.equal(error.code, "depth_limit");
    assert.ok(ms < timeoutMs + LATER_MS);
  });
});

const query = { ...window, dimensions: DIMENSIONS };

/** On a busy machine a test of times may fail though nothing is wrong, but not always. */
async function attempts(most, act) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await act();
    } catch (error) {
      if (attempt === most) throw error;
    }
  }
}

/** What comes of a body, in which time; and then of a good one. */
async function ask(body, call, options) {
  let hostile = true;
  const server = createServer((_, answer) => {
    answer.setHeader("content-type", "application/json");
    if (!hostile) return answer.end(response());
    answer.setHeader("content-encoding", "gzip");
    answer.on("error", () => {});
    return answer.end(body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const client = new Client({
      clusterEndpoint: `http://127.0.0.1:${server.address().port}`,
      baseUrl: `http://127.0.0.1:${server.address().port}`,
      accessToken: () => ({ accessToken: "a-token", expiresIn: 60 }),
      maxRetries: 0,
      ...options,
    });
    const turns = watchTurns();
    const begin = performance.now();
    const error = await rejectionOf(call(client));
    const ms = performance.now() - begin;
    const longestMs = turns();
    gc();
    const { rss } = process.memoryUsage();
    hostile = false;
    assert.equal((await client.eventDelivery(query)).totals.success, 11n);
    return { error, ms, longestMs, rss };
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

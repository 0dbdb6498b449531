// Compressed responses: at most one coding, of those that were asked for.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { Client } from "tallyfold";
import { entry, response } from "./responses.mjs";
import { processorMs, watchTurns } from "./turns.mjs";
import { query, rejectionOf } from "./world.mjs";

const TEXT = response([entry({ integration: "a", reason: "" }, 7n)]);
const PACKED = gzipSync(TEXT);
const BOMB = gzipSync(Buffer.alloc(256 << 20, " "));

test("gzip is asked for and read", async () => {
  const asked = [];
  for (const coding of ["gzip", "x-gzip", "GZip"]) {
    assert.equal(await ask(PACKED, coding, { asked }), 7n);
  }
  assert.equal(await ask(Buffer.from(TEXT), undefined, { asked }), 7n);
  assert.deepEqual(asked, Array(4).fill("gzip"));
});

test("another coding is refused", async () => {
  for (const [bytes, coding] of [
    [gzipSync(PACKED), "gzip, gzip"],
    [gzipSync(PACKED), ["gzip", "gzip"]],
    [deflateSync(TEXT), "deflate"],
    [brotliCompressSync(TEXT), "br"],
    [gzipSync(BOMB), "gzip, gzip"],
    [Buffer.from(TEXT), "unheard-of"],
  ]) {
    const begin = processorMs();
    const error = await rejectionOf(ask(bytes, coding));
    assert.deepEqual([error.code, error.status], ["wrong_content_encoding", 200]);
    assert.ok(processorMs() - begin < 500);
  }
});

test("what is no whole member, or has text behind it, is an error", async () => {
  for (const [bytes, code] of [
    [PACKED.subarray(0, 30), "empty_body"],
    [PACKED.subarray(0, 60), "truncated_body"],
    [Buffer.concat([PACKED, Buffer.from("garbage")]), "network_failed"],
    [Buffer.concat([PACKED, PACKED]), "trailing_bytes"],
    [Buffer.concat([PACKED.subarray(0, -8), Buffer.alloc(8)]), "network_failed"],
    [Buffer.from(TEXT), "network_failed"],
  ]) {
    const error = await rejectionOf(ask(bytes, "gzip"));
    assert.equal(error.code, code);
    // What the host's decoder said.
    if (code === "network_failed") assert.match(error.cause.code, /^Z_[A-Z_]+$/);
    else assert.equal(error.cause, undefined);
  }
});

test("what the host's own decoder ignores does not change a count", async () => {
  // Node's fetch does not tell of these; Python's client refuses them.
  for (const bytes of [
    Buffer.concat([PACKED, Buffer.from("\n")]),
    Buffer.concat([PACKED, Buffer.alloc(4)]),
    Buffer.concat([PACKED, gzipSync(" ")]),
    PACKED.subarray(0, -8),
    PACKED.subarray(0, -1),
  ]) {
    assert.equal(await ask(bytes, "gzip"), 7n);
  }
});

test("a bomb ends at the limit of a body, and in time", async () => {
  for (const [options, code, most] of [
    [{ limits: { bodyBytes: 1 << 20 } }, "body_limit", 500],
    [{ timeoutMs: 50 }, "timed_out", 550],
  ]) {
    const begin = processorMs();
    const turns = watchTurns();
    const error = await rejectionOf(ask(BOMB, "gzip", { options }));
    const longest = turns();
    assert.equal(error.code, code);
    assert.ok(processorMs() - begin < most);
    assert.ok(longest < 100, `held for ${longest} ms`);
  }
});

/** The count that a client reads from these bytes. */
async function ask(bytes, coding, { asked = [], options = {} } = {}) {
  const server = createServer((request, response) => {
    asked.push(request.headers["accept-encoding"]);
    response.setHeader("content-type", "application/json");
    if (coding !== undefined) response.setHeader("content-encoding", coding);
    response.end(bytes);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const client = new Client({
      clusterEndpoint: `http://127.0.0.1:${server.address().port}`,
      accessToken: () => ({ accessToken: "a-token", expiresIn: 60 }),
      maxRetries: 0,
      ...options,
    });
    return (await client.eventDelivery(query)).totals.success;
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

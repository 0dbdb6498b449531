// Bytes that come after a response: no later call may take them for its own answer.

import assert from "node:assert/strict";
import { connect, createServer } from "node:net";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Client, Sandbox } from "tallyfold";
import { serve } from "tallyfold/node";

const QUERY = {
  start: "2026-01-01T00:00:00Z",
  end: "2026-01-01T00:15:00Z",
  dimensions: ["integration"],
};
const OWN = 7n;
const OTHERS = 666n;

const SURPLUS = {
  "one segment": [response(OWN) + response(OTHERS)],
  "one segment, in chunks": [response(OWN, true) + response(OTHERS, true)],
  "half of it later": [response(OWN) + response(OTHERS).slice(0, 40), response(OTHERS).slice(40)],
  "all of it later": [response(OWN), response(OTHERS)],
  "larger than one read": [response(OWN) + response(OTHERS, false, 3000)],
  "behind a large one": [response(OWN, false, 3000) + response(OTHERS)],
  "an early part": [`${response(OWN)}HTTP/1.1 100 Continue\r\n\r\n${response(OTHERS)}`],
};

for (const [name, sends] of Object.entries(SURPLUS)) {
  test(`no call takes what is left over: ${name}`, async () => {
    const { asked, connections } = await ask(sends);
    assert.deepEqual(asked, [OWN, OWN]);
    assert.equal(connections, 2);
  });
}

test("a connection without surplus is kept", async () => {
  const { asked, connections } = await ask([response(OWN)]);
  assert.deepEqual(asked, [OWN, OWN]);
  assert.equal(connections, 1);
});

test("the sandbox server takes no body for a request", async () => {
  const server = await serve(new Sandbox());
  try {
    const socket = connect(server.port, "127.0.0.1");
    const smuggled = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";
    const head = "GET /api/v1/audit-logs HTTP/1.1\r\nhost: a\r\ncontent-length: ";
    socket.write(`${head}${smuggled.length}\r\n\r\n${smuggled}`);
    let got = "";
    socket.on("data", (data) => {
      got += data;
    });
    for (const end = Date.now() + 60_000; !got && Date.now() < end; ) await pause(10);
    // Another response would follow at once.
    await pause(300);
    socket.destroy();
    assert.equal(got.split("HTTP/1.1 ").length, 2, got);
    assert.match(got, /unauthorized/);
  } finally {
    await server.close();
  }
});

/** Two calls after one another, of a server that answers each request with the same bytes. */
async function ask(sends) {
  const sockets = [];
  let note;
  const sent = new Promise((resolve) => {
    note = resolve;
  });
  const server = createServer((socket) => {
    sockets.push(socket.setNoDelay().on("error", () => {}));
    let request = "";
    socket.on("data", async (data) => {
      request += data;
      const headEnd = request.indexOf("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(request)?.[1]);
      if (headEnd < 0 || request.length < headEnd + 4 + length) return;
      request = "";
      for (const [number, bytes] of sends.entries()) {
        if (number > 0) await pause(50);
        if (!socket.destroyed) socket.write(bytes);
      }
      note();
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const client = new Client({
      clusterEndpoint: `http://127.0.0.1:${server.address().port}`,
      accessToken: () => ({ accessToken: "a-token", expiresIn: 60 }),
      maxRetries: 0,
    });
    const first = (await client.eventDelivery(QUERY)).totals.success;
    // The client has everything before the next call, also on a slow machine.
    await sent;
    await pause(150);
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    const second = (await client.eventIngestion(QUERY)).totals.success;
    return { asked: [first, second], connections: sockets.length };
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

/** A response with so many events. */
function response(count, chunked = false, entries = 1) {
  const counts = Array.from({ length: entries }, (_, number) => ({
    success: String(number === 0 ? count : 0),
    errors: "0",
    filtered: "0",
    dimensions: { integration: `number ${number}` },
  }));
  const text = JSON.stringify({
    start: QUERY.start,
    end: QUERY.end,
    totalDelivered: String(count),
    totalErrors: "0",
    totalFiltered: "0",
    counts,
  });
  const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
  if (chunked) {
    const size = text.length.toString(16);
    return `${head}transfer-encoding: chunked\r\n\r\n${size}\r\n${text}\r\n0\r\n\r\n`;
  }
  return `${head}content-length: ${text.length}\r\n\r\n${text}`;
}

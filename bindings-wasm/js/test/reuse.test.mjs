// Connections that are used again after the server has closed them, and servers that stop in the middle.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { Client } from "tallyfold";
import { entry, response } from "./responses.mjs";
import { query } from "./world.mjs";

const BODY = response([entry({ integration: "a", reason: "" }, 7n)]);
const ANSWER = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`;

test("a connection that was closed in between is no failure", async () => {
  await serving(
    (socket, number) => (number === 1 ? socket.write(ANSWER) : socket.end()),
    async (clusterEndpoint) => {
      const attempts = [];
      const onAttempt = (attempt) => attempts.push(attempt);
      const client = clientOf({ clusterEndpoint, maxRetries: 0, onAttempt });
      for (let call = 0; call < 20; call += 1) {
        assert.equal((await client.eventDelivery(query)).totals.success, 7n);
      }
      const failed = attempts.filter((attempt) => attempt.code !== undefined);
      assert.ok(failed.length >= 9, `${failed.length}`);
      assert.ok(failed.every(({ code, waitMs }) => code === "network_failed" && waitMs === 0));
    },
  );
});

test("one that is closed before any answer is", async () => {
  let requests = 0;
  await serving(
    (socket) => {
      requests += 1;
      socket.end();
    },
    async (clusterEndpoint) => {
      const client = clientOf({ clusterEndpoint, maxRetries: 0 });
      await assert.rejects(client.eventDelivery(query), { code: "network_failed" });
    },
  );
  assert.equal(requests, 1);
});

for (const status of [403, 404]) {
  test(`a ${status} whose body hangs is that refusal at the deadline`, async () => {
    await serving(
      (socket) => socket.write(`HTTP/1.1 ${status} No\r\ncontent-length: 9\r\n\r\nno`),
      async (clusterEndpoint) => {
        const client = clientOf({ clusterEndpoint });
        await assert.rejects(client.eventDelivery({ ...query, deadlineMs: 300 }), { status });
      },
    );
  });
}

test("a service that never answers is asked twice, and the error says so", async () => {
  let requests = 0;
  await serving(
    () => {
      requests += 1;
    },
    async (clusterEndpoint) => {
      const client = clientOf({ clusterEndpoint, timeoutMs: 200 });
      await assert.rejects(client.eventDelivery(query), (error) => {
        assert.equal(error.code, "timed_out");
        assert.match(error.message, /no response began in that time/);
        return true;
      });
    },
  );
  assert.equal(requests, 2);
});

function clientOf(options) {
  return new Client({
    accessToken: async () => ({ accessToken: "a-token", expiresIn: 60 }),
    ...options,
  });
}

/** Calls `answer` for each whole request, with its socket and its number there. */
async function serving(answer, use) {
  const sockets = [];
  const server = createServer((socket) => {
    sockets.push(socket.setNoDelay().on("error", () => {}));
    let [request, number] = ["", 0];
    socket.on("data", (data) => {
      request += data;
      const headEnd = request.indexOf("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(request)?.[1]);
      if (headEnd < 0 || request.length < headEnd + 4 + length) return;
      request = "";
      number += 1;
      answer(socket, number);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use(`http://127.0.0.1:${server.address().port}`);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

// What others wrote and a client has to live with: odd fetches, odd bodies, odd sources of tokens.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { Readable } from "node:stream";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { Client, TallyfoldError } from "tallyfold";
import { bytes, response } from "./responses.mjs";
import { clientOf, query, rejectionOf, service } from "./world.mjs";

const json = [["content-type", "application/json"]];
const bad = (name) => () => {
  throw new RangeError(`${name} of others`);
};

describe("a fetch that is not what it should be", () => {
  const locked = () => {
    const it = new Response("{}", { headers: json });
    it.body.getReader();
    return it;
  };
  const odd = {
    "answers nothing": () => undefined,
    "answers null": () => null,
    "has no headers": () => ({ status: 200, body: null }),
    "has headers in an object": () => ({ status: 200, headers: { a: "b" }, body: null }),
    "has no status": () => ({ headers: json }),
    "has a status in text": () => ({ status: "200", headers: json, body: null }),
    "has a status of no kind": () => ({ status: 65736, headers: json, body: null }),
    "reports a network error": () => Response.error(),
    "has a locked body": locked,
    "has no body at all": () => ({ status: 200, headers: json }),
    "has a body of strings": () => ({ status: 200, headers: json, body: Readable.from(["{}"]) }),
    "has a reader of strings": () => ({
      status: 200,
      headers: json,
      body: reader(async () => ({ done: false, value: "{}" })),
    }),
    "has a reader that reads nothing": () => ({ status: 200, headers: json, body: reader() }),
  };
  for (const [what, answer] of Object.entries(odd)) {
    test(`breaks one exchange, for all who wait for it: it ${what}`, async () => {
      let asked = 0;
      const fetch = async () => {
        asked += 1;
        return answer();
      };
      const client = clientOf(service(), { fetch });
      const calls = Array.from({ length: 100 }, () => rejectionOf(client.eventDelivery(query)));
      for (const error of await Promise.all(calls)) {
        assert.ok(TallyfoldError.is(error), String(error));
        assert.equal(error.code, "network_failed");
        assert.doesNotMatch(error.message, /of others/);
      }
      assert.equal(asked, 1);
    });
  }

  const mistaken = {
    "has headers that throw": () => ({ status: 200, headers: { [Symbol.iterator]: bad("it") } }),
    "has a getter that throws": () => Object.defineProperty({}, "status", { get: bad("it") }),
    "has a reader that throws": () => ({ status: 200, headers: json, body: reader(bad("it")) }),
  };
  for (const [what, answer] of Object.entries(mistaken)) {
    test(`has its own error thrown, where that is a mistake: it ${what}`, async () => {
      const client = clientOf(service(), { fetch: async () => answer(), maxRetries: 3 });
      const error = await rejectionOf(client.eventDelivery(query));
      assert.equal(error.message, "it of others");
    });
  }

  const good = {
    "cancels to nothing": () => reader(pieces(), () => undefined),
    "throws when cancelled": () => reader(pieces(), bad("cancel")),
    "is a stream of Node": () => Readable.from([Buffer.from(response())]),
    "is read whole": () => undefined,
  };
  for (const [what, body] of Object.entries(good)) {
    test(`costs no good result: its body ${what}`, async () => {
      const arrayBuffer = async () => bytes(response()).buffer;
      const answer = () => ({ status: 200, headers: json, body: body(), arrayBuffer });
      const table = await withToken({ fetch: async () => answer() }).eventDelivery(query);
      assert.equal(table.totals.success, 11n);
    });
  }

  test("may have headers with nothing but forEach", async () => {
    const headers = { forEach: (each) => each("application/json", "content-type") };
    const arrayBuffer = async () => bytes(response()).buffer;
    const client = withToken({ fetch: async () => ({ status: 200, headers, arrayBuffer }) });
    assert.equal((await client.eventDelivery(query)).totals.success, 11n);
  });

  test("is not read whole where its body comes in pieces", async () => {
    const asked = [];
    const body = (async function* () {
      for (const byte of bytes(response())) yield Uint8Array.of(byte);
    })();
    const arrayBuffer = async () => asked.push("the whole");
    const fetch = async () => ({ status: 200, headers: json, body, arrayBuffer });
    assert.equal((await withToken({ fetch }).eventDelivery(query)).totals.success, 11n);
    assert.deepEqual(asked, []);
  });
});

describe("a body that nobody wants is cancelled", () => {
  const unwanted = {
    "with a 401": { status: 401, headers: json },
    "with a 503": { status: 503, headers: json },
    "with a wrong content type": { status: 200, headers: [["content-type", "text/html"]] },
    "with headers that can't be read": { status: 200, headers: {} },
  };
  for (const [what, head] of Object.entries(unwanted)) {
    test(what, async () => {
      const [body, cancelled] = endless();
      await rejectionOf(withToken({ fetch: async () => ({ ...head, body }) }).eventDelivery(query));
      assert.ok(cancelled());
    });
  }

  test("in the middle, once it is no good", async () => {
    const [body, cancelled] = endless();
    const fetch = async () => ({ status: 200, headers: json, body });
    const error = await rejectionOf(withToken({ fetch }).eventDelivery(query));
    assert.equal(error.code, "wrong_type");
    assert.ok(cancelled());
  });

  test("when it comes too late", async () => {
    const [body, cancelled] = endless();
    const fetch = () => sleep(40, { status: 200, headers: json, body });
    const client = withToken({ fetch, timeoutMs: 5 });
    assert.equal((await rejectionOf(client.eventDelivery(query))).code, "timed_out");
    await sleep(60);
    assert.ok(cancelled());
  });
});

describe("a source of tokens that is not what it should be", () => {
  const get = bad("it");
  const odd = {
    nothing: undefined,
    text: "a-token",
    "no token": { expiresIn: 60 },
    "a number": { accessToken: 5 },
    "a getter that throws": Object.defineProperty({}, "accessToken", { get }),
    "a lifetime of no kind": { accessToken: "a", expiresIn: Object.create(null) },
    "no lifetime at all, but zero": { accessToken: "a", expiresIn: 0 },
    "an empty token": { accessToken: "" },
  };
  for (const [what, token] of Object.entries(odd)) {
    test(`is asked once by a hundred callers: ${what}`, async () => {
      let asked = 0;
      const accessToken = () => {
        asked += 1;
        return token;
      };
      const client = withToken({ accessToken, fetch: service().fetch });
      const calls = Array.from({ length: 100 }, () => rejectionOf(client.eventDelivery(query)));
      for (const error of await Promise.all(calls)) {
        assert.ok(TallyfoldError.is(error), String(error));
        assert.equal(error.kind, "auth");
      }
      assert.equal(asked, 1);
    });
  }

  test("is told what is wrong in the cause", async () => {
    const client = withToken({ accessToken: () => ({ accessToken: 5 }) });
    const { code, cause } = await rejectionOf(client.eventDelivery(query));
    assert.deepEqual([code, cause.argument], ["token_provider_failed", "accessToken"]);
  });
});

test("a body as large as may be is held nowhere", async () => {
  const script = `
    import { Client } from "tallyfold";
    const entry = JSON.stringify({
      success: "1", errors: "0", filtered: "0", dimensions: { reason: "x".repeat(1000) },
    });
    const start = "2026-01-01T00:00:00Z", end = "2026-01-01T00:15:00Z";
    const head = '{"start":"' + start + '","end":"' + end + '","counts":[' + entry;
    const piece = new TextEncoder().encode((',' + entry).repeat(1000));
    const total = '"' + 120_001 + '"';
    const tail = '],"totalDelivered":' + total + ',"totalErrors":"0","totalFiltered":"0"}';
    let most = 0;
    async function* body() {
      yield new TextEncoder().encode(head);
      for (let at = 0; at < 120; at++) {
        yield piece.slice();
        await new Promise((resume) => setImmediate(resume));
        gc();
        most = Math.max(most, process.memoryUsage().arrayBuffers);
      }
      yield new TextEncoder().encode(tail);
    }
    const headers = { "content-type": "application/json" };
    const client = new Client({
      clusterEndpoint: "http://localhost",
      accessToken: () => ({ accessToken: "a" }),
      fetch: async () => new Response(ReadableStream.from(body()), { headers }),
    });
    const query = { start, end, dimensions: ["reason"], groupBy: [] };
    const table = await client.eventDelivery(query);
    console.log(JSON.stringify({ most, sent: piece.length * 120, success: String(table.totals.success) }));
  `;
  const args = ["--expose-gc", "--input-type=module", "--eval", script];
  const cwd = new URL("..", import.meta.url);
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd });
  const { most, sent, success } = JSON.parse(stdout);
  assert.equal(success, "120001");
  assert.ok(sent > 100e6, `${sent}`);
  assert.ok(most < 30e6, `${most} bytes were held of ${sent}`);
});

/** A client that has a token, and tries nothing again. */
function withToken(options) {
  return new Client({
    clusterEndpoint: "http://localhost",
    accessToken: () => ({ accessToken: "a" }),
    maxRetries: 0,
    ...options,
  });
}

/** A body of the web's shape, made by hand. */
function reader(read = () => undefined, cancel = async () => {}) {
  return { getReader: () => ({ read, cancel }) };
}

/** Reads a good body in one piece. */
function pieces() {
  const left = [bytes(response())];
  return async () => ({ done: left.length === 0, value: left.pop() });
}

/** A body that goes on for ever, and whether it was cancelled. */
function endless() {
  let cancelled = false;
  const body = new ReadableStream({
    pull: (controller) => controller.enqueue(bytes("[")),
    cancel: () => {
      cancelled = true;
    },
  });
  return [body, () => cancelled];
}

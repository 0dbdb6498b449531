import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { describe, test } from "node:test";
import { Client } from "tallyfold";
import { serve } from "tallyfold/node";
import { plain, response, window } from "./responses.mjs";
import { clientOf, clocks, query, rejectionOf, service } from "./world.mjs";

describe("a client", () => {
  test("calls both APIs, each with a token of its own", async () => {
    const sandbox = service();
    const client = clientOf(sandbox);
    const table = await client.eventDelivery(query);
    assert.deepEqual(plain(table.totals), { success: 7n, errors: 2n, filtered: 1n });
    assert.deepEqual(table.reconciliation, { verdict: "balanced" });
    assert.equal(table.metric, "event_delivery");
    const ingested = await client.eventIngestion({ ...query, dimensions: ["write_key"] });
    assert.equal(ingested.metric, "event_ingestion");
    assert.equal(ingested.length, 1);
    const logs = await client.auditLogs({ page: 1, perPage: 2 });
    assert.equal(typeof logs, "object");
    assert.deepEqual(sandbox.stats, {
      control_token: 1,
      orchestration_token: 1,
      event_delivery: 1,
      event_ingestion: 1,
      audit_logs: 1,
    });
  });

  test("takes dates, and keeps only what is grouped by", async () => {
    const { start, end } = window;
    const table = await clientOf(service()).eventDelivery({
      start: new Date(start),
      end: new Date(end),
      dimensions: ["integration", "reason"],
      groupBy: ["integration"],
    });
    assert.deepEqual(table.dimensions, ["integration"]);
    assert.equal(table.length, 2);
  });

  test("works over loopback", async (t) => {
    const sandbox = service();
    const server = await serve(sandbox);
    t.after(() => server.close());
    const { url } = server;
    const identity = "the same service";
    const client = clientOf(sandbox, { clusterEndpoint: url, fetch: undefined, identity });
    const table = await client.eventDelivery(query);
    const inProcess = await clientOf(sandbox, { identity }).eventDelivery(query);
    assert.equal(JSON.stringify(table), JSON.stringify(inProcess));
  });

  test("fetches one token for a hundred calls that find theirs expired", async () => {
    const now = clocks();
    const sandbox = service({ tokenLifetime: 600, now });
    const client = clientOf(sandbox, { now });
    await client.eventDelivery(query);
    assert.equal(sandbox.stats.control_token, 1);
    now.pass(601);
    const calls = Array.from({ length: 100 }, () => client.eventDelivery(query));
    const tables = await Promise.all(calls);
    assert.ok(tables.every((table) => table.totals.success === 7n));
    assert.equal(sandbox.stats.control_token, 2);
    assert.equal(sandbox.stats.event_delivery, 101);
  });

  test("fetches one token for a hundred calls whose token was revoked", async () => {
    const sandbox = service();
    const client = clientOf(sandbox);
    await client.eventDelivery(query);
    sandbox.revokeTokens();
    await Promise.all(Array.from({ length: 100 }, () => client.eventDelivery(query)));
    assert.equal(sandbox.stats.control_token, 2);
  });

  for (const network of ["in process", "over loopback"]) {
    test(`fails none of 5,000 calls because tokens are revoked, ${network}`, async (t) => {
      const sandbox = service({ tokenLifetime: 60 });
      const server = await serve(sandbox);
      t.after(() => server.close());
      let good = 0;
      let revocations = 0;
      // Amid many calls, when the next token has just come, and later again.
      const onAttempt = ({ target, code }) => {
        if (code) return;
        if (target !== "token") good += 1;
        const due = [good >= 1_200, target === "token", good >= 3_000][revocations];
        if (!due) return;
        revocations += 1;
        sandbox.revokeTokens();
      };
      const remote = { clusterEndpoint: server.url, fetch: undefined };
      // Five hundred calls at once wait for each other.
      const options = { onAttempt, timeoutMs: 240_000 };
      const client = clientOf(sandbox, { ...options, ...(network === "over loopback" && remote) });
      const codes = {};
      const ten = async () => {
        for (let call = 0; call < 10; call++) {
          const code = await client.eventDelivery(query).then(
            () => "good",
            (error) => error.code,
          );
          codes[code] = (codes[code] ?? 0) + 1;
        }
      };
      await Promise.all(Array.from({ length: 500 }, ten));
      assert.deepEqual([codes, revocations], [{ good: 5_000 }, 3]);
    });
  }

  test("hands the fetching of a token on when its caller gives up", async () => {
    const sandbox = service();
    let asked = 0;
    const hung = deferred();
    const fetch = (url, init) => {
      if (!url.endsWith("/oauth/token") || ++asked > 1) return sandbox.fetch(url, init);
      hung.resolve();
      return new Promise(() => {});
    };
    const client = clientOf(sandbox, { fetch });
    const controller = new AbortController();
    const first = client.eventDelivery({ ...query, signal: controller.signal });
    const others = [client.eventDelivery(query), client.eventDelivery(query)];
    await hung.promise;
    const reason = new Error("enough");
    controller.abort(reason);
    assert.equal(await rejectionOf(first), reason);
    for (const table of await Promise.all(others)) assert.equal(table.totals.success, 7n);
    assert.equal(asked, 2);
  });

  test("rejects with the signal's reason: before, while waiting, and in the body", async () => {
    const sandbox = service();
    const client = clientOf(sandbox);
    const reason = { why: "closed" };
    const before = client.eventDelivery({ ...query, signal: AbortSignal.abort(reason) });
    assert.equal(await rejectionOf(before), reason);
    assert.equal(sandbox.stats.control_token, 0);

    const controller = new AbortController();
    sandbox.inject({ kind: "delay", milliseconds: 60_000, endpoint: "event_delivery" });
    const waiting = client.eventDelivery({ ...query, signal: controller.signal });
    setTimeout(() => controller.abort(reason), 20);
    assert.equal(await rejectionOf(waiting), reason);

    const inBody = new AbortController();
    const slow = slowBody(() => inBody.abort(reason));
    const reading = clientOf(sandbox, { fetch: afterToken(sandbox, () => slow) });
    assert.equal(
      await rejectionOf(reading.eventDelivery({ ...query, signal: inBody.signal })),
      reason,
    );
  });

  test("aborts a hundred calls by one signal, without a warning of a leak", async (t) => {
    const warnings = [];
    const note = (warning) => warnings.push(warning);
    process.on("warning", note);
    t.after(() => process.off("warning", note));
    const sandbox = service();
    const client = clientOf(sandbox);
    const controller = new AbortController();
    const { signal } = controller;
    const call = () => client.eventDelivery({ ...query, signal });
    await Promise.all(Array.from({ length: 100 }, call));
    sandbox.inject({ kind: "delay", milliseconds: 60_000, endpoint: "event_delivery", every: 1 });
    const calls = Array.from({ length: 100 }, () => rejectionOf(call()));
    setTimeout(() => controller.abort("enough"), 20);
    assert.deepEqual(await Promise.all(calls), Array(100).fill("enough"));
    assert.deepEqual(warnings, []);
  });

  test("gives an exchange up when its time is over, the body's included", async () => {
    const sandbox = service();
    sandbox.inject({ kind: "delay", milliseconds: 60_000, endpoint: "event_delivery" });
    const slow = clientOf(sandbox, { timeoutMs: 30 });
    const error = await rejectionOf(slow.eventDelivery(query));
    assert.equal(error.code, "timed_out");
    assert.equal(error.kind, "service");
    // Not even a `fetch` that ignores its signal can make it wait.
    const deaf = clientOf(sandbox, { timeoutMs: 30, fetch: () => new Promise(() => {}) });
    assert.equal((await rejectionOf(deaf.eventDelivery(query))).code, "timed_out");
    const fetch = afterToken(sandbox, () => slowBody(() => {}));
    const stuck = clientOf(sandbox, { timeoutMs: 30, fetch });
    assert.equal((await rejectionOf(stuck.eventDelivery(query))).code, "timed_out");
  });

  test("refuses a body that ends before it is complete, in process and over loopback", async (t) => {
    const sandbox = service();
    const server = await serve(sandbox);
    t.after(() => server.close());
    const remote = { clusterEndpoint: server.url, fetch: undefined };
    for (const options of [{}, remote]) {
      const client = clientOf(sandbox, options);
      for (const bytes of [0, 1, 100]) {
        sandbox.inject({ kind: "truncate", bytes, endpoint: "event_delivery" });
        const error = await rejectionOf(client.eventDelivery(query));
        assert.equal(error.code, "network_failed", `${bytes} bytes: ${error.message}`);
        assert.equal(error.cause?.code, options === remote ? "UND_ERR_SOCKET" : undefined);
      }
      assert.equal((await client.eventDelivery(query)).totals.success, 7n);
    }
  });

  const statuses = [
    [302, "redirected"],
    [400, "unexpected_status"],
    [403, "forbidden"],
    [404, "unexpected_status"],
    [429, "rate_limited"],
    [500, "server_error"],
    [503, "server_error"],
  ];
  for (const [status, code] of statuses) {
    test(`maps status ${status} to ${code}`, async () => {
      const sandbox = service();
      sandbox.inject({ kind: "status", status, endpoint: "event_delivery" });
      const error = await rejectionOf(clientOf(sandbox).eventDelivery(query));
      assert.equal(error.code, code);
      assert.equal(error.status, status);
      assert.equal(error.kind, "service");
    });
  }

  test("follows no redirect, wherever it shows", async (t) => {
    const seen = [];
    const server = createServer((request, answer) => {
      seen.push(request.url);
      answer.writeHead(302, { location: "/elsewhere" }).end();
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    const clusterEndpoint = `http://127.0.0.1:${server.address().port}`;
    const sandbox = service();
    const overNode = clientOf(sandbox, { clusterEndpoint, fetch: undefined });
    assert.equal((await rejectionOf(overNode.eventDelivery(query))).code, "redirected");
    assert.deepEqual(seen, ["/v1.1/oauth/token"]);
    // What a browser shows of a redirect that it did not follow, and what a stack shows that did.
    const shapes = [
      { type: "opaqueredirect", status: 0 },
      { redirected: true, status: 200 },
    ];
    for (const shape of shapes) {
      const fetch = async () => ({ headers: [], body: null, ...shape });
      const error = await rejectionOf(clientOf(sandbox, { fetch }).eventDelivery(query));
      assert.equal(error.code, "redirected");
    }
  });

  for (const [what, heads, works] of [
    ["103", ["103 Early Hints"], true],
    ["102 and 103", ["102 Processing", "103 Early Hints"], true],
    // Node's fetch ends the exchange at a 100 that the request did not ask for ("bad response"), where RFC 9110
    // (15.2) wants it to be skipped. It shows nothing that could be read on, so all that is left is a retry.
    ["100", ["100 Continue"], false],
    ["103 and 100", ["103 Early Hints", "100 Continue"], false],
  ]) {
    test(`${works ? "skips" : "takes for a broken exchange"} a ${what} before the response`, async (t) => {
      const body = JSON.stringify([1]);
      const lines = [...heads.map((head) => `HTTP/1.1 ${head}\r\n\r\n`), "HTTP/1.1 200 OK\r\n"];
      const answer = `${lines.join("")}content-length: ${body.length}\r\n\r\n${body}`;
      const server = createTcpServer((socket) => {
        socket.on("error", () => {});
        socket.on("data", () => socket.write(answer));
      });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      t.after(() => server.close());
      const client = (options) =>
        new Client({
          baseUrl: `http://127.0.0.1:${server.address().port}`,
          accessToken: () => ({ accessToken: "a-token" }),
          maxRetries: 0,
          ...options,
        });
      const outcome = await client()
        .auditLogs()
        .catch((error) => error.code);
      assert.deepEqual(outcome, works ? [1] : "network_failed");
      // A fetch over node:http skips them all.
      assert.deepEqual(await client({ fetch: fetchOverHttp }).auditLogs(), [1]);
    });
  }

  test("asks for no cache, no cookies and no redirect", async () => {
    const sandbox = service();
    const inits = [];
    const fetch = (url, init) => {
      inits.push(init);
      return sandbox.fetch(url, init);
    };
    await clientOf(sandbox, { fetch }).eventDelivery(query);
    assert.equal(inits.length, 2);
    for (const { cache, credentials, redirect, signal } of inits) {
      assert.deepEqual(
        { cache, credentials, redirect },
        { cache: "no-store", credentials: "omit", redirect: "manual" },
      );
      assert.ok(signal instanceof AbortSignal);
    }
  });

  test("works with a fetch whose responses have no stream", async () => {
    const sandbox = service();
    const fetch = async (url, init) => {
      const { status, headers, ...rest } = await sandbox.fetch(url, init).then(async (it) => ({
        status: it.status,
        headers: it.headers,
        whole: await it.arrayBuffer(),
      }));
      return { status, headers, arrayBuffer: async () => rest.whole };
    };
    assert.equal((await clientOf(sandbox, { fetch }).eventDelivery(query)).totals.success, 7n);
  });

  test("says what broke on the network in one word, and nothing else", async () => {
    const sandbox = service();
    const client = clientOf(sandbox, { clusterEndpoint: "http://127.0.0.1:1", fetch: undefined });
    const error = await rejectionOf(client.eventDelivery(query));
    assert.equal(error.code, "network_failed");
    assert.match(error.message, /ECONNREFUSED|TypeError/);
    const throws = () => {
      throw new DOMException("before it even began", "NetworkError");
    };
    const broken = await rejectionOf(clientOf(sandbox, { fetch: throws }).eventDelivery(query));
    assert.equal(broken.code, "network_failed");
    assert.match(broken.message, /NetworkError/);
    assert.equal(broken.cause, undefined);
    assert.doesNotMatch(broken.message, /even/);
  });

  test("uses the host's fetch of the moment", async () => {
    const sandbox = service();
    const client = clientOf(sandbox, { fetch: undefined });
    const original = globalThis.fetch;
    globalThis.fetch = sandbox.fetch;
    try {
      assert.equal((await client.eventDelivery(query)).totals.success, 7n);
    } finally {
      globalThis.fetch = original;
    }
  });
});

describe("a client's own source of tokens", () => {
  test("is asked per API, and again when a token is refused", async () => {
    const sandbox = service();
    const asked = [];
    const accessToken = async (api) => {
      asked.push(api);
      return { accessToken: await tokenOf(sandbox, api), expiresIn: 86400 };
    };
    const client = withTokens(sandbox, accessToken);
    await client.eventDelivery(query);
    await client.auditLogs();
    sandbox.revokeTokens();
    await client.eventDelivery(query);
    assert.deepEqual(asked, ["control", "orchestration", "control"]);
  });

  test("may fail: its error is the cause", async () => {
    const cause = new Error("the vault is closed");
    const client = withTokens(service(), () => {
      throw cause;
    });
    const error = await rejectionOf(client.eventDelivery(query));
    assert.equal(error.code, "token_provider_failed");
    assert.equal(error.kind, "auth");
    assert.equal(error.cause, cause);
    assert.ok(!Object.keys(error).includes("cause"));
  });

  test("may hang: the call does not", async () => {
    const client = withTokens(service(), () => new Promise(() => {}), { timeoutMs: 20 });
    const error = await rejectionOf(client.eventDelivery(query));
    assert.equal(error.code, "token_provider_failed");
    assert.equal(error.cause.name, "TimeoutError");
  });

  test("may give something else: the error tells what it should give", async () => {
    const error = await rejectionOf(withTokens(service(), () => "canary").eventDelivery(query));
    assert.equal(error.code, "token_provider_failed");
    assert.match(error.message, /failed: .*want \{ accessToken, expiresIn \}/);
    assert.doesNotMatch(`${error.stack} ${error.cause.stack}`, /canary/);
    const thrown = withTokens(service(), () => {
      throw new Error("canary");
    });
    assert.doesNotMatch((await rejectionOf(thrown.eventDelivery(query))).message, /canary/);
  });

  const useless = [
    ["nothing", undefined, "token_provider_failed"],
    ["text", "a-token", "token_provider_failed"],
    ["no token", { expiresIn: 60 }, "token_provider_failed"],
    ["an empty token", { accessToken: "", expiresIn: 60 }, "invalid_token_response"],
    ["a number", { accessToken: 5 }, "token_provider_failed"],
    ["a lifetime of 0", { accessToken: "a", expiresIn: 0 }, "invalid_token_lifetime"],
    ["a negative lifetime", { accessToken: "a", expiresIn: -5 }, "invalid_token_lifetime"],
    ["no number of seconds", { accessToken: "a", expiresIn: Number.NaN }, "invalid_token_lifetime"],
  ];
  for (const [what, answer, code] of useless) {
    test(`may give what is of no use: ${what}`, async () => {
      const error = await rejectionOf(withTokens(service(), () => answer).eventDelivery(query));
      assert.equal(error.code, code, error.message);
    });
  }

  test("gives up after a token that was just given is refused", async () => {
    const client = withTokens(service(), () => ({ accessToken: "not-one-of-theirs" }));
    const error = await rejectionOf(client.eventDelivery(query));
    assert.equal(error.code, "token_rejected");
    assert.equal(error.status, 401);
  });
});

function withTokens(sandbox, accessToken, options) {
  return new Client({
    clusterEndpoint: "http://localhost",
    baseUrl: "http://localhost",
    fetch: sandbox.fetch,
    accessToken,
    ...options,
  });
}

async function tokenOf(sandbox, api) {
  const { clientId, clientSecret, controlAudience, orchestrationAudience } = sandbox.credentials;
  const isControl = api === "control";
  const request = {
    ...(isControl ? {} : { grant_type: "client_credentials" }),
    client_id: clientId,
    client_secret: clientSecret,
    audience: isControl ? controlAudience : orchestrationAudience,
  };
  const url = `http://localhost${isControl ? "/v1.1" : ""}/oauth/token`;
  const headers = { "content-type": "application/json" };
  const answer = await sandbox.fetch(url, {
    method: "POST",
    headers,
    body: JSON.stringify(request),
  });
  return (await answer.json()).access_token;
}

/** A fetch that gets tokens from the sandbox and everything else from `then`. */
function afterToken(sandbox, then) {
  return (url, init) => (url.endsWith("/oauth/token") ? sandbox.fetch(url, init) : then());
}

/** A response that begins well, calls `begun`, and never ends. */
function slowBody(begun) {
  const start = new TextEncoder().encode(response().slice(0, 50));
  const body = new ReadableStream({
    pull(controller) {
      controller.enqueue(start);
      setTimeout(begun, 5);
      return new Promise(() => {});
    },
  });
  return new Response(body, { headers: { "content-type": "application/json" } });
}

function deferred() {
  const it = {};
  it.promise = new Promise((resolve) => {
    it.resolve = resolve;
  });
  return it;
}

/** A `fetch` of a few lines, which does not share the limits of Node's own. */
async function fetchOverHttp(url, { method, headers, body, signal }) {
  const sent = request(url, { method, headers: Object.fromEntries(headers), signal, agent: false });
  sent.end(body);
  const [response] = await once(sent, "response");
  const pairs = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
  return { status: response.statusCode, headers: pairs, body: response };
}

// Clients from the environment, headers of the caller, and calls that end at their deadline.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import { promisify } from "node:util";
import { Client, Sandbox, version } from "tallyfold";
import { serve } from "tallyfold/node";
import { ProxyAgent, fetch as undiciFetch } from "undici";
import { clientOf, query, rejectionOf, service } from "./world.mjs";

const thrownBy = (act) => {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
};

describe("a client from the environment", () => {
  const sandbox = service();
  const { clientId, clientSecret, controlAudience, orchestrationAudience } = sandbox.credentials;
  const env = {
    TALLYFOLD_CLUSTER_ENDPOINT: "http://localhost",
    TALLYFOLD_BASE_URL: "http://localhost",
    TALLYFOLD_AUTH_URL: "http://localhost",
    TALLYFOLD_CLIENT_ID: clientId,
    TALLYFOLD_CLIENT_SECRET: clientSecret,
    TALLYFOLD_CONTROL_AUDIENCE: controlAudience,
    TALLYFOLD_ORCHESTRATION_AUDIENCE: orchestrationAudience,
  };

  test("finds everything there", async () => {
    const client = Client.fromEnv({ env, fetch: sandbox.fetch });
    assert.equal((await client.eventDelivery(query)).totals.success, 7n);
    await client.auditLogs();
  });

  test("reads process.env, and arguments are used in place of variables", async (t) => {
    t.after(() => {
      for (const name of Object.keys(env)) delete process.env[name];
    });
    Object.assign(process.env, env, { TALLYFOLD_CLIENT_ID: "another" });
    const client = Client.fromEnv({ clientId, fetch: sandbox.fetch, maxRetries: 0 });
    await client.eventDelivery(query);
    const other = Client.fromEnv({ fetch: sandbox.fetch, maxRetries: 0 });
    assert.equal((await rejectionOf(other.eventDelivery(query))).code, "token_refused");
    assert.equal(thrownBy(() => Client.fromEnv({ timeoutMs: -1 })).argument, "timeoutMs");
  });

  test("takes a source of tokens in place of the secret", () => {
    const { TALLYFOLD_CLUSTER_ENDPOINT, TALLYFOLD_CLIENT_SECRET } = env;
    const accessToken = () => ({ accessToken: "token" });
    Client.fromEnv({ env: { TALLYFOLD_CLUSTER_ENDPOINT, TALLYFOLD_CLIENT_SECRET }, accessToken });
  });

  test("names all that is missing at once, and no value", () => {
    const some = { TALLYFOLD_CLIENT_ID: "me", TALLYFOLD_CLIENT_SECRET: "" };
    const { code, message } = thrownBy(() => Client.fromEnv({ env: some }));
    assert.equal(code, "missing_argument");
    assert.equal(
      message,
      "missing_argument: clusterEndpoint: not set in the environment, or empty: " +
        "TALLYFOLD_CLUSTER_ENDPOINT, TALLYFOLD_CLIENT_SECRET, TALLYFOLD_CONTROL_AUDIENCE",
    );
    const { TALLYFOLD_CLIENT_SECRET: secret, ...rest } = env;
    const slip = { ...rest, TALLYFOLD_CLIENT_SECRT: secret };
    const error = thrownBy(() => Client.fromEnv({ env: slip }));
    assert.match(
      error.message,
      /empty: TALLYFOLD_CLIENT_SECRET; these are set, but unknown: TALLYFOLD_CLIENT_SECRT$/,
    );
    assert.ok(!error.message.includes(secret));
  });

  test("names a variable that can't be used", () => {
    for (const [name, value, text] of [
      ["clientSecret", "hunter2\n", "this ends with a line break; was it read from a file?"],
      ["clientId", " me", "this begins or ends with white space"],
      ["clusterEndpoint", "ftp://cluster.example", ""],
    ]) {
      const variable = `TALLYFOLD_${name.replace(/[A-Z]/g, "_$&").toUpperCase()}`;
      const error = thrownBy(() => Client.fromEnv({ env: { ...env, [variable]: value } }));
      const { code, argument, kind, message } = error;
      assert.deepEqual([argument, kind], [name, "config"]);
      assert.ok(message.startsWith(`${code}: ${variable}: ${text}`));
      assert.ok(error.stack.startsWith(`TallyfoldError: ${message}`));
      assert.ok(!message.includes("hunter2"));
      // A value that the caller has passed isn't that of the variable.
      const passed = thrownBy(() => Client.fromEnv({ env, [name]: value }));
      assert.ok(passed.message.startsWith(`${code}: ${name}: ${text}`));
    }
  });
});

describe("headers of the caller", () => {
  test("go with every request, beside a user agent", async () => {
    const seen = [];
    const sandbox = service();
    const fetch = (url, init) => {
      seen.push(new Headers(init.headers));
      return sandbox.fetch(url, init);
    };
    const agent = `tallyfold/${version()} javascript`;
    for (const headers of [{ "X-Api-Key": "k" }, new Headers({ "x-api-key": "k" })]) {
      await clientOf(sandbox, { fetch, headers }).eventDelivery(query);
    }
    await clientOf(sandbox, { fetch, headers: [["User-Agent", "mine"]] }).eventDelivery(query);
    assert.deepEqual(
      seen.map((of) => [of.get("x-api-key"), of.get("user-agent")]),
      [...Array(4).fill(["k", agent]), [null, "mine"], [null, "mine"]],
    );
  });

  test("that can't be given are refused, and not quoted", () => {
    const wrong = [
      { Authorization: "hidden" },
      { "content-length": "hidden" },
      { x: "hidden\n" },
      { x: 5 },
      ["hidden"],
      "hidden",
    ];
    for (const headers of wrong) {
      const error = thrownBy(() => clientOf(service(), { headers }));
      assert.equal(error.argument, "headers");
      assert.ok(!error.message.includes("hidden"), error.message);
    }
  });
});

describe("a deadline", () => {
  const late = async (promise, ms) => {
    const begin = performance.now();
    const error = await rejectionOf(promise);
    const took = performance.now() - begin;
    assert.ok(took > ms * 0.95 && took < ms + 5000, `${took} ms`);
    assert.equal(error.code, "deadline_exceeded", error.message);
    assert.match(error.message, /took longer than its deadline/);
    return error;
  };

  for (const [name, fault] of [
    ["a wait", { kind: "status", status: 503, retryAfter: "30", every: 1 }],
    ["a token request", { kind: "delay", milliseconds: 30_000, every: 1 }],
    ["a request", { kind: "delay", milliseconds: 30_000, endpoint: "event_delivery" }],
  ]) {
    test(`cuts ${name}`, async () => {
      const sandbox = service();
      sandbox.inject(fault);
      const client = clientOf(sandbox, { maxRetries: 3 });
      await late(client.eventDelivery({ ...query, deadlineMs: 200 }), 200);
    });
  }

  test("cuts a source of tokens, and the wait for the token of another call", async () => {
    const options = { clientId: null, clientSecret: null, controlAudience: null };
    const accessToken = () => new Promise(() => {});
    const client = clientOf(service(), { ...options, accessToken });
    await Promise.all([
      late(client.eventDelivery({ ...query, deadlineMs: 400 }), 400),
      late(client.eventDelivery({ ...query, deadlineMs: 200 }), 200),
    ]);
  });

  test("may be longer than a timer", async (t) => {
    const { setTimeout: usual } = globalThis;
    const waits = [];
    t.mock.method(globalThis, "setTimeout", (act, ms, ...given) => {
      waits.push(ms);
      return usual(act, ms, ...given);
    });
    const client = clientOf(service(), { timeoutMs: Number.POSITIVE_INFINITY });
    // The second call waits for the token of the first.
    const both = [1, 2].map(() => client.eventDelivery({ ...query, deadlineMs: 30 * 86_400_000 }));
    await Promise.all(both);
    assert.ok(waits.length > 2);
    assert.deepEqual([...new Set(waits)], [2 ** 31 - 1]);
  });

  test("ends a collect with what was read", async () => {
    const sandbox = new Sandbox({ seed: 1 });
    const stored = new Map();
    const checkpoint = {
      load: (name) => stored.get(name),
      save: (name, json) => stored.set(name, json),
    };
    const range = { ...query, metric: "event_delivery", concurrency: 1, checkpoint };
    const day = { ...range, start: "2026-01-01T00:00:00Z", end: "2026-01-01T02:00:00Z" };
    const onProgress = ({ done }) => {
      const fault = { kind: "status", status: 503, every: 1, endpoint: "event_delivery" };
      if (done === 3) sandbox.inject(fault);
    };
    const collect = clientOf(sandbox).collect({ ...day, onProgress, deadlineMs: 1_000 });
    const error = await late(collect, 1_000);
    assert.equal(error.partial.windows.length, 3);
    const other = new Sandbox({ seed: 1 });
    const table = await clientOf(other).collect(day);
    assert.equal(table.windows.length, 8);
    assert.equal(other.stats.event_delivery, 5);
  });
});

describe("a proxy and an own authority", () => {
  test("by the dispatcher of undici", async (t) => {
    const home = await mkdtemp(join(tmpdir(), "tallyfold-keys-"));
    t.after(() => rm(home, { recursive: true }));
    const [key, cert] = [join(home, "key.pem"), join(home, "ca.pem")];
    const command =
      "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=tests " +
      "-addext subjectAltName=DNS:cluster.example";
    const files = ["-keyout", key, "-out", cert];
    await promisify(execFile)("openssl", [...command.split(" "), ...files]);
    const ca = await readFile(cert, "utf8");

    const sandbox = service();
    const plain = await serve(sandbox);
    t.after(() => plain.close());
    const pass = (socket, port) => {
      const other = connect(port, "127.0.0.1");
      for (const end of [socket, other]) end.on("error", () => {});
      socket.pipe(other).pipe(socket);
    };
    const pem = { key: await readFile(key), cert: ca };
    const secure = createTlsServer(pem, (socket) => pass(socket, plain.port));
    const heads = [];
    const proxy = createServer((socket) => {
      socket.once("data", (data) => {
        heads.push(String(data));
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        pass(socket, secure.address().port);
      });
    });
    for (const server of [secure, proxy]) {
      await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
      t.after(() => server.close());
    }

    const uri = `http://127.0.0.1:${proxy.address().port}`;
    const dispatcher = new ProxyAgent({ uri, requestTls: { ca }, token: "Basic bWU6cHc=" });
    t.after(() => dispatcher.destroy());
    const client = clientOf(sandbox, {
      clusterEndpoint: "https://cluster.example",
      fetch: (url, init) => undiciFetch(url, { ...init, dispatcher }),
    });
    assert.equal((await client.eventDelivery(query)).totals.success, 7n);
    assert.ok(heads.length > 0);
    for (const head of heads) {
      assert.match(head, /^CONNECT cluster\.example:443 .*proxy-authorization: Basic bWU6cHc=/is);
    }
  });
});

// What an error says of the way to the service, what it is caused by, and what a refusal quotes.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import { Client, TallyfoldError } from "tallyfold";
import { query, rejectionOf } from "./world.mjs";

const token = "canary-access-token";

/** The error of a call without retries, unless options say otherwise. */
async function errorAt(clusterEndpoint, options) {
  const client = new Client({
    clusterEndpoint,
    accessToken: () => ({ accessToken: token }),
    maxRetries: 0,
    ...options,
  });
  const error = await rejectionOf(client.eventDelivery(query));
  if (TallyfoldError.is(error))
    assert.doesNotMatch(`${error.stack} ${error.cause?.stack}`, /canary/);
  return error;
}

async function listening(t, server) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return server.address().port;
}

/** Serves connections by hand, once a whole request has arrived. */
async function loopback(t, serve) {
  const server = createServer((socket) => {
    t.after(() => socket.destroy());
    socket.on("error", () => {});
    let request = "";
    socket.on("data", (piece) => {
      request += piece;
      if (request.endsWith("}")) serve(socket);
    });
  });
  return `http://127.0.0.1:${await listening(t, server)}`;
}

describe("network_failed says what happened", () => {
  test("a name that is not found", async () => {
    const error = await errorAt("https://nowhere.invalid");
    assert.equal(error.code, "network_failed");
    assert.match(error.message, /the server's name was not found.*nowhere\.invalid/);
    assert.match(error.cause.code, /^(ENOTFOUND|EAI_AGAIN)$/);
  });

  for (const host of ["127.0.0.1", "localhost"]) {
    test(`a closed port of ${host}`, async (t) => {
      const server = createServer();
      const port = await listening(t, server);
      server.close();
      await once(server, "close");
      const error = await errorAt(`http://${host}:${port}`);
      assert.equal(error.code, "network_failed");
      assert.match(error.message, /refused the connection/);
      assert.ok(error.message.includes(`${host}:${port}`));
      assert.equal(error.cause.code, "ECONNREFUSED");
    });
  }

  test("also if a header of the caller is empty", async () => {
    const error = await errorAt("https://localhost:1", { headers: { "x-trace": "" } });
    assert.match(error.cause.message, /bad port/);
  });

  test("a port that fetch refuses", async () => {
    const error = await errorAt("https://localhost:1");
    assert.equal(error.code, "network_failed");
    assert.match(error.cause.message, /bad port/);
  });

  for (const end of ["resetAndDestroy", "destroy"]) {
    test(`a connection that ends too early: ${end}`, async (t) => {
      const error = await errorAt(await loopback(t, (socket) => socket[end]()));
      assert.equal(error.code, "network_failed");
      assert.match(error.message, /before the response was complete/);
      assert.match(error.cause.code, /^(ECONNRESET|UND_ERR_SOCKET)$/);
    });
  }

  test("a certificate that is refused, with the reason and once", async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "tallyfold-"));
    t.after(() => rm(folder, { recursive: true }));
    const [keyPath, path] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
    const options = ["-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"];
    const names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", keyPath, "-out", path];
    const args = ["req", "-x509", "-newkey", "rsa:2048", ...options, ...names];
    execFileSync("openssl", args, { stdio: "ignore" });
    const [key, cert] = await Promise.all([readFile(keyPath), readFile(path)]);
    let connections = 0;
    const server = createTlsServer({ key, cert }).on("connection", () => {
      connections += 1;
    });
    const port = await listening(t, server);
    const error = await errorAt(`https://127.0.0.1:${port}`, { maxRetries: 3 });
    assert.equal(error.code, "network_failed");
    assert.match(error.message, /the server's certificate is refused: it is self-signed/);
    assert.equal(error.cause.code, "DEPTH_ZERO_SELF_SIGNED_CERT");
    assert.equal(connections, 1);

    const accessToken = () => ({ accessToken: token });
    const client = new Client({ clusterEndpoint: `https://127.0.0.1:${port}`, accessToken });
    const day = { start: "2026-01-01T00:00:00Z", end: "2026-01-02T00:00:00Z" };
    const all = { metric: "event_delivery", ...day, dimensions: ["reason"], concurrency: 1 };
    const failed = await rejectionOf(client.collect(all));
    assert.equal(connections, 2);
    assert.match(
      failed.message,
      /: 1 of 96 windows failed; first: \[2026-01-01T00:00:00Z, .*; none was read/,
    );
    assert.equal(failed.cause.code, "DEPTH_ZERO_SELF_SIGNED_CERT");
  });

  test("a host without fetch", async (t) => {
    const usual = globalThis.fetch;
    t.after(() => {
      globalThis.fetch = usual;
    });
    globalThis.fetch = undefined;
    const error = await errorAt("https://cluster.example", { maxRetries: 3 });
    assert.equal(error.code, "network_failed");
    assert.match(error.message, /this runtime has no fetch: pass one as `fetch`/);
  });
});

describe("a mistake in the caller's fetch is thrown as it is, and at once", () => {
  const mistakes = {
    TypeError: () => undefined.url,
    ReferenceError: () => nothingOfTheName,
    RangeError: () => "x".repeat(-1),
  };
  for (const [name, make] of Object.entries(mistakes)) {
    test(name, async () => {
      let asked = 0;
      const fetch = async () => {
        asked += 1;
        make();
      };
      const error = await errorAt("https://cluster.example", { fetch, maxRetries: 3 });
      assert.equal(error.name, name);
      assert.match(error.stack, /network\.test\.mjs/);
      assert.equal(asked, 1);
    });
  }

  test("also in the host's own fetch", async (t) => {
    let asked = 0;
    t.mock.method(globalThis, "fetch", async () => {
      asked += 1;
      return undefined.url;
    });
    const error = await errorAt("https://cluster.example", { maxRetries: 3 });
    assert.equal(error.name, "TypeError");
    assert.equal(asked, 1);
  });

  test("but what the host's fetch throws inside of it is a failure of the network", async () => {
    let asked = 0;
    const fetch = (url, init) => {
      asked += 1;
      return globalThis.fetch(url, init);
    };
    const options = { fetch, maxRetries: 1, longestRetryWaitMs: 1 };
    const error = await errorAt("http://127.0.0.1:1", options);
    assert.equal(error.code, "network_failed");
    assert.equal(asked, 2);
  });

  for (const message of ["Failed to fetch", "Load failed", "network error"]) {
    test(`and so is what a browser says: ${message}`, async () => {
      const fetch = () => Promise.reject(new TypeError(message));
      assert.equal((await errorAt("https://cluster.example", { fetch })).code, "network_failed");
    });
  }
});

describe("a refusal quotes its body", () => {
  const head = "HTTP/1.1 400 Bad Request\r\n";

  test("with the token masked", async (t) => {
    const said = `window longer than 24h, ${token}`;
    const answer = `${head}content-length: ${said.length}\r\n\r\n${said}`;
    const error = await errorAt(await loopback(t, (socket) => socket.write(answer)));
    assert.deepEqual([error.code, error.status], ["unexpected_status", 400]);
    assert.equal(error.excerpt, "window longer than 24h, ***");
    assert.match(error.message, /400: window longer than 24h/);
  });

  for (const stalls of [true, false]) {
    test(`and does not wait for it: it ${stalls ? "stalls" : "breaks off"}`, async (t) => {
      const begin = performance.now();
      const address = await loopback(t, (socket) => {
        const what = `${head}content-length: 1000\r\n\r\nwindow longer`;
        socket.write(what, () => stalls || setTimeout(() => socket.destroy(), 50));
      });
      const error = await errorAt(address);
      assert.ok(performance.now() - begin < 10_000);
      assert.deepEqual([error.code, error.status], ["unexpected_status", 400]);
      assert.equal(error.excerpt, "window longer");
      assert.equal(error.cause, undefined);
    });
  }

  test("and does not wait for it: another success than 200", async (t) => {
    const begin = performance.now();
    const head = "HTTP/1.1 202 Accepted\r\ncontent-length: 1000\r\n\r\n";
    const error = await errorAt(await loopback(t, (socket) => socket.write(`${head}later`)));
    assert.ok(performance.now() - begin < 10_000);
    assert.deepEqual(
      [error.code, error.status, error.excerpt],
      ["unexpected_status", 202, "later"],
    );
  });

  test("and reads it up to a bound", async (t) => {
    let sent = 0;
    const address = await loopback(t, (socket) => {
      socket.write(`${head}\r\n`);
      const more = () => {
        while (!socket.destroyed && socket.write("no ".repeat(1000))) sent += 3000;
      };
      socket.on("drain", more);
      more();
    });
    const error = await errorAt(address);
    assert.equal(error.excerpt.length, 201);
    assert.ok(sent < 50e6);
  });

  test("but never that of a token endpoint", async (t) => {
    const answer = `${head}content-length: 8\r\n\r\ngo away!`;
    const address = await loopback(t, (socket) => socket.write(answer));
    const clientSecret = "canary-secret";
    const own = {
      clientId: "id",
      clientSecret,
      controlAudience: "control",
      accessToken: undefined,
    };
    const error = await errorAt(address, own);
    assert.deepEqual([error.code, error.excerpt], ["token_refused", undefined]);
    assert.doesNotMatch(error.message, /go away/);
  });
});

describe("a proxy of the environment", () => {
  // As Node does it with NODE_USE_ENV_PROXY=1.
  for (const [what, variable] of [
    ["http", "HTTP_PROXY"],
    ["https", "HTTPS_PROXY"],
  ]) {
    test(`gets nothing for this machine: ${what}`, async (t) => {
      const seen = [];
      const proxy = createServer((socket) => {
        socket.on("error", () => {});
        socket.on("data", (piece) => {
          seen.push(String(piece).split("\r\n", 1)[0]);
          socket.end("HTTP/1.1 502 No\r\ncontent-length: 0\r\n\r\n");
        });
      });
      const at = `http://127.0.0.1:${await listening(t, proxy)}`;
      const undici = await import("undici");
      const usual = undici.getGlobalDispatcher();
      t.after(() => {
        delete process.env[variable];
        undici.setGlobalDispatcher(usual);
      });
      process.env[variable] = at;
      undici.setGlobalDispatcher(new undici.EnvHttpProxyAgent());
      const direct = createServer((socket) => {
        socket.on("error", () => {});
        socket.end("HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n");
      });
      const here = `${what}://127.0.0.1:${await listening(t, direct)}`;
      for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"]) {
        await errorAt(here.replace("127.0.0.1", host), { dangerouslyAllowHttp: true });
      }
      assert.deepEqual(seen, []);
      const other = `${what}://cluster.example`;
      await errorAt(other, { dangerouslyAllowHttp: true });
      assert.equal(seen.length, 1, "other hosts are reached through it");
    });
  }
});

/** The options with which the host's own `fetch` is called, as in a runtime that has these globals. */
async function optionsIn(t, globals, clusterEndpoint) {
  t.after(() => {
    for (const name of Object.keys(globals)) delete globalThis[name];
  });
  Object.assign(globalThis, globals);
  const called = [];
  t.mock.method(globalThis, "fetch", async (_url, options) => {
    called.push(options);
    throw new TypeError("fetch failed");
  });
  const error = await errorAt(clusterEndpoint, { dangerouslyAllowHttp: true });
  return { called, error };
}

describe("a proxy of the environment, in other runtimes", () => {
  for (const host of ["127.0.0.1", "localhost", "[::1]"]) {
    test(`Bun's gets nothing for this machine: ${host}`, async (t) => {
      const { called } = await optionsIn(t, { Bun: {} }, `http://${host}:8080`);
      assert.deepEqual(
        called.map(({ proxy }) => proxy),
        [false],
      );
    });
  }

  test("Bun's is used for other hosts", async (t) => {
    const { called } = await optionsIn(t, { Bun: {} }, "http://cluster.example");
    assert.equal("proxy" in called[0], false);
  });

  /** Deno with environment variables, which the program may read unless `state` says otherwise. */
  function deno(variables, state = "granted") {
    const permissions = { querySync: () => ({ state }) };
    const get = (name) => {
      assert.equal(state, "granted", "a prompt");
      return variables[name];
    };
    return { Deno: { env: { get }, permissions } };
  }
  const proxy = "http://proxy.example:3128";

  for (const [host, listed, variables] of [
    ["127.0.0.1", "127.0.0.1", { HTTP_PROXY: proxy }],
    ["localhost", "localhost", { http_proxy: proxy, NO_PROXY: "127.0.0.1" }],
    ["[::1]", "::1", { ALL_PROXY: proxy, NO_PROXY: "", no_proxy: "::1" }],
    ["127.0.0.1", "127.0.0.1", { all_proxy: proxy, NO_PROXY: "*" }],
  ]) {
    test(`Deno's must not get anything for this machine: ${JSON.stringify(variables)}`, async (t) => {
      const { called, error } = await optionsIn(t, deno(variables), `http://${host}:8080`);
      assert.deepEqual([called, error.code], [[], "insecure_base_address"]);
      assert.match(error.message, new RegExp(`add ${listed} to NO_PROXY`));
    });
  }

  for (const [what, variables, address, state] of [
    ["no proxy", {}, "http://localhost:8080"],
    ["an exception", { HTTP_PROXY: proxy, NO_PROXY: "a, 127.0.0.1 ,b" }, "http://127.0.0.1:8080"],
    ["an exception", { HTTP_PROXY: proxy, no_proxy: "::1" }, "http://[::1]:8080"],
    ["TLS", { HTTP_PROXY: proxy, ALL_PROXY: proxy }, "https://localhost:8080"],
    ["another host", { HTTP_PROXY: proxy }, "http://cluster.example"],
    ["no permission", { HTTP_PROXY: proxy }, "http://localhost:8080", "prompt"],
  ]) {
    test(`Deno's is left to Deno: ${what}`, async (t) => {
      const { called, error } = await optionsIn(t, deno(variables, state), address);
      assert.deepEqual([called.length, error.code], [1, "network_failed"]);
    });
  }
});

for (const host of ["127.0.0.1:1", "localhost:1", "no-such-proxy.invalid:3128"]) {
  test(`a proxy that is down is not taken for the server: ${host}`, async () => {
    const undici = await import("undici");
    const usual = undici.getGlobalDispatcher();
    undici.setGlobalDispatcher(new undici.ProxyAgent({ uri: `http://${host}` }));
    try {
      const error = await errorAt("https://192.0.2.1:4443");
      assert.match(
        error.message,
        /the proxy('s name was not found| refused the connection).*\(PROXY_E/,
      );
    } finally {
      undici.setGlobalDispatcher(usual);
    }
  });
}

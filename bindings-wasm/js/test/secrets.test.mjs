import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { Client, Machine, Sandbox } from "tallyfold";
import { thrownBy } from "./responses.mjs";
import { clientOf, query, rejectionOf, service } from "./world.mjs";

const secret = "canary-secret-5e1f";
const hostToken = "canary-host-token-77aa";
const address = "http://localhost";

/** Tokens that the sandbox minted: the third canary, which only the wire shows. */
const minted = [];

describe("no canary shows", () => {
  test("in a client, at any time of its life", async () => {
    const sandbox = service({ clientSecret: secret });
    const client = clientOf(sandbox, { fetch: tapped(sandbox) });
    assertHidden(client);
    await client.eventDelivery(query);
    await client.auditLogs();
    assert.equal(minted.length, 2);
    assertHidden(client);
    assertUnread(client);
  });

  test("in a machine, its calls and its requests", async () => {
    const machine = new Machine({
      ...service({ clientSecret: secret }).credentials,
      clusterEndpoint: address,
    });
    const call = machine.eventDelivery(query);
    const step = call.step();
    assert.ok(new TextDecoder().decode(step.request.body()).includes(secret));
    for (const it of [machine, call, step, step.request]) {
      assertHidden(it);
      assertUnread(it);
    }
    assert.match(inspect(step), /POST http:\/\/localhost\/v1\.1\/oauth\/token/);
    assert.equal(JSON.parse(JSON.stringify(step.request)).method, "POST");
  });

  test("in a request that bears a token", () => {
    const machine = new Machine({ clusterEndpoint: address, hostTokens: true });
    const call = machine.eventDelivery(query);
    call.step();
    call.token({ accessToken: hostToken });
    const step = call.step();
    assert.equal(step.request.headers()[0][1], `Bearer ${hostToken}`);
    for (const it of [machine, call, step]) {
      assertHidden(it);
      assertUnread(it);
    }
  });

  test("in the error of a fetch whose own error can't be read", async () => {
    const sandbox = service({ clientSecret: secret });
    const fetch = async (_url, init) => {
      const get = () => {
        throw new Error(new TextDecoder().decode(init.body));
      };
      throw Object.defineProperty(new TypeError("no"), "code", { get });
    };
    const error = await rejectionOf(clientOf(sandbox, { fetch }).eventDelivery(query));
    assert.equal(error.code, "network_failed");
    assertHidden(error);
  });

  test("in a sandbox", () => {
    assertHidden(new Sandbox({ clientSecret: secret }));
  });

  test("in a client with its own source of tokens", async () => {
    const sandbox = service();
    const client = new Client({
      clusterEndpoint: address,
      fetch: sandbox.fetch,
      accessToken: () => ({ accessToken: hostToken, expiresIn: 60 }),
    });
    const error = await rejectionOf(client.eventDelivery(query));
    assert.equal(error.code, "token_rejected");
    assertHidden(client);
    assertHidden(error);
  });

  const faults = [
    ["a refusal", { kind: "status", status: 401 }],
    ["a server error", { kind: "status", status: 500 }],
    ["an echo of the request", { kind: "body", body: `{"client_secret":"${secret}"` }],
    ["an echo as HTML", { kind: "body", body: `<html>${secret}</html>` }],
    ["another content type", { kind: "content_type", contentType: `text/${secret}` }],
    ["a broken connection", { kind: "truncate", bytes: 30 }],
  ];
  for (const [what, fault] of faults) {
    for (const endpoint of ["control_token", "event_delivery"]) {
      test(`in the error after ${what} of ${endpoint}`, async () => {
        const sandbox = service({ clientSecret: secret });
        sandbox.inject({ ...fault, endpoint, every: 1 });
        const client = clientOf(sandbox, { fetch: tapped(sandbox) });
        const error = await rejectionOf(client.eventDelivery(query));
        // What the service itself says to a call with a token may be quoted; what it says to a
        // request for a token may not, since that could be anything.
        if (endpoint === "control_token" || !JSON.stringify(fault).includes(secret)) {
          assertHidden(error);
        }
        assertHidden(client);
      });
    }
  }

  for (const endpoint of ["event_delivery", "audit_logs"]) {
    test(`in the error after a token was echoed as a key by ${endpoint}`, async () => {
      const fetch = async (_url, init) => {
        const { authorization } = Object.fromEntries(init.headers);
        if (!authorization) return Response.json({ access_token: hostToken });
        const echo = JSON.stringify({ [hostToken]: [{ [secret]: null }] }).replace("null", "tru");
        return new Response(echo, { headers: { "content-type": "application/json" } });
      };
      const client = clientOf(service({ clientSecret: secret }), { fetch });
      const call = endpoint === "audit_logs" ? client.auditLogs() : client.eventDelivery(query);
      const error = await rejectionOf(call);
      assert.deepEqual([error.code, error.path], ["invalid_json", "$.*[0].*"]);
      assertHidden(error);
    });
  }

  test("in the error of a fetch that quotes its request", async () => {
    const fetch = async (_url, init) => {
      const text = new TextDecoder().decode(init.body);
      throw Object.assign(new TypeError(`can't send ${text}`), { request: init, code: text });
    };
    const sandbox = service({ clientSecret: secret });
    const error = await rejectionOf(clientOf(sandbox, { fetch }).eventDelivery(query));
    assert.equal(error.code, "network_failed");
    assertHidden(error);
  });

  test("in errors about the arguments that hold it", () => {
    const options = { clusterEndpoint: address, clientId: "a", controlAudience: "b" };
    assertHidden(thrownBy(() => new Client({ ...options, clientSecret: [secret] })));
    assertHidden(thrownBy(() => new Client({ ...options, clientId: "", clientSecret: secret })));
    const clusterEndpoint = `https://user:${secret}@cluster.example`;
    assertHidden(thrownBy(() => new Client({ clusterEndpoint })));
  });
});

/** The sandbox's fetch, which remembers the tokens that it minted. */
function tapped(sandbox) {
  return async (url, init) => {
    const response = await sandbox.fetch(url, init);
    if (!url.endsWith("/oauth/token") || response.status !== 200) return response;
    const body = await response
      .clone()
      .json()
      .catch(() => ({}));
    if (body.access_token) minted.push(body.access_token);
    return response;
  };
}

const everything = { showHidden: true, depth: Infinity, getters: true };

/** Hidden too from who asks for all properties there are, and not for what the value says. */
function assertUnread(value) {
  const shown = inspect(value, { ...everything, customInspect: false });
  assert.ok(![secret, hostToken, ...minted].some((canary) => shown.includes(canary)), shown);
}

function assertHidden(value) {
  const shown = [
    inspect(value, everything),
    inspect({ nested: [value] }, everything),
    JSON.stringify(value) ?? "",
    String(value),
    value.stack ?? "",
    ...Object.getOwnPropertyNames(value).map((name) => inspect(value[name], everything)),
  ].join("\n");
  for (const canary of [secret, hostToken, ...minted]) {
    assert.ok(!shown.includes(canary), `shown: ${shown}`);
  }
}

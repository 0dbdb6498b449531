import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Client, TallyfoldError } from "tallyfold";
import { thrownBy } from "./responses.mjs";
import { clientOf, query, rejectionOf, service } from "./world.mjs";

describe("a client's arguments", () => {
  const complete = { ...service().credentials, clusterEndpoint: "http://localhost" };
  const wrong = [
    [{ clusterEndpoint: "http://cluster.example" }, "insecure_base_address", "clusterEndpoint"],
    [{ clusterEndpoint: "https://a@cluster.example" }, "invalid_base_address", "clusterEndpoint"],
    [{ clusterEndpoint: undefined }, "missing_argument", "clusterEndpoint"],
    [{ clientSecret: undefined }, "missing_argument", "clientSecret"],
    [{ clientId: "" }, "invalid_argument", "clientId"],
    [{ clientId: 5 }, "invalid_argument", "clientId"],
    [{ controlAudience: undefined }, "missing_argument", "controlAudience"],
    [{ accessToken: "a-token" }, "invalid_argument", "accessToken"],
    [{ accessToken: () => {} }, "invalid_argument", "accessToken"],
    [{ timeoutMs: 0 }, "invalid_argument", "timeoutMs"],
    [{ timeoutMs: "5" }, "invalid_argument", "timeoutMs"],
    [{ timeoutMs: 2 ** 31 }, "invalid_argument", "timeoutMs"],
    [{ defaultTokenLifetime: 0 }, "invalid_argument", "defaultTokenLifetime"],
    [{ dangerouslyAllowHttp: "no" }, "invalid_argument", "dangerouslyAllowHttp"],
  ];
  for (const [changes, code, argument] of wrong) {
    const [name, value] = Object.entries(changes)[0];
    test(`are checked at once: ${name} ${String(value)}`, () => {
      const error = thrownBy(() => new Client({ ...complete, ...changes }));
      assert.ok(TallyfoldError.is(error), String(error));
      assert.deepEqual([error.code, error.argument, error.kind], [code, argument, "config"]);
      assert.doesNotMatch(error.message, /[a-z]_(id|secret|endpoint|audience|token|url)\b/);
    });
  }

  test("may be missing altogether", () => {
    assert.equal(thrownBy(() => new Client()).code, "missing_argument");
  });

  const calls = [
    [(client) => client.eventDelivery(), "invalid_argument", "query"],
    [(client) => client.eventDelivery({}), "missing_argument", "start"],
    [(client) => client.eventDelivery({ ...query, start: 5 }), "invalid_argument", "start"],
    [(client) => client.eventDelivery({ ...query, end: query.start }), "invalid_window", "start"],
    [(client) => client.eventDelivery({ ...query, end: "2026-01-01" }), "invalid_timestamp", "end"],
    [(client) => client.eventDelivery({ ...query, dimensions: [] }), "no_dimensions", "dimensions"],
    [(client) => client.eventIngestion(query), "unknown_dimension", "dimensions"],
    [(client) => client.auditLogs({ page: 0 }), "invalid_page", "page"],
    [(client) => client.auditLogs({ perPage: 0 }), "invalid_page", "perPage"],
    [(client) => client.auditLogs({ page: 1.5 }), "invalid_argument", "page"],
    [(client) => client.auditLogs({ page: "1" }), "invalid_argument", "page"],
    [(client) => client.auditLogs(null), "invalid_argument", "query"],
  ];
  for (const [act, code, argument] of calls) {
    test(`of a call are checked before anything is sent: ${String(act).slice("(client) => client.".length)}`, async () => {
      const sandbox = service();
      const error = await rejectionOf(act(clientOf(sandbox)));
      assert.ok(TallyfoldError.is(error), String(error));
      assert.deepEqual([error.code, error.argument], [code, argument]);
      assert.equal(sandbox.stats.control_token + sandbox.stats.orchestration_token, 0);
    });
  }
});

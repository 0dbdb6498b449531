import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { Aggregator, Client, Machine, Sandbox, TallyfoldError } from "tallyfold";
import { thrownBy } from "./responses.mjs";
import { clientOf, query, rejectionOf, service } from "./world.mjs";

const request = { method: "GET", target: "/" };

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
    [{ fetch: 5 }, "invalid_argument", "fetch"],
    [{ now: 5 }, "invalid_argument", "now"],
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

  test("are refused as credentials with white space around them or control characters", () => {
    const spaces = "begins or ends with white space";
    const wrong = [
      [" canary", spaces],
      ["canary\t", spaces],
      ["canary\u00a0", spaces],
      [" ", spaces],
      ["can\tary", "contains a control character"],
    ];
    for (const name of ["clientId", "clientSecret"]) {
      for (const [text, message] of wrong) {
        const error = thrownBy(() => new Client({ ...complete, [name]: text }));
        assert.deepEqual([error.code, error.argument], ["invalid_argument", name]);
        assert.ok(error.message.includes(message), error.message);
        assert.doesNotMatch(error.message, /canary/);
      }
    }
    new Client({ ...complete, clientSecret: "a pass phrase" });
  });

  test("may be missing altogether", () => {
    assert.equal(thrownBy(() => new Client()).code, "missing_argument");
    assert.equal(thrownBy(() => new Machine()).code, "missing_argument");
  });

  test("may be null, which is as good as absent", async () => {
    const nothing = { accessToken: null, timeoutMs: null, now: null, limits: null, baseUrl: null };
    const client = clientOf(service(), nothing);
    await client.eventDelivery({ ...query, signal: null, groupBy: null });
    new Client({ ...complete, fetch: null });
  });

  test("are not inherited", async () => {
    const client = clientOf(service());
    const error = await rejectionOf(client.eventDelivery(Object.create({ ...query })));
    assert.deepEqual([error.code, error.argument], ["missing_argument", "start"]);
    const made = thrownBy(() => new Client(Object.create(complete)));
    assert.deepEqual([made.code, made.argument], ["missing_argument", "clusterEndpoint"]);
    const event = { timestamp: new Date(), outcome: "errors", eventName: "a", writeKey: "b" };
    const recorded = thrownBy(() => new Sandbox().record(Object.create(event)));
    assert.deepEqual([recorded.code, recorded.argument], ["missing_argument", "timestamp"]);
  });

  test("can't be given by other code in the program, in what all objects inherit", async () => {
    const names = ["accessToken", "fetch", "now", "onAttempt", "onProgress", "onNote", "store"];
    const script = `
      import { Client, Sandbox } from "tallyfold";
      import { exportCounts, push } from "tallyfold/export";
      import { pageServer } from "tallyfold/server";
      const touched = [];
      const values = { dangerouslyAllowHttp: true, tokenless: true, url: "https://evil.example" };
      for (const name of ${JSON.stringify(names)}) values[name] = () => { touched.push(name); };
      for (const [name, value] of Object.entries(values)) {
        Object.defineProperty(Object.prototype, name, { value, configurable: true, writable: true });
      }
      const codes = [];
      const code = ({ code, argument }) => codes.push(code + " " + argument);
      const sandbox = new Sandbox({ seed: 1 });
      const { fetch } = sandbox;
      const own = { ...sandbox.credentials, fetch, now: undefined };
      try { new Client({ ...own, clusterEndpoint: "http://cluster.example" }); } catch (error) { code(error); }
      const client = new Client({ ...own, clusterEndpoint: "http://localhost" });
      const query = { start: "2026-01-01T00:00:00Z", end: "2026-01-01T01:00:00Z", dimensions: ["reason"] };
      const table = await client.eventDelivery(query);
      const all = await client.collect({ ...query, metric: "event_delivery", window: "15m" });
      exportCounts(table, { format: "csv" }).text();
      await push(table, { format: "influx" }).catch(code);
      try { pageServer({ client }); } catch (error) { code(error); }
      console.log(JSON.stringify({ touched, codes, rows: table.length === all.length }));`;
    const args = ["--input-type=module", "--eval", script];
    const cwd = new URL("..", import.meta.url);
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd });
    assert.deepEqual(JSON.parse(stdout), {
      touched: [],
      codes: [
        "insecure_base_address clusterEndpoint",
        "missing_argument url",
        "invalid_argument authorize",
      ],
      rows: true,
    });
  });

  test("are clocks that tell the time", async () => {
    for (const now of [() => Date.now(), () => undefined, () => ({ unixMs: 5 })]) {
      const sandbox = service();
      const error = await rejectionOf(clientOf(sandbox, { now }).eventDelivery(query));
      assert.deepEqual([error.code, error.argument], ["invalid_argument", "now"]);
      assert.equal(thrownBy(() => new Sandbox({ now }).handle(request)).argument, "now");
    }
    assert.equal(thrownBy(() => new Sandbox({ now: 5 })).argument, "now");
  });

  test("are not what only says that it is", async () => {
    const fake = (tag) => ({ [Symbol.toStringTag]: tag });
    const error = await rejectionOf(
      clientOf(service()).eventDelivery({ ...query, start: fake("Date") }),
    );
    assert.deepEqual([error.code, error.argument], ["invalid_argument", "start"]);
    const aggregator = new Aggregator({ dimensions: ["reason"] });
    assert.equal(thrownBy(() => aggregator.push(fake("Uint8Array"))).argument, "chunk");
    const hidden = Object.assign(new Date(query.start), fake("Nothing"));
    await clientOf(service()).eventDelivery({ ...query, start: hidden });
  });

  test("are dates or texts, and the error says so", async () => {
    const error = await rejectionOf(clientOf(service()).eventDelivery({ ...query, start: 5 }));
    assert.match(
      error.message,
      /start: want a Date, a Temporal.Instant or ZonedDateTime, or ISO 8601 text/,
    );
  });

  const calls = [
    [(client) => client.eventDelivery(), "invalid_argument", "query"],
    [(client) => client.eventDelivery({}), "missing_argument", "start"],
    [(client) => client.eventDelivery({ ...query, start: 5 }), "invalid_argument", "start"],
    [(client) => client.eventDelivery({ ...query, signal: {} }), "invalid_argument", "signal"],
    [
      (client) => client.eventDelivery({ ...query, signal: new AbortController() }),
      "invalid_argument",
      "signal",
    ],
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

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Machine, TallyfoldError } from "tallyfold";
import { thrownBy } from "./responses.mjs";
import { clocks, query, service } from "./world.mjs";

describe("a machine", () => {
  test("is driven by hand, without fetch, against a sandbox without sockets", () => {
    const sandbox = service();
    const machine = machineOf(sandbox);
    const sent = [];
    const table = drive(machine.eventDelivery(query), sandbox, undefined, sent);
    assert.equal(table.totals.success, 7n);
    assert.deepEqual(
      sent.map(({ method, url }) => `${method} ${url}`),
      [
        "POST http://localhost/v1.1/oauth/token",
        "POST http://localhost/v1.1/analytics/event_delivery",
      ],
    );
    const [token, call] = sent;
    assert.deepEqual(token.headers(), [
      ["content-type", "application/json"],
      ["accept-encoding", "gzip"],
    ]);
    assert.deepEqual(JSON.parse(new TextDecoder().decode(call.body())), query);
    assert.deepEqual(
      call.headers().map(([name]) => name),
      ["authorization", "content-type", "accept-encoding"],
    );
  });

  test("keeps a token over thirty days of virtual time, and never an expired one", () => {
    const now = clocks();
    const sandbox = service({ now });
    const machine = machineOf(sandbox);
    for (let hour = 0; hour < 30 * 24; hour++) {
      drive(machine.eventDelivery(query), sandbox, now);
      now.pass(3600);
    }
    assert.equal(sandbox.stats.event_delivery, 30 * 24);
    assert.ok([30, 31, 32].includes(sandbox.stats.control_token), `${sandbox.stats.control_token}`);
  });

  test("tells a second call to wait, and lets it on when the first gives up", () => {
    const machine = machineOf(service());
    const [first, second] = [machine.eventDelivery(query), machine.eventDelivery(query)];
    assert.equal(first.step().type, "send");
    const blocked = second.step();
    assert.equal(blocked.type, "blocked");
    assert.equal(machine.tokenEpoch, blocked.epoch);
    first.close();
    assert.notEqual(machine.tokenEpoch, blocked.epoch);
    assert.equal(second.step().type, "send");
  });

  test("asks the host for a token if it was told so", () => {
    const machine = new Machine({ clusterEndpoint: "http://localhost", hostTokens: true });
    const call = machine.eventDelivery(query);
    assert.deepEqual(call.step(), { type: "provideToken", api: "control" });
    call.token({ accessToken: "of-the-host", expiresIn: 60 });
    const { request } = call.step();
    assert.deepEqual(request.headers()[0], ["authorization", "Bearer of-the-host"]);
    assert.equal(thrownBy(() => call.tokenFailed()).code, "out_of_order");
  });

  test("has calls, requests and errors of the names that the types say", () => {
    const call = machineOf(service()).eventDelivery(query);
    assert.equal(call.constructor.name, "Call");
    assert.equal(call.step().request.constructor.name, "MachineRequest");
    const error = thrownBy(() => call.step());
    assert.match(error.stack, /^TallyfoldError: out_of_order/);
    assert.ok(!Object.keys(error).includes("name"));
    error.name = "MyError";
    assert.match(String(error), /^MyError: out_of_order/);
  });

  test("minds the order of what it is told", () => {
    const call = machineOf(service()).eventDelivery(query);
    for (const act of [() => call.end(), () => call.chunk(new Uint8Array()), () => call.output()]) {
      const error = thrownBy(act);
      assert.ok(TallyfoldError.is(error));
      assert.equal(error.code, "out_of_order");
    }
    call.step();
    assert.equal(thrownBy(() => call.step()).code, "out_of_order");
    assert.equal(thrownBy(() => call.failed("slow", "x")).argument, "failure");
    call.close();
    call.close();
    assert.equal(thrownBy(() => call.step()).code, "out_of_order");
  });

  test("takes clocks, statuses and headers for what they are only", () => {
    const machine = machineOf(service());
    const times = [5, {}, { monotonicMs: 1 }, { monotonicMs: 0, unixMs: Number.NaN }, null];
    for (const at of times) {
      const error = thrownBy(() => machine.eventDelivery(query).step(at));
      assert.deepEqual([error.code, error.argument], ["invalid_argument", "now"], String(at));
    }
    const call = machine.eventDelivery(query);
    call.step();
    for (const status of [65736, "200", 99, 1000, 200.5, Number.NaN, undefined, 200n ** 2n]) {
      const error = thrownBy(() => call.head(status, []));
      assert.deepEqual([error.code, error.argument], ["invalid_argument", "status"], status);
    }
    for (const headers of [undefined, {}, "text", [null], [["a"]], [["a", 5]]]) {
      const error = thrownBy(() => call.head(200, headers));
      assert.deepEqual([error.code, error.argument], ["invalid_argument", "headers"]);
    }
    assert.ok(call.head(200, new Headers({ "content-type": "application/json" })));
  });

  test("names what is wrong with a token", () => {
    const machine = new Machine({ clusterEndpoint: "http://localhost", hostTokens: true });
    const call = machine.eventDelivery(query);
    call.step();
    for (const token of [undefined, null, {}, { accessToken: 5 }]) {
      assert.equal(thrownBy(() => call.token(token)).argument, "accessToken");
    }
    const expiresIn = Object.create(null);
    assert.equal(thrownBy(() => call.token({ accessToken: "a", expiresIn })).argument, "expiresIn");
    call.token({ accessToken: "a", expiresIn: null });
    assert.equal(call.step().type, "send");
  });

  test("can be disposed of while a call goes on", () => {
    const sandbox = service();
    const machine = machineOf(sandbox);
    const call = machine.eventDelivery(query);
    machine[Symbol.dispose]();
    assert.equal(drive(call, sandbox).totals.success, 7n);
    assert.equal(thrownBy(() => machine.auditLogs()).code, "out_of_order");
  });
});

function machineOf(sandbox) {
  return new Machine({ ...sandbox.credentials, clusterEndpoint: "http://localhost" });
}

/** The whole of a host: what `Client` does with fetch, done with function calls. */
function drive(call, sandbox, now = clocks(), sent = []) {
  for (let step = call.step(now()); step.type !== "done"; step = call.step(now())) {
    const { request } = step;
    sent.push(request);
    const { pathname, search } = new URL(request.url);
    const answer = sandbox.handle({
      method: request.method,
      target: pathname + search,
      headers: request.headers(),
      body: request.body(),
      now: now(),
    });
    if (!call.head(answer.status, answer.headers)) continue;
    call.chunk(answer.body);
    call.end();
  }
  return call.output();
}

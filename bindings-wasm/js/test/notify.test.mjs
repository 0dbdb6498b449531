// Notifications, to receivers of alerts on loopback.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Aggregator } from "tallyfold";
import { notify, Rules } from "tallyfold/health";
import { receiver as serverFor } from "./receiver.mjs";
import { rejectionOf } from "./world.mjs";

const body = `{"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:15:00Z",
  "totalDelivered": "7", "totalErrors": "3", "totalFiltered": "0", "counts": [
  {"success": "7", "errors": "3", "filtered": "0", "dimensions": {"integration": "crm"}}]}`;
const rule =
  "{ name = 'errors', kind = 'threshold', measure = 'errors', by = ['integration'], above = 0 }";
const secret = "hunter2-is-secret";

/** A check that fires. */
function found() {
  const aggregator = new Aggregator({ dimensions: ["integration"] });
  aggregator.push(new TextEncoder().encode(body));
  const rules = Rules.parse(`rule = [${rule}]`);
  const check = rules.check({ delivery: aggregator.finish(), now: "2026-01-01T01:00:00Z" });
  assert.deepEqual(
    check.findings.map(({ status }) => status),
    ["firing"],
  );
  return check;
}

const nothing = () => Rules.standard().check();
const webhook = (url, more) => ({ kind: "webhook", name: "chat", url, ...more });
const messages = (server) => server.got.map(({ body }) => JSON.parse(body.toString()));

/** What a server answers, in turn; then 204. */
function answering(...answers) {
  return () => answers.shift() ?? 204;
}

describe("notifications", () => {
  test("a change is sent once, and so is its end", async (t) => {
    const server = await serverFor(t);
    const template = '{"is": "{{status}}", "all": {{finding}}}';
    const receivers = [webhook(server.url, { template })];
    const begun = await notify(found(), { receivers });
    assert.equal(begun.complete, true);
    assert.equal(begun.receivers[0].receiver, "webhook:chat");
    assert.equal(begun.receivers[0].messages, 1n);
    assert.equal(messages(server)[0].is, "firing");
    assert.deepEqual(messages(server)[0].all.observed, { part: 3 });
    const again = await notify(found(), { receivers, state: begun.state });
    assert.equal(server.got.length, 1);
    const over = await notify(nothing(), { receivers, state: again.state });
    assert.equal(messages(server)[1].is, "resolved");
    await notify(nothing(), { receivers, state: over.state });
    assert.equal(server.got.length, 2);
  });

  test("an incident has its findings", async (t) => {
    const server = await serverFor(t);
    const check = found();
    const [[incident], [finding]] = [check.incidents, check.findings];
    assert.deepEqual([incident.id, incident.headline], [finding.incident, finding.id]);
    assert.deepEqual([incident.status, incident.severity], ["firing", "warning"]);
    const { id, group, events } = incident.parts[0];
    assert.deepEqual([id, group, events], [finding.id, { integration: "crm" }, 3n]);
    assert.deepEqual(
      incident.history.map(({ change }) => change),
      ["began"],
    );
    const receivers = [webhook(server.url, { template: '{"all": {{incident}}}' })];
    assert.equal((await notify(check, { receivers })).complete, true);
    assert.equal(messages(server)[0].all.parts[0].sentence, finding.sentence);
  });

  test("a failure is tried again", async (t) => {
    const server = await serverFor(t, answering(500, 0, 204));
    const notified = await notify(found(), { receivers: [webhook(server.url)] });
    assert.equal(server.got.length, 3);
    assert.equal(notified.receivers[0].retries, 2n);
    assert.equal(notified.complete, true);
  });

  test("what was refused is sent by the next call, and secrets are masked", async (t) => {
    const server = await serverFor(t, answering({ status: 400, text: `no ${secret}` }));
    const headers = { authorization: `Bearer ${secret}` };
    const receivers = [webhook(server.url, { headers })];
    const notified = await notify(found(), { receivers });
    assert.equal(notified.complete, false);
    const { code, status, error } = notified.receivers[0];
    assert.deepEqual([code, status], ["unexpected_status", 400]);
    assert.ok(!`${error}${notified.state}`.includes(secret), error);
    assert.ok(!`${error}${notified.state}`.includes(server.url), error);
    const { complete } = await notify(found(), { receivers, state: notified.state });
    assert.equal(complete, true);
    assert.equal(server.got.length, 2);
  });

  test("what was accepted before an abort is not sent again", async (t) => {
    const server = await serverFor(t);
    const controller = new AbortController();
    const reason = new Error("enough");
    const dying = async (url, init) => {
      if (!url.includes("second")) return fetch(url, init);
      controller.abort(reason);
      return new Promise(() => {});
    };
    const named = (name) => webhook(`${server.url}&to=${name}`, { name });
    const receivers = ["first", "second", "third"].map(named);
    const { signal } = controller;
    const error = await rejectionOf(notify(found(), { receivers, fetch: dying, signal }));
    assert.deepEqual([error.name, error.message, error.cause], ["Error", "enough", reason]);
    const { state, receivers: receipts, complete } = error.notified;
    assert.equal(complete, false);
    assert.deepEqual([receipts[0].receiver, receipts[0].messages], ["webhook:first", 1n]);
    const again = await notify(found(), { receivers, state });
    assert.equal(again.complete, true);
    const sent = server.got.map(({ url }) => /to=(\w+)/.exec(url)[1]);
    assert.deepEqual(sent, ["first", "second", "third"]);
  });

  test("calls that share a signal keep what was done apart, whatever its reason is", async () => {
    const reasons = [undefined, "enough", Symbol("enough"), null, Object.freeze(new Error("no"))];
    for (const reason of reasons) {
      const controller = new AbortController();
      const { signal } = controller;
      const begun = ["eu", "us"].map((name) => {
        const receivers = [webhook("https://chat.example", { name })];
        const given = { receivers, fetch: () => new Promise(() => {}), signal };
        return rejectionOf(notify(found(), given));
      });
      setTimeout(() => controller.abort(reason), 20);
      const errors = await Promise.all(begun);
      assert.deepEqual(
        errors.map(({ notified }) => notified.receivers.map(({ receiver }) => receiver)),
        [["webhook:eu"], ["webhook:us"]],
      );
      for (const { cause } of errors) assert.equal(cause, signal.reason);
    }
  });

  test("a mistake in fetch is a failure of its receiver alone", async (t) => {
    const server = await serverFor(t);
    const mistaken = async (url, init) =>
      url.includes("first") ? undefined.url : fetch(url, init);
    const named = (name) => webhook(`${server.url}&to=${name}`, { name });
    const receivers = ["first", "second"].map(named);
    const options = { receivers, fetch: mistaken, patienceMs: 0 };
    const { state, receivers: receipts, complete } = await notify(found(), options);
    assert.equal(complete, false);
    assert.deepEqual(
      receipts.map(({ code, messages }) => [code, messages]),
      [
        ["network_failed", 0n],
        [undefined, 1n],
      ],
    );
    assert.match(receipts[0].error, /TypeError/);
    assert.equal((await notify(found(), { receivers, state })).complete, true);
    assert.equal(server.got.length, 2);
  });

  test("each kind has messages of its own", async (t) => {
    const ok = { status: 200, text: "ok" };
    const server = await serverFor(t, answering(ok, ok, 202));
    const receivers = [
      { kind: "alertmanager", name: "a", url: new URL(server.url.split("?")[0]) },
      { kind: "slack", name: "b", url: server.url },
      { kind: "pagerduty", name: "c", url: server.url, routingKey: secret },
    ];
    const { complete } = await notify(found(), {
      receivers,
      cluster: "eu",
      labels: { team: "data" },
      alertForMs: 60_000,
      now: "2026-01-01T01:00:00Z",
    });
    assert.equal(complete, true);
    const [[alert], slack, pagerduty] = messages(server);
    assert.equal(alert.endsAt, "2026-01-01T01:01:00Z");
    assert.equal(alert.labels.cluster, "eu");
    assert.equal(alert.labels.team, "data");
    assert.match(slack.text, /^\*\w+\*: eu: \w+: integration /u);
    assert.equal(pagerduty.event_action, "trigger");
    assert.equal(pagerduty.routing_key, secret);
  });

  test("arguments are checked before anything is sent", async () => {
    const url = "https://x.example";
    for (const [options, code] of [
      [{ receivers: [{ kind: "pager", name: "x" }] }, "invalid_argument"],
      [{ receivers: [{ kind: "slack", name: "x" }] }, "missing_argument"],
      [{ receivers: [{ kind: "slack", url }] }, "missing_argument"],
      [{ receivers: [{ kind: "pagerduty", name: "x" }] }, "missing_argument"],
      [
        { receivers: [{ kind: "slack", name: "x", url: "http://x.example" }] },
        "insecure_base_address",
      ],
      [{ receivers: [{ kind: "slack", name: "x", url, urll: "" }] }, "unknown_argument"],
      [{ receivers: "slack" }, "invalid_argument"],
      [{ receivers: [], state: "{}" }, "invalid_checkpoint"],
      [{ receivers: [], patient: 5 }, "unknown_argument"],
      [{ receivers: [], timeoutMs: 0 }, "invalid_argument"],
    ]) {
      const error = await rejectionOf(notify(found(), options));
      assert.equal(error.code, code, JSON.stringify(options));
    }
    const error = await rejectionOf(notify({}, { receivers: [] }));
    assert.match(error.message, /Rules\.check/);
  });
});

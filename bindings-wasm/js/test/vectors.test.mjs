// The vectors that every language runs: what each case means stands in tests/vectors/README.md.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { Aggregator, CountTable, errorCodes, Machine, TallyfoldError } from "tallyfold";
import { bytes, thrownBy } from "./responses.mjs";

const epochMs = Date.parse("2026-01-01T00:00:00Z");
const names = ["responses", "exchanges", "tables"];
const files = await Promise.all(names.map(load));
const checks = [checkResponse, checkExchange, checkTable];

for (const [index, { count, cases }] of files.entries()) {
  describe(`${names[index]}.json`, () => {
    let ran = 0;
    for (const it of cases) {
      test(it.name, () => {
        checks[index](it);
        ran += 1;
      });
    }
    test(`ran all ${count}`, () => assert.equal(ran, count));
  });
}

async function load(name) {
  const url = new URL(`../../../tests/vectors/${name}.json`, import.meta.url);
  return JSON.parse(await readFile(url, "utf8"));
}

test("every error code has a vector", async () => {
  const codes = new Set();
  JSON.stringify([files, await load("series")], (key, value) => {
    if (key === "error") codes.add(value.code);
    return value;
  });
  assert.deepEqual([...codes].sort(), [...errorCodes].sort());
});

function checkResponse(it) {
  const body = it.body === undefined ? Buffer.from(it.body_hex, "hex") : bytes(it.body);
  const single = Array.from(body, (_, at) => body.subarray(at, at + 1));
  for (const chunks of [[body], single]) check(it, () => fold(it, chunks));
}

function fold(it, chunks) {
  const { dimensions, group_by: groupBy, limits, tolerate } = it;
  const window = it.window && { start: it.window[0], end: it.window[1] };
  const options = { dimensions, groupBy, window, limits: limits && camelKeys(limits), tolerate };
  const aggregator = new Aggregator(options);
  let table;
  try {
    for (const chunk of chunks) aggregator.push(chunk);
    table = aggregator.finish();
  } catch (error) {
    for (const again of [() => aggregator.push(bytes(" ")), () => aggregator.finish()]) {
      const { message, ...fields } = thrownBy(again);
      assert.deepEqual({ message, ...fields }, { message: error.message, ...error });
    }
    throw error;
  }
  return it.finish_twice ? aggregator.finish() : table;
}

function checkExchange(it) {
  const clock = { minutes: 0 };
  let machine;
  for (const { call, steps, ...expected } of it.calls) {
    const left = [...steps];
    check(expected, () => {
      machine ??= new Machine(camelKeys(it.options));
      const { method, ...query } = call;
      return drive(machine[camel(method)](camelKeys(query)), left, clock);
    });
    assert.deepEqual(left, [], "all steps were used");
  }
}

function drive(call, steps, clock) {
  for (;;) {
    const step = call.step(at(clock, steps[0]));
    if (step.type === "done") return call.output();
    const script = steps.shift();
    if (step.type === "provideToken") {
      assert.equal(step.api, script?.provide_token);
      if (script.token === null) call.tokenFailed();
      else call.token({ accessToken: script.token, expiresIn: script.lifetime ?? undefined });
      continue;
    }
    assert.equal(step.type, "send", "one call at a time is never blocked");
    const { method, url } = step.request;
    const body = step.request.body();
    const text = body === undefined ? null : new TextDecoder().decode(body);
    const sent = { method, url, headers: step.request.headers(), body: text };
    assert.deepEqual(sent, script?.send);
    respond(call, script);
  }
}

function at(clock, script) {
  clock.minutes = script?.at ?? clock.minutes;
  const wall = script?.wall ?? clock.minutes;
  return { monotonicMs: clock.minutes * 60_000, unixMs: epochMs + wall * 60_000 };
}

function respond(call, { fail, detail, respond }) {
  if (fail) {
    call.failed(fail, detail);
  } else if (call.head(respond.status, respond.headers)) {
    const body = bytes(respond.body);
    for (let from = 0; from < body.length; from += 7) call.chunk(body.subarray(from, from + 7));
    call.end();
  }
}

function checkTable(it) {
  const given = () => CountTable.fromJSON(JSON.stringify(it.given));
  if (it.top) {
    const { n, by } = it.top;
    if (it.error) return check(it, () => given().top(n, { by }));
    const rows = [...given()].map((row) => digits(row));
    return assert.deepEqual(
      given()
        .top(n, { by })
        .map((row) => rows.indexOf(digits(row))),
      it.rows,
    );
  }
  if ("reconciliation" in it) {
    const { verdict, ...differences } = given().reconciliation;
    assert.equal(verdict, it.verdict);
    return assert.deepEqual(JSON.parse(digits(differences)), it.differences ?? {});
  }
  if ("coverage" in it) {
    const windows = given().coverage.map(({ start, end }) => [start, end]);
    return assert.deepEqual(windows, it.windows);
  }
  check(it, () => operate(it, given()));
}

function operate(it, table) {
  if (it.group_by) return table.groupBy(...it.group_by);
  if (it.filter) return table.filter(it.filter);
  if (!it.merge) return table;
  return table.merge(CountTable.fromJSON(it.merge), { replace: it.replace });
}

/** Does what a case says, and compares the table, the document or the error that comes of it. */
function check(expected, act) {
  let output;
  try {
    output = act();
  } catch (error) {
    assert.ok(TallyfoldError.is(error), String(error));
    const { code, kind, argument, status, path, offset } = error;
    const found = { code, kind, argument, status, path, offset };
    for (const [name, value] of Object.entries(found)) found[name] = value ?? null;
    const { argument: wanted, ...rest } = expected.error ?? {};
    assert.deepEqual(found, { ...rest, argument: wanted && camel(wanted) }, error.message);
    assert.doesNotMatch(JSON.stringify(error) + error.message + error.stack, /canary/);
    return;
  }
  assert.equal(expected.error, undefined, "an error was expected");
  if (expected.json === undefined) {
    assert.deepEqual(output.toJSON(), expected.table);
    assert.equal(JSON.stringify(CountTable.fromJSON(output.toJSON())), JSON.stringify(output));
  } else {
    assert.deepEqual(output, JSON.parse(expected.json));
  }
}

function digits(value) {
  return JSON.stringify(value, (_, item) => (typeof item === "bigint" ? String(item) : item));
}

function camelKeys(fields) {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [camel(name), value]));
}

function camel(name) {
  return name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
}

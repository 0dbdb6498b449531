// The vectors that every language runs: what each case means stands in tests/vectors/README.md.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import {
  Aggregator,
  CountTable,
  compare,
  errorCodes,
  Machine,
  segmentName,
  TallyfoldError,
} from "tallyfold";
import { ErrorLog } from "../dist/error_log.js";
import { bytes, thrownBy } from "./responses.mjs";

const epochMs = Date.parse("2026-01-01T00:00:00Z");
const checks = {
  responses: checkResponse,
  exchanges: checkExchange,
  tables: checkTable,
  series: checkSeries,
  rates: checkRates,
  comparisons: checkComparison,
  collects: checkCollect,
  error_log: checkErrorLog,
};
const files = await Promise.all(Object.keys(checks).map(load));

for (const { name, count, cases } of files) {
  describe(`${name}.json`, () => {
    let ran = 0;
    for (const it of cases) {
      test(it.name, () => {
        checks[name](it);
        ran += 1;
      });
    }
    test(`ran all ${count}`, () => assert.equal(ran, count));
  });
}

async function load(name) {
  const url = new URL(`../../../tests/vectors/${name}.json`, import.meta.url);
  return { name, ...JSON.parse(await readFile(url, "utf8")) };
}

test("every error code has a vector", async () => {
  // No vector takes all the memory there is: see trap.test.mjs.
  // Those of exports have tests of their own.
  const codes = new Set([
    "out_of_memory",
    "crashed",
    "wasm_forbidden",
    "inexact_count",
    "unsupported_by_format",
  ]);
  JSON.stringify([files, await load("collects"), await load("health")], (key, value) => {
    // There is also a rate of that name.
    if (key === "error" && value?.code) codes.add(value.code);
    return value;
  });
  assert.deepEqual([...codes].sort(), [...errorCodes].sort());
});

function checkErrorLog({ notes }) {
  const log = new ErrorLog();
  for (const { text, at_ms: atMs, random, reference, line } of notes) {
    const [found, written = null] = log.note(text, atMs, random);
    assert.deepEqual([found, written], [reference, line]);
  }
}

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
  const clock = { minutes: 0, waitedMs: 0 };
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
    if (step.type === "wait") {
      const { at_least: least, at_most: most } = script.wait;
      assert.ok(least <= step.ms && step.ms <= most, `${step.ms} ms`);
      clock.waitedMs += step.ms - 1;
      assert.deepEqual(call.step(at(clock, script)), { type: "wait", ms: 1 });
      clock.waitedMs += 1;
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
  const { minutes, waitedMs } = clock;
  return {
    monotonicMs: minutes * 60_000 + waitedMs,
    unixMs: epochMs + wall * 60_000 + waitedMs,
  };
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
    const { n, ...options } = it.top;
    if (it.error) return check(it, () => given().top(n, options));
    const rows = [...given()].map((row) => digits(row));
    return assert.deepEqual(
      given()
        .top(n, options)
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
  if (it.between) return table.between({ start: it.between[0], end: it.between[1] });
  if (!it.merge) return table;
  return table.merge(CountTable.fromJSON(it.merge), { replace: it.replace });
}

function checkSeries(it) {
  const act = () => {
    const tables = it.tables.map((table) => CountTable.fromJSON(table));
    let table = tables.reduce((sum, other) => sum.merge(other));
    if (it.filter) table = table.filter(it.filter);
    if (it.group_by) table = table.groupBy(...it.group_by);
    let series = table.byWindow(it.step, { zone: it.zone });
    if (it.filled) series = series.fillZeros();
    if (!it.between) return series;
    const [start, end] = it.between;
    return series.between({ start, end });
  };
  if (it.error) return check(it, act);
  const series = act();
  assert.deepEqual(series.toJSON(), it.series);
  const { step, zone, metric, dimensions, totals } = it.series;
  const windows = it.series.windows.map((window) => ({ provisional: false, ...window }));
  assert.deepEqual([series.step ?? null, series.metric ?? null], [step, metric]);
  assert.equal(series.zone, zone);
  assert.deepEqual(series.dimensions, dimensions);
  assert.equal(digits(series.totals), JSON.stringify(totals));
  assert.deepEqual(
    series.windows,
    windows.map(({ rows, ...window }) => window),
  );
  const rows = windows.flatMap(({ rows, ...window }) => {
    const settled = window.complete && !window.provisional;
    return rows.map((row) => ({ window, settled, ...row }));
  });
  assert.equal(series.length, rows.length);
  const found = Array.from(series, ({ dimensions, ...row }) => ({
    values: Object.values(dimensions),
    ...row,
  }));
  assert.deepEqual(JSON.parse(digits(found)), rows);
  const ids = windows.flatMap(({ rows }, id) => rows.map(() => id));
  assert.deepEqual(series.columns().window, {
    dictionary: series.windows,
    ids: Uint32Array.from(ids),
  });
}

function checkRates(it) {
  const table = CountTable.fromJSON(it.given);
  const wanted = it.rates.map(numbers);
  const each = (counts) => counts.rates;
  assert.deepEqual(Array.from(table, each), wanted);
  assert.deepEqual(table.totals.rates, numbers(it.totals));
  assert.deepEqual(table.rates(), columnsOf(["delivery", "error", "filter"], wanted));
  assert.deepEqual(table.byWindow().rates(), table.rates());
  assert.deepEqual(Array.from(table.byWindow(), each), wanted);
  assert.deepEqual(
    Array.from(compare(table, table), ({ after }) => each(after)),
    wanted,
  );
}

function checkComparison(it) {
  const act = () => compare(CountTable.fromJSON(it.before), CountTable.fromJSON(it.after));
  if (it.top) {
    const { n, ...options } = it.top;
    if (it.error) return check(it, () => act().top(n, options));
    const rows = [...act()];
    const wanted = it.rows.map((row) => rows[row]);
    return assert.deepEqual(act().top(n, options), wanted);
  }
  if (it.error) return check(it, act);
  const comparison = act();
  const { before, after, delta, dimensions, metric, rows } = it.comparison;
  assert.deepEqual(comparison.toJSON(), it.comparison);
  assert.deepEqual([comparison.dimensions, comparison.metric ?? null], [dimensions, metric]);
  const { beforeTotals, afterTotals, beforeCoverage, afterCoverage, totalDelta } = comparison;
  assert.deepEqual(JSON.parse(digits([beforeTotals, afterTotals])), [before.totals, after.totals]);
  assert.deepEqual([beforeCoverage, afterCoverage], [before.coverage, after.coverage]);
  assert.deepEqual(JSON.parse(digits(totalDelta)), delta);
  assert.equal(comparison.length, rows.length);
  const found = Array.from(comparison, ({ dimensions, share, ...row }) => ({
    values: Object.values(dimensions),
    ...row,
  }));
  assert.deepEqual(JSON.parse(digits(found)), rows);
  const shares = it.shares.map(numbers);
  assert.deepEqual(
    Array.from(comparison, ({ share }) => share),
    shares,
  );
  assert.deepEqual(comparison.shares(), columnsOf(["success", "errors", "filtered"], shares));
  const sides = comparison.columns();
  for (const side of ["before", "after"]) {
    const counts = rows.map((row) => row[side] ?? { success: 0, errors: 0, filtered: 0 });
    for (const [name, column] of Object.entries(sides[side])) {
      assert.deepEqual(
        [...column],
        counts.map((row) => BigInt(row[name])),
      );
    }
  }
  const byPlace = [...comparison.top(rows.length)];
  assert.deepEqual(new Set(byPlace.map(digits)), new Set(Array.from(comparison, digits)));
}

/** Long after all windows of the vectors. */
const later = { monotonicMs: 0, unixMs: 2e12 };

function checkCollect(it) {
  const asked = [];
  let collect;
  check(it, () => {
    collect = beginCollect(it);
    for (let step = collect.next(later); step.type === "drive"; step = collect.next(later)) {
      asked.push(edges(step.window));
      answerWindow(it, step);
      collect.settle(step.task, step.call, later);
      step.call.close();
    }
    assert.deepEqual(asked, it.asked);
    return collect.finish();
  });
  if ("gaps" in it) {
    const error = thrownBy(() => collect.finish());
    assert.deepEqual(error.gaps.map(edges), it.gaps);
    assert.deepEqual(error.partial?.toJSON() ?? null, it.partial);
  }
  if (it.stored) {
    const name = segmentName(JSON.parse(it.stored).segment);
    assert.deepEqual(collect.unsaved(), { name, json: it.stored });
    assert.equal(collect.unsaved(), undefined);
  }
}

function beginCollect({ query, have, segments }) {
  const clusterEndpoint = "https://cluster.example";
  const machine = new Machine({ clusterEndpoint, hostTokens: true, maxRetries: 0 });
  const held = have && CountTable.fromJSON(have);
  const collect = machine.collect({ ...camelKeys(query), have: held, patienceMs: 0 });
  for (const [number, json] of segments.entries()) collect.load(segmentName(number), json);
  return collect;
}

function answerWindow(it, { call, window }) {
  const answer = it.answers.find(({ window: of }) => String(of) === String(edges(window)));
  try {
    for (let step = call.step(later); step.type !== "done"; step = call.step(later)) {
      if (step.type === "provideToken") call.token({ accessToken: "token" });
      else respond(call, { detail: "", ...answer });
    }
  } catch (error) {
    // It comes again when the call is settled.
    assert.ok(TallyfoldError.is(error), String(error));
  }
}

function edges({ start, end }) {
  return [start, end];
}

/** Rates or shares as numbers: equal only to the bit, also 0 and -0. */
function numbers(texts) {
  const entries = Object.entries(texts);
  return Object.fromEntries(entries.map(([name, text]) => [name, text && Number(text)]));
}

function columnsOf(names, rows) {
  const column = (name) => Float64Array.from(rows, (row) => row[name] ?? Number.NaN);
  return Object.fromEntries(names.map((name) => [name, column(name)]));
}

/** Does what a case says, and compares the table, the document or the error that comes of it. */
function check(expected, act) {
  let output;
  try {
    output = act();
  } catch (error) {
    assert.ok(TallyfoldError.is(error), String(error));
    const { code, kind, argument, status, path, offset, retryAfter, excerpt } = error;
    const found = { code, kind, argument, status, path, offset, retry_after: retryAfter, excerpt };
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

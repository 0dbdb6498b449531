// Health: what explains a change and what rules find, which is the same in every language.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { describe, test } from "node:test";
import { CountTable, TallyfoldError } from "tallyfold";
import { acknowledge, explain, init, Rules, silence, unsilence, usual } from "tallyfold/health";
import { thrownBy } from "./responses.mjs";

const vectors = JSON.parse(
  await readFile(new URL("../../../tests/vectors/health.json", import.meta.url), "utf8"),
);
const table = (name) => name && CountTable.fromJSON(vectors.tables[name]);

/** What a case gives: one result, or one for each check. */
function run({ explain: explained, parse, check, replay, usual: range }) {
  if (parse) {
    const rules = Rules.parse(vectors.rules[parse]);
    assert.equal(rules.text, vectors.rules[parse]);
    return { names: rules.names, needs: rules.needs(), budgets: rules.budgets() };
  }
  if (explained) {
    const { before, now, measure, options } = explained;
    return explain(table(before), table(now), measure, options);
  }
  if (range) {
    const { table: name, measure, ...options } = range;
    return usual(table(name), measure, options);
  }
  const { rules, delivery, ingestion, ...given } = check ?? replay;
  const counts = { delivery: table(delivery), ingestion: table(ingestion) };
  const own = Rules.parse(vectors.rules[rules]);
  if (replay) return own.replay({ ...counts, ...given });
  let { state } = given;
  return given.at.map((now) => {
    const { state: left, ...found } = own.check({ ...counts, state, now });
    state = left;
    return { check: found, state };
  });
}

/** Whether a result is the expected one, down to the bits of its floats and the order of its names. */
function same(actual, expected, path = "$") {
  if (typeof expected === "string" && typeof actual !== "string") {
    assert.ok(["bigint", "number"].includes(typeof actual), path);
    assert.equal(String(actual), expected, path);
  } else if (typeof expected === "object" && expected !== null) {
    assert.deepEqual(Object.keys(actual), Object.keys(expected), path);
    for (const [name, value] of Object.entries(expected))
      same(actual[name], value, `${path}.${name}`);
  } else {
    assert.ok(Object.is(actual, expected), `${path}: ${actual} is not ${expected}`);
  }
}

describe("health.json", () => {
  let ran = 0;
  for (const it of vectors.cases) {
    test(JSON.stringify(it.given).slice(0, 100), () => {
      ran += 1;
      if (it.error) {
        const error = thrownBy(() => run(it.given));
        assert.ok(TallyfoldError.is(error), error);
        const { code, argument = null } = error;
        assert.deepEqual([code, argument], [it.error.code, it.error.argument]);
        assert.equal(error.message, it.error.message);
      } else {
        same(run(it.given), it.expected);
      }
    });
  }
  test("ran all", () => assert.equal(ran, vectors.count));
});

const before = table("before");
const now = table("integration fails");

describe("explain", () => {
  test("gives plain values, which JSON has with strings of digits", () => {
    const explained = explain(before, now, "errors");
    assert.equal(explained.change, 4638n);
    const copy = structuredClone(explained);
    assert.deepEqual(copy, explained);
    const { change, causes } = JSON.parse(JSON.stringify(explained));
    assert.equal(change, "4638");
    assert.equal(causes[0].now.part, String(explained.causes[0].now.part));
    assert.equal(causes[0].share, explained.causes[0].share);
  });

  test("takes the tables of CommonJS, and the other way round", () => {
    const require = createRequire(import.meta.url);
    const common = require("tallyfold");
    const theirs = (name) => common.CountTable.fromJSON(vectors.tables[name]);
    const explained = explain(theirs("before"), theirs("integration fails"), "errors");
    assert.deepEqual(explained, explain(before, now, "errors"));
    const health = require("tallyfold/health");
    assert.deepEqual(health.explain(before, now, "errors"), explained);
  });

  test("takes a table that was filtered and grouped, and leaves it as it is", () => {
    const some = [before, now].map((of) => of.filter({ integration: "Mail" }).groupBy("write_key"));
    const [earlier, later] = some.map((of) => JSON.stringify(of));
    assert.equal(explain(...some, "errors").change, 3096n);
    assert.deepEqual(
      some.map((of) => JSON.stringify(of)),
      [earlier, later],
    );
    assert.deepEqual(explain(before.groupBy(), now.groupBy(), "errors").causes, []);
  });

  for (const [what, act, argument, code] of [
    ["no table", () => explain({}, now, "errors"), "before", "invalid_argument"],
    ["a series", () => explain(before, now.byWindow("1d"), "errors"), "now", "invalid_argument"],
    ["nothing", () => explain(before, undefined, "errors"), "now", "invalid_argument"],
    ["another measure", () => explain(before, now, "error"), "measure", "invalid_argument"],
    ["no measure", () => explain(before, now), "measure", "missing_argument"],
    [
      "an unknown option",
      () => explain(before, now, "errors", { mots: 1 }),
      "mots",
      "unknown_argument",
    ],
    ["a fraction", () => explain(before, now, "errors", { most: 1.5 }), "most", "invalid_argument"],
    ["no options", () => explain(before, now, "errors", 5), "options", "invalid_argument"],
  ]) {
    test(`refuses ${what}`, () => {
      const error = thrownBy(act);
      assert.ok(TallyfoldError.is(error), error);
      assert.deepEqual([error.argument, error.code], [argument, code]);
    });
  }

  test("refuses a table that was disposed of", () => {
    const own = table("before");
    own[Symbol.dispose]();
    assert.equal(thrownBy(() => explain(own, now, "errors")).code, "out_of_order");
  });

  test("keeps no memory", () => {
    for (let round = 0; round < 200; round++) explain(before, now, "errors");
  });

  test("can be compiled before it is needed", () => init());
});

describe("rules", () => {
  const rules = Rules.parse(vectors.rules.limits);

  test("are judged now, unless told otherwise", () => {
    const { state } = rules.check({ delivery: table("delivery") });
    const again = rules.check({ delivery: table("delivery"), state, now: new Date() });
    assert.equal(again.judged, 0n);
    assert.equal(again.state, state);
  });

  test("take dates", () => {
    const [start, end] = [new Date("2026-02-01"), new Date("2026-02-24")];
    const { range } = rules.replay({ delivery: table("delivery"), start, end });
    assert.deepEqual(range, { start: "2026-02-01T00:00:00Z", end: "2026-02-24T00:00:00Z" });
  });

  test("know of an incident that somebody acknowledged or silenced", () => {
    const rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }";
    const text = `window = '1d'\nrule = [${rule}]`;
    const own = Rules.parse(text);
    const delivery = table("integration fails");
    const now = delivery.coverage.at(-1).end;
    const first = own.check({ delivery, now });
    const [{ id }] = first.incidents;
    assert.ok(!first.healthy);
    const later = (state) => own.check({ delivery, state, now });
    const known = later(acknowledge(first.state, id.slice(0, 8), { note: "on it" }));
    assert.ok(known.healthy && known.incidents[0].silenced);
    assert.deepEqual(known.incidents[0].hold, { note: "on it" });
    assert.ok(later(known.state).healthy);
    assert.ok(!later(unsilence(known.state, id)).healthy);
    const [soon, past] = [1, -1].map((hours) => new Date(Date.parse(now) + hours * 3_600_000));
    assert.ok(later(silence(first.state, id, { until: soon })).healthy);
    assert.throws(() => silence(first.state, id, { until: past }), /until: this is in the past/);
  });

  test("without counts judge nothing, and say so", () => {
    const { healthy, unjudged } = rules.check();
    assert.ok(!healthy);
    assert.deepEqual(
      unjudged.map(({ rule }) => rule),
      rules.names,
    );
  });

  test("that are standard can be read again", () => {
    const standard = Rules.standard();
    assert.deepEqual(Rules.parse(standard.text).names, standard.names);
    const [{ metric, window, backMs }] = standard.needs();
    assert.deepEqual([metric, window], ["event_delivery", "15m"]);
    assert.ok(Number.isInteger(backMs) && backMs > 28 * 86_400_000);
  });

  for (const [what, act, argument, code] of [
    ["no text", () => Rules.parse(5), "text", "invalid_argument"],
    ["nothing", () => Rules.parse(), "text", "missing_argument"],
    ["another file", () => Rules.parse("rule = 1"), "text", "invalid_rules"],
    ["no table", () => rules.check({ delivery: [] }), "delivery", "invalid_argument"],
    [
      "a series",
      () => rules.check({ ingestion: before.byWindow() }),
      "ingestion",
      "invalid_argument",
    ],
    ["no instant", () => rules.check({ now: "today" }), "now", "invalid_timestamp"],
    ["a wrong Date", () => rules.check({ now: new Date(Number.NaN) }), "now", "invalid_timestamp"],
    ["no state", () => rules.check({ state: "{}" }), "state", "invalid_checkpoint"],
    ["bytes", () => rules.check({ state: new Uint8Array() }), "state", "invalid_argument"],
    ["another state", () => acknowledge("{}", "a"), "state", "invalid_checkpoint"],
    ["another incident", () => unsilence(rules.check().state, "a"), "incident", "invalid_argument"],
    [
      "a silence without end",
      () => silence(rules.check().state, "a", {}),
      "until",
      "missing_argument",
    ],
    [
      "a silence that ends never",
      () => silence(rules.check().state, "a", { until: null }),
      "until",
      "missing_argument",
    ],
    ["a note of bytes", () => acknowledge("", "a", { note: 5 }), "note", "invalid_argument"],
    ["a misspelt option", () => rules.check({ dleivery: before }), "dleivery", "unknown_argument"],
    ["no range", () => rules.replay({ delivery: before }), "start", "missing_argument"],
    ["no options", () => rules.replay("all"), "options", "invalid_argument"],
  ]) {
    test(`refuse ${what}`, () => {
      const error = thrownBy(act);
      assert.ok(TallyfoldError.is(error), error);
      assert.deepEqual([error.argument, error.code], [argument, code]);
    });
  }
});

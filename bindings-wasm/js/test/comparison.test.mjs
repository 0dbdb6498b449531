import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { Comparison, compare } from "tallyfold";
import { entry, foldOf, plain, response, thrownBy, window } from "./responses.mjs";

const later = { start: window.end, end: "2026-01-01T00:30:00Z" };
const most = 2n ** 64n - 1n;

describe("a comparison", () => {
  test("has exact deltas and shares of each group of either table", () => {
    assert.deepEqual(plain([...comparison()]), [
      {
        dimensions: { integration: "a", reason: "" },
        presence: "vanished",
        before: counts(5n, 1n, 0n),
        after: null,
        delta: counts(-5n, -1n, 0n),
        share: counts(-1, -1, null),
      },
      {
        dimensions: { integration: "b", reason: "" },
        presence: "both",
        before: counts(3n, 0n, 7n),
        after: counts(7n, 2n, 7n),
        delta: counts(4n, 2n, 0n),
        share: counts(0.8, 2, null),
      },
      {
        dimensions: { integration: "c", reason: "" },
        presence: "new",
        before: null,
        after: counts(6n, 0n, 0n),
        delta: counts(6n, 0n, 0n),
        share: counts(1.2, 0, null),
      },
    ]);
  });

  test("says what it compares", () => {
    const it = comparison();
    assert.ok(it instanceof Comparison);
    assert.deepEqual(it.dimensions, ["integration", "reason"]);
    assert.equal(it.metric, "event_delivery");
    assert.equal(it.length, 3);
    assert.deepEqual(it.beforeCoverage, [window]);
    assert.deepEqual(it.afterCoverage, [later]);
    assert.deepEqual(plain(it.beforeTotals), counts(8n, 1n, 7n));
    assert.deepEqual(plain(it.afterTotals), counts(13n, 2n, 7n));
    assert.deepEqual(it.totalDelta, counts(5n, 1n, 0n));
    assert.deepEqual(it.afterTotals.rates.delivery, 13 / 15);
    assert.deepEqual([...it][1].before.rates, { delivery: 1, error: 0, filter: 0.7 });
  });

  test("ranks groups by the size of any change", () => {
    const it = comparison();
    const [a, b, c] = it;
    assert.deepEqual(it.top(2), [b, a]);
    assert.deepEqual(it.top(9, { by: "success" }), [c, a, b]);
    assert.deepEqual(it.top(0), []);
    assert.deepEqual([it.new, it.vanished], [[c], [a]]);
  });

  test("has deltas that no typed array holds", () => {
    const [full, empty] = [most, 0n].map((count) =>
      foldOf(response([entry({ integration: "a", reason: "" }, count)])),
    );
    assert.equal([...compare(full, empty)][0].delta.success, -most);
    assert.equal(compare(empty, full).totalDelta.success, most);
    assert.equal(compare(full, empty).top(1)[0].share.success, 1);
  });

  test("comes as columns, whose memory is the caller's own", () => {
    const it = comparison();
    const columns = it.columns();
    const { before, after } = columns;
    assert.deepEqual(columns.integration, {
      dictionary: ["a", "b", "c"],
      ids: Uint32Array.of(0, 1, 2),
    });
    assert.deepEqual(columns.presence, {
      dictionary: ["both", "new", "vanished"],
      ids: Uint32Array.of(2, 0, 1),
    });
    assert.deepEqual(before.success, BigUint64Array.of(5n, 3n, 0n));
    assert.deepEqual(after, {
      success: BigUint64Array.of(0n, 7n, 6n),
      errors: BigUint64Array.of(0n, 2n, 0n),
      filtered: BigUint64Array.of(0n, 7n, 0n),
    });
    before.success.fill(9n);
    assert.equal(it.columns().before.success[0], 5n);
    const none = Float64Array.of(Number.NaN, Number.NaN, Number.NaN);
    assert.deepEqual(it.shares(), {
      success: Float64Array.of(-1, 0.8, 1.2),
      errors: Float64Array.of(-1, 2, 0),
      filtered: none,
    });
  });

  test("is of tables of the same dimensions", () => {
    const error = thrownBy(() => compare(before(), after().groupBy("integration")));
    assert.deepEqual([error.code, error.argument], ["incompatible_tables", "after"]);
  });

  test("goes to JSON, and is the same bytes each time", () => {
    const saved = comparison().toJSON();
    assert.equal(saved.format, "tallyfold-comparison/1");
    assert.deepEqual(saved.rows[0].delta, counts("-5", "-1", "0"));
    assert.equal(JSON.stringify(comparison()), JSON.stringify(saved));
  });

  test("is readable when inspected, and lives on without its tables, until it is disposed of", () => {
    const tables = [before(), after()];
    const it = compare(...tables);
    for (const table of tables) table[Symbol.dispose]();
    assert.match(inspect(it), /^Comparison \{.*totalDelta: \{ success: 5n/s);
    it[Symbol.dispose]();
    it[Symbol.dispose]();
    assert.equal(inspect(it), "Comparison (disposed of)");
    assert.equal(thrownBy(() => it.top(1)).code, "out_of_order");
    assert.equal(thrownBy(() => compare(tables[0], after())).code, "out_of_order");
  });
});

function comparison() {
  return compare(before(), after());
}

function before() {
  return foldOf(response([of("a", 5n, 1n, 0n), of("b", 3n, 0n, 7n)]));
}

function after() {
  return foldOf(response([of("b", 7n, 2n, 7n), of("c", 6n, 0n, 0n)], later));
}

function of(integration, ...each) {
  return entry({ integration, reason: "" }, ...each);
}

function counts(success, errors, filtered) {
  return { success, errors, filtered };
}

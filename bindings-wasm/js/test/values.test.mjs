// Tables and rows as values: in JSON, clones, comparisons and consoles, across React's boundary and between builds.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { CountTable, compare, digits, TallyfoldError } from "tallyfold";
import { bytes, entries, entry, foldOf, response, thrownBy, window } from "./responses.mjs";

const cjs = createRequire(import.meta.url)("tallyfold");
const later = { start: window.end, end: "2026-01-01T00:30:00Z" };
const next = [entry({ integration: "sms", reason: "" }, 3n, 1n)];
const first = () => foldOf(response(entries));
const second = () => foldOf(response(next, later));
const table = () => first().merge(second());

/** One of each kind, made anew. */
const kinds = {
  table,
  series: () => table().groupBy("integration").byWindow("15m"),
  comparison: () => compare(first(), second()),
};

for (const [kind, make] of Object.entries(kinds)) {
  describe(`the rows of a ${kind}`, () => {
    test("go to JSON, with digits in strings", () => {
      for (const rows of [[...make()], make().top(2)]) {
        const texts = JSON.stringify(rows);
        assert.match(texts, /"success":"-?[0-9]+"/);
        assert.deepEqual(Object.keys(JSON.parse(texts)[0]), Object.keys(rows[0]));
      }
    });

    test("are plain, and only values of theirs are copied and cloned", () => {
      for (const row of make()) {
        assert.equal(Object.getPrototypeOf(row), Object.prototype);
        assert.deepEqual(structuredClone(row), row);
        assert.deepEqual(Object.getOwnPropertyNames({ ...row }), Object.keys(row));
      }
      assert.deepEqual(make().rows, [...make()]);
      assert.deepEqual(structuredClone(make().rows), [...make()]);
    });

    test("go to JSON as copies, too, with digits", () => {
      assert.throws(() => JSON.stringify(make().rows), TypeError);
      for (const copies of [make().rows, [...make()].map((row) => ({ ...row }))]) {
        assert.equal(JSON.stringify(copies, digits), JSON.stringify([...make()]));
      }
    });

    test("cross React's server boundary", () => {
      const flat = make().rows.flatMap(all);
      for (const value of flat) assert.ok(isTakenByReact(value), inspect(value));
      assert.ok(flat.some((value) => typeof value === "bigint"));
    });
  });

  describe(`a ${kind}`, () => {
    test("equals one with the same content, and no other", () => {
      const it = make();
      assert.ok(it.equals(it));
      assert.ok(it.equals(make()));
      for (const other of Object.values(kinds).filter((other) => other !== make)) {
        assert.ok(!it.equals(other()));
      }
      for (const other of [undefined, null, 1, "table", {}, it.toJSON(), it.rows]) {
        assert.ok(!it.equals(other));
      }
      it[Symbol.dispose]();
      assert.equal(thrownBy(() => it.equals(make())).code, "out_of_order");
    });

    test("is the same to assert and to test runners only if it is equal", () => {
      assert.deepStrictEqual(make(), make());
      for (const other of Object.values(kinds).filter((other) => other !== make)) {
        assert.notDeepStrictEqual(make(), other());
      }
    });

    test("is refused by structuredClone in words", () => {
      assert.throws(() => structuredClone(make()), {
        name: "DataCloneError",
        message: /send its toJSON\(\) or its rows instead.*could not be cloned/,
      });
      assert.throws(() => structuredClone({ nested: [make()] }), { name: "DataCloneError" });
    });

    test("shows its rows in consoles", () => {
      const it = make();
      assert.match(inspect(it), /rows: \[.*integration: 'email'.*success: -?[0-9]+n/s);
      // Consoles of browsers show an object's own properties.
      const own = Object.getOwnPropertyDescriptor(it, "rows");
      assert.deepEqual(own.get.call(it), [...it]);
    });

    test("is the same in the other build", () => {
      const { totals } = second();
      assert.equal(totals.success, 3n);
      const other = { table: ofCjs, series: () => ofCjs().groupBy("integration").byWindow("15m") };
      const theirs = other[kind]?.() ?? cjs.compare(ofCjs(response(entries)), second());
      assert.ok(make().equals(theirs));
      assert.ok(theirs.equals(make()));
    });
  });
}

describe("tables are different", () => {
  const base = () => foldOf(response(entries));
  const different = {
    "in a count": () => foldOf(response([...entries.slice(1), entry(entries[0].dimensions, 1n)])),
    "in a window": () => foldOf(response(entries, later)),
    "in what was reported": () => foldOf(response(entries, { totalErrors: "9" })),
    "in the filter": () => base().filter({ integration: ["email", "warehouse"] }),
    "in the dimensions": () => base().groupBy("reason", "integration"),
  };
  for (const [what, make] of Object.entries(different)) {
    test(what, () => {
      assert.ok(!base().equals(make()));
      assert.notDeepStrictEqual(base(), make());
    });
  }
});

describe("tables of the ES module and of CommonJS", () => {
  test("merge, compare and equal each other", () => {
    const theirs = ofCjs(response(next, later));
    assert.ok(!(theirs instanceof CountTable));
    assert.ok(first().merge(theirs).equals(table()));
    assert.ok(theirs.merge(first()).equals(table()));
    assert.ok(CountTable.mergeAll([theirs, first()]).equals(table()));
    assert.ok(compare(first(), theirs).equals(compare(first(), second())));
  });

  test("are tables only, and whole", () => {
    const theirs = ofCjs();
    for (const other of [theirs.byWindow(), cjs.compare(theirs, theirs), theirs.toJSON()]) {
      const error = thrownBy(() => first().merge(other));
      assert.deepEqual([error.code, error.argument], ["invalid_argument", "other"]);
    }
    theirs[Symbol.dispose]();
    assert.equal(thrownBy(() => first().merge(theirs)).code, "out_of_order");
  });
});

describe("other values", () => {
  test("go to JSON too", () => {
    const it = foldOf(response(entries, { totalDelivered: "13" }));
    const { totalDelta, afterTotals } = compare(first(), second());
    const values = [it.totals, it.reported, it.reconciliation, it.notes, totalDelta, afterTotals];
    assert.deepEqual(JSON.parse(JSON.stringify(values)), [
      { success: "11", errors: "3", filtered: "5" },
      { success: "13", errors: "3", filtered: "5" },
      { verdict: "unbalanced", success: "2", errors: "0", filtered: "0" },
      { repeatedCombinations: "0", nullDimensions: "0" },
      { success: "-8", errors: "-2", filtered: "-5" },
      { success: "3", errors: "1", filtered: "0" },
    ]);
    for (const value of values) assert.deepEqual(structuredClone(value), value);
  });

  test("keep every digit", () => {
    const it = foldOf(response([entry({ integration: "a", reason: "" }, 2n ** 64n - 1n)]));
    assert.match(JSON.stringify([...it]), /"success":"18446744073709551615"/);
  });
});

describe("columns of numbers", () => {
  test("are there for charts", () => {
    const counts = { success: [4, 0, 7], errors: [2, 0, 1], filtered: [0, 5, 0] };
    assert.deepEqual(first().numbers(), counts);
    assert.deepEqual(first().byWindow().numbers(), counts);
    const { before, after, delta } = compare(first(), second()).numbers();
    assert.deepEqual(before.success, [4, 0, 0, 7]);
    assert.deepEqual(after.success, [0, 0, 3, 0]);
    assert.deepEqual(delta.success, [-4, 0, 3, -7]);
  });

  test("hold no count above 2^53", () => {
    const of = (count) => foldOf(response([entry({ integration: "a", reason: "" }, count)]));
    assert.deepEqual(of(2n ** 53n).numbers().success, [2 ** 53]);
    const large = of(2n ** 53n + 1n);
    const none = foldOf(response([], later));
    for (const act of [
      () => large.numbers(),
      () => large.byWindow().numbers(),
      () => compare(large, none).numbers(),
    ]) {
      const error = thrownBy(act);
      assert.ok(TallyfoldError.is(error), String(error));
      assert.equal(error.code, "count_overflow");
      assert.match(error.message, /success: 9007199254740993 in row 0 /);
    }
  });

  test("have signs where they are of changes", () => {
    const changes = compare(first(), second()).deltas();
    assert.deepEqual(changes.success, BigInt64Array.of(-4n, 0n, 3n, -7n));
    const of = (count) => foldOf(response([entry({ integration: "a", reason: "" }, count)]));
    const none = foldOf(response([], later));
    assert.deepEqual(compare(of(2n ** 63n), none).deltas().success, BigInt64Array.of(-(2n ** 63n)));
    const error = thrownBy(() => compare(none, of(2n ** 63n)).deltas());
    assert.equal(error.code, "count_overflow");
  });
});

describe("a series", () => {
  test("is filled with zeros", () => {
    const it = table().groupBy("integration").byWindow("15m");
    const filled = it.fillZeros();
    assert.equal(filled.length, 6);
    assert.deepEqual(
      filled.rows.map((row) => [row.window.start, row.dimensions.integration, row.success]),
      [
        [window.start, "email", 4n],
        [window.start, "sms", 0n],
        [window.start, "warehouse", 7n],
        [later.start, "email", 0n],
        [later.start, "sms", 3n],
        [later.start, "warehouse", 0n],
      ],
    );
    assert.deepEqual(filled.totals, it.totals);
    assert.ok(!filled.equals(it));
    assert.ok(filled.equals(filled.fillZeros()));
  });

  test("is complete if all of its windows are", () => {
    assert.equal(table().byWindow("30m").complete, true);
    assert.equal(table().byWindow("1h").complete, false);
  });
});

/** A table that the CommonJS build has made. */
function ofCjs(body) {
  const read = (text) => {
    const options = { dimensions: ["integration", "reason"], metric: "event_delivery" };
    const aggregator = new cjs.Aggregator(options);
    aggregator.push(bytes(text));
    return aggregator.finish();
  };
  return body === undefined
    ? read(response(entries)).merge(read(response(next, later)))
    : read(body);
}

/** A value and all that is in it. */
function all(value) {
  return typeof value === "object" && value !== null
    ? [value, ...Object.values(value).flatMap(all)]
    : [value];
}

/** What React's `isSimpleObject` takes without a warning: plain objects of enumerable values, without methods. */
function isTakenByReact(value) {
  if (typeof value !== "object" || value === null) {
    return ["bigint", "string", "number", "boolean"].includes(typeof value) || value === null;
  }
  const own = Object.values(Object.getOwnPropertyDescriptors(value));
  const isPlain = Object.getPrototypeOf(value) === Object.prototype;
  return isPlain && own.every((one) => one.enumerable && typeof one.value !== "function");
}

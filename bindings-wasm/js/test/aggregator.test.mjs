import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { describe, test } from "node:test";
import { Aggregator, TallyfoldError } from "tallyfold";
import { bytes, entries, entry, response, thrownBy, window } from "./responses.mjs";

const dimensions = ["integration", "reason"];

/** Above 2 kB, with everything that a cut can go through: escapes, several bytes, long digits. */
const long = response([
  ...entries,
  entry({ integration: 'Zürich \u{1f4e6} "quoted"\\\n', reason: "ⵣ" }, 2n ** 64n - 1000n),
  ...Array.from({ length: 20 }, (_, i) => entry({ integration: `queue-${i}`, reason: "" }, 1n, 2n)),
]);
const body = bytes(long);
const spoiled = bytes(long.replace('"success":"1"', '"success":"1_0"'));

describe("a body", () => {
  test("gives the same table wherever it is split", () => {
    assert.ok(body.length > 2000);
    const whole = JSON.stringify(fold(body));
    for (let at = 0; at <= body.length; at++) {
      assert.equal(JSON.stringify(fold(body.subarray(0, at), body.subarray(at))), whole);
    }
    const single = Array.from(body, (_, at) => body.subarray(at, at + 1));
    assert.equal(JSON.stringify(fold(...single)), whole);
  });

  test("gives the same error wherever it is split", () => {
    const whole = errorOf(spoiled);
    assert.equal(whole.code, "invalid_count");
    assert.match(whole.path, /^\$\.counts\[\d+\]\.success$/);
    for (let at = 0; at <= spoiled.length; at++) {
      assert.deepEqual(errorOf(spoiled.subarray(0, at), spoiled.subarray(at)), whole);
    }
  });

  test("is refused wherever it is cut", () => {
    for (let at = 0; at < body.length; at++) {
      const cut = errorOf(body.subarray(0, at));
      assert.equal(cut.code, at === 0 ? "empty_body" : "truncated_body", `cut at ${at}`);
      assert.equal(cut.kind, "response");
    }
  });
});

describe("an aggregator", () => {
  test("keeps fewer dimensions than were requested", () => {
    const aggregator = new Aggregator({ dimensions, groupBy: ["integration"] });
    aggregator.push(bytes(response()));
    const table = aggregator.finish();
    assert.deepEqual(table.dimensions, ["integration"]);
    assert.equal(table.length, 2);
    assert.equal(table.metric, undefined);
  });

  test("checks dimensions each time, also after they were good", () => {
    const groupBy = ["integration"];
    const tableOf = (options) => {
      const aggregator = new Aggregator(options);
      aggregator.push(bytes(response()));
      return aggregator.finish();
    };
    for (let time = 0; time < 3; time++) {
      assert.deepEqual(tableOf({ dimensions }).dimensions, dimensions);
      assert.deepEqual(tableOf({ dimensions, groupBy: null }).dimensions, dimensions);
      assert.deepEqual(tableOf({ dimensions, groupBy }).dimensions, groupBy);
      assert.deepEqual(tableOf({ dimensions, groupBy: [] }).dimensions, []);
      const { metric } = tableOf({ dimensions, metric: "event_delivery" });
      assert.deepEqual([metric, tableOf({ dimensions }).metric], ["event_delivery", undefined]);
      const wrong = [
        [{ dimensions: ["integration,reason"] }, "unknown_dimension", "dimensions"],
        [{ dimensions: [...dimensions, "reason"] }, "repeated_dimension", "dimensions"],
        [{ dimensions: [new String("reason")] }, "invalid_argument", "dimensions"],
        [{ dimensions: new Set(dimensions) }, "invalid_argument", "dimensions"],
        [{ dimensions: { ...dimensions, length: 2 } }, "invalid_argument", "dimensions"],
        [{ dimensions, groupBy: ["write_key"] }, "unknown_dimension", "groupBy"],
        [{ dimensions, groupBy: "integration" }, "invalid_argument", "groupBy"],
        [{ dimensions: groupBy, groupBy: dimensions }, "unknown_dimension", "groupBy"],
        [{ dimensions, limits: { groups: -1 } }, "invalid_argument", "groups"],
      ];
      for (const [options, ...wanted] of wrong) {
        const { code, argument } = thrownBy(() => new Aggregator(options));
        assert.deepEqual([code, argument], wanted);
      }
    }
    const changing = ["integration", "reason"];
    tableOf({ dimensions: changing });
    changing.pop();
    assert.equal(thrownBy(() => tableOf({ dimensions: changing })).code, "dimension_mismatch");
    assert.deepEqual(tableOf({ dimensions }).dimensions, dimensions);
  });

  test("takes chunks of any size", () => {
    const names = Array.from({ length: 3000 }, (_, i) => `${i}`.padStart(60, "-"));
    const counts = names.map((integration) => entry({ integration, reason: "" }, 1n));
    const long = bytes(response(counts));
    const whole = JSON.stringify(fold(long));
    assert.ok(long.length > 4 * 65_536);
    for (const size of [65_535, 65_536, 65_537, 131_072, 131_073]) {
      const chunks = [];
      for (let at = 0; at < long.length; at += size) chunks.push(long.subarray(at, at + size));
      assert.equal(JSON.stringify(fold(new Uint8Array(), ...chunks)), whole, `${size}`);
    }
    const spoilt = long.slice();
    spoilt[200_000] = 0;
    const error = thrownBy(() => fold(spoilt));
    assert.deepEqual([error.kind, error.offset], ["response", 200_000]);
  });

  test("keeps apart what it reads from what others read", () => {
    const [one, other] = [new Aggregator({ dimensions }), new Aggregator({ dimensions })];
    for (let at = 0; at < body.length; at += 9) {
      one.push(body.subarray(at, at + 9));
      other.push(spoiled.subarray(at, Math.min(at + 9, 200)));
    }
    assert.equal(JSON.stringify(one.finish()), JSON.stringify(fold(body)));
    assert.equal(thrownBy(() => other.finish()).code, "truncated_body");
  });

  test("holds the response to the window, as text and as dates", () => {
    const { start, end } = window;
    for (const it of [window, { start: new Date(start), end: new Date(end) }]) {
      const aggregator = new Aggregator({ dimensions, window: it });
      aggregator.push(bytes(response()));
      assert.equal(aggregator.finish().length, 3);
    }
    const other = new Aggregator({ dimensions, window: { start, end: "2026-01-01T00:20:00Z" } });
    const error = thrownBy(() => {
      other.push(bytes(response()));
      other.finish();
    });
    assert.equal(error.code, "window_mismatch");
    const half = thrownBy(() => new Aggregator({ dimensions, window: { start } }));
    assert.deepEqual([half.code, half.argument], ["missing_argument", "end"]);
    const never = { start: new Date(Number.NaN), end };
    const invalid = thrownBy(() => new Aggregator({ dimensions, window: never }));
    assert.equal(invalid.code, "invalid_timestamp");
    assert.equal(invalid.argument, "start");
  });

  test("adds repeated combinations up only if that is tolerated", () => {
    const twice = bytes(response([...entries, entries[0]]));
    const strict = new Aggregator({ dimensions });
    assert.equal(thrownBy(() => strict.push(twice)).code, "repeated_combination");
    const tolerant = new Aggregator({ dimensions, tolerate: ["repeated_combination"] });
    tolerant.push(twice);
    const table = tolerant.finish();
    assert.equal(table.notes.repeatedCombinations, 1n);
    assert.equal(table.totals.success, 18n);
  });

  test("repeats its error, and tells when it has nothing left to give", () => {
    const aggregator = new Aggregator({ dimensions });
    const first = thrownBy(() => aggregator.push(bytes("[")));
    assert.deepEqual({ ...thrownBy(() => aggregator.finish()) }, { ...first });
    assert.deepEqual({ ...thrownBy(() => aggregator.push(new Uint8Array())) }, { ...first });
    const done = new Aggregator({ dimensions });
    done.push(bytes(response()));
    done.finish();
    assert.equal(thrownBy(() => done.finish()).code, "out_of_order");
    assert.equal(thrownBy(() => done.push(bytes(" "))).code, "out_of_order");
  });

  test("stops at the limits it was given", () => {
    const { code } = thrownBy(() => {
      const aggregator = new Aggregator({ dimensions, limits: { groups: 2 } });
      aggregator.push(bytes(response()));
    });
    assert.equal(code, "group_limit");
  });

  test("throws errors that are known also across copies of the package", () => {
    // The CommonJS build.
    const copy = createRequire(import.meta.url)("tallyfold");
    const error = thrownBy(() => new copy.Aggregator({ dimensions: [] }));
    assert.ok(!(error instanceof TallyfoldError));
    assert.ok(error instanceof Error);
    assert.ok(TallyfoldError.is(error));
    assert.equal(error.name, "TallyfoldError");
    assert.equal(error.code, "no_dimensions");
    for (const other of [new Error("no"), null, undefined, "text", { code: "no_dimensions" }]) {
      assert.ok(!TallyfoldError.is(other));
    }
  });
});

function fold(...chunks) {
  const aggregator = new Aggregator({ dimensions });
  for (const chunk of chunks) aggregator.push(chunk);
  return aggregator.finish();
}

/** The error of a body in these chunks, as far as it tells anything to a program. */
function errorOf(...chunks) {
  const error = thrownBy(() => fold(...chunks));
  assert.ok(TallyfoldError.is(error), String(error));
  return { ...error, message: error.message };
}

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { CountTable } from "tallyfold";
import { entries, entry, foldOf, plain, response, thrownBy, window } from "./responses.mjs";

const later = { start: window.end, end: "2026-01-01T00:30:00Z" };
const next = [entry({ integration: "sms", reason: "" }, 3n, 1n)];

describe("a series", () => {
  test("has a row for each window and combination, in the order of time", () => {
    const rows = plain([...table().groupBy("integration").byWindow()]);
    const [first, second] = [window, later].map((window) => ({
      ...window,
      complete: true,
      provisional: false,
    }));
    assert.deepEqual(rows, [
      { window: first, settled: true, dimensions: { integration: "email" }, ...counts(4n, 2n, 5n) },
      {
        window: first,
        settled: true,
        dimensions: { integration: "warehouse" },
        ...counts(7n, 1n, 0n),
      },
      { window: second, settled: true, dimensions: { integration: "sms" }, ...counts(3n, 1n, 0n) },
    ]);
  });

  test("adds windows up to steps of the UTC day, and says which are covered whole", () => {
    const it = table().byWindow("60m");
    assert.equal(it.step, "1h");
    const [start, end] = [window.start, "2026-01-01T01:00:00Z"];
    assert.deepEqual(it.windows, [{ start, end, complete: false, provisional: false }]);
    assert.equal(it.length, 4);
    assert.deepEqual(it.dimensions, ["integration", "reason"]);
    assert.equal(it.metric, "event_delivery");
    assert.deepEqual(plain(it.totals), counts(14n, 4n, 5n));
    assert.equal(table().byWindow(null).step, undefined);
    const whole = table().byWindow("30m");
    const marks = { complete: true, provisional: false };
    assert.deepEqual(whole.windows, [{ start, end: later.end, ...marks }]);
  });

  test("has rates of its rows and totals, and none of no events", () => {
    const it = table().byWindow("15m");
    const rows = [...it];
    assert.deepEqual(rows[2].rates, { delivery: 0.875, error: 0.125, filter: 0 });
    assert.deepEqual(rows[1].rates, { delivery: null, error: null, filter: 1 });
    assert.deepEqual(it.totals.rates, { delivery: 14 / 18, error: 4 / 18, filter: 5 / 23 });
    const { delivery, error, filter } = it.rates();
    assert.deepEqual(delivery, Float64Array.of(4 / 6, Number.NaN, 0.875, 0.75));
    assert.deepEqual(error, Float64Array.of(2 / 6, Number.NaN, 0.125, 0.25));
    assert.deepEqual(filter, Float64Array.of(0, 1, 0, 0));
  });

  test("comes as columns, whose memory is the caller's own", () => {
    const it = table().groupBy("integration").byWindow();
    const columns = it.columns();
    assert.deepEqual(columns, {
      window: { dictionary: it.windows, ids: Uint32Array.of(0, 0, 1) },
      integration: { dictionary: ["email", "sms", "warehouse"], ids: Uint32Array.of(0, 2, 1) },
      success: BigUint64Array.of(4n, 7n, 3n),
      errors: BigUint64Array.of(2n, 1n, 1n),
      filtered: BigUint64Array.of(5n, 0n, 0n),
    });
    columns.window.ids.fill(7);
    assert.deepEqual(it.columns().window.ids, Uint32Array.of(0, 0, 1));
  });

  test("cuts no counts", () => {
    const error = thrownBy(() => table().byWindow("5m"));
    assert.deepEqual([error.code, error.argument], ["unaligned_window", "step"]);
  });

  test("has the days of a time zone", () => {
    const it = table().byWindow("1d", { zone: "Asia/Kolkata" });
    assert.deepEqual([it.step, it.zone], ["1d", "Asia/Kolkata"]);
    const [start, end] = ["2025-12-31T18:30:00Z", "2026-01-01T18:30:00Z"];
    assert.deepEqual(it.windows, [{ start, end, complete: false, provisional: false }]);
    assert.equal(it.toJSON().zone, "Asia/Kolkata");
    assert.match(inspect(it), /zone: 'Asia\/Kolkata'/);
    const plain = table().byWindow("1d");
    assert.equal(plain.zone, undefined);
    assert.ok(!("zone" in plain.toJSON()));
    assert.deepEqual(table().byWindow("1d", { zone: "UTC" }).windows, plain.windows);
    assert.deepEqual(table().byWindow("1d", { zone: undefined }).windows, plain.windows);
    assert.equal(table().byWindow("1d", { zone: null }).zone, undefined);
    for (const zone of ["", "Mars/Olympus", 5, ["UTC"], {}]) {
      const error = thrownBy(() => table().byWindow("1d", { zone }));
      assert.deepEqual([error.code, error.argument], ["invalid_argument", "zone"]);
      assert.match(error.message, /America\/New_York/);
    }
  });

  test("has days at both ends of time", () => {
    const days = (start, end) =>
      foldOf(response([], { start, end })).byWindow("1d", { zone: "America/New_York" }).windows[0];
    const early = days("0099-01-01T12:00:00Z", "0099-01-01T13:00:00Z");
    assert.equal(early.start, "0099-01-01T04:56:02Z");
    for (const date of ["9999-12-31", "0000-06-01"]) {
      const error = thrownBy(() => days(`${date}T22:00:00Z`, `${date}T23:00:00Z`));
      assert.deepEqual([error.code, error.argument], ["unaligned_window", "zone"]);
    }
  });

  test("is sliced by time where windows end", () => {
    const [start, middle, end] = [window.start, window.end, later.end];
    const parts = [table().between({ start, end: middle }), table().between(later)];
    assert.deepEqual(parts[0].merge(parts[1]).toJSON(), table().toJSON());
    const series = table().byWindow();
    assert.deepEqual(series.between(later).toJSON(), parts[1].byWindow().toJSON());
    const range = { start: new Date(middle), end: new Date(end) };
    assert.deepEqual(series.between(range).toJSON(), series.between(later).toJSON());
    const filled = series.fillZeros().between(later);
    assert.deepEqual(filled.toJSON(), parts[1].byWindow().fillZeros().toJSON());
    const day = table().byWindow("1d", { zone: "Asia/Kolkata" }).between(later);
    assert.deepEqual([day.zone, day.totals], ["Asia/Kolkata", parts[1].totals]);
    const parent = table();
    const child = parent.byWindow();
    parent[Symbol.dispose]();
    assert.equal(thrownBy(() => child.between(later)).code, "out_of_order");
    for (const frame of [table(), series]) {
      const cut = thrownBy(() => frame.between({ start: "2026-01-01T00:01:00Z", end }));
      assert.deepEqual([cut.code, cut.argument], ["unaligned_window", "start"]);
      const none = thrownBy(() => frame.between({ start: end, end: "2026-01-02T00:00:00Z" }));
      assert.equal(none.code, "invalid_window");
    }
  });

  test("goes to JSON, and is the same bytes each time", () => {
    const it = table().byWindow("15m");
    assert.equal(it.toJSON().format, "tallyfold-series/1");
    assert.equal(it.toJSON().step, "15m");
    const again = CountTable.fromJSON(JSON.stringify(table())).byWindow("15m");
    assert.equal(JSON.stringify(again), JSON.stringify(it));
  });

  test("is readable when inspected, and lives on without its table, until it is disposed of", () => {
    const parent = table();
    const it = parent.byWindow();
    parent[Symbol.dispose]();
    assert.match(inspect(it), /^Series \{.*complete: true/s);
    it[Symbol.dispose]();
    it[Symbol.dispose]();
    assert.equal(inspect(it), "Series (disposed of)");
    assert.equal(thrownBy(() => it.columns()).code, "out_of_order");
  });
});

/** Two windows that meet. */
function table() {
  return foldOf(response(entries)).merge(foldOf(response(next, later)));
}

function counts(success, errors, filtered) {
  return { success, errors, filtered };
}

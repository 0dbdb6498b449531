import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";
import { inspect, promisify } from "node:util";
import { Aggregator, CountTable, compare, TallyfoldError } from "tallyfold";
import { bytes, entries, entry, plain, response, thrownBy, window } from "./responses.mjs";

const dimensions = ["integration", "reason"];

describe("a table", () => {
  test("has exact counts per combination, sorted by dimension values", () => {
    assert.deepEqual(plain([...table()]), [
      row({ integration: "email", reason: "" }, 4n, 2n, 0n),
      row({ integration: "email", reason: "consent" }, 0n, 0n, 5n),
      row({ integration: "warehouse", reason: "" }, 7n, 1n, 0n),
    ]);
  });

  test("says what it is about", () => {
    const it = table();
    assert.equal(it.length, 3);
    assert.deepEqual(it.dimensions, dimensions);
    assert.equal(it.metric, "event_delivery");
    assert.deepEqual(plain(it.totals), { success: 11n, errors: 3n, filtered: 5n });
    assert.deepEqual(it.reported, it.totals);
    assert.deepEqual(it.reconciliation, { verdict: "balanced" });
    assert.deepEqual(it.coverage, [window]);
    assert.deepEqual(it.windows, [window]);
    assert.deepEqual(it.notes, { repeatedCombinations: 0n, nullDimensions: 0n });
  });

  test("keeps counts that no double holds", () => {
    const counts = [entry({ integration: "a", reason: "" }, 2n ** 64n - 1n)];
    const it = table(response(counts));
    assert.equal([...it][0].success, 18446744073709551615n);
    assert.equal(it.columns().success[0], 18446744073709551615n);
    assert.equal(CountTable.fromJSON(JSON.stringify(it)).totals.success, 18446744073709551615n);
  });

  test("is refused or the same when any bit of its JSON is flipped", () => {
    const it = table().groupBy("integration");
    const saved = Buffer.from(JSON.stringify(it));
    let refused = 0;
    for (let bit = 0; bit < saved.length * 8; bit++) {
      const bytes = Buffer.from(saved);
      bytes[bit >> 3] ^= 1 << (bit & 7);
      // Text that is no UTF-8 can't be handed over.
      if (!Buffer.from(bytes.toString()).equals(bytes)) continue;
      try {
        assert.deepEqual(CountTable.fromJSON(bytes.toString()).toJSON(), it.toJSON());
      } catch (error) {
        assert.equal(error.code, "invalid_table");
        refused += 1;
      }
    }
    assert.ok(refused > saved.length * 6, `${refused} refused`);
  });

  test("says by how much the reported totals differ from the sums", () => {
    const it = table(response(entries, { totalDelivered: "13", totalErrors: "0" }));
    const difference = { verdict: "unbalanced", success: 2n, errors: -3n, filtered: 0n };
    assert.deepEqual(it.reconciliation, difference);
  });

  test("groups by any of its dimensions, and by none", () => {
    const email = row({ integration: "email" }, 4n, 2n, 5n);
    const warehouse = row({ integration: "warehouse" }, 7n, 1n, 0n);
    assert.deepEqual(plain([...table().groupBy("integration")]), [email, warehouse]);
    assert.deepEqual(plain([...table().groupBy()]), [row({}, 11n, 3n, 5n)]);
    assert.deepEqual(table().groupBy("reason", "integration").dimensions, [
      "reason",
      "integration",
    ]);
  });

  test("filters by one value and by several", () => {
    const it = table();
    assert.equal(it.filter({ integration: "email" }).length, 2);
    assert.equal(it.filter({ integration: ["email", "warehouse"], reason: "" }).length, 2);
    assert.equal(it.filter({ integration: undefined }).length, 3);
    assert.equal(it.filter({ integration: [] }).length, 0);
    // Not all rows, as where the caller lacks what is wanted.
    const error = thrownBy(() => it.filter({ integration: null }));
    assert.deepEqual([error.code, error.argument], ["invalid_argument", "integration"]);
    const { reported, reconciliation } = it.filter({ integration: "email" });
    assert.equal(reported, undefined);
    assert.deepEqual(reconciliation, { verdict: "unavailable" });
  });

  test("ranks its rows by any count", () => {
    const it = table();
    const [email, consent, warehouse] = it;
    assert.deepEqual(it.top(2), [email, warehouse]);
    assert.deepEqual(it.top(1, { by: "success" }), [warehouse]);
    assert.deepEqual(it.top(9, { by: "filtered" }), [consent, email, warehouse]);
    assert.deepEqual(it.top(0), []);
  });

  test("merges with another time, in any order, and replaces a window if told to", () => {
    const later = { start: window.end, end: "2026-01-01T00:30:00Z" };
    const next = table(response(entries.slice(1), later));
    const merged = table().merge(next);
    assert.deepEqual(plain(merged.totals), { success: 15n, errors: 5n, filtered: 10n });
    assert.deepEqual(merged.coverage, [{ start: window.start, end: later.end }]);
    assert.deepEqual(merged.windows, [window, later]);
    assert.equal(JSON.stringify(next.merge(table())), JSON.stringify(merged));
    const again = thrownBy(() => merged.merge(table()));
    assert.equal(again.code, "overlapping_coverage");
    const corrected = merged.merge(table(response(entries.slice(2))), { replace: true });
    assert.deepEqual(plain(corrected.totals), { success: 8n, errors: 4n, filtered: 5n });
  });

  test("comes as columns, whose memory is the caller's own", () => {
    const it = table();
    const columns = it.columns();
    assert.deepEqual(columns.integration, {
      dictionary: ["email", "warehouse"],
      ids: Uint32Array.of(0, 0, 1),
    });
    assert.deepEqual(columns.errors, BigUint64Array.of(2n, 0n, 1n));
    const before = structuredClone(columns);
    // Enough to make the memory of the core grow, which detaches whatever still points into it.
    const many = Array.from({ length: 50_000 }, (_, i) =>
      entry({ integration: `i${i}`, reason: "" }, 1n),
    );
    table(response(many));
    assert.deepEqual(columns, before);
    columns.success.fill(0n);
    assert.deepEqual(it.columns(), before);
  });

  test("has rates of its rows and totals, and none of no events", () => {
    const it = table();
    const [, consent, warehouse] = it;
    assert.deepEqual(warehouse.rates, { delivery: 0.875, error: 0.125, filter: 0 });
    assert.deepEqual(consent.rates, { delivery: null, error: null, filter: 1 });
    assert.deepEqual(it.top(1, { by: "filtered" })[0].rates, consent.rates);
    assert.deepEqual(it.totals.rates, { delivery: 11 / 14, error: 3 / 14, filter: 5 / 19 });
    assert.deepEqual(it.reported.rates, it.totals.rates);
    assert.deepEqual(it.rates(), {
      delivery: Float64Array.of(4 / 6, Number.NaN, 0.875),
      error: Float64Array.of(2 / 6, Number.NaN, 0.125),
      filter: Float64Array.of(0, 1, 0),
    });
  });

  test("has the rates of counts that no double holds", () => {
    const counts = [entry({ integration: "a", reason: "" }, 2n ** 64n - 1n, 2n ** 64n - 1n)];
    const [first] = table(response(counts));
    assert.deepEqual(first.rates, { delivery: 0.5, error: 0.5, filter: 0 });
  });

  test("goes to JSON and back, and is the same bytes each time", () => {
    const it = table(response(entries, { totalErrors: "9" }));
    const text = JSON.stringify(it);
    for (const again of [CountTable.fromJSON(text), CountTable.fromJSON(JSON.parse(text))]) {
      assert.equal(JSON.stringify(again), text);
      assert.deepEqual([...again], [...it]);
      assert.deepEqual(again.reconciliation, it.reconciliation);
    }
    assert.equal(it.toJSON().totals.success, "11");
  });

  test("is not read from JSON that no longer adds up", () => {
    const text = JSON.stringify(table()).replace('"success":"7"', '"success":"8"');
    const error = thrownBy(() => CountTable.fromJSON(text));
    assert.equal(error.code, "invalid_table");
    assert.equal(error.path, "$.totals");
    assert.equal(thrownBy(() => CountTable.fromJSON("{")).code, "invalid_table");
    const circle = {};
    circle.circle = circle;
    for (const given of [table().rows, [1n], circle, null, 5]) {
      const { code, argument } = thrownBy(() => CountTable.fromJSON(given));
      assert.equal(code, "invalid_argument");
      assert.equal(argument, "json");
    }
  });

  test("is readable when inspected", () => {
    const text = inspect(table());
    assert.match(text, /^CountTable \{/);
    assert.match(text, /success: 11n/);
    assert.match(text, /'balanced'/);
  });
});

describe("arguments of a wrong type", () => {
  const wrong = [
    ["groupBy", () => table().groupBy(1)],
    ["reason", () => table().filter({ reason: 1 })],
    ["filter", () => table().filter("reason")],
    ["n", () => table().top(1.5)],
    ["n", () => table().top(-1)],
    ["n", () => table().top("1")],
    ["by", () => table().top(1, { by: 1 })],
    ["by", () => table().top(1, { by: "sum" })],
    ["other", () => table().merge({})],
    ["step", () => table().byWindow(900)],
    ["step", () => table().byWindow("7m")],
    ["before", () => compare({}, table())],
    ["after", () => compare(table())],
    ["n", () => compare(table(), table()).top("1")],
    ["by", () => compare(table(), table()).top(1, { by: "sum" })],
    ["chunk", () => new Aggregator({ dimensions }).push("text")],
    ["chunk", () => new Aggregator({ dimensions }).push(new Uint16Array(2))],
    ["dimensions", () => new Aggregator({ dimensions: "reason" })],
    ["groupBy", () => new Aggregator({ dimensions, groupBy: [null] })],
    ["depth", () => new Aggregator({ dimensions, limits: { depth: -1 } })],
    ["limits", () => new Aggregator({ dimensions, limits: 5 })],
    ["tolerate", () => new Aggregator({ dimensions, tolerate: ["everything"] })],
    ["metric", () => new Aggregator({ dimensions, metric: "event_loss" })],
  ];
  for (const [argument, act] of wrong) {
    test(`are named: ${argument} in ${String(act).slice("() => ".length)}`, () => {
      const error = thrownBy(act);
      assert.ok(TallyfoldError.is(error), String(error));
      assert.equal(error.kind, "config");
      assert.equal(error.code, "invalid_argument");
      assert.equal(error.argument, argument);
      assert.ok(error.message.startsWith(`invalid_argument: ${argument}: `), error.message);
    });
  }

  test("and arguments that are missing", () => {
    for (const options of [undefined, null, {}, "reason"]) {
      const error = thrownBy(() => new Aggregator(options));
      assert.equal(error.code, "missing_argument");
      assert.equal(error.argument, "dimensions");
    }
  });

  test("are spelled as JavaScript spells them", () => {
    const error = thrownBy(
      () => new Aggregator({ dimensions: ["reason"], groupBy: ["integration"] }),
    );
    assert.equal(error.argument, "groupBy");
    assert.match(error.message, /^unknown_dimension: groupBy: /);
  });

  for (const [argument, act] of [
    ["timeZone", () => table().byWindow("1d", { timeZone: "Asia/Kolkata" })],
    ["replaces", () => table().merge(table(), { replaces: true })],
    ["By", () => table().top(1, { By: "errors" })],
  ]) {
    test(`are refused if there is no such argument: ${argument}`, () => {
      const error = thrownBy(act);
      assert.deepEqual([error.code, error.argument], ["unknown_argument", argument]);
      const start = `unknown_argument: ${argument}: there is no such argument`;
      assert.ok(error.message.startsWith(start), error.message);
    });
  }

  test("are told apart from an array of names", () => {
    const error = thrownBy(() => table().groupBy(["integration"]));
    assert.deepEqual([error.code, error.argument], ["invalid_argument", "groupBy"]);
    assert.match(error.message, /want names, not an array/);
  });
});

describe("disposal", () => {
  test("frees a table, and what was made from it lives on", () => {
    const it = table();
    const grouped = it.groupBy("integration");
    it[Symbol.dispose]();
    it[Symbol.dispose]();
    assert.equal(grouped.length, 2);
    const error = thrownBy(() => it.totals);
    assert.ok(TallyfoldError.is(error));
    assert.equal(error.code, "out_of_order");
    assert.equal(inspect(it), "CountTable (disposed of)");
  });

  test("needs no thought: the memory of forgotten tables is used again", async () => {
    const script = `
      import { Aggregator } from "tallyfold";
      import { entry, response, bytes } from "./test/responses.mjs";
      const name = (i) => String(i).padStart(4000, "-");
      const counts = Array.from({ length: 100 }, (_, i) => entry({ event_name: name(i) }, 1n));
      const body = bytes(response(counts));
      const fold = () => {
        const aggregator = new Aggregator({ dimensions: ["event_name"] });
        aggregator.push(body);
        return aggregator.finish();
      };
      const round = async () => {
        for (let i = 0; i < 20; i++) fold();
        gc();
        await new Promise((resolve) => setTimeout(resolve, 1));
      };
      await round();
      const before = process.memoryUsage().rss;
      for (let i = 0; i < 20; i++) await round();
      console.log(process.memoryUsage().rss - before);`;
    const node = [process.execPath, ["--expose-gc", "--input-type=module", "-e", script]];
    const { stdout } = await promisify(execFile)(...node, { cwd: new URL("..", import.meta.url) });
    // Four hundred tables of 400 kB are 160 MB, of which no more than a round may be there at once.
    assert.ok(Number(stdout) < 60e6, stdout);
  });
});

test("a loop that only awaits needs no turns: the memory of its tables is used again", async () => {
  const script = `
    import { Client } from "tallyfold";
    import { entry, response, window } from "./test/responses.mjs";
    const name = (i) => String(i).padStart(4000, "-");
    const counts = Array.from({ length: 100 }, (_, i) => entry({ event_name: name(i) }, 1n));
    const body = response(counts);
    const headers = { "content-type": "application/json" };
    const bytes = new TextEncoder().encode(body);
    // Answers at once, without any turn of the event loop.
    const fetch = async () => ({
      status: 200, headers: Object.entries(headers), arrayBuffer: async () => bytes.slice().buffer,
    });
    const accessToken = () => ({ accessToken: "a" });
    const client = new Client({ clusterEndpoint: "http://localhost", accessToken, fetch });
    const round = async (count) => {
      for (let i = 0; i < count; i++) await client.eventDelivery({ ...window, dimensions: ["event_name"] });
    };
    await round(200);
    const before = process.memoryUsage().rss;
    await round(1000);
    console.log(process.memoryUsage().rss - before);`;
  const node = [process.execPath, ["--input-type=module", "-e", script]];
  const { stdout } = await promisify(execFile)(...node, { cwd: new URL("..", import.meta.url) });
  // A thousand tables of 400 kB are 400 MB.
  assert.ok(Number(stdout) < 200e6, stdout);
});

function table(body = response()) {
  const aggregator = new Aggregator({ dimensions, metric: "event_delivery" });
  aggregator.push(bytes(body));
  return aggregator.finish();
}

function row(dimensions, success, errors, filtered) {
  return { dimensions, success, errors, filtered };
}

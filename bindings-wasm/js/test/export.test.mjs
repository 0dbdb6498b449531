// Exports: the bytes of every format, which are the same in every language, and what becomes of them.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { lstat, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { Aggregator, Client, CountTable, compare, Sandbox, TallyfoldError } from "tallyfold";
import { exportCounts, export as exportToo, init } from "tallyfold/export";
import { stateFile } from "tallyfold/node";
import { bytes, entry, response, thrownBy } from "./responses.mjs";

const vectors = JSON.parse(
  await readFile(new URL("../../../tests/vectors/exports.json", import.meta.url), "utf8"),
);
const table = (name) => CountTable.fromJSON(vectors.tables[name]);
const silent = { onNote: () => {} };

/** The counts of a vector. */
function given({ table: name, step, before, after, ...revision }) {
  if (name !== undefined) return step ? table(name).byWindow(step) : table(name);
  const newest = table(after);
  const [window] = newest.windows;
  return { window, table: newest, changes: compare(table(before), newest), ...revision };
}

function camel(options) {
  const { max_bytes: maxBytes, ...others } = options;
  return { ...others, ...(maxBytes && { maxBytes }) };
}

describe("exports.json", () => {
  let ran = 0;
  for (const it of vectors.cases) {
    test(it.name, () => {
      ran += 1;
      const told = [];
      const options = { ...camel(it.options), onNote: ({ kind }) => told.push(kind) };
      if (it.error) {
        const error = thrownBy(() => exportCounts(given(it.given), options));
        assert.deepEqual([error.code, error.argument ?? null], [it.error.code, it.error.argument]);
        return;
      }
      const exported = exportCounts(given(it.given), options);
      const isText = (at) => typeof it.pieces[at] === "string";
      const pieces = Array.from(exported, (piece, at) =>
        isText(at) ? new TextDecoder().decode(piece) : { hex: Buffer.from(piece).toString("hex") },
      );
      assert.deepEqual(pieces, it.pieces);
      assert.equal(exported.mediaType, it.media_type);
      assert.equal(exported.isMessages, it.is_messages);
      assert.deepEqual(told, it.notes);
      assert.deepEqual(
        exported.notes.map(({ kind }) => kind),
        it.notes,
      );
    });
  }
  test("ran all", () => assert.equal(ran, vectors.count));
});

describe("an export", () => {
  const odd = table("odd");
  const text = exportCounts(odd, { format: "openmetrics" }).text();

  test("has the same bytes however it is read, and any number of times", async () => {
    const exported = exportToo(odd, { format: "openmetrics", maxBytes: 300 });
    assert.ok([...exported].length > 10);
    assert.equal(exported.text(), text);
    assert.equal(await new Response(exported.stream()).text(), text);
    const pieces = [];
    for await (const piece of exported) pieces.push(piece);
    assert.equal(Buffer.concat(pieces).toString(), text);
  });

  test("gives pieces that stay as they are", () => {
    const [one, ...others] = exportCounts(odd, { format: "csv", maxBytes: 100 });
    const copy = one.slice();
    assert.ok(others.length > 2);
    for (const other of others) assert.notEqual(other.buffer, one.buffer);
    assert.deepEqual(one, copy);
  });

  test("can be left in the middle", async () => {
    const exported = exportCounts(odd, { format: "csv", maxBytes: 100 });
    for (const _ of exported) break;
    const reader = exported.stream().getReader();
    assert.equal((await reader.read()).done, false);
    await reader.cancel();
    assert.equal(exported.text(), exportCounts(odd, { format: "csv" }).text());
  });

  test("of no rows is a text too", () => {
    const none = odd.filter({ integration: "nowhere" });
    assert.equal(exportCounts(none, { format: "openmetrics" }).text(), "# EOF\n");
    assert.deepEqual([...exportCounts(none, { format: "otlp" })], []);
  });

  test("stays when the table is disposed of, and not when it is itself", async () => {
    const own = table("odd");
    const exported = exportCounts(own, { format: "openmetrics" });
    own[Symbol.dispose]();
    assert.equal(exported.text(), text);
    const stream = exported.stream();
    exported[Symbol.dispose]();
    assert.equal(thrownBy(() => exported.text()).code, "out_of_order");
    assert.equal(await new Response(stream).text(), text);
    assert.equal(thrownBy(() => exportCounts(own, { format: "csv" })).code, "out_of_order");
  });

  test("takes labels as an object, a Map, or pairs", () => {
    const labels = { cluster: "a", zone: "b" };
    const texts = [labels, new Map(Object.entries(labels)), Object.entries(labels)].map((labels) =>
      exportCounts(odd, { format: "csv", labels }).text(),
    );
    assert.match(texts[0], /^cluster,zone,window_start/);
    assert.deepEqual(new Set(texts).size, 1);
  });

  test("takes the objects of CommonJS, and the other way round", () => {
    const require = createRequire(import.meta.url);
    const common = require("tallyfold");
    const theirs = common.CountTable.fromJSON(vectors.tables.odd);
    assert.ok(!(theirs instanceof CountTable));
    const commonExport = require("tallyfold/export");
    assert.equal(exportCounts(theirs, { format: "openmetrics" }).text(), text);
    assert.equal(commonExport.export(odd, { format: "openmetrics" }).text(), text);
    const series = theirs.byWindow("1h");
    const own = odd.byWindow("1h");
    const [one, other] = [series, own].map((it) =>
      exportCounts(it, { format: "ndjson", ...silent }).text(),
    );
    assert.equal(one, other);
    const error = thrownBy(() => commonExport.exportCounts(1, { format: "csv" }));
    assert.ok(TallyfoldError.is(error));
  });

  test("can be compiled before it is needed", () => init());
});

describe("windows that may still change", () => {
  let fresh;
  before(async () => {
    const sandbox = new Sandbox({ seed: 3 });
    const now = () => ({ monotonicMs: 0, unixMs: Date.parse("2026-03-01T12:20:00Z") });
    const options = { ...sandbox.credentials, clusterEndpoint: "http://localhost", now };
    const client = new Client({ ...options, fetch: sandbox.fetch });
    const query = { dimensions: ["integration"], metric: "event_delivery", window: "15m" };
    const range = { start: "2026-03-01T11:00:00Z", end: "2026-03-01T12:15:00Z" };
    fresh = await client.collect({ ...query, ...range });
  });

  test("are left out, and that is told", () => {
    const kinds = [];
    const options = { format: "openmetrics", onNote: ({ kind }) => kinds.push(kind) };
    assert.ok(fresh.provisional.length > 0);
    for (const counts of [fresh, fresh.byWindow(), fresh.byWindow("15m")]) {
      const settled = exportCounts(counts, options).text();
      const all = exportCounts(counts, { ...options, windows: "all" }).text();
      const times = (text) => new Set(text.match(/[0-9]+\.999$/gm)).size;
      assert.equal(times(all), 5);
      assert.equal(times(settled), 5 - fresh.provisional.length);
    }
    assert.deepEqual(kinds, ["windows_left_out", "windows_left_out", "windows_left_out"]);
  });

  test("are a warning with a name otherwise", async () => {
    const warned = new Promise((resolve) => process.once("warning", resolve));
    exportCounts(fresh, { format: "openmetrics" });
    const { name, message } = await warned;
    assert.equal(name, "WindowsLeftOutWarning");
    assert.match(message, /windows/);
  });

  test("tell of a value that a reader does not take", () => {
    const kinds = [];
    const onNote = ({ kind, message }) => kinds.push([kind, message.slice(0, 37)]);
    const body = response([entry({ integration: "x".repeat(4_097) }, 1n)]);
    const aggregator = new Aggregator({ dimensions: ["integration"] });
    aggregator.push(bytes(body));
    const long = aggregator.finish();
    exportCounts(long, { format: "openmetrics", onNote });
    exportCounts(long, { format: "csv", onNote });
    assert.deepEqual(kinds, [["long_value", "a value of integration has 4097 bytes"]]);
  });

  test("are written to files, which say so", () => {
    const csv = exportCounts(fresh, { format: "csv" }).text();
    assert.match(csv, /T12:15:00Z,false,/);
    assert.match(csv, /T11:15:00Z,true,/);
  });
});

describe("what can't be exported", () => {
  const odd = table("odd");
  const refused = {
    nothing: [undefined, { format: "csv" }, "invalid_argument", "counts"],
    "a comparison": [compare(odd, odd), { format: "csv" }, "invalid_argument", "counts"],
    rows: [odd.rows, { format: "csv" }, "invalid_argument", "counts"],
    "an object that says it is a table": [
      { [Symbol.for("tallyfold.content")]: {} },
      { format: "csv" },
      "invalid_argument",
      "counts",
    ],
    "no options": [odd, undefined, "missing_argument", "format"],
    "options of text": [odd, "csv", "invalid_argument", "options"],
    "another format": [odd, { format: "xml" }, "invalid_argument", "format"],
    "a misspelt option": [odd, { format: "csv", label: {} }, "unknown_argument", "label"],
    "an option of a push": [odd, { format: "csv", url: "http://a" }, "unknown_argument", "url"],
    "labels of numbers": [odd, { format: "csv", labels: { a: 1 } }, "invalid_argument", "labels"],
    "a label with a dash": [
      odd,
      { format: "csv", labels: { "a-b": "1" } },
      "invalid_argument",
      "labels",
    ],
    "a name with a space": [odd, { format: "csv", name: "a b" }, "invalid_argument", "name"],
    "onNote of no kind": [odd, { format: "csv", onNote: 1 }, "invalid_argument", "onNote"],
    "a size below 0": [odd, { format: "csv", maxBytes: -1 }, "invalid_argument", "maxBytes"],
  };
  for (const [what, [counts, options, code, argument]] of Object.entries(refused)) {
    test(`is refused by name: ${what}`, () => {
      const error = thrownBy(() => exportCounts(counts, options));
      assert.deepEqual([error.code, error.argument], [code, argument]);
      assert.equal(error.kind, "config");
    });
  }

  test("columns that were tampered with are refused, and the next export is whole", () => {
    const [content] = Object.getOwnPropertySymbols(odd);
    const columns = odd.byWindow().columns();
    const spoilt = {
      [content]: {},
      fillZeros: () => {},
      dimensions: odd.dimensions,
      metric: odd.metric,
      columns: () => ({ ...columns, errors: columns.errors.slice(1) }),
    };
    const error = thrownBy(() => exportCounts(spoilt, { format: "csv" }));
    assert.deepEqual([error.code, error.argument], ["invalid_argument", "counts"]);
    assert.ok(exportCounts(odd, { format: "csv" }).text().length > 100);
  });

  test("protobuf is no text, and messages are no file", () => {
    const errors = [
      () => exportCounts(odd, { format: "otlp" }).text(),
      () => exportCounts(odd, { format: "otlp-json", maxBytes: 10 }).text(),
    ].map(thrownBy);
    for (const { code } of errors) assert.equal(code, "unsupported_by_format");
    assert.match(exportCounts(odd, { format: "influx" }).text(), /success=/);
  });
});

describe("a file", () => {
  let home;
  before(async () => {
    home = await mkdtemp(join(tmpdir(), "tallyfold-export-"));
  });
  after(() => rm(home, { recursive: true, force: true }));
  const odd = table("odd");

  test("is written whole, by path or URL", async () => {
    const exported = exportCounts(odd, { format: "openmetrics", maxBytes: 200 });
    const path = join(home, "counts.om");
    const text = exported.text();
    for (const place of [path, pathToFileURL(path)]) {
      assert.equal(await exported.writeTo(place), Buffer.byteLength(text));
      assert.equal(await readFile(path, "utf8"), text);
    }
    await rm(path);
    const written = exported.writeTo(path);
    exported[Symbol.dispose]();
    assert.equal(await written, Buffer.byteLength(text));
    assert.equal(await readFile(path, "utf8"), text);
    assert.deepEqual(await readdir(home), ["counts.om"]);
  });

  test("keeps its permissions and its links", async () => {
    const path = join(home, "target.csv");
    const link = join(home, "link.csv");
    await writeFile(path, "old", { mode: 0o640 });
    await symlink(path, link);
    const csv = exportCounts(odd, { format: "csv" });
    await csv.writeTo(link);
    assert.equal(await readFile(path, "utf8"), csv.text());
    assert.equal((await stat(path)).mode & 0o777, 0o640);
    assert.ok((await lstat(link)).isSymbolicLink());
    await rm(path);
    await csv.writeTo(link);
    assert.equal(await readFile(path, "utf8"), csv.text());
    assert.ok((await lstat(link)).isSymbolicLink());
  });

  test("is written to directly if it is a pipe", async () => {
    const path = join(home, "pipe");
    execFileSync("mkfifo", [path]);
    const csv = exportCounts(odd, { format: "csv" });
    const read = readFile(path, "utf8");
    await csv.writeTo(path);
    assert.equal(await read, csv.text());
    assert.ok((await stat(path)).isFIFO());
    const refused = { code: "invalid_argument", argument: "file" };
    await assert.rejects(stateFile(path).load(), refused);
    await assert.rejects(stateFile(path).store("{}"), refused);
  });

  test("stays as it is if something fails in the middle", async () => {
    const path = join(home, "kept");
    await writeFile(path, "before");
    const messages = exportCounts(odd, { format: "influx", maxBytes: 100 });
    await assert.rejects(messages.writeTo(path), { code: "unsupported_by_format" });
    assert.equal(await readFile(path, "utf8"), "before");
    const nowhere = join(home, "nowhere", "a");
    await assert.rejects(messages.writeTo(nowhere), { code: "ENOENT" });
    await assert.rejects(messages.writeTo(5), { code: "invalid_argument", argument: "path" });
    assert.ok(!(await readdir(home)).some((name) => name.endsWith(".tmp")));
  });
});

test("a large table is handed over and written with bounded memory", async () => {
  const rows = Array.from({ length: 100_000 }, (_, at) => ({
    values: [`destination ${String(at).padStart(6, "0")}`, `reason ${at % 50}`],
    success: String(at),
    errors: "1",
    filtered: "0",
  }));
  const reasons = rows.map(({ values }) => values);
  assert.equal(reasons.length, 100_000);
  const { digest: _, ...saved } = vectors.tables.single;
  const sum = (rows.length * (rows.length - 1)) / 2;
  const totals = { success: String(sum), errors: String(rows.length), filtered: "0" };
  const [window] = saved.windows;
  const large = CountTable.fromJSON({
    ...saved,
    format: "tallyfold-table/1",
    totals,
    windows: [{ ...window, reported: totals, rows }],
  });
  const exported = exportCounts(large, { format: "csv" });
  let bytes = 0;
  let most = 0;
  let lines = 0;
  for (const piece of exported) {
    bytes += piece.length;
    most = Math.max(most, piece.length);
    for (const byte of piece) if (byte === 10) lines += 1;
  }
  assert.equal(lines, 100_001);
  assert.ok(bytes > 5e6, `${bytes} bytes`);
  assert.ok(most < 200_000, `${most} bytes at once`);
});

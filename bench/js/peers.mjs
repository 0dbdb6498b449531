// What people would write instead.
import { createRequire } from "node:module";
import { rollup, sum } from "d3-array";

export function withJsonParseAlone(body) {
  return JSON.parse(body.toString("utf8"));
}

/** `JSON.parse`, and a Map with BigInt sums. */
export function withJsonParse(body) {
  const groups = new Map();
  for (const { success, errors, filtered, dimensions } of withJsonParseAlone(body).counts) {
    const key = `${dimensions.write_key}\0${dimensions.integration}`;
    let sums = groups.get(key);
    if (sums === undefined) {
      sums = [0n, 0n, 0n];
      groups.set(key, sums);
    }
    sums[0] += BigInt(success);
    sums[1] += BigInt(errors);
    sums[2] += BigInt(filtered);
  }
  return groups;
}

/**
 * duckdb-wasm, with its built-in JSON reader. `read_json` is in an extension that duckdb-wasm
 * fetches from the network when it is used, and that npm does not have.
 */
export async function duckdb() {
  const require = createRequire(import.meta.url);
  const { createDuckDB, NODE_RUNTIME, VoidLogger } = require("@duckdb/duckdb-wasm/blocking");
  const module = (name) => ({ mainModule: require.resolve(`@duckdb/duckdb-wasm/dist/${name}`) });
  const bundles = { mvp: module("duckdb-mvp.wasm"), eh: module("duckdb-eh.wasm") };
  const database = await createDuckDB(bundles, new VoidLogger(), NODE_RUNTIME);
  await database.instantiate();
  const connection = database.connect();
  const { Field, Struct, Utf8 } = createRequire(require.resolve("@duckdb/duckdb-wasm"))(
    "apache-arrow",
  );
  const texts = (names) => names.map((name) => [name, new Utf8()]);
  const dimensions = texts(["event_name", "write_key", "integration", "reason"]);
  const columns = {
    ...Object.fromEntries(texts(["success", "errors", "filtered"])),
    dimensions: new Struct(dimensions.map(([name, type]) => new Field(name, type))),
  };

  /** Reads only the array `counts`, because the built-in reader accepts nothing else. */
  return function withDuckdb(body) {
    const start = body.indexOf('"counts":[') + '"counts":'.length;
    database.registerFileBuffer("entries.json", new Uint8Array(body.subarray(start, -1)));
    connection.insertJSONFromPath("entries.json", { name: "entries", columns });
    const table = connection.query(`
      SELECT dimensions.write_key || chr(0) || dimensions.integration AS key,
        sum(success::UBIGINT)::UBIGINT AS success,
        sum(errors::UBIGINT)::UBIGINT AS errors,
        sum(filtered::UBIGINT)::UBIGINT AS filtered
      FROM entries GROUP BY ALL`);
    connection.query("DROP TABLE entries");
    database.dropFile("entries.json");
    return table;
  };
}

/**
 * The rows of a table as a dashboard holds them: objects of one shape, with numbers that are
 * exact up to 2^53.
 */
export function rowObjects(table) {
  const columns = table.columns();
  const value = (name, row) => columns[name].dictionary[columns[name].ids[row]];
  return Array.from(columns.success, (success, row) => ({
    event_name: value("event_name", row),
    write_key: value("write_key", row),
    integration: value("integration", row),
    reason: value("reason", row),
    success: Number(success),
    errors: Number(columns.errors[row]),
    filtered: Number(columns.filtered[row]),
  }));
}

export function withRollup(rows, keys) {
  const sums = (group) => ({
    success: sum(group, (row) => row.success),
    errors: sum(group, (row) => row.errors),
    filtered: sum(group, (row) => row.filtered),
  });
  return rollup(rows, sums, ...keys.map((key) => (row) => row[key]));
}

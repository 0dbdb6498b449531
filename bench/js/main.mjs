// Compares the fold in Node with what people would write instead, in one run.
//
// Takes the directory of the bodies that `tallyfold-bench bodies` wrote. `make bench` runs it.
import { deepStrictEqual } from "node:assert";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { collecting } from "./collecting.mjs";
import { DIMENSIONS, fold, groupsOf } from "./folding.mjs";
import { atLeast, atMost, compare, median, medianRatio, takeTurns, tell } from "./measuring.mjs";
import { duckdb, rowObjects, withJsonParse, withJsonParseAlone, withRollup } from "./peers.mjs";

const KEYS = ["write_key", "integration"];
const MEMORY_KEPT = [
  ["event_name", "integration"],
  ["event_name", "write_key", "integration"],
];

const directory = process.argv[2];
const body = (name) => readFileSync(`${directory}/${name}.json`);
const sorted = (groups) => groups.toSorted(([a], [b]) => (a < b ? -1 : 1));
const groupsOfMap = (map) => sorted(Array.from(map, ([key, sums]) => [key, ...sums]));

async function bytesToGroups(large) {
  const withDuckdb = await duckdb();
  const groups = fold(large, KEYS, groupsOf);
  deepStrictEqual(groupsOfMap(withJsonParse(large)), groups);
  const found = withDuckdb(large).toArray();
  const rows = found.map(({ key, success, errors, filtered }) => [key, success, errors, filtered]);
  deepStrictEqual(sorted(rows), groups);
  const work = "100,000 entries to 1,200 groups";
  const peers = [
    ["JSON.parse alone", () => withJsonParseAlone(large), atLeast(7)],
    ["JSON.parse and Map", () => withJsonParse(large), atLeast(10)],
    ["duckdb-wasm", () => withDuckdb(large), atLeast(10)],
  ];
  compare(work, () => fold(large, KEYS), peers, { rounds: 7, bodyBytes: large.length });
}

function manyGroups(medium) {
  const keys = ["event_name", "write_key"];
  const work = "2 MB to 6,000 groups";
  const peers = [["JSON.parse alone", () => withJsonParseAlone(medium), atLeast(5)]];
  const options = { rounds: 11, repeats: 10, bodyBytes: medium.length };
  compare(work, () => fold(medium, keys), peers, options);
}

function noSlowerThanJsonParse(work, small, options) {
  deepStrictEqual(groupsOfMap(withJsonParse(small)), fold(small, KEYS, groupsOf));
  const peers = [["JSON.parse and Map", () => withJsonParse(small), atLeast(1)]];
  compare(work, () => fold(small, KEYS), peers, { ...options, bodyBytes: small.length });
}

function everyRowRead(small) {
  const peers = [["JSON.parse and Map", () => withJsonParse(small), null]];
  const ours = () => fold(small, KEYS, groupsOf);
  const options = { rounds: 11, repeats: 2000, bodyBytes: small.length };
  compare("1 kB, every row read", ours, peers, options);
}

function regrouping(largest) {
  fold(largest, DIMENSIONS, (table) => {
    const rows = rowObjects(table);
    for (const [dimensions, keys] of [
      ["one dimension", ["integration"]],
      ["two dimensions", KEYS],
    ]) {
      deepStrictEqual(groupsOfRollup(withRollup(rows, keys)), groupsOf(table.groupBy(...keys)));
      const work = `1,000,000 rows regrouped by ${dimensions}`;
      const ours = () => table.groupBy(...keys).columns();
      const peers = [["d3-array rollup", () => withRollup(rows, keys), atLeast(20)]];
      compare(work, ours, peers, { rounds: 7 });
    }
  });
}

function groupsOfRollup(map) {
  const flat = (value, keys) =>
    value instanceof Map
      ? Array.from(value, ([key, inner]) => flat(inner, [...keys, key])).flat()
      : [[keys.join("\0"), ...Object.values(value).map(BigInt)]];
  return sorted(flat(map, []));
}

function growth(work, keep, some, more, most) {
  const folding = (body) => () => fold(body, keep);
  const [times, tenfold] = takeTurns(11, 1, [folding(some), folding(more)]);
  tell({
    work,
    peer: "a tenth of it",
    medians: [median(tenfold) / 1e3, median(times) / 1e3],
    unit: "seconds",
    body_bytes: more.length,
    ratio: medianRatio(tenfold, times),
    target: atMost(most),
  });
}

function memory(keep) {
  const program = fileURLToPath(new URL("memory.mjs", import.meta.url));
  const { status } = spawnSync(process.execPath, [program, directory, ...keep], {
    stdio: "inherit",
  });
  if (status !== 0) process.exitCode = 1;
}

const large = body("plain-100000");
const small = body("plain-5");
await bytesToGroups(large);
manyGroups(body("groups-6000"));
noSlowerThanJsonParse("100,000, keys shuffled", body("shuffled-100000"), { rounds: 7 });
noSlowerThanJsonParse("1 kB", small, { rounds: 11, repeats: 2000 });
everyRowRead(small);
const largest = body("plain-1000000");
growth("1,000,000 entries, 1,200 groups", KEYS, large, largest, 11);
growth("1,000,000 entries, each a group", DIMENSIONS, large, largest, 14);
regrouping(largest);
for (const keep of MEMORY_KEPT) memory(keep);
await collecting();

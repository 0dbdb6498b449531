// Response bytes to groups in Node: the fold, and what people would write instead, in one run.
//
// Takes the file of a body that `tallyfold-bench body plain 100000` wrote.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const installed = new URL("../examples/package.json", import.meta.url);
const { Aggregator } = createRequire(installed)("tallyfold");

const ROUNDS = 7;
const body = readFileSync(process.argv[2]);

function withTallyfold() {
  const aggregator = new Aggregator({
    dimensions: ["event_name", "write_key", "integration", "reason"],
    groupBy: ["write_key", "integration"],
  });
  for (let start = 0; start < body.length; start += 65536) {
    aggregator.push(body.subarray(start, start + 65536));
  }
  return aggregator.finish().length;
}

function withJsonParseAlone() {
  return JSON.parse(body.toString("utf8")) ? 0 : 1;
}

function withJsonParseAndMap() {
  const groups = new Map();
  for (const { success, errors, filtered, dimensions } of JSON.parse(body.toString("utf8")).counts) {
    const key = `${dimensions.write_key}\0${dimensions.integration}`;
    const sums = groups.get(key) ?? [0n, 0n, 0n];
    groups.set(key, [
      sums[0] + BigInt(success),
      sums[1] + BigInt(errors),
      sums[2] + BigInt(filtered),
    ]);
  }
  return groups.size;
}

// Each with how many times faster than it the fold is meant to be.
const peers = new Map([
  [withJsonParseAlone, 7],
  [withJsonParseAndMap, 10],
]);
const times = new Map([withTallyfold, ...peers.keys()].map((contender) => [contender, []]));
for (let round = 0; round < ROUNDS; round++) {
  for (const [contender, rounds] of times) {
    const start = performance.now();
    const groups = contender();
    rounds.push(performance.now() - start);
    if (groups !== 0 && groups !== 1200) throw new Error(`${contender.name} found ${groups} groups`);
  }
}
const median = (contender) => times.get(contender).sort((a, b) => a - b)[(ROUNDS - 1) / 2];
const ours = median(withTallyfold);
const megabytes = body.length / 1e6;
console.log(`Node, ${megabytes.toFixed(0)} MB to 1,200 groups: ${(megabytes / ours).toFixed(2)} GB/s`);
for (const [peer, target] of peers) {
  const ratio = (median(peer) / ours).toFixed(1).padStart(6);
  console.log(`  ${ratio}x ${peer.name.replace("with", "").padEnd(16)} (target ${target})`);
}

// Measures the memory that it takes to stream a body of 1 GB, in a process of its own.
//
// Takes the directory of the bodies, and the names of the dimensions to keep.
import { strictEqual } from "node:assert";
import { readFileSync, writeFileSync } from "node:fs";
import { Aggregator, CHUNK, DIMENSIONS, fold } from "./folding.mjs";
import { atMost, tell } from "./measuring.mjs";

const BODY_BYTES = 1e9;

/** A field of the kernel's status of this process, in bytes. */
function status(name) {
  const [, kilobytes] = readFileSync("/proc/self/status", "utf8").match(`${name}:\\s+(\\d+) kB`);
  return Number(kilobytes) * 1024;
}

const [directory, ...keep] = process.argv.slice(2);
const sample = readFileSync(`${directory}/plain-100000.json`);
const start = sample.indexOf('"counts":[') + '"counts":['.length;
const entries = sample.subarray(start, -"]}".length);
const repeats = Math.floor(BODY_BYTES / (entries.length + 1));

fold(readFileSync(`${directory}/plain-1000.json`), keep);
writeFileSync("/proc/self/clear_refs", "5");
const idle = status("VmRSS");
const aggregator = new Aggregator({ dimensions: DIMENSIONS, groupBy: keep });
aggregator.push(sample.subarray(0, start));
for (let repeat = 0; repeat < repeats; repeat++) {
  if (repeat > 0) aggregator.push(Buffer.from(","));
  for (let offset = 0; offset < entries.length; offset += CHUNK) {
    aggregator.push(entries.subarray(offset, offset + CHUNK));
  }
}
aggregator.push(Buffer.from("]}"));
const table = aggregator.finish();
const used = status("VmHWM") - idle;

strictEqual(table.totals.success, table.reported.success * BigInt(repeats));
const allowed = 8 * 2 ** 20 + 512 * table.length;
tell({
  work: `1 GB to ${table.length.toLocaleString("en")} groups, peak memory`,
  peer: "8 MiB + 512 B per group",
  medians: [used, allowed],
  unit: "bytes",
  ratio: used / allowed,
  target: atMost(1),
});

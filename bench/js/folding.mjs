// How tallyfold is used: a body in chunks, as it would come from a socket.
import { createRequire } from "node:module";

// The package as it is published, where `make` installs it for the examples.
const installed = new URL("../../examples/package.json", import.meta.url);
export const { Aggregator } = createRequire(installed)("tallyfold");

export const CHUNK = 64 * 1024;
export const DIMENSIONS = ["event_name", "write_key", "integration", "reason"];

/** Folds a body whole, and has `use` look at the table while it is there. */
export function fold(body, keep, use = (table) => table.length) {
  const aggregator = new Aggregator({ dimensions: DIMENSIONS, groupBy: keep });
  for (let start = 0; start < body.length; start += CHUNK) {
    aggregator.push(body.subarray(start, start + CHUNK));
  }
  const table = aggregator.finish();
  // No collector runs while a benchmark does.
  aggregator[Symbol.dispose]();
  try {
    return use(table);
  } finally {
    table[Symbol.dispose]();
  }
}

/** Every row of a table, sorted as it is, to be compared with what a peer found. */
export function groupsOf(table) {
  return Array.from(table, ({ dimensions, success, errors, filtered }) => [
    Object.values(dimensions).join("\0"),
    success,
    errors,
    filtered,
  ]);
}

// How tallyfold is used: a body in chunks, as it would come from a socket.
import { createRequire } from "node:module";

// The packed package, which `make` installs for the examples.
const installed = new URL("../../examples/package.json", import.meta.url);
export const { Aggregator } = createRequire(installed)("tallyfold");

export const CHUNK = 64 * 1024;
export const DIMENSIONS = ["event_name", "write_key", "integration", "reason"];

/** Folds a whole body. Returns what `use` returns for the table, and then disposes of the table. */
export function fold(body, keep, use = (table) => table.length) {
  const aggregator = new Aggregator({ dimensions: DIMENSIONS, groupBy: keep });
  for (let start = 0; start < body.length; start += CHUNK) {
    aggregator.push(body.subarray(start, start + CHUNK));
  }
  const table = aggregator.finish();
  // The garbage collector does not free this while a benchmark runs.
  aggregator[Symbol.dispose]();
  try {
    return use(table);
  } finally {
    table[Symbol.dispose]();
  }
}

/** Every row of a table, in its order, to compare with the result of a peer. */
export function groupsOf(table) {
  return Array.from(table, ({ dimensions, success, errors, filtered }) => [
    Object.values(dimensions).join("\0"),
    success,
    errors,
    filtered,
  ]);
}

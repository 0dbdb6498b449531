// Bodies as the service writes them (service reference 2.2), for tests to read and to spoil.

import { Aggregator } from "tallyfold";

export const window = { start: "2026-01-01T00:00:00Z", end: "2026-01-01T00:15:00Z" };

export const entries = [
  entry({ integration: "warehouse", reason: "" }, 7n, 1n, 0n),
  entry({ integration: "email", reason: "consent" }, 0n, 0n, 5n),
  entry({ integration: "email", reason: "" }, 4n, 2n, 0n),
];

export function entry(dimensions, success, errors = 0n, filtered = 0n) {
  return {
    success: String(success),
    errors: String(errors),
    filtered: String(filtered),
    dimensions,
  };
}

/** A response whose totals are the sums of its counts, unless `changes` says otherwise. */
export function response(counts = entries, changes = {}) {
  const sum = (name) => String(counts.reduce((sum, entry) => sum + BigInt(entry[name]), 0n));
  return JSON.stringify({
    ...window,
    totalDelivered: sum("success"),
    totalErrors: sum("errors"),
    totalFiltered: sum("filtered"),
    counts,
    ...changes,
  });
}

export const bytes = (text) => new TextEncoder().encode(text);

/** The error that `act` throws, or that its promise rejects with. */
export function thrownBy(act) {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

/** The properties of rows and counts, which are of classes, to be compared with literals. */
export const plain = (value) => structuredClone(value);

/** The table of a response about integrations and reasons. */
export function foldOf(body) {
  const dimensions = ["integration", "reason"];
  const aggregator = new Aggregator({ dimensions, metric: "event_delivery" });
  aggregator.push(bytes(body));
  return aggregator.finish();
}

// Long ranges to ask for, and what has been asked of a sandbox.

import { clientOf } from "./world.mjs";

export const hour = {
  metric: "event_delivery",
  start: "2026-01-01T00:00:00Z",
  end: "2026-01-01T01:00:00Z",
  dimensions: ["integration"],
  window: "5m",
};

/** A client that waits for no retry for long, and the windows that its metrics requests were about. */
export function watched(sandbox, options) {
  const asked = [];
  const onAttempt = ({ target, window, code }) => {
    if (target !== "token") asked.push({ start: window.start, code });
  };
  return {
    client: clientOf(sandbox, { maxRetries: 3, longestRetryWaitMs: 1, onAttempt, ...options }),
    asked,
  };
}

/** A checkpoint in memory. */
export function memory() {
  const documents = new Map();
  return {
    documents,
    load: (name) => documents.get(name),
    save: (name, json) => void documents.set(name, json),
  };
}

/** The table of a whole range, from one request. */
export function atOnce(sandbox, { metric, window, ...query }) {
  return clientOf(sandbox).eventDelivery(query);
}

/** A table's rows, whatever windows they came in. */
export function rowsOf(table) {
  return Array.from(table, (row) => ({ ...row }));
}

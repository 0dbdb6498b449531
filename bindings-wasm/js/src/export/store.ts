import { invalidArgument, invalidCheckpoint } from "../values/error.js";

/**
 * Stores the document of a ledger or an outbox in the place of `before`, and is awaited. `before` is the document that was
 * loaded or stored last; `null` without one.
 *
 * Only one process at a time may use a document, or both count the same windows. `stateFile` of `tallyfold/node` sees to
 * that. A function of your own has no lock: where it finds another document than `before`, it has to return `false` and
 * leave it there, in one step, as in `UPDATE … SET document = $1 WHERE document = $2`.
 */
export type Store = (document: string, before: string | null) => unknown;

/** Refuses everything but functions. */
export function checkStore(store: unknown): void {
  if (typeof store === "function") return;
  throw invalidArgument("store", "want a function that stores the document");
}

/** Stores a document in the place of another one, and gives it back. */
export async function stored(
  store: Store,
  document: string,
  before: string | null,
): Promise<string> {
  if ((await store(document, before)) !== false) return document;
  throw invalidCheckpoint(
    "another process has stored its document since this one was loaded: load it anew",
  );
}

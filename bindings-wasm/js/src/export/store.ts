import { invalidArgument, invalidCheckpoint } from "../values/error.js";

/**
 * A function that stores the document of a ledger or an outbox in place of `before`. The ledger or outbox awaits
 * it. `before` is the document that was loaded or stored last; `null` if there is none.
 *
 * Only one process at a time may use a document; otherwise, both count the same windows. `stateFile` of
 * `tallyfold/node` ensures that with a lock. A function of your own must compare and store in one step: if it finds
 * another document than `before`, it must keep that document and return `false`, as with
 * `UPDATE … SET document = $1 WHERE document = $2`.
 */
export type Store = (document: string, before: string | null) => unknown;

/** Refuses anything that isn't a function. */
export function checkStore(store: unknown): void {
  if (typeof store === "function") return;
  throw invalidArgument("store", "want a function that stores the document");
}

/** Stores a document in place of another one, and returns it. */
export async function stored(
  store: Store,
  document: string,
  before: string | null,
): Promise<string> {
  if ((await store(document, before)) !== false) return document;
  throw invalidCheckpoint(
    "another process has stored its document since this one was loaded: load it again",
  );
}

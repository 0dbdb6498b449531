import { invalidArgument, invalidCheckpoint } from "../values/error.js";
import type { Checkpoint } from "./checkpoint.js";
import { USE } from "./directory.js";

/** A checkpoint in the browser, and a way to remove its content. */
export interface BrowserCheckpoint extends Checkpoint {
  /** Removes everything that is stored under the checkpoint's name. */
  clear(): Promise<void>;
}

/**
 * A checkpoint in IndexedDB, for pages and their workers. It can store a month of windows and more, for which
 * `localStorage` is too small. Each document is replaced as a whole.
 *
 * Only one collect at a time may use it: a second one, in this tab or another, rejects with `invalid_checkpoint`
 * until the first one has ended or its tab is closed. The checkpoint needs Web Locks, which pages have over https
 * and on localhost.
 *
 * @param name Distinguishes it from other checkpoints of the same origin.
 * @example
 * const checkpoint = indexedDbCheckpoint("january");
 * const table = await client.collect({ ...query, metric: "event_delivery", checkpoint });
 */
export function indexedDbCheckpoint(name: string): BrowserCheckpoint {
  if (typeof name !== "string" || name === "") throw invalidArgument("name", "want a name");
  if (globalThis.indexedDB === undefined || globalThis.navigator?.locks === undefined) {
    const message =
      "IndexedDB and Web Locks are not here: pages have them over https and on localhost";
    throw invalidArgument("checkpoint", message);
  }
  return new Segments(name);
}

const DATABASE = "tallyfold";
const STORE = "segments";

class Segments implements BrowserCheckpoint {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  /** Keeps other collects out until the returned function is called. */
  [USE](): Promise<() => Promise<void>> {
    return new Promise((resolve, reject) => {
      const held = navigator.locks.request(this.place("lock"), { ifAvailable: true }, (lock) => {
        if (lock === null) {
          const message = `another collect, here or in another tab, is using the checkpoint ${this.#name}`;
          throw invalidCheckpoint(message);
        }
        return new Promise<void>((release) => {
          resolve(async () => {
            release();
            await held;
          });
        });
      });
      held.catch(reject);
    });
  }

  place(name: string): string {
    return `${DATABASE}/${this.#name}/${name}`;
  }

  load(name: string): Promise<string | undefined> {
    return this.#within("readonly", (store) => store.get([this.#name, name]));
  }

  async save(name: string, json: string): Promise<void> {
    await this.#within("readwrite", (store) => store.put(json, [this.#name, name]));
  }

  async clear(): Promise<void> {
    // In the order of keys, an array comes after every text.
    const all = IDBKeyRange.bound([this.#name], [this.#name, []]);
    await this.#within("readwrite", (store) => store.delete(all));
  }

  /** Returns the result of one request, once its transaction is on the disk. */
  async #within<T>(
    mode: IDBTransactionMode,
    ask: (store: IDBObjectStore) => IDBRequest<T>,
  ): Promise<T> {
    const opening = indexedDB.open(DATABASE, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    const database = await new Promise<IDBDatabase>((resolve, reject) => {
      opening.onsuccess = () => resolve(opening.result);
      opening.onerror = () => reject(opening.error);
    });
    try {
      return await new Promise<T>((resolve, reject) => {
        const transaction = database.transaction(STORE, mode, { durability: "strict" });
        const request = ask(transaction.objectStore(STORE));
        transaction.oncomplete = () => resolve(request.result);
        transaction.onabort = () => reject(transaction.error);
      });
    } finally {
      database.close();
    }
  }
}

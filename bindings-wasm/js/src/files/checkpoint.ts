/**
 * Where a collect stores counts as it reads them, so that a killed job can resume. A checkpoint stores one document
 * under each name and replaces it as a whole; no document contains a secret, a token or an address.
 *
 * @example
 * const checkpoint = {
 *   load: (name) => localStorage.getItem(`january/${name}`),
 *   save: (name, json) => localStorage.setItem(`january/${name}`, json),
 * };
 * await client.collect({ ...query, metric: "event_delivery", checkpoint });
 */
export interface Checkpoint {
  /** Returns the document that is stored under a name; `undefined` or `null` if there is none. */
  load(name: string): StoredSegment | Promise<StoredSegment>;
  /**
   * Stores a document under a name and replaces the old one, completely or not at all. When the signal of a collect aborts,
   * the collect no longer waits for this.
   */
  save(name: string, json: string): unknown;
  /** Where a document is stored, such as a path that ends in its name: error messages contain it. */
  place?(name: string): string;
}

/** A stored document as text or bytes, if there is one. */
export type StoredSegment = string | Uint8Array | null | undefined;

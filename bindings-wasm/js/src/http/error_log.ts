/** Equal errors within this many milliseconds are one line, because every window of a range fails in an outage. */
const LINE_MS = 10_000;
/** The maximum number of different errors whose last lines are remembered. */
const MOST_LINES = 100;

/**
 * The errors that a server for web apps has written to its log. This is the core's `ErrorLog` in TypeScript, because its
 * content must survive the end of a WebAssembly instance: the repeated error may be a trap that ends the instance. Both are
 * tested with the vectors in error_log.json.
 */
export class ErrorLog {
  readonly #lines = new Map<string, { reference: string; atMs: number; repeats: number }>();

  /** Returns the reference under which the log has an error, and the line to write if the log doesn't have it yet. */
  note(text: string, nowMs: number, reference: string): [reference: string, line?: string] {
    const last = this.#lines.get(text);
    if (last && nowMs - last.atMs < LINE_MS) {
      last.repeats += 1;
      return [last.reference];
    }
    const repeats = last?.repeats ?? 0;
    const errors = repeats === 1 ? "error" : "errors";
    const more = repeats > 0 ? `; ${repeats} equal ${errors} since the last line` : "";
    this.#lines.delete(text);
    this.#lines.set(text, { reference, atMs: nowMs, repeats: 0 });
    const [oldest] = this.#lines.keys();
    if (this.#lines.size > MOST_LINES && oldest !== undefined) this.#lines.delete(oldest);
    return [reference, `(reference ${reference}): ${text}${more}`];
  }
}

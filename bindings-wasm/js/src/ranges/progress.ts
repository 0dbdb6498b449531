import { isBrowser } from "../values/runtime.js";
import type { Progress } from "../values/types.js";

/** The shortest time between two updates of the line, in milliseconds. */
const EVERY_MS = 100;

interface Terminal {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** A line on the terminal that counts windows. */
export class ProgressLine {
  readonly #terminal: Terminal;
  /** When the line was last written. */
  #writtenMs = Number.NEGATIVE_INFINITY;
  #line = "";

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** Updates the line, unless the last update was a moment ago. */
  show({ planned, done, failed, elapsedMs, waitingMs }: Progress): void {
    const failures = failed > 0 ? `, ${failed} failed` : "";
    const waits = waitingMs === undefined ? "" : ", waiting for the service";
    this.#line = `\rtallyfold: ${done} of ${planned} windows${failures}${waits}\x1b[K`;
    // During a wait, there may be no further update for a while.
    if (waits === "" && elapsedMs - this.#writtenMs < EVERY_MS) return;
    this.#writtenMs = elapsedMs;
    this.#terminal.write(this.#line);
  }

  /** Leaves the last line on the terminal. */
  end(): void {
    if (this.#line !== "") this.#terminal.write(`${this.#line}\n`);
  }
}

/** Returns a line on standard error, if that is a terminal; `undefined` in a browser. */
export function progressLine(): ProgressLine | undefined {
  const { process } = globalThis as { process?: { readonly stderr?: Terminal } };
  const terminal = isBrowser() ? undefined : process?.stderr;
  return terminal?.isTTY ? new ProgressLine(terminal) : undefined;
}

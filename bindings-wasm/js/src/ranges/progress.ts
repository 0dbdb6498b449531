import { isBrowser } from "../values/runtime.js";
import type { Progress } from "../values/types.js";

/** How often the line is written anew. */
const EVERY_MS = 100;

interface Terminal {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** A line on the terminal that counts windows. */
export class ProgressLine {
  readonly #terminal: Terminal;
  /** When it was last written. */
  #writtenMs = Number.NEGATIVE_INFINITY;
  #line = "";

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** Shows how far it is, if the last time is a while ago. */
  show({ planned, done, failed, elapsedMs, waitingMs }: Progress): void {
    const failures = failed > 0 ? `, ${failed} failed` : "";
    const waits = waitingMs === undefined ? "" : ", waiting for the service";
    this.#line = `\rtallyfold: ${done} of ${planned} windows${failures}${waits}\x1b[K`;
    // Nothing else may be written during a wait.
    if (waits === "" && elapsedMs - this.#writtenMs < EVERY_MS) return;
    this.#writtenMs = elapsedMs;
    this.#terminal.write(this.#line);
  }

  /** Leaves the last line on the terminal. */
  end(): void {
    if (this.#line !== "") this.#terminal.write(`${this.#line}\n`);
  }
}

/** The line on standard error of Node, if that is a terminal. */
export function progressLine(): ProgressLine | undefined {
  const { process } = globalThis as { process?: { readonly stderr?: Terminal } };
  const terminal = isBrowser() ? undefined : process?.stderr;
  return terminal?.isTTY ? new ProgressLine(terminal) : undefined;
}

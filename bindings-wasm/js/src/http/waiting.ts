// How a call waits for what another call changes, such as the token that both need.

import { isWorkers } from "../values/runtime.js";
import { onAbort, pause } from "./abort.js";

/** After so many milliseconds a call in a Worker looks again. */
export const LOOK_MS = 20;

/**
 * Calls that wait until another call has changed something. Each has to look by itself what has changed.
 *
 * Cloudflare's Workers end a request that waits for a promise of another request, and they end a request whose visitor has
 * left without running any more of its code, `finally` included. So there each call has a timer of its own, and nothing
 * wakes it.
 */
export class Waiting {
  readonly #resumes = new Set<() => void>();

  /** Resolves when something may have changed. If the signal aborts first, it throws the signal's reason. */
  async forChange(signal: AbortSignal | undefined): Promise<void> {
    if (isWorkers()) return pause(LOOK_MS, signal);
    signal?.throwIfAborted();
    let forget: (() => void) | undefined;
    let resume = (): void => {};
    try {
      await new Promise<void>((resolve, reject) => {
        resume = resolve;
        this.#resumes.add(resume);
        forget = signal && onAbort(signal, () => reject(signal.reason));
      });
    } finally {
      this.#resumes.delete(resume);
      forget?.();
    }
  }

  /** Says that something has changed. */
  wake(): void {
    const resumes = [...this.#resumes];
    this.#resumes.clear();
    for (const resume of resumes) resume();
  }
}

// How a call waits for what another call changes, such as the token that both need.

import { isWorkers } from "../values/runtime.js";
import { awaited, pause } from "./abort.js";

/** How many milliseconds a call in a Worker waits before it checks again. */
export const LOOK_MS = 20;

/**
 * Calls that wait until another call has changed something. Each call must check for itself what has changed.
 *
 * A Cloudflare Worker ends a request that waits for a promise of another request. If a visitor leaves, it ends the request
 * without running any more of its code, not even `finally`. So in a Worker, each call polls with its own timer, and `wake`
 * has no effect.
 */
export class Waiting {
  readonly #resumes = new Set<() => void>();

  /** Resolves when something may have changed. If the signal aborts first, rejects with the signal's reason. */
  async forChange(signal: AbortSignal | undefined): Promise<void> {
    if (isWorkers()) return pause(LOOK_MS, signal);
    let resume = (): void => {};
    const change = new Promise<void>((resolve) => {
      resume = resolve;
    });
    this.#resumes.add(resume);
    try {
      await awaited(change, signal);
    } finally {
      this.#resumes.delete(resume);
    }
  }

  /** Resumes all calls that wait, because something has changed. */
  wake(): void {
    const resumes = [...this.#resumes];
    this.#resumes.clear();
    for (const resume of resumes) resume();
  }
}

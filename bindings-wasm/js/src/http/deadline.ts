import { onAbort, timer } from "./abort.js";

/** Ends an exchange early: at its time limit, or when the caller's signal aborts. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #forget: (() => void) | undefined;
  readonly #timers: ReturnType<typeof setTimeout>[] = [];
  /** Ends the current wait, if there is one. */
  #giveUp: ((reason: unknown) => void) | undefined;
  #timedOut = false;

  constructor(timeoutMs: number, caller: AbortSignal | undefined) {
    caller?.throwIfAborted();
    this.#caller = caller;
    this.#forget = caller && onAbort(caller, () => this.#abort(caller.reason));
    if (timeoutMs !== Number.POSITIVE_INFINITY) this.hurry(timeoutMs);
  }

  readonly #expire = (): void => {
    this.#timedOut = true;
    this.#abort(new DOMException("the exchange took too long", "TimeoutError"));
  };

  /** Ends the exchange this many milliseconds from now, unless it ends earlier. */
  hurry(milliseconds: number): void {
    this.#timers.push(timer(this.#expire, milliseconds));
  }

  #abort(reason: unknown): void {
    this.#controller.abort(reason);
    this.#giveUp?.(reason);
  }

  /** Aborts at the deadline, with the caller's signal, and at the end of the exchange. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * Runs work of the host and returns its result, unless the deadline comes first. Only one piece of work may run at a
   * time.
   *
   * @throws The reason of the caller's signal, or {@link Broken} with any other error.
   */
  async during<T>(work: () => T | Promise<T>): Promise<T> {
    try {
      return await this.#patiently(work);
    } catch (cause) {
      this.#caller?.throwIfAborted();
      throw new Broken(cause, this.#timedOut);
    } finally {
      this.#giveUp = undefined;
    }
  }

  /**
   * Every wait has its own promise. Racing each wait against one promise for the whole exchange
   * would keep all results, and so the whole body, in memory.
   */
  #patiently<T>(work: () => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.signal.throwIfAborted();
      this.#giveUp = reject;
      // Not `resolve(work())`: a promise that is resolved with another promise can't be rejected early.
      Promise.resolve(work()).then(resolve, reject);
    });
  }

  /** Removes the timer and the listener, and aborts what is left of the exchange. */
  end(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#forget?.();
    this.#controller.abort();
  }
}

/**
 * A failure outside of this package. The original error is never shown, because it may hold the
 * request.
 */
export class Broken {
  readonly cause: unknown;
  readonly timedOut: boolean;

  constructor(cause: unknown, timedOut: boolean) {
    this.cause = cause;
    this.timedOut = timedOut;
  }
}

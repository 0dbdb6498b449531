// Limits how many requests run at the same time, and lets requests share a result.

import { isWorkers } from "../values/runtime.js";
import { Waiting } from "./waiting.js";

/** How often a request in a Worker shows that it is still running, in milliseconds. */
const HEARTBEAT_MS = 500;
/** A request in a Worker has ended if it has shown nothing for this many milliseconds, because its visitor has left. */
const SILENCE_MS = 3000;

/**
 * Work for one request, from its beginning until `end`. In a Worker, the work is also over if the request has ended early:
 * none of its code runs after that, and its heartbeats stop.
 */
export class Presence {
  #heardMs = performance.now();
  #hasEnded = false;
  readonly #heartbeat: ReturnType<typeof setInterval> | undefined;
  /** Whether it takes no place in a queue. */
  readonly isPatient: boolean;

  constructor(isPatient = false) {
    this.isPatient = isPatient;
    if (!isWorkers()) return;
    this.#heartbeat = setInterval(() => {
      this.#heardMs = performance.now();
    }, HEARTBEAT_MS);
  }

  get isOver(): boolean {
    const isSilent = this.#heartbeat && performance.now() - this.#heardMs > SILENCE_MS;
    return this.#hasEnded || isSilent === true;
  }

  end(): void {
    this.#hasEnded = true;
    clearInterval(this.#heartbeat);
  }
}

/** The error if too many requests are waiting. */
export class Full extends Error {}

/** Runs a limited number of pieces of work at the same time, in the order in which they arrived. */
export class Turns {
  readonly #most: number;
  readonly #queue: number;
  /** The first `#most` entries are running, and the others wait. */
  #line: Presence[] = [];
  readonly #waiting = new Waiting();

  /**
   * @param most How many run at the same time.
   * @param queue How many may wait.
   */
  constructor(most: number, queue: number) {
    this.#most = most;
    this.#queue = queue;
  }

  /**
   * Waits for its turn, and then does the work, which may call `leave` to end its turn early. If the signal aborts during
   * the wait, throws the signal's reason.
   *
   * @param isPatient Whether it also waits if the queue is full, and takes no place in it.
   * @throws {@link Full} if too many wait.
   */
  async take<T>(
    signal: AbortSignal,
    work: (leave: () => void) => Promise<T>,
    isPatient = false,
  ): Promise<T> {
    this.#line = this.#line.filter((one) => !one.isOver);
    const queued = this.#line.slice(this.#most).filter((one) => !one.isPatient);
    const isFull = this.#line.length >= this.#most && queued.length >= this.#queue;
    if (isFull && !isPatient) throw new Full();
    const own = new Presence(isPatient);
    const leave = (): void => {
      own.end();
      this.#waiting.wake();
    };
    try {
      while (this.#placeOf(own) >= this.#most) await this.#waiting.forChange(signal);
      return await work(leave);
    } finally {
      leave();
    }
  }

  /** How many entries are ahead of `own`, which is added to the end of the line if the line doesn't contain it. */
  #placeOf(own: Presence): number {
    this.#line = this.#line.filter((one) => one === own || !one.isOver);
    const place = this.#line.indexOf(own);
    return place < 0 ? this.#line.push(own) - 1 : place;
  }
}

/** A result that one request computes, and that other requests wait for. */
export class Shared<T> {
  /** Whether other windows of a range get their turn before this result. */
  waitsInRange: boolean;
  readonly #presence = new Presence();
  readonly #waiting = new Waiting();
  #outcome: { readonly value: T } | { readonly error: unknown } | undefined;

  constructor(waitsInRange: boolean) {
    this.waitsInRange = waitsInRange;
  }

  get isOver(): boolean {
    return this.#presence.isOver;
  }

  /**
   * Computes the result. If the work fails after the signal has aborted, or because too many requests wait, the other
   * requests get no outcome: they may wait longer than this one.
   */
  async by(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      const value = await work();
      this.#outcome = { value };
      return value;
    } catch (error) {
      if (!signal.aborted && !(error instanceof Full)) this.#outcome = { error };
      throw error;
    } finally {
      this.#presence.end();
      this.#waiting.wake();
    }
  }

  /** Waits for the result. Returns `undefined` if there is no outcome. Throws the work's error. */
  async outcome(signal: AbortSignal): Promise<T | undefined> {
    while (!this.isOver) await this.#waiting.forChange(signal);
    if (this.#outcome === undefined) return undefined;
    if ("error" in this.#outcome) throw this.#outcome.error;
    return this.#outcome.value;
  }
}

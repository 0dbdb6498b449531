// Who is at work for which visitor, and who comes next.

import { isWorkers } from "../values/runtime.js";
import { Waiting } from "./waiting.js";

/** How often a request in a Worker says that it is still there. */
const HEARTBEAT_MS = 500;
/** A request in a Worker that has said nothing for so long has ended: its visitor has left. */
const SILENCE_MS = 3000;

/**
 * Work for one request, from its beginning until `end`. In a Worker, it is also over when the request has ended in the middle of
 * it, which runs no more of its code.
 */
export class Presence {
  #heardMs = performance.now();
  #hasEnded = false;
  readonly #heartbeat: ReturnType<typeof setInterval> | undefined;

  constructor() {
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

/** Nobody can wait any more. */
export class Full extends Error {}

/** Lets so many things run at the same time, in the order in which they came. */
export class Turns {
  /** How many run at the same time. */
  readonly most: number;
  readonly #queue: number;
  /** Those at the front are at work, the others wait. */
  #line: Presence[] = [];
  readonly #waiting = new Waiting();

  /** @param queue How many may wait. */
  constructor(most: number, queue: number) {
    this.most = most;
    this.#queue = queue;
  }

  /**
   * Does the work when it is its turn. If the signal aborts before, it throws the signal's reason.
   *
   * @throws {@link Full} if too many wait.
   */
  async take<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    this.#line = this.#line.filter((one) => !one.isOver);
    if (this.#line.length >= this.most + this.#queue) throw new Full();
    const own = new Presence();
    try {
      while (this.#placeOf(own) >= this.most) await this.#waiting.forChange(signal);
      return await work();
    } finally {
      own.end();
      this.#waiting.wake();
    }
  }

  /** How many are in front of it. It goes to the end of the line if it is not there, or no longer. */
  #placeOf(own: Presence): number {
    this.#line = this.#line.filter((one) => one === own || !one.isOver);
    const place = this.#line.indexOf(own);
    return place < 0 ? this.#line.push(own) - 1 : place;
  }
}

/** Something that is found out for one request, for which other requests wait. */
export class Shared<T> {
  readonly #presence = new Presence();
  readonly #waiting = new Waiting();
  #outcome: { readonly value: T } | { readonly error: unknown } | undefined;

  get isOver(): boolean {
    return this.#presence.isOver;
  }

  /** Finds it out. If the signal aborts, there is no outcome for the others. */
  async by(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      const value = await work();
      this.#outcome = { value };
      return value;
    } catch (error) {
      if (!signal.aborted) this.#outcome = { error };
      throw error;
    } finally {
      this.#presence.end();
      this.#waiting.wake();
    }
  }

  /** What was found out; `undefined` if whoever did it has left. It throws what they have met. */
  async outcome(signal: AbortSignal): Promise<T | undefined> {
    while (!this.isOver) await this.#waiting.forChange(signal);
    if (this.#outcome === undefined) return undefined;
    if ("error" in this.#outcome) throw this.#outcome.error;
    return this.#outcome.value;
  }
}

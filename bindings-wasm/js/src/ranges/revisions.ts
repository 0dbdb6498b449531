import type { DriveStep } from "../calls/call.js";
import type { Driver } from "../calls/driver.js";
import { awaited, onAbort, pause } from "../http/abort.js";
import type { CountTable } from "../tables/table.js";
import { because, TallyfoldError } from "../values/error.js";
import { optionalFlag, optionalFunction, optionalSignal, own } from "../values/input.js";
import type { Abortable, Attempt, Dimension, Window } from "../values/types.js";
import type { Follow, Revision } from "./follow.js";

/** Options for running a follow. */
export interface FollowOptions extends Abortable {
  /**
   * Whether the iteration yields what is due now, and then ends instead of waiting. A job that runs every few minutes,
   * such as a scheduled Worker, resumes with the `state` of its last run. If the service is down, `next` rejects
   * with the error instead of waiting.
   */
  readonly once?: boolean | undefined;
  /**
   * A function that gets the window and the error if a reading fails, and is awaited if it returns a promise; the
   * window is read again after `rereadMs`. If the function throws or rejects, `next` rejects with the same error.
   * Without the function, `next` rejects with the error of the reading: to resume, call `next` again, or start
   * another `for await` loop over the same iterator.
   */
  readonly onFailure?: ((window: Window, error: TallyfoldError) => unknown) | undefined;
}

/**
 * What {@link Client.follow} returns: an async iterator over revisions of windows. If a reading fails, and there is
 * no `onFailure`, `next` rejects with the error. To resume, call `next` again, or start another `for await` loop
 * over the same iterator: the window is read again later, and nothing is lost.
 */
export class Following<D extends Dimension | undefined = Dimension | undefined>
  implements AsyncIterableIterator<Revision<D>, undefined>
{
  readonly #follow: Follow<D>;
  readonly #driver: Driver;
  /** Ends what is under way. */
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal | undefined;
  readonly #onFailure: FollowOptions["onFailure"];
  readonly #once: boolean;
  /** Settles when the last call of `next` has ended. */
  #turn: Promise<unknown> = Promise.resolve();
  #closed = false;
  /** The state after the end. The follow itself has been freed. */
  #last: string | undefined;

  /** @internal */
  constructor(follow: () => Follow<D>, driver: Driver, given: FollowOptions) {
    const options = own(given);
    this.#signal = optionalSignal(options.signal);
    this.#onFailure = optionalFunction("onFailure", options.onFailure, "want a function");
    this.#once = optionalFlag("once", options.once) ?? false;
    this.#signal?.throwIfAborted();
    this.#follow = follow();
    this.#driver = driver;
  }

  /**
   * Waits for the next revision. Concurrent calls get revisions one after the other.
   *
   * @returns The revision; or a result with `done` when all windows up to `end` are settled, with `once` when
   * nothing is due any more, or when the iterator was closed.
   */
  next(): Promise<IteratorResult<Revision<D>, undefined>> {
    const turn = this.#turn.then(() => this.#next());
    this.#turn = turn.catch(() => {});
    return turn;
  }

  /**
   * Returns the state from which a later follow resumes after the last revision: JSON without secrets; pass it as
   * `state`. Store it in one step together with your result of the last revision. Then no revision is lost and none
   * is processed twice, whenever the process ends. Process each revision before the next call of `next`, as `for await`
   * does. If something reads ahead, such as `Readable.from(revisions)`, the state is already after revisions that you
   * have not processed.
   *
   * @throws {@link TallyfoldError} with code `out_of_order` once the iterator was closed.
   */
  state(): string {
    return this.#last ?? this.#follow.state();
  }

  /** Closes the iterator: ends a wait or a reading at once, and with it the pending `next`. */
  async return(): Promise<IteratorResult<Revision<D>, undefined>> {
    this.#close();
    await this.#turn;
    this.#follow[Symbol.dispose]();
    this.#last = undefined;
    return { done: true, value: undefined };
  }

  /** Closes the iterator, and rejects with the given error. */
  async throw(error?: unknown): Promise<IteratorResult<Revision<D>, undefined>> {
    await this.return();
    throw error;
  }

  /** Returns the iterator itself. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The same as `return`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  async #next(): Promise<IteratorResult<Revision<D>, undefined>> {
    const signal = this.#signal;
    // The listener is removed after each call, because it would keep an abandoned iterator alive as long as the signal.
    const forget = signal && onAbort(signal, () => this.#stop.abort(signal.reason));
    try {
      while (!this.#closed) {
        signal?.throwIfAborted();
        const revision = await this.#advance();
        if (revision !== undefined) return { done: false, value: revision };
      }
    } catch (error) {
      if (!this.#closed) {
        if (signal?.aborted) this.#free();
        throw error;
      }
    } finally {
      forget?.();
    }
    return { done: true, value: undefined };
  }

  /** Takes one step. Returns a revision if there is a new one. */
  async #advance(): Promise<Revision<D> | undefined> {
    const step = this.#follow.next(this.#driver.now());
    if (step.type === "drive") return this.#read(step);
    if (step.type === "wait" && !this.#once) {
      await pause(step.ms, this.#stop.signal);
    } else {
      this.#close();
      this.#free();
    }
    return undefined;
  }

  async #read({ task, window, call }: DriveStep<CountTable<D>>): Promise<Revision<D> | undefined> {
    let thrown: { readonly error: unknown } | undefined;
    let failure: TallyfoldError | undefined;
    const tell = async (attempt: Attempt): Promise<void> => {
      try {
        await awaited(this.#driver.onAttempt(attempt), this.#stop.signal);
      } catch (error) {
        // A running sum would lack a revision that did not reach the caller. So the window is read
        // again.
        call.giveUp();
        thrown = { error };
        throw error;
      }
    };
    try {
      await this.#driver.drive(call, this.#stop.signal, tell);
    } catch (error) {
      thrown ??= { error };
    }
    try {
      const revision = this.#follow.settle(task, call, this.#driver.now());
      if (revision !== undefined) return revision;
      // The follow waits for the service, so the caller doesn't get the call's error.
      const waits = this.#follow.waitingMs !== undefined;
      if (waits && TallyfoldError.is(thrown?.error) && !this.#once) return undefined;
    } catch (error) {
      thrown ??= { error };
      if (TallyfoldError.is(error) && TallyfoldError.is(thrown.error)) {
        // The error of the follow may contain more than the call's error, but it has no cause.
        const { cause } = thrown.error;
        if (cause !== undefined) because(error, cause);
        failure = error;
      }
    } finally {
      this.#driver.close(call);
    }
    if (failure === undefined) {
      // By the service's clock, the window has not ended.
      if (thrown === undefined) return undefined;
      throw thrown.error;
    }
    if (this.#onFailure === undefined) throw failure;
    await awaited(this.#onFailure(window, failure), this.#stop.signal);
    return undefined;
  }

  #close(): void {
    this.#closed = true;
    this.#stop.abort();
  }

  /** Frees the follow after its last step. Its state can still be read. */
  #free(): void {
    this.#last ??= this.#follow.state();
    this.#follow[Symbol.dispose]();
  }
}

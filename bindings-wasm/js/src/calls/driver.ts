import { awaited, pause } from "../http/abort.js";
import { Broken, Deadline } from "../http/deadline.js";
import { exchange } from "../http/exchange.js";
import { LOOK_MS, Waiting } from "../http/waiting.js";
import { turn } from "../loading/compile.js";
import { clocks } from "../values/clocks.js";
import { because, TallyfoldError } from "../values/error.js";
import { checkedToken, optionalFunction } from "../values/input.js";
import { isWorkers, warning } from "../values/runtime.js";
import type { Now } from "../values/time.js";
import type { AccessToken, Api, Attempt, Fetch, FetchInit } from "../values/types.js";
import type { Call, MachineRequest } from "./call.js";

/** The functions that a client uses in each call. */
export interface DriverOptions {
  /**
   * A function that returns tokens, instead of the client secret. The client calls it with the name of the API
   * whenever it needs a new token. Use this in a browser.
   */
  readonly accessToken?: ((api: Api) => AccessToken | Promise<AccessToken>) | undefined;
  /** A `fetch` to use instead of the host's own. */
  readonly fetch?: Fetch | undefined;
  /**
   * Called with the result of each request that has ended, and awaited if it returns a promise. If
   * it throws or rejects, the call ends and rejects with the same error.
   */
  readonly onAttempt?: ((attempt: Attempt) => unknown) | undefined;
  /** The clocks to use instead of the host's own. */
  readonly now?: (() => Now) | undefined;
}

/** The part of a machine that the driver reads for each exchange. It is known only once there is a call. */
interface Limit {
  /** How many milliseconds one exchange may take; infinite for no limit. */
  readonly timeoutMs: number;
}

/**
 * How many milliseconds a call in a Worker waits for the token that another call fetches. After that, it fetches a token
 * itself, because the other call never ends if its visitor has left.
 */
const OVERTAKE_MS = 2000;

/**
 * After this many calls, the driver lets the event loop run once, except in a Worker. WebAssembly memory of
 * garbage-collected objects is freed only when the event loop runs, and with a `fetch` that responds at once, such as a
 * sandbox's, it would not run.
 */
const UNTIL_TURN = 64;
let ended = 0;

const WANT_SOURCE = "want a function that returns { accessToken, expiresIn }";

/** Drives the calls of one client to their end: transfers bytes, waits and gets tokens. */
export class Driver {
  /** Reads both clocks. */
  readonly now: () => Now;
  /** Reports a request that has ended to the caller. */
  readonly onAttempt: (attempt: Attempt) => unknown;
  /** The caller's own source of tokens, if there is one. */
  readonly accessToken: DriverOptions["accessToken"];
  readonly #fetch: Fetch | undefined;
  readonly #limit: Limit;
  readonly #credentials: FetchInit["credentials"];
  /** Whether the driver has already warned that the clock is wrong. */
  #hasWarned = false;
  /** Calls that wait for the token that another call fetches. */
  readonly #waiting = new Waiting();

  /** @param tokenless Whether requests carry no token. */
  constructor(
    { accessToken, fetch, onAttempt, now }: DriverOptions,
    limit: Limit,
    tokenless: boolean,
  ) {
    this.accessToken = optionalFunction("accessToken", accessToken, WANT_SOURCE);
    this.#fetch = optionalFunction("fetch", fetch, "want a function like the standard fetch");
    this.onAttempt = optionalFunction("onAttempt", onAttempt, "want a function") ?? (() => {});
    this.#limit = limit;
    this.#credentials = tokenless ? "same-origin" : "omit";
    this.now = clocks(now);
  }

  /**
   * @internal Drives a call to its end.
   *
   * @param copy If given, receives the chunks of the last response whose body the call has read.
   * @throws The call's final error, the signal's reason, or an error that a function of the caller has thrown.
   */
  async drive(
    call: Call<unknown>,
    signal: AbortSignal | undefined,
    onAttempt = this.onAttempt,
    copy?: Uint8Array[],
  ): Promise<void> {
    let blocked: { epoch: bigint; looks: number } | undefined;
    for (;;) {
      signal?.throwIfAborted();
      const step = call.step(this.now());
      switch (step.type) {
        case "send":
          await this.#send(call, step.request, signal, onAttempt, copy);
          break;
        case "provideToken":
          await this.#within(call, signal, (limit) => this.#provide(call, step.api, limit));
          break;
        case "blocked":
          if (blocked?.epoch !== step.epoch) blocked = { epoch: step.epoch, looks: 0 };
          blocked.looks += 1;
          if (isWorkers() && blocked.looks * LOOK_MS > OVERTAKE_MS) call.overtake(step.epoch);
          else await this.#progress(call, signal);
          break;
        case "wait":
          await pause(step.ms, signal);
          break;
        case "done":
          ended += 1;
          if (ended % UNTIL_TURN === 0 && !isWorkers()) await turn();
          return;
      }
    }
  }

  /** @internal Drives a call to its end, and closes it. Before that, `finish` takes the result. */
  async run<T>(
    call: Call<unknown>,
    signal: AbortSignal | undefined,
    finish: () => T,
    copy?: Uint8Array[],
  ): Promise<T> {
    try {
      await this.drive(call, signal, undefined, copy);
      return finish();
    } finally {
      this.close(call);
    }
  }

  /** Closes a call in any state, so that another call can fetch the token that this call was fetching. */
  close(call: Call<unknown>): void {
    call.close();
    this.#waiting.wake();
  }

  async #send(
    call: Call<unknown>,
    request: MachineRequest,
    signal: AbortSignal | undefined,
    onAttempt: (attempt: Attempt) => unknown,
    copy: Uint8Array[] | undefined,
  ): Promise<void> {
    try {
      await this.#within(call, signal, (limit) =>
        exchange(call, request, this.#fetch, limit, this.#credentials, copy),
      );
    } finally {
      const attempt = call.attempt();
      if (attempt?.clock?.isAlarming && !this.#hasWarned) {
        this.#hasWarned = true;
        warning("ClockWarning", attempt.clock.message);
      }
      if (attempt !== undefined) await awaited(onAttempt(attempt), signal);
    }
  }

  async #within(
    call: Call<unknown>,
    signal: AbortSignal | undefined,
    work: (deadline: Deadline) => Promise<void>,
  ): Promise<void> {
    const milliseconds = Math.min(this.#limit.timeoutMs, call.timeLeft(this.now()));
    const deadline = new Deadline(milliseconds, signal);
    try {
      await work(deadline);
    } finally {
      deadline.end();
      this.#waiting.wake();
    }
  }

  async #provide(call: Call<unknown>, api: Api, deadline: Deadline): Promise<void> {
    let token: AccessToken;
    try {
      token = await deadline.during(async () =>
        checkedToken((await this.accessToken?.(api)) as AccessToken),
      );
    } catch (error) {
      if (!(error instanceof Broken)) throw error;
      if (error.timedOut && call.timeLeft(this.now()) === 0) call.failed("timeout", "TimeoutError");
      return tokenFailed(call, error.cause);
    }
    call.token(token);
  }

  /** Resolves when another call has made progress and may have got a token, or at the call's deadline. */
  async #progress(call: Call<unknown>, signal: AbortSignal | undefined): Promise<void> {
    const patience = new Deadline(call.timeLeft(this.now()), signal);
    try {
      await patience.during(() => this.#waiting.forChange(patience.signal));
    } catch (error) {
      // After its deadline, the call itself throws at its next step.
      if (!(error instanceof Broken)) throw error;
    } finally {
      patience.end();
    }
  }
}

/**
 * Reports that the caller's own source of tokens failed, and sets its error as the cause. The message quotes only errors
 * of this package, because any other error may contain a secret.
 */
function tokenFailed(call: Call<unknown>, cause: unknown): void {
  try {
    call.tokenFailed();
  } catch (error) {
    const isQuoted = TallyfoldError.is(error) && TallyfoldError.is(cause);
    if (!isQuoted) throw because(error, cause);
    const message = `${error.message}: ${cause.message}`;
    throw because(TallyfoldError.of({ ...error, message }), cause);
  }
}

import type { CoreCall } from "../../wasm/tallyfold_wasm.js";
import { Handle } from "../loading/handle.js";
import { noteFailure, stage } from "../loading/library.js";
import { CountTable } from "../tables/table.js";
import { now } from "../values/clocks.js";
import { invalidArgument } from "../values/error.js";
import { bytes, checkedToken, flat, pairsOf } from "../values/input.js";
import { inspectSymbol } from "../values/printing.js";
import type { Now } from "../values/time.js";
import type { AccessToken, Api, Attempt, ExchangeFailure, Window } from "../values/types.js";

/** What the program that drives a {@link Call} must do next. */
export type Step =
  | {
      /**
       * Send this request, then report the head, the chunks and the end of the response, or a
       * failure.
       */
      readonly type: "send";
      readonly request: MachineRequest;
    }
  | {
      /** Get a token for this API from your own source, and report it. */
      readonly type: "provideToken";
      readonly api: Api;
    }
  | {
      /**
       * Another call is fetching the token. Wait until `machine.tokenEpoch` differs from `epoch`, then get the next
       * step.
       */
      readonly type: "blocked";
      readonly epoch: bigint;
    }
  | {
      /**
       * Wait for this many milliseconds of the monotonic clock, or less, then get the next step: a retry is due
       * later, or the service has requested a pause. The number is below 2^31.
       */
      readonly type: "wait";
      readonly ms: number;
    }
  | {
      /** Nothing is left to do. Read the `output`. */
      readonly type: "done";
    };

/** A call for a window of a long range. */
export interface DriveStep<T> {
  /** Drive the call to its end, or give up; then settle the task and close the call. */
  readonly type: "drive";
  /** The number to pass to `settle`. */
  readonly task: number;
  /** The window that the call reads. */
  readonly window: Window;
  readonly call: Call<T>;
}

/**
 * One call in progress: get the next {@link Step}, do it, report the result, and repeat. Every method may throw a
 * {@link TallyfoldError}: the error that ends the call, or `out_of_order` if the method doesn't match the last
 * step.
 */
export class Call<T> {
  readonly #core: Handle<CoreCall>;

  private constructor(call: CoreCall) {
    this.#core = new Handle(call);
  }

  /** @internal */
  static of<T>(call: CoreCall): Call<T> {
    // Bundlers rename a class that refers to itself by name.
    return new this(call);
  }

  /** @internal Wraps the core's call in a step, if the step has a call. */
  static ofStep<S extends { readonly type: string }>(step: S): S {
    const { call } = step as S & { readonly call?: CoreCall };
    return call === undefined ? step : { ...step, call: new this(call) };
  }

  /** @internal The core's call. It checks the value, because untyped callers may pass anything. */
  static coreOf(call: Call<unknown>): CoreCall {
    if (typeof call === "object" && call !== null && #core in call) return call.#core.object;
    throw invalidArgument("call", "want the Call that came with the task");
  }

  /**
   * Returns the next step.
   *
   * @param at The time of both clocks; by default, the time of this host's clocks.
   */
  step(at: Now = now()): Step {
    const step = this.#core.object.step(at);
    return step.type === "send" ? { ...step, request: new MachineRequest(step.request) } : step;
  }

  /**
   * How many milliseconds are left until the call's deadline; infinite if it has no deadline. After that time, stop
   * what the last step requested, and report it with {@link Call.failed} as a `timeout`.
   */
  timeLeft(at: Now = now()): number {
    return this.#core.object.timeLeft(at);
  }

  /**
   * Reports the status and headers of a response.
   *
   * @returns `true` if the call needs the body: pass it to {@link Call.chunk}, then call {@link Call.end}. `false` if
   * not: drop the response and get the next step.
   */
  head(status: number, headers: Iterable<readonly [string, string]>): boolean {
    if (status !== 200) noteFailure();
    return this.#core.object.head(status, flat(headers));
  }

  /** Reports the next bytes of the body. */
  chunk(chunk: Uint8Array): void {
    const call = this.#core.object;
    stage(bytes("chunk", chunk), (length) => call.chunk(length));
  }

  /** Reports that the body is complete. */
  end(): void {
    this.#core.object.end();
  }

  /**
   * Reports that the exchange failed.
   *
   * @param failure How the exchange failed: `timeout` if its time ran out; `stale` if it reused a connection that
   * the server had closed, or on which bytes arrived that nobody had requested; `hidden` if the browser hides the
   * cause from the page; `not_sent` if nothing of the request was sent; otherwise `network`.
   * @param detail One word for the cause, such as `ECONNREFUSED`, or the page's origin for `hidden`. Never pass a
   * text that could contain the request.
   */
  failed(failure: ExchangeFailure, detail: string): void {
    noteFailure();
    this.#core.object.failed(failure, detail);
  }

  /** Reports the token that the step `provideToken` requests. */
  token(token: AccessToken): void {
    const { accessToken, expiresIn } = checkedToken(token);
    const lifetime = expiresIn === undefined ? undefined : String(expiresIn);
    this.#core.object.token(accessToken, lifetime);
  }

  /** Reports that your own source of tokens failed. Throws, unless an older token is still valid. */
  tokenFailed(): void {
    this.#core.object.tokenFailed();
  }

  /** The result of the call; available once, after the step `done`. */
  output(): T {
    const output = this.#core.object.output();
    return (typeof output === "string" ? JSON.parse(output) : CountTable.of(output)) as T;
  }

  /**
   * The request that has ended since the previous call of this method; each request is returned once. Call the
   * method after each step `send`, even if the call has ended.
   */
  attempt(): Attempt | undefined {
    return this.#core.object.attempt();
  }

  /**
   * After a step `blocked`: gives up the token fetch that this call waits for, so that its next step fetches a
   * token itself. Use this where the other call may have stopped without being closed. If the fetch has ended, the
   * method does nothing.
   *
   * @param epoch The epoch of the step.
   */
  overtake(epoch: bigint): void {
    this.#core.object.overtake(epoch);
  }

  /**
   * @internal Makes the call fail early if the service is down, instead of after all retries.
   *
   * @param since The machine's `failures` at the time when the caller began to wait.
   */
  failFast(since: bigint): void {
    this.#core.object.failFast(since);
  }

  /** @internal Ends the call and drops its output, but does not free its memory yet. */
  giveUp(): void {
    const call = this.#core.object;
    call.close();
    try {
      const output = call.output();
      if (typeof output !== "string") output.free();
    } catch {
      // The call has no output.
    }
  }

  /**
   * Ends the call early, so that another call can fetch the token that this call may be fetching. You may also call
   * this method after the end of the call.
   */
  close(): void {
    if (!this.#core.released) this.#core.object.close();
    this.#core.release();
  }

  /** The same as {@link Call.close}. */
  [Symbol.dispose](): void {
    this.close();
  }
}

/**
 * One HTTP request to send unchanged. It may contain a client secret or a token: neither an inspector nor JSON
 * shows them.
 */
export class MachineRequest {
  readonly #fields: RequestFields;

  /** @internal */
  constructor(fields: RequestFields) {
    this.#fields = fields;
  }

  /** The method. */
  get method(): "GET" | "POST" {
    return this.#fields.method;
  }

  /** The absolute address. It never contains a secret. */
  get url(): string {
    return this.#fields.url;
  }

  /**
   * The headers, with names in lower case, in the order to send them. This is a method, because an
   * inspector may read every property.
   */
  headers(): [string, string][] {
    return pairsOf(this.#fields.headers);
  }

  /** The body's bytes; `undefined` for a request without a body. */
  body(): Uint8Array<ArrayBuffer> | undefined {
    return this.#fields.body;
  }

  /** @internal The texts that no message may quote: the values of the headers, without `Bearer`, and the client secret. */
  secrets(): string[] {
    const body = this.body();
    const sent = body === undefined ? {} : JSON.parse(new TextDecoder().decode(body));
    const bearer = this.headers().map(([, value]) => value.replace(/^Bearer /, ""));
    // Every message quotes an empty text.
    return [...bearer, sent.client_secret].filter(Boolean);
  }

  /** The method and the address. */
  toJSON(): { method: string; url: string } {
    return { method: this.method, url: this.url };
  }

  /** @internal */
  [inspectSymbol](): string {
    return `MachineRequest ${this.method} ${this.url}`;
  }
}

interface RequestFields {
  readonly method: "GET" | "POST";
  readonly url: string;
  /** Alternating names and values. */
  readonly headers: string[];
  readonly body?: Uint8Array<ArrayBuffer>;
}

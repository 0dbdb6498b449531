import type { CoreCall } from "../../wasm/tallyfold_wasm.js";
import { Handle } from "../loading/handle.js";
import { noteFailure, stage } from "../loading/library.js";
import { CountTable } from "../tables/table.js";
import { invalidArgument } from "../values/error.js";
import { bytes, checkedToken, flat, pairsOf } from "../values/input.js";
import { inspectSymbol } from "../values/printing.js";
import type { Now } from "../values/time.js";
import { now } from "../values/time.js";
import type { AccessToken, Api, Attempt, ExchangeFailure, Window } from "../values/types.js";

/** What a {@link Call} asks its host to do next. */
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
      /** Get a token for this API from the host's own source, and report it. */
      readonly type: "provideToken";
      readonly api: Api;
    }
  | {
      /** Another call is fetching the token: ask again once `machine.tokenEpoch` has changed. */
      readonly type: "blocked";
      readonly epoch: bigint;
    }
  | {
      /**
       * Wait for this many milliseconds of the monotonic clock, or less, and ask again: a retry is
       * due later, or the service has requested a pause. Below 2^31.
       */
      readonly type: "wait";
      readonly ms: number;
    }
  | {
      /** Take the output. */
      readonly type: "done";
    };

/** A call for a window of a long range. */
export interface DriveStep<T> {
  /** Drive the call to its end, or give up; then settle the task and close the call. */
  readonly type: "drive";
  /** The number to settle the call with. */
  readonly task: number;
  /** The window that the call is of. */
  readonly window: Window;
  readonly call: Call<T>;
}

/**
 * One call in progress: ask for the {@link Step}, do it, report the result, and ask again. Every
 * method may throw a {@link TallyfoldError}, with code `out_of_order` if the step did not ask for
 * it.
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

  /** @internal A step of a machine whose calls are the core's. */
  static ofStep<S extends { readonly type: string }>(step: S): S {
    const { call } = step as S & { readonly call?: CoreCall };
    return call === undefined ? step : { ...step, call: new this(call) };
  }

  /** @internal The core's call. It checks the value, because untyped callers may pass anything. */
  static coreOf(call: Call<unknown>): CoreCall {
    if (typeof call === "object" && call !== null && #core in call) return call.#core.object;
    throw invalidArgument("call", "want the Call that came with the task");
  }

  /** What to do next. @param at The time of both clocks; by default, of this host's clocks. */
  step(at: Now = now()): Step {
    const step = this.#core.object.step(at);
    return step.type === "send" ? { ...step, request: new MachineRequest(step.request) } : step;
  }

  /**
   * How many milliseconds are left until the call's deadline; infinite if it has none. End what the last step asked
   * for when they are over, and report it with {@link Call.failed} as a timeout.
   */
  timeLeft(at: Now = now()): number {
    return this.#core.object.timeLeft(at);
  }

  /**
   * Takes the head of a response. @returns `true` if its body is wanted: pass it to {@link
   * Call.chunk}, then call {@link Call.end}. `false` if not: drop it and ask for the next step.
   */
  head(status: number, headers: Iterable<readonly [string, string]>): boolean {
    if (status !== 200) noteFailure();
    return this.#core.object.head(status, flat(headers));
  }

  /** The next bytes of the body. */
  chunk(chunk: Uint8Array): void {
    const call = this.#core.object;
    stage(bytes("chunk", chunk), (length) => call.chunk(length));
  }

  /** The body is complete. */
  end(): void {
    this.#core.object.end();
  }

  /**
   * Reports that the exchange failed.
   *
   * @param failure Whether time ran out; `stale` if a connection was used again that the server had closed; `hidden` if
   * a browser did not tell the page what happened.
   * @param detail One word on the cause, such as `ECONNREFUSED`, or the page's origin for `hidden`. Never a text
   * that could hold the request.
   */
  failed(failure: ExchangeFailure, detail: string): void {
    noteFailure();
    this.#core.object.failed(failure, detail);
  }

  /** The token that was requested. */
  token(token: AccessToken): void {
    const { accessToken, expiresIn } = checkedToken(token);
    const lifetime = expiresIn === undefined ? undefined : String(expiresIn);
    this.#core.object.token(accessToken, lifetime);
  }

  /** Reports that there is no token: throws, unless an older token is still valid. */
  tokenFailed(): void {
    this.#core.object.tokenFailed();
  }

  /** The result, once, after the step `done`. */
  output(): T {
    const output = this.#core.object.output();
    return (typeof output === "string" ? JSON.parse(output) : CountTable.of(output)) as T;
  }

  /**
   * The request that has ended since this was last called; each request is given once. Call it
   * after each step `send`, also if the call has ended.
   */
  attempt(): Attempt | undefined {
    return this.#core.object.attempt();
  }

  /**
   * After a step `blocked`: gives up the token fetch that this call waits for, so that its next step fetches a token itself. For a
   * host in which the other call may have stopped without being closed. It changes nothing if the fetch has ended.
   *
   * @param epoch The epoch of the step.
   */
  overtake(epoch: bigint): void {
    this.#core.object.overtake(epoch);
  }

  /** @internal Ends the call and drops its output, but does not free its memory yet. */
  giveUp(): void {
    const call = this.#core.object;
    call.close();
    try {
      const output = call.output();
      if (typeof output !== "string") output.free();
    } catch {
      // It was abandoned.
    }
  }

  /**
   * Ends the call early, so that another call can fetch the token that this call may be fetching.
   * It may also be called after the end.
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
 * One HTTP request to send as it is. It may hold a client secret or a token: neither shows when it
 * is inspected or turned into JSON.
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

  /** The absolute address. It never holds a secret. */
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

  /** The body's bytes; `undefined` for a request that has none. */
  body(): Uint8Array<ArrayBuffer> | undefined {
    return this.#fields.body;
  }

  /** @internal What no message may quote. */
  secrets(): string[] {
    const body = this.body();
    const sent = body === undefined ? {} : JSON.parse(new TextDecoder().decode(body));
    const bearer = this.headers().map(([, value]) => value.replace(/^Bearer /, ""));
    return [...bearer, sent.client_secret].filter((it) => typeof it === "string");
  }

  /** Method and address. */
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
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body?: Uint8Array<ArrayBuffer>;
}

import { pause } from "./abort.js";
import { clocks } from "./clock.js";
import { Broken, Deadline } from "./deadline.js";
import { invalidArgument } from "./error.js";
import { exchange } from "./exchange.js";
import { checkedToken, optionalFunction, optionalSignal } from "./input.js";
import { type Call, Machine, type MachineOptions, type MachineRequest } from "./machine.js";
import type { CountTable } from "./table.js";
import type {
  Abortable,
  AccessToken,
  Api,
  Attempt,
  AuditLogsQuery,
  Dimension,
  Fetch,
  IngestionDimension,
  Json,
  MetricsQuery,
  Now,
} from "./types.js";

/** What a {@link Client} has to know. Name what you use: either API works without the other's. */
export interface ClientOptions extends MachineOptions {
  /**
   * A source of tokens to use in place of the client secret: called with the API that the token
   * is to be for, whenever there is none that will last. This is the way for a browser.
   */
  readonly accessToken?: ((api: Api) => AccessToken | Promise<AccessToken>) | undefined;
  /** A `fetch` to use in place of the host's own. */
  readonly fetch?: Fetch | undefined;
  /**
   * How many milliseconds one exchange may take, its body included; a call may need up to four, and
   * one more for each retry. 30,000 unless told otherwise; `Infinity` for no limit.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Called for each request that has ended, with what came of it. What it throws ends the call,
   * which rejects with it.
   */
  readonly onAttempt?: ((attempt: Attempt) => void) | undefined;
  /** The clocks to use in place of the host's own. */
  readonly now?: (() => Now) | undefined;
}

const WANT_SOURCE = "want a function that returns { accessToken, expiresIn }";

/** The longest time that a timer can wait; a longer one would fire at once. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * The caller's side of both APIs: fetches tokens as they are needed, shares them between calls,
 * follows no redirect, and checks every response to its last byte.
 *
 * Every call rejects with a {@link TallyfoldError}, or with the reason of the signal that aborted
 * it. Calls may run at the same time: they share one token, and one request for it.
 *
 * The first call, or the making of the first client, compiles the WebAssembly inside this package:
 * a page with a content security policy has to allow `'wasm-unsafe-eval'` for scripts.
 *
 * @example
 * const client = new Client({
 *   clusterEndpoint: "https://cluster.example",
 *   clientId: process.env.CLIENT_ID,
 *   clientSecret: process.env.CLIENT_SECRET,
 *   controlAudience: "https://control.example",
 * });
 * const table = await client.eventDelivery({
 *   start: new Date(Date.now() - 15 * 60_000),
 *   end: new Date(),
 *   dimensions: ["integration", "reason"],
 * });
 */
export class Client {
  readonly #machine: Machine;
  readonly #accessToken: ClientOptions["accessToken"];
  readonly #fetch: Fetch | undefined;
  readonly #timeoutMs: number;
  readonly #onAttempt: ClientOptions["onAttempt"];
  readonly #now: () => Now;
  /** Calls that wait for another one's token. */
  #waiting: (() => void)[] = [];

  /**
   * @throws {@link TallyfoldError} of kind `config`, with the name of the argument. In a browser,
   * `secret_in_browser` for a client secret.
   */
  constructor(options: ClientOptions) {
    const { accessToken, fetch, timeoutMs, onAttempt, now, ...rest } = options ?? {};
    this.#accessToken = optionalFunction("accessToken", accessToken, WANT_SOURCE);
    this.#fetch = optionalFunction("fetch", fetch, "want a function like the standard fetch");
    this.#onAttempt = optionalFunction("onAttempt", onAttempt, "want a function");
    this.#timeoutMs = timeoutMs ?? 30_000;
    this.#now = clocks(now);
    if (!isTimeout(this.#timeoutMs)) {
      throw invalidArgument("timeoutMs", "want milliseconds above 0 and below 2^31, or Infinity");
    }
    this.#machine = new Machine({ ...rest, hostTokens: this.#accessToken !== undefined });
  }

  /**
   * Counts of event delivery in a window (service reference 4.4): delivered, dropped and filtered
   * events, by one to four dimensions. Windows of 5 to 15 minutes keep responses small.
   *
   * @example
   * const table = await client.eventDelivery({
   *   start: "2026-01-01T00:00:00Z",
   *   end: "2026-01-01T00:15:00Z",
   *   dimensions: ["integration", "reason"],
   *   groupBy: ["integration"],
   *   signal: AbortSignal.timeout(60_000),
   * });
   */
  async eventDelivery<const D extends Dimension, const G extends D = D>(
    query: MetricsQuery<D, G> & Abortable,
  ): Promise<CountTable<G>> {
    return this.#run(this.#machine.eventDelivery(query), query.signal);
  }

  /**
   * Counts of event ingestion in a window (service reference 4.5), which has no `reason`.
   *
   * @example
   * const { totals } = await client.eventIngestion({ start, end, dimensions: ["write_key"] });
   */
  async eventIngestion<const D extends IngestionDimension, const G extends D = D>(
    query: MetricsQuery<D, G> & Abortable,
  ): Promise<CountTable<G>> {
    return this.#run(this.#machine.eventIngestion(query), query.signal);
  }

  /**
   * A page of the audit logs (service reference 4.2). The reference does not show the shape of
   * the listing, so it is handed over as it is; numbers in it are JavaScript's.
   *
   * @example
   * const page = await client.auditLogs({ page: 1, perPage: 50 });
   */
  async auditLogs(query: AuditLogsQuery & Abortable = {}): Promise<Json> {
    return this.#run(this.#machine.auditLogs(query), query.signal);
  }

  /** Frees tokens and memory now. Calls under way come to their end. */
  [Symbol.dispose](): void {
    this.#machine[Symbol.dispose]();
  }

  async #run<T>(call: Call<T>, given: AbortSignal | undefined): Promise<T> {
    try {
      const signal = optionalSignal(given);
      for (;;) {
        signal?.throwIfAborted();
        const step = call.step(this.#now());
        switch (step.type) {
          case "send":
            await this.#send(call, step.request, signal);
            break;
          case "provideToken":
            await this.#within(signal, (patience) => this.#provide(call, step.api, patience));
            break;
          case "blocked":
            await this.#progress(signal);
            break;
          case "wait":
            await pause(step.ms, signal);
            break;
          case "done":
            return call.output();
        }
      }
    } finally {
      call.close();
      this.#wake();
    }
  }

  async #send(
    call: Call<unknown>,
    request: MachineRequest,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    // Looked up late, so that whoever replaces the host's own is heard.
    const send = this.#fetch ?? globalThis.fetch;
    try {
      await this.#within(signal, (patience) => exchange(call, request, send, patience));
    } finally {
      const attempt = call.attempt();
      if (attempt !== undefined) this.#onAttempt?.(attempt);
    }
  }

  async #within(
    signal: AbortSignal | undefined,
    work: (deadline: Deadline) => Promise<void>,
  ): Promise<void> {
    const deadline = new Deadline(this.#timeoutMs, signal);
    try {
      await work(deadline);
    } finally {
      deadline.end();
      this.#wake();
    }
  }

  async #provide(call: Call<unknown>, api: Api, deadline: Deadline): Promise<void> {
    let token: AccessToken;
    try {
      token = await deadline.during(async () =>
        checkedToken((await this.#accessToken?.(api)) as AccessToken),
      );
    } catch (error) {
      if (!(error instanceof Broken)) throw error;
      return tokenFailed(call, error.cause);
    }
    call.token(token);
  }

  /** Resolves when another call has come further, perhaps to a token. */
  async #progress(signal: AbortSignal | undefined): Promise<void> {
    const patience = new Deadline(Number.POSITIVE_INFINITY, signal);
    try {
      await patience.during(() => new Promise<void>((resume) => this.#waiting.push(resume)));
    } finally {
      patience.end();
    }
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }
}

function isTimeout(value: unknown): boolean {
  if (typeof value !== "number" || !(value > 0)) return false;
  return value <= LONGEST_TIMEOUT_MS || value === Number.POSITIVE_INFINITY;
}

/** Tells the call that the host's own source failed, and shows the user with what. */
function tokenFailed(call: Call<unknown>, cause: unknown): void {
  try {
    call.tokenFailed();
  } catch (error) {
    // Not enumerable, as in errors that are made with a cause.
    Object.defineProperty(error, "cause", { value: cause, configurable: true, writable: true });
    throw error;
  }
}

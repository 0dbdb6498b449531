import type { CoreCall, CoreClient } from "../wasm/tallyfold_wasm.js";
import { now } from "./clock.js";
import { Handle } from "./handle.js";
import { isBrowser } from "./host.js";
import { bytes, checkedToken, flat, timed } from "./input.js";
import { inspectSymbol } from "./inspect.js";
import { CountTable } from "./table.js";
import type {
  AccessToken,
  Api,
  Attempt,
  AuditLogsQuery,
  Dimension,
  IngestionDimension,
  Json,
  Limits,
  MetricsQuery,
  Now,
  Tolerance,
} from "./types.js";
import { core, stage } from "./wasm.js";

/** What a {@link Machine} has to know; {@link ClientOptions} says what each means. */
export interface MachineOptions {
  /**
   * The base address of the customer's own deployment, for the Control API and the Event Metrics
   * API: `{cluster_endpoint}` of the service reference. https, or http on this machine.
   */
  readonly clusterEndpoint?: string | undefined;
  /** The client id issued to the organization. */
  readonly clientId?: string | undefined;
  /**
   * The client secret issued to the organization. In a browser, where every visitor could read
   * it, it is refused (`secret_in_browser`): give `accessToken`.
   */
  readonly clientSecret?: string | undefined;
  /** The audience identifier of the Control API (service reference 4.3). */
  readonly controlAudience?: string | undefined;
  /** The base address of the Orchestration API: `{base_url}` of the service reference. */
  readonly baseUrl?: string | undefined;
  /** The address of the authorization server: `{auth_url}` of the service reference. */
  readonly authUrl?: string | undefined;
  /** The audience identifier of the Orchestration API (service reference 4.1). */
  readonly orchestrationAudience?: string | undefined;
  /** Lets a browser hold the client secret. Only for pages that nobody else can open. */
  readonly dangerouslyAllowBrowser?: boolean | undefined;
  /** Lets tokens and secrets travel as plain text, also to other machines. */
  readonly dangerouslyAllowHttp?: boolean | undefined;
  /** The lifetime in seconds of a token that comes without one. */
  readonly defaultTokenLifetime?: number | undefined;
  /** The most that a response may hold. */
  readonly limits?: Limits | undefined;
  /** What of a response to let pass, as the API is Beta. */
  readonly tolerate?: readonly Tolerance[] | undefined;
  /**
   * How often one call is tried again at most, after statuses 408, 429, 500, 502, 503 and 504, a
   * broken exchange or one that took too long: 3 unless told otherwise, 0 for never. All calls of a
   * client share a budget of retries, so that a service that is down is not asked much more than usual.
   */
  readonly maxRetries?: number | undefined;
  /**
   * The most milliseconds to wait for what the service asks for with `Retry-After`: 60,000 unless told
   * otherwise, below 2^31. Where it asks for more, the call ends with `retry_later`. A browser shows that
   * header of another origin only if the service lets it (`Access-Control-Expose-Headers`).
   */
  readonly longestRetryWaitMs?: number | undefined;
}

/** What a {@link Call} wants its host to do next. */
export type Step =
  | {
      /** Send this request, and hand back head, chunks and end, or the failure. */
      readonly type: "send";
      readonly request: MachineRequest;
    }
  | {
      /** Hand back a token for this API, from wherever the host has its tokens. */
      readonly type: "provideToken";
      readonly api: Api;
    }
  | {
      /** Another call fetches the token: ask again once `machine.tokenEpoch` is another. */
      readonly type: "blocked";
      readonly epoch: bigint;
    }
  | {
      /**
       * Wait for so many milliseconds of the monotonic clock, or less, and ask again: something is to
       * be tried again, or the service has asked to be left alone for a while. Below 2^31.
       */
      readonly type: "wait";
      readonly ms: number;
    }
  | {
      /** Take the output. */
      readonly type: "done";
    };

const QUERY = ["start", "end", "dimensions", "groupBy"] as const;

/**
 * A client without I/O and without a clock, which {@link Client} drives and any other HTTP stack
 * can: it says what to send and when, reads the bytes that come back, and keeps the tokens.
 *
 * @example
 * const call = machine.eventDelivery({ start, end, dimensions: ["integration"] });
 * for (let step = call.step(); step.type !== "done"; step = call.step()) {
 *   if (step.type === "wait") await new Promise((resolve) => setTimeout(resolve, step.ms));
 *   if (step.type !== "send") continue;
 *   const { status, headers, body } = await exchange(step.request);
 *   if (call.head(status, headers)) {
 *     for await (const chunk of body) call.chunk(chunk);
 *     call.end();
 *   }
 * }
 * const table = call.output();
 */
export class Machine {
  readonly #core: Handle<CoreClient>;

  /**
   * @param options Addresses, credentials and audiences of the APIs in use; or `hostTokens`, that
   * the host will answer `provideToken` in place of a client secret; and `inBrowser`, that
   * visitors can read what it holds, also where that does not show.
   * @throws {@link TallyfoldError} of kind `config`, with the name of the argument.
   */
  constructor(
    options: MachineOptions & {
      readonly hostTokens?: boolean | undefined;
      readonly inBrowser?: boolean | undefined;
    },
  ) {
    const inBrowser = isBrowser() || options?.inBrowser;
    this.#core = new Handle(new (core().CoreClient)({ ...options, inBrowser }));
  }

  /** Begins a call of event_delivery (service reference 4.4). */
  eventDelivery<const D extends Dimension, const G extends D = D>(
    query: MetricsQuery<D, G>,
  ): Call<CountTable<G>> {
    return Call.of(this.#core.object.eventDelivery(timed(query, QUERY)));
  }

  /** Begins a call of event_ingestion (service reference 4.5). */
  eventIngestion<const D extends IngestionDimension, const G extends D = D>(
    query: MetricsQuery<D, G>,
  ): Call<CountTable<G>> {
    return Call.of(this.#core.object.eventIngestion(timed(query, QUERY)));
  }

  /** Begins a listing of audit logs (service reference 4.2). */
  auditLogs(query: AuditLogsQuery = {}): Call<Json> {
    return Call.of(this.#core.object.auditLogs(query));
  }

  /** Another number whenever a token was gained or lost, or its fetching ended. */
  get tokenEpoch(): bigint {
    return this.#core.object.tokenEpoch();
  }

  /** Frees the memory now. Calls that it began can still be driven. */
  [Symbol.dispose](): void {
    this.#core.release();
  }
}

/**
 * One call in progress: ask for the {@link Step}, do it, tell what came of it, and ask again.
 * Every method throws a {@link TallyfoldError}: `out_of_order` if it was not the one asked for.
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

  /** What to do next. @param at What the clocks say; by default, those of this host. */
  step(at: Now = now()): Step {
    const step = this.#core.object.step(at);
    return step.type === "send" ? { ...step, request: new MachineRequest(step.request) } : step;
  }

  /**
   * A response began. @returns `true` if its body is wanted: feed it to {@link Call.chunk} and
   * {@link Call.end}; `false` to drop it and ask for the next step.
   */
  head(status: number, headers: Iterable<readonly [string, string]>): boolean {
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
   * The exchange broke before its end.
   *
   * @param failure Whether time ran out.
   * @param detail One word on the cause, such as `ECONNREFUSED`. Never a text that could hold the
   * request.
   */
  failed(failure: "network" | "timeout", detail: string): void {
    this.#core.object.failed(failure, detail);
  }

  /** The token that was asked for. */
  token(token: AccessToken): void {
    const { accessToken, expiresIn } = checkedToken(token);
    const lifetime = expiresIn === undefined ? undefined : String(expiresIn);
    this.#core.object.token({ accessToken, expiresIn: lifetime });
  }

  /** There is no token to provide: throws, unless the call can do without. */
  tokenFailed(): void {
    this.#core.object.tokenFailed();
  }

  /** The result, once, after the step `done`. */
  output(): T {
    const output = this.#core.object.output();
    return (typeof output === "string" ? JSON.parse(output) : CountTable.of(output)) as T;
  }

  /**
   * The request that has ended since this was last asked, once each. To be asked for after each
   * step `send`, also where that has ended the call.
   */
  attempt(): Attempt | undefined {
    return this.#core.object.attempt();
  }

  /** Gives the call up, and with it the token fetch that others wait for. Harmless after its end. */
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
   * The headers, with names in lower case, in the order to send them. A method, as an inspector
   * that was told to may read every property.
   */
  headers(): [string, string][] {
    const flat = this.#fields.headers;
    const names = flat.filter((_, index) => index % 2 === 0);
    return names.map((name, index) => [name, flat[2 * index + 1] as string]);
  }

  /** The body's bytes; `undefined` for a request that has none. */
  body(): Uint8Array<ArrayBuffer> | undefined {
    return this.#fields.body;
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

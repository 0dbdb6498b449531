import type { CoreSandbox } from "../wasm/tallyfold_sandbox.js";
import { glue } from "../wasm/tallyfold_sandbox.js";
import source from "../wasm/tallyfold_sandbox_bg.wasm";
import { pause } from "./http/abort.js";
import { Handle } from "./loading/handle.js";
import { Module } from "./loading/start.js";
import { clocks } from "./values/clocks.js";
import type { SandboxArguments, SandboxEndpoint, SandboxEvent } from "./values/declared.js";
import type { Url, WebRequest, WebRequestInit, WebResponse } from "./values/host.js";
import { bytes, flat, own } from "./values/input.js";
import { type Inspect, inspectSymbol, shown } from "./values/printing.js";
import type { Now } from "./values/time.js";

const module = new Module(glue, source, "coresandbox_new");

/** The options of a {@link Sandbox}. All of them have defaults. */
export interface SandboxOptions extends SandboxArguments {
  /** The clocks to use instead of the host's own. */
  readonly now?: (() => Now) | undefined;
}

/** A fault for the next matching request, or for every `k`-th one. */
export type SandboxFault = (
  | {
      readonly kind: "status";
      readonly status: number;
      /** The `Retry-After` header of the response. */
      readonly retryAfter?: string | undefined;
    }
  | { readonly kind: "delay"; readonly milliseconds: number }
  | { readonly kind: "date"; readonly milliseconds: number }
  | { readonly kind: "truncate"; readonly bytes: number }
  | { readonly kind: "content_type"; readonly contentType: string }
  | { readonly kind: "revoke_token" }
  | { readonly kind: "wrong_total"; readonly amount: number }
  | { readonly kind: "body"; readonly body: string }
) & {
  /** The endpoint whose requests match; by default, requests to every endpoint match. */
  readonly endpoint?: SandboxEndpoint | undefined;
  /** `k` for every `k`-th matching request; by default, only the next one. */
  readonly every?: number | undefined;
};

/** A request as a server receives it. */
export interface SandboxRequest {
  readonly method: string;
  /** Path and query, such as `/api/v1/audit-logs?page=1`. */
  readonly target: string;
  readonly headers?: Iterable<readonly [string, string]> | undefined;
  readonly body?: Uint8Array | undefined;
  /** The time of the request by both clocks; by default, the sandbox reads its clocks. */
  readonly now?: Now | undefined;
}

/** A response for a server to send. */
export interface SandboxResponse {
  readonly status: number;
  readonly headers: [string, string][];
  readonly body: Uint8Array<ArrayBuffer>;
  /** How many milliseconds to wait before sending the response. */
  readonly delayMs: number;
  /** Close the connection after this many bytes of the body, although the headers announce its full length. */
  readonly cutAt?: number | undefined;
}

/**
 * A simulated service for tests, examples and demos: both token endpoints, the audit logs and both analytics
 * endpoints, with the rules of the service reference. It runs in this process and opens no socket.
 *
 * @example
 * const sandbox = new Sandbox({ seed: 1 });
 * const client = new Client({
 *   ...sandbox.credentials,
 *   clusterEndpoint: "http://localhost",
 *   fetch: sandbox.fetch,
 * });
 */
export class Sandbox {
  readonly #core: Handle<CoreSandbox>;
  readonly #now: () => Now;

  /**
   * @param options The traffic, the credentials and the clocks of the sandbox. All of them have defaults.
   * @throws {@link TallyfoldError} of kind `config`.
   */
  constructor(options: SandboxOptions = {}) {
    this.#core = new Handle(new module.glue.CoreSandbox(options));
    this.#now = clocks(own(options).now);
  }

  /**
   * The credentials that the sandbox accepts, with the names of the options of {@link Client}. The object shows
   * them when it is inspected, so don't use real credentials for a sandbox.
   */
  get credentials(): {
    clientId: string;
    clientSecret: string;
    controlAudience: string;
    orchestrationAudience: string;
  } {
    return this.#core.object.credentials();
  }

  /**
   * Stores `count` events of one timestamp and one outcome; by default, one event.
   *
   * @throws {@link TallyfoldError} of kind `config`.
   * @example
   * sandbox.record({
   *   timestamp: new Date(),
   *   outcome: "errors",
   *   eventName: "order_placed",
   *   writeKey: "web",
   *   integration: "warehouse",
   *   count: 3,
   * });
   */
  record(event: SandboxEvent): void {
    this.#core.object.record(event);
  }

  /**
   * Answers a request, as the service would.
   *
   * @example
   * const { status } = sandbox.handle({ method: "GET", target: "/api/v1/audit-logs" }); // 401
   */
  handle(request: SandboxRequest): SandboxResponse {
    const { method, target, headers, body, now } = own(request);
    const head = { method, target, headers: flat(headers ?? []) };
    const given = bytes("body", body ?? new Uint8Array());
    return this.#core.object.handle(head, given, now ?? this.#now());
  }

  /**
   * A function that answers requests instead of the network: pass it as `fetch` to a {@link Client}. It is bound to
   * this sandbox.
   *
   * @throws TypeError if the host has no `Response`.
   */
  get fetch(): (input: string | Url | WebRequest, init?: WebRequestInit) => Promise<WebResponse> {
    if (globalThis.Response === undefined) throw new TypeError(LACKS);
    return this.#fetch;
  }

  readonly #fetch = async (
    input: string | URL | Request,
    init?: RequestInit,
  ): Promise<Response> => {
    const request = new Request(input, init);
    const { pathname, search } = new URL(request.url);
    const response = this.handle({
      method: request.method,
      target: pathname + search,
      headers: request.headers,
      body: new Uint8Array(await request.arrayBuffer()),
    });
    request.signal.throwIfAborted();
    if (response.delayMs > 0) await pause(response.delayMs, request.signal);
    const { status, headers } = response;
    // `Response` does not allow a body with these statuses.
    const isEmpty = status === 204 || status === 205 || status === 304;
    return new Response(isEmpty ? null : stream(response), { status, headers });
  };

  /**
   * Adds a fault to the next matching request, or to every `k`-th one.
   *
   * @throws {@link TallyfoldError} with code `invalid_argument` for a fault that can't be used.
   * @example
   * sandbox.inject({ kind: "status", status: 503, endpoint: "event_delivery", every: 3 });
   */
  inject(fault: SandboxFault): void {
    this.#core.object.inject(fault);
  }

  /** Revokes all tokens that the sandbox has issued so far. */
  revokeTokens(): void {
    this.#core.object.revokeTokens();
  }

  /** How many requests each endpoint has received. */
  get stats(): { readonly [E in SandboxEndpoint]: number } {
    return this.#core.object.stats();
  }

  /** Frees the memory now. */
  [Symbol.dispose](): void {
    this.#core.release();
  }

  /** @internal */
  [inspectSymbol](_depth: number, options: object, inspect: Inspect): string {
    return shown("Sandbox", this.#core.released, () => inspect({ stats: this.stats }, options));
  }
}

/** jsdom has neither `Response` nor `fetch`. */
const LACKS =
  "this host has no Response and no fetch; in jest, use testEnvironment jest-fixed-jsdom or node";

/** The body, or the part of it that is sent before the connection breaks. */
function stream(response: SandboxResponse): ReadableStream<Uint8Array> {
  const { body, cutAt } = response;
  return new ReadableStream({
    start(controller) {
      const sent = body.subarray(0, cutAt);
      if (sent.length > 0) controller.enqueue(sent);
      if (cutAt === undefined) controller.close();
    },
    pull(controller) {
      controller.error(new TypeError("the connection was closed"));
    },
  });
}

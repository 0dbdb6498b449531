// One HTTP exchange, over any `fetch`.

import { onAbort } from "./abort.js";
import type { Call, MachineRequest } from "./machine.js";
import type { Fetch, FetchInit, FetchResponse } from "./types.js";

/**
 * Sends a request and feeds the call with what comes back. What breaks on the way is told to the
 * call, which decides what it means; only an abort by `signal` is thrown as it is.
 */
export async function exchange(
  call: Call<unknown>,
  request: MachineRequest,
  fetch: Fetch,
  deadline: Deadline,
): Promise<void> {
  try {
    const response = await deadline.during(() =>
      fetch(request.url, init(request, deadline.signal)),
    );
    if (!call.head(status(response), response.headers)) return;
    for await (const chunk of chunks(response, deadline)) call.chunk(chunk);
    call.end();
  } catch (error) {
    if (!(error instanceof Broken)) throw error;
    call.failed(error.timedOut ? "timeout" : "network", error.detail);
  }
}

function init(request: MachineRequest, signal: AbortSignal): FetchInit {
  const { method, headers, body } = request;
  return {
    method,
    headers,
    ...(body && { body }),
    // A redirect would carry the token to wherever it points.
    redirect: "manual",
    cache: "no-store",
    credentials: "omit",
    signal,
  };
}

/**
 * The status. A browser does not show the status of a redirect that it did not follow, and some
 * stacks follow it in spite of being told not to: both are a redirect to the core, here a 302.
 */
function status(response: FetchResponse): number {
  const redirected = response.type === "opaqueredirect" || response.redirected;
  return redirected ? 302 : response.status;
}

async function* chunks(response: FetchResponse, deadline: Deadline): AsyncGenerator<Uint8Array> {
  const body = response.body as ReadableStream<Uint8Array> | null | undefined;
  if (typeof body?.getReader !== "function") {
    yield new Uint8Array(await deadline.during(() => response.arrayBuffer()));
    return;
  }
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await deadline.during(() => reader.read());
      if (done) return;
      yield value;
    }
  } finally {
    // Whatever is left is of no use. A stream that has ended or broken takes no harm.
    reader.cancel().catch(() => {});
  }
}

/** The end of one exchange's patience: its time limit, or the caller's own signal. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #forget: (() => void) | undefined;
  readonly #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #over: Promise<never>;
  #timedOut = false;

  constructor(timeoutMs: number, caller: AbortSignal | undefined) {
    caller?.throwIfAborted();
    this.#caller = caller;
    this.#forget = caller && onAbort(caller, () => this.#controller.abort(caller.reason));
    if (timeoutMs !== Number.POSITIVE_INFINITY) this.#timer = setTimeout(this.#expire, timeoutMs);
    this.#over = new Promise((_, reject) => {
      this.signal.addEventListener("abort", () => reject(this.signal.reason), { once: true });
    });
    // It is over for everybody in the end, also when nobody waits.
    this.#over.catch(() => {});
  }

  readonly #expire = (): void => {
    this.#timedOut = true;
    this.#controller.abort(new DOMException("the exchange took too long", "TimeoutError"));
  };

  /** Aborts what still runs of the exchange. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * What the host's own work comes to, unless patience ends first.
   *
   * @throws the caller's reason, or {@link Broken} with whatever else went wrong.
   */
  async during<T>(work: () => T | Promise<T>): Promise<T> {
    try {
      return await Promise.race([work(), this.#over]);
    } catch (cause) {
      this.#caller?.throwIfAborted();
      throw new Broken(cause, this.#timedOut);
    }
  }

  /** Lets go of timer, listener, and whatever of the exchange nobody waits for any more. */
  end(): void {
    clearTimeout(this.#timer);
    this.#forget?.();
    this.#controller.abort();
  }
}

/** Something outside of this package failed. It is never shown: it may hold the request. */
export class Broken {
  readonly cause: unknown;
  readonly timedOut: boolean;

  constructor(cause: unknown, timedOut: boolean) {
    this.cause = cause;
    this.timedOut = timedOut;
  }

  /** One word that tells what failed and nothing else, such as `ECONNREFUSED`. */
  get detail(): string {
    const error = this.cause as { code?: unknown; name?: unknown; cause?: { code?: unknown } };
    const words = [error?.cause?.code, error?.code, error?.name];
    return words.find((word) => typeof word === "string") ?? "Error";
  }
}

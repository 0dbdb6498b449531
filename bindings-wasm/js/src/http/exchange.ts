// One HTTP exchange over any `fetch`. All foreign code, from `fetch` to the getters of its
// response, runs inside `Deadline.during`, and `report` interprets the errors that it throws.

import { bytes } from "../values/input.js";
import { choosesCodings } from "../values/runtime.js";
import type { Fetch, FetchInit, FetchResponse } from "../values/types.js";
import { Broken, type Deadline } from "./deadline.js";
import { type Exchanged, NoResponse, type Outgoing, report } from "./network_error.js";
import { pastProxy } from "./past_proxy.js";

/** How many milliseconds to wait for the body of a refusal, which is only quoted. */
const EXCERPT_MS = 1000;

/**
 * Sends a request and passes the response to the call. Failures are reported to the call, which decides what they mean.
 *
 * @param copy If given, receives the chunks of the last response whose body the call has read.
 * @throws The call's final error, the reason of the caller's signal, or a programming mistake in `fetch`.
 */
export async function exchange(
  call: Exchanged,
  request: Outgoing,
  fetch: Fetch | undefined,
  deadline: Deadline,
  credentials: FetchInit["credentials"],
  copy: Uint8Array[] | undefined,
): Promise<void> {
  // Looked up for each request, so that a replaced global `fetch` is used.
  const send: Fetch | undefined = fetch ?? globalThis.fetch;
  if (typeof send !== "function") return call.failed("network", "NO_FETCH");
  let response: FetchResponse | undefined;
  try {
    // The caller's own `fetch` decides whether to use a proxy.
    const way = fetch === undefined ? pastProxy(request.url) : {};
    response = await deadline.during(() =>
      answer(request, send, { ...init(request, deadline.signal, credentials), ...way }),
    );
    const [status, headers] = await deadline.during(() => head(response as FetchResponse));
    if (!call.head(status, headers)) return;
    const isGood = status === 200 || request.takes?.(status);
    if (!isGood) deadline.hurry(EXCERPT_MS);
    copy?.splice(0);
    for await (const chunk of chunks(response, deadline)) {
      const isWanted = call.chunk(chunk) !== false;
      copy?.push(chunk);
      if (!isWanted) break;
    }
    call.end();
  } catch (error) {
    if (!(error instanceof Broken)) throw error;
    report(call, request, error, fetch === undefined, response !== undefined);
  } finally {
    discard(response);
  }
}

async function answer(request: Outgoing, fetch: Fetch, options: FetchInit): Promise<FetchResponse> {
  const response = await fetch(request.url, options);
  // The response came too late: nobody waits for it any more.
  if (options.signal?.aborted) discard(response);
  return response;
}

function init(
  request: Outgoing,
  signal: AbortSignal,
  credentials: FetchInit["credentials"],
): FetchInit {
  const body = request.body();
  return {
    method: request.method,
    headers: request.headers(),
    ...(body && { body }),
    // Following a redirect would send the token to any address.
    redirect: "manual",
    cache: "no-store",
    credentials,
    signal,
  };
}

function head(response: FetchResponse): [number, [string, string][]] {
  if (typeof response !== "object" || response === null) throw new NoResponse();
  const code = status(response);
  // For example, the status of `Response.error()` is 0.
  if (!(Number.isInteger(code) && code >= 100 && code < 1000)) throw new NoResponse();
  const headers = pairs(response.headers);
  return [code, choosesCodings() ? headers.filter(isForTheCore) : headers];
}

/**
 * Whether to pass a header to the core. A host that requests a content coding itself, such as brotli, also decodes it, so
 * the core doesn't get this header. It does get a header with several codings.
 */
function isForTheCore([name, value]: [string, string]): boolean {
  return name.toLowerCase() !== "content-encoding" || value.includes(",");
}

/**
 * The status. A browser hides the status of a redirect that it did not follow, and some HTTP stacks
 * follow redirects in spite of the option `redirect`. Both are reported to the core as a redirect
 * (302).
 */
function status(response: FetchResponse): number {
  const redirected = response.type === "opaqueredirect" || response.redirected;
  return redirected ? 302 : response.status;
}

function pairs(headers: FetchResponse["headers"]): [string, string][] {
  if (typeof headers !== "object" || headers === null) throw new NoResponse();
  if (Symbol.iterator in headers) {
    return Array.from(headers, ([name, value]) => [String(name), String(value)]);
  }
  if (typeof headers.forEach !== "function") throw new NoResponse();
  const all: [string, string][] = [];
  headers.forEach((value, name) => {
    all.push([String(name), String(value)]);
  });
  return all;
}

/** Reads a body piece by piece. */
interface Source {
  next(): Promise<{ done?: boolean | undefined; value?: unknown }>;
  stop(): unknown;
}

async function* chunks(response: FetchResponse, deadline: Deadline): AsyncGenerator<Uint8Array> {
  const body = await deadline.during(() => source(response));
  const next = async (): Promise<Uint8Array | undefined> => {
    const { done, value } = (await body.next()) ?? {};
    return done ? undefined : bytes("chunk", value as Uint8Array);
  };
  try {
    for (;;) {
      const chunk = await deadline.during(next);
      if (chunk === undefined) return;
      yield chunk;
    }
  } finally {
    quietly(() => body.stop());
  }
}

/**
 * The pieces of a web stream or of another readable body; a single piece if it can't be read in
 * pieces.
 */
function source(response: FetchResponse): Source {
  const body = response.body as
    | (Partial<ReadableStream<Uint8Array>> & Partial<AsyncIterable<unknown>>)
    | null
    | undefined;
  if (typeof body?.getReader === "function") {
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    return { next: () => reader.read(), stop: () => reader.cancel() };
  }
  const pieces: AsyncIterator<unknown> = body?.[Symbol.asyncIterator]?.() ?? whole(response);
  return { next: () => pieces.next(), stop: () => pieces.return?.() };
}

async function* whole(response: FetchResponse): AsyncGenerator<Uint8Array> {
  if (typeof response.arrayBuffer !== "function") throw new NoResponse();
  yield new Uint8Array(await response.arrayBuffer());
}

/** Cancels a body that is not wanted. For a body that was read completely, this does nothing. */
function discard(response: FetchResponse | undefined): void {
  quietly(() => {
    const body = response?.body as { cancel?(): unknown; destroy?(): unknown } | null | undefined;
    return body?.cancel ? body.cancel() : body?.destroy?.();
  });
}

/** Runs a cleanup whose errors no longer matter. */
function quietly(act: () => unknown): void {
  new Promise((done) => done(act())).catch(() => {});
}

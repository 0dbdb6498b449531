/**
 * A server for web apps. It sends requests to the service with its client's own token.
 * @module tallyfold/server
 */

// The core decides what a web app may request, what it gets, and what is kept. This file transfers the bytes and keeps the
// responses. It imports no modules of a host.

import type { ReadableStream as NodeStream } from "node:stream/web";
import { type CoreVisibleRows, glue } from "../wasm/tallyfold_pages.js";
import source from "../wasm/tallyfold_pages_bg.wasm";
import { type BytesOf, bytesOf } from "./client/bytes_of.js";
import type { Client } from "./client/client.js";
import { awaited, onAbort } from "./http/abort.js";
import { ErrorLog } from "./http/error_log.js";
import { Full, Shared, Turns } from "./http/turns.js";
import { Handle } from "./loading/handle.js";
import { Module } from "./loading/start.js";
import type { PagesArguments } from "./values/declared.js";
import { invalidArgument, TallyfoldError } from "./values/error.js";
import type { WebRequest, WebResponse } from "./values/host.js";
import { optionalFunction, own, pairsOf } from "./values/input.js";
import { builtIn, isNext, isWorkers } from "./values/runtime.js";
import type { Api, Dimension, Metric } from "./values/types.js";

const module = new Module(glue, source, "pageQuestion");

/** A store for responses for settled windows, such as a key-value store. Both functions may be asynchronous. */
export interface AnswerStore {
  /** Returns the text that was set under the key; `undefined` or `null` if there is none. */
  get(key: string): unknown;
  /** Stores a text under a key. The store may drop it when it is full. */
  set(key: string, text: string): unknown;
}

/** The options of {@link pageServer}. */
export interface PageServerOptions extends PagesArguments {
  /** The client that sends the server's requests to the service. */
  readonly client: Client;
  /**
   * A function that decides which requests are answered. It gets the request before the body is read. The server
   * answers if the result is `true` or {@link VisibleRows}, or a promise for one of them. If the function throws or
   * rejects, the server's promise rejects with the same error.
   */
  readonly authorize: (request: WebRequest) => unknown;
  /**
   * A store for responses for settled windows, in addition to the memory of this server. Other servers and later
   * starts can use it. If the store fails, the server queries the service. The stored responses contain all rows,
   * whatever `authorize` allowed.
   */
  readonly store?: AnswerStore | undefined;
  /**
   * A function that gets the error of a call to the service, whose text may quote addresses and bodies, and the
   * reference that the browser gets in its place. By default, the server writes both to the console; equal errors
   * within ten seconds are one line and have one reference. The function may be asynchronous, and the response
   * waits for it for a second at most. If the function throws, the server's promise rejects with the same error; if
   * the lines of a range have begun, their stream ends with this error.
   */
  readonly onFailure?: ((error: TallyfoldError, reference: string) => unknown) | undefined;
}

/**
 * The rows that a user may see: for each named dimension, the value or the values. The web app gets only these
 * rows, whatever it requests, and neither tokens nor audit logs.
 *
 * @example
 * const authorize = async (request) => {
 *   const session = await sessionOf(request);
 *   return session !== undefined && { write_key: session.writeKeys };
 * };
 */
export type VisibleRows = { readonly [name in Dimension]?: string | readonly string[] };

/**
 * Makes a server for web apps: a function from `Request` to `Response`, which you can mount under any path. Web
 * apps request the same paths as from the service, with a client that has no tokens:
 * `new Client({ clusterEndpoint, tokenless: true })`. The server sends requests to the service with its own token.
 * Web apps get the body of the service's response after the server has checked it. An error has the same `code`,
 * `kind` and `status` in the web app; its text stays on the server, and the web app gets a reference to it.
 *
 * Identical concurrent requests are one call to the service. If the visitor whose request began the call
 * disconnects, the call ends, and the next waiting request begins another call. If too many calls wait (`queue`),
 * further requests get status 503 with `Retry-After`. The response for a window that ended more than an hour ago
 * never changes, so the server keeps it as long as there is memory (`memoryBytes`). The server refuses requests from
 * pages of another origin. If the service is down, the web app gets the error at once, without the retries of the
 * client.
 *
 * A web app may also request all windows of a range at once, up to 3,000 windows: `GET` with the path of the
 * endpoint and `/windows`, and `start`, `end`, `window` and `dimensions` in the query. The response is a stream of
 * lines (`application/x-ndjson`). For each window, it contains either a line with the window's edges and whether it
 * is settled, followed by a line with the body from the service, or a line with the edges and the error. The last
 * line is `{"done":true}`. The response has an `ETag`, so the browser doesn't load it again if nothing has changed.
 *
 * @throws {@link TallyfoldError} of kind `config`, with the name of the argument.
 * @example
 * import { pageServer } from "tallyfold/server";
 *
 * // `sessionOf` is your own: who has signed in with the cookie of this request.
 * const authorize = async (request) => (await sessionOf(request))?.maySeeCounts === true;
 * const handle = pageServer({ client, authorize });
 * // Next: export { handle as GET, handle as POST };
 * // Hono: app.all("/tallyfold/:rest{.*}", (context) => handle(context.req.raw));
 */
export function pageServer(
  options: PageServerOptions,
): (request: WebRequest) => Promise<WebResponse> {
  const server = new PageServer(options);
  return (request) => server.answer(request);
}

/** A web app's request, as the core has read it. */
type Question =
  | ({ readonly type: "metrics" } & MetricsQuestion)
  | ({ readonly type: "windows" } & WindowsQuestion)
  | { readonly type: "token"; readonly api: Api }
  | AuditLogsQuestion;

interface MetricsQuestion {
  readonly metric: Metric;
  readonly start: string;
  readonly end: string;
  readonly dimensions: Dimension[];
  /** The dimensions that the web app has requested, if its user may see only some rows. */
  readonly narrowedTo?: Dimension[];
  readonly key: string;
  readonly isSettled: boolean;
}

/** The windows of a range, in chronological order. */
interface WindowsQuestion {
  readonly windows: MetricsQuestion[];
  readonly key: string;
}

interface AuditLogsQuestion {
  readonly type: "auditLogs";
  readonly page?: number;
  readonly perPage?: number;
}

/** The response that a web app gets. */
interface Answer {
  readonly status: number;
  readonly headers: [string, string][];
  readonly body: Bytes | ReadableStream<Bytes>;
}

/** The response for a window. The server may keep it. */
interface KeptAnswer extends Answer {
  readonly body: Bytes;
  readonly isSettled: boolean;
}

/** The lines for a window of a range, and its response unless its call has failed. */
interface Found {
  readonly lines: Bytes;
  readonly answer?: KeptAnswer;
}

/** How a call to the service waits for its turn. */
interface Turn {
  readonly isOfRange: boolean;
  /** Runs the call when it is its turn. `since` is the number of failed requests when the visitor began to wait. */
  take<T>(signal: AbortSignal, ask: (since: bigint) => Promise<T>): Promise<T>;
}

/**
 * The maximum number of bytes in the body of a request. Real bodies have a few hundred. A longer body is read only until it
 * exceeds this number, and then the core refuses it.
 */
const LONGEST_BODY = 16 * 1024;
/** A request that found the queue full may be repeated after this many seconds. */
const BUSY_SECONDS = 1;
/** A body with at most this many bytes is not compressed, because that would take longer than sending it. */
const WORTH_COMPRESSING = 1024;
/** How many milliseconds to wait for a store or a callback. */
const STORE_PATIENCE_MS = 1000;
/**
 * How many milliseconds the response for a range waits for its provisional windows. After that, it begins without a tag, so
 * browsers don't keep it.
 */
const RANGE_PATIENCE_MS = 1000;
/** The maximum number of windows of a range that are requested ahead, including the one that the web app reads next. */
const AHEAD = 64;
/** About how many bytes of a range may wait until the web app reads them. It may read slowly, or not at all. */
const AHEAD_BYTES = 4 * 1024 * 1024;
/** How many windows are requested ahead at first. The number at most doubles with each window, because the next may be large. */
const FIRST_AHEAD = 8;

class PageServer {
  readonly #bytesOf: BytesOf;
  /** The beginning of all keys. */
  readonly #service: string;
  readonly #authorize: (request: Request) => unknown;
  readonly #store: AnswerStore | undefined;
  readonly #options: PagesArguments;
  readonly #provisionalMs: number;
  readonly #turns: Turns;
  /** Limits how many calls of ranges wait in the same line as single requests, which then wait no longer if there are more ranges. */
  readonly #rangesInLine: Turns;
  readonly #kept: Kept;
  /** The caller's function. Without it, errors go to the console. */
  readonly #onFailure: ((error: TallyfoldError, reference: string) => unknown) | undefined;
  readonly #log = new ErrorLog();
  /** The references of errors. Several requests may get the same error. */
  readonly #references = new WeakMap<TallyfoldError, string>();
  /** The calls under way, by key. */
  readonly #underWay = new Map<string, Shared<KeptAnswer>>();
  /**
   * The beginning of the tags of ranges. After a change, browsers don't use the responses that they have kept. A text is made
   * when it is needed, because a Worker has no random numbers before its first request.
   */
  #own: string | undefined;

  constructor(given: PageServerOptions) {
    const { client, authorize, store, onFailure, ...options } = own(given);
    if (typeof client?.parts !== "function") {
      throw invalidArgument("client", "want a Client of tallyfold");
    }
    if (typeof authorize !== "function") {
      const want = "want a function that returns true for a request that may be answered";
      throw invalidArgument("authorize", want);
    }
    const isStore = typeof store?.get === "function" && typeof store.set === "function";
    if (store !== undefined && store !== null && !isStore) {
      throw invalidArgument("store", "want an object with the functions get and set");
    }
    const [provisionalMs, concurrency, memoryBytes, queue] = module.glue.pagesOptions(options);
    this.#onFailure = optionalFunction("onFailure", onFailure, "want a function");
    this.#bytesOf = bytesOf(client);
    // Servers with another client may use the same store. They must not find the responses for this client.
    this.#service = store ? this.#bytesOf.sharedIdentity() : "";
    this.#authorize = authorize;
    this.#store = store ?? undefined;
    this.#options = options;
    this.#provisionalMs = provisionalMs as number;
    this.#turns = new Turns(concurrency as number, queue as number);
    this.#rangesInLine = new Turns(concurrency as number, Number.POSITIVE_INFINITY);
    this.#kept = new Kept(memoryBytes as number);
  }

  async answer(request: Request): Promise<Response> {
    // `authorize` may read the body, too.
    const own = request.body ? request.clone() : request;
    const allowed = await this.#authorize(request);
    const rows = isObject(allowed)
      ? new Handle(new module.glue.CoreVisibleRows(allowed))
      : undefined;
    let answer: Answer | undefined;
    try {
      const permission = { isAllowed: allowed === true || rows !== undefined, rows };
      const body = permission.isAllowed ? await beginning(own) : "";
      const isGone = body === undefined || request.signal.aborted;
      answer = isGone ? GONE : await this.#answered(request, body, permission);
      return response(answer, request);
    } finally {
      // The stream of a range still needs the rows, until it ends.
      if (!(answer?.body instanceof ReadableStream)) rows?.release();
    }
  }

  /** Returns the response to a request, also if the request is refused or its call fails. */
  async #answered(request: Request, body: string, permission: Permission): Promise<Answer> {
    const { signal } = request;
    let question: Question;
    try {
      question = this.#question(request, body, permission);
    } catch (error) {
      return failed(error);
    }
    try {
      return await this.#to(question, request, permission.rows);
    } catch (error) {
      if (signal.aborted) return GONE;
      if (error instanceof Full) return answerOf(module.glue.busyAnswer(BUSY_SECONDS));
      return failed(error, TallyfoldError.is(error) ? await this.#referenceTo(error) : undefined);
    }
  }

  async #referenceTo(error: TallyfoldError): Promise<string> {
    const known = this.#references.get(error);
    if (known !== undefined) return known;
    const onFailure = this.#onFailure;
    const own = newReference();
    const [reference, line] = onFailure
      ? [own, undefined]
      : this.#log.note(error.message, this.#nowMs(), own);
    this.#references.set(error, reference);
    if (line !== undefined) console.error(`tallyfold: the page server's request failed ${line}`);
    // `soon` also handles a rejection after the wait. Otherwise, it would end the process.
    if (onFailure) await soon(onFailure(error, reference));
    return reference;
  }

  #question(request: Request, body: string, { isAllowed, rows }: Permission): Question {
    const { host, pathname, search } = new URL(request.url);
    // Some hosts leave this header out of a `Request`.
    const headers = [...request.headers, ["host", host]].flat();
    const asked = [request.method, pathname + search, body, ...headers];
    const now = this.#bytesOf.now();
    const { pageQuestion } = module.glue;
    return pageQuestion(this.#options, this.#service, asked, isAllowed, rows?.object.copy(), now);
  }

  async #to(
    question: Question,
    { signal, headers }: Request,
    rows: VisibleHandle | undefined,
  ): Promise<Answer> {
    const since = this.#bytesOf.failures();
    const turn: Turn = {
      isOfRange: false,
      take: (signal, ask) => this.#turns.take(signal, () => ask(since)),
    };
    switch (question.type) {
      case "metrics":
        return this.#visible(question, signal, turn, rows);
      case "windows":
        return this.#range(question, signal, headers.get("if-none-match"), rows);
      case "auditLogs": {
        const ask = () => this.#bytesOf.auditLogs(question, signal, since);
        return good(await this.#turns.take(signal, ask));
      }
      case "token": {
        const ask = () => this.#bytesOf.token(question.api, signal, since);
        return good(encoded(JSON.stringify(await this.#turns.take(signal, ask))));
      }
    }
  }

  /** Returns the rows of a response that the user may see. */
  async #visible(
    question: MetricsQuestion,
    signal: AbortSignal,
    turn: Turn,
    rows: VisibleHandle | undefined,
  ): Promise<KeptAnswer> {
    const { start, end, dimensions, narrowedTo } = question;
    const answer = await this.#shared(question, signal, turn);
    if (rows === undefined) return answer;
    const { object } = rows;
    const body = object.narrow(start, end, dimensions, narrowedTo, answer.body) as Bytes;
    return { ...answer, body };
  }

  /** Returns the kept response, or waits for the call under way, or begins a new call. */
  async #shared(question: MetricsQuestion, signal: AbortSignal, turn: Turn): Promise<KeptAnswer> {
    const { key } = question;
    for (;;) {
      const kept = this.#kept.get(key, this.#nowMs());
      if (kept) return kept;
      const underWay = this.#underWay.get(key);
      // A single request does not wait for a turn of a range, which may have many windows before this one.
      if (!underWay || underWay.isOver || (underWay.waitsInRange && !turn.isOfRange)) break;
      const answer = await underWay.outcome(signal);
      if (answer) return answer;
      // The visitor whose request began that call has left, or found the queue full.
    }
    const own = new Shared<KeptAnswer>(turn.isOfRange);
    this.#underWay.set(key, own);
    try {
      return await own.by(signal, () => this.#asked(question, signal, turn, own));
    } finally {
      if (this.#underWay.get(key) === own) this.#underWay.delete(key);
    }
  }

  async #asked(
    question: MetricsQuestion,
    signal: AbortSignal,
    turn: Turn,
    own: Shared<KeptAnswer>,
  ): Promise<KeptAnswer> {
    const { key, isSettled: isOld, metric } = question;
    const stored = isOld ? await this.#stored(key) : undefined;
    let overtaking: KeptAnswer | undefined;
    const ask = async (since: bigint): Promise<[Bytes, boolean]> => {
      own.waitsInRange = false;
      // A single request may have overtaken the call of a range.
      overtaking = turn.isOfRange ? this.#kept.get(key, this.#nowMs()) : undefined;
      if (overtaking) return [overtaking.body, overtaking.isSettled];
      return this.#bytesOf.metrics(metric, question, signal, since);
    };
    const [body, isSettled] = stored ? [stored, true] : await turn.take(signal, ask);
    if (overtaking) return overtaking;
    const answer = { ...good(body), body, isSettled };
    const until = isSettled ? Number.POSITIVE_INFINITY : this.#nowMs() + this.#provisionalMs;
    this.#kept.set(key, answer, until);
    if (isSettled && stored === undefined) {
      const keeping = this.#keep(key, body);
      // A Worker may end after its response. In other hosts, no request waits for this.
      if (isWorkers()) await soon(keeping);
    }
    return answer;
  }

  /**
   * Returns the response with all windows of a range. The windows that may still change are read first, because the tag
   * depends on their counts.
   */
  async #range(
    { windows, key }: WindowsQuestion,
    visitor: AbortSignal,
    known: string | null,
    rows: VisibleHandle | undefined,
  ): Promise<Answer> {
    const leaving = new AbortController();
    const forget = onAbort(visitor, () => leaving.abort(visitor.reason));
    const { signal } = leaving;
    if (rows) onAbort(signal, () => rows.release());
    const since = this.#bytesOf.failures();
    // Only one call of the range at a time waits in a line with calls of other visitors. Calls of one request may wait for a
    // promise even in a Worker, where `Turns` look only every few milliseconds.
    let last = Promise.resolve();
    const turn: Turn = {
      isOfRange: true,
      take: async (signal, ask) => {
        const before = last;
        let leave = (): void => {};
        last = new Promise((resolve) => {
          leave = resolve;
        });
        try {
          await awaited(before, signal);
          return await this.#rangesInLine.take(signal, (leaveRanges) => {
            const work = () => {
              leave();
              leaveRanges();
              return ask(since);
            };
            return this.#turns.take(signal, work, true);
          });
        } finally {
          leave();
        }
      },
    };
    const begun = new Map<MetricsQuestion, Promise<Found>>();
    const find = (window: MetricsQuestion): Promise<Found> => {
      const known = begun.get(window);
      if (known) return known;
      const finding = this.#found(window, signal, turn, rows);
      // The stream of the response gets this rejection, too.
      finding.catch(() => {});
      begun.set(window, finding);
      return finding;
    };
    const end = (): void => {
      forget();
      leaving.abort(new DOMException("", "AbortError"));
    };
    let answer: Answer;
    try {
      const tag = await soon(this.#tagOf(windows, key, find), RANGE_PATIENCE_MS);
      const asked = module.glue.rangeAnswer(tag as string | undefined, known ?? undefined);
      answer = answerOf(asked);
    } catch (error) {
      end();
      throw error;
    }
    if (answer.status === NOT_MODIFIED) {
      end();
      return answer;
    }
    let place = 0;
    let [largest, ahead] = [1, FIRST_AHEAD];
    const body = new ReadableStream<Bytes>({
      pull: async (controller) => {
        for (const window of windows.slice(place, place + ahead)) find(window);
        const window = windows[place];
        place += 1;
        if (window === undefined) {
          controller.enqueue(module.glue.lastLine() as Bytes);
          controller.close();
          end();
          return;
        }
        try {
          const { lines } = await find(window);
          largest = Math.max(largest, lines.length);
          ahead = Math.min(AHEAD, 2 * ahead, Math.ceil(AHEAD_BYTES / largest));
          controller.enqueue(lines);
          begun.delete(window);
        } catch (error) {
          end();
          throw error;
        }
      },
      cancel: end,
    });
    return { ...answer, body };
  }

  /** Returns the tag of a range; `undefined` if a provisional window has failed. */
  async #tagOf(
    windows: MetricsQuestion[],
    key: string,
    find: (window: MetricsQuestion) => Promise<Found>,
  ): Promise<string | undefined> {
    this.#own ??= crypto.randomUUID();
    const own = this.#own;
    const provisional = windows.filter((window) => !window.isSettled);
    const found = await Promise.all(provisional.map(find));
    let tag = module.glue.rangeTag(own, key);
    for (const [place, { answer }] of found.entries()) {
      if (answer === undefined) return undefined;
      tag = module.glue.rangeTagWith(tag, provisional[place]?.key ?? "", answer.body);
    }
    return tag;
  }

  /** Returns the lines for a window of a range, also if its call fails. */
  async #found(
    window: MetricsQuestion,
    signal: AbortSignal,
    turn: Turn,
    rows: VisibleHandle | undefined,
  ): Promise<Found> {
    const { start, end } = window;
    try {
      const answer = await this.#visible(window, signal, turn, rows);
      if (window.isSettled && !answer.isSettled) this.#own = undefined;
      const lines = module.glue.windowLines(start, end, answer.isSettled, answer.body);
      return { answer, lines: lines as Bytes };
    } catch (error) {
      if (signal.aborted || !TallyfoldError.is(error)) throw error;
      if (window.isSettled) this.#own = undefined;
      const reference = await this.#referenceTo(error);
      const { code, status, message, retryAfter } = error;
      const parts = [code, status, message, retryAfter, reference] as const;
      return { lines: module.glue.failedLine(start, end, ...parts) as Bytes };
    }
  }

  #nowMs(): number {
    return this.#bytesOf.now().monotonicMs;
  }

  async #stored(key: string): Promise<Bytes | undefined> {
    if (this.#store === undefined) return undefined;
    try {
      const text = await soon(this.#store.get(key));
      const body = typeof text === "string" ? module.glue.unsealed(key, text) : undefined;
      return body === undefined ? undefined : encoded(body);
    } catch {
      return undefined;
    }
  }

  /** Stores a response. Errors of the store are ignored. */
  async #keep(key: string, body: Bytes): Promise<void> {
    if (this.#store === undefined) return;
    try {
      const text = module.glue.sealed(key, new TextDecoder().decode(body));
      await this.#store.set(key, text);
    } catch {
      // A later request queries the service again.
    }
  }
}

type Bytes = Uint8Array<ArrayBuffer>;

type VisibleHandle = Handle<CoreVisibleRows>;

/** The decision of `authorize`. */
interface Permission {
  readonly isAllowed: boolean;
  readonly rows: VisibleHandle | undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

const NOT_MODIFIED = 304;
/** The response to a visitor who has left, and does not see it. */
const GONE: Answer = { status: 499, headers: [], body: new Uint8Array() };

function good(body: Bytes): Answer {
  const [status, , ...flat] = module.glue.goodAnswer("");
  return { status, headers: pairsOf(flat), body };
}

/** Returns the response to a refused request; with a `reference`, to a request whose call has failed. */
function failed(error: unknown, reference?: string): Answer {
  if (!TallyfoldError.is(error)) throw error;
  const { code, status, message, retryAfter } = error;
  return answerOf(module.glue.failedAnswer(code, status, message, retryAfter, reference));
}

/** Converts a response of the core: the status, the body, and alternating names and values of the headers. */
function answerOf([status, text, ...flat]: unknown[]): Answer {
  return {
    status: status as number,
    headers: pairsOf(flat as string[]),
    body: encoded(text as string),
  };
}

function newReference(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function encoded(text: string): Bytes {
  return new TextEncoder().encode(text);
}

/** Reads a body, or the beginning of a body that is too long. Returns `undefined` if the visitor leaves before the end. */
async function beginning(request: Request): Promise<string | undefined> {
  const reader = request.body?.getReader();
  if (reader === undefined) return "";
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (let read = 0; read <= LONGEST_BODY; ) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      read += value.length;
      text += decoder.decode(value, { stream: true });
    }
    return text;
  } catch {
    return undefined;
  }
}

/** Makes a `Response`, which is compressed if that is worthwhile. */
function response({ status, headers, body }: Answer, request: Request): Response {
  if (status === NOT_MODIFIED) return new Response(null, { status, headers });
  const isStream = body instanceof ReadableStream;
  // Cloudflare itself compresses the responses of a Worker. Next drops the header `content-encoding` of a route's response.
  const isLong = (isStream || body.length > WORTH_COMPRESSING) && !isWorkers() && !isNext();
  if (!isLong || typeof CompressionStream !== "function") {
    return new Response(body, { status, headers });
  }
  const all: [string, string][] = [...headers, ["vary", "accept-encoding"]];
  const compressed = takesGzip(request) ? gzipped(body) : undefined;
  if (compressed === undefined) return new Response(body, { status, headers: all });
  return new Response(compressed, { status, headers: [...all, ["content-encoding", "gzip"]] });
}

/**
 * Compresses a body. A `CompressionStream` would keep the lines of a range until their end. If the host has no `node:zlib`,
 * which sends each line at once, the function returns `undefined` for a stream.
 */
function gzipped(body: Answer["body"]): ReadableStream<Bytes> | undefined {
  if (!(body instanceof ReadableStream)) {
    return new Blob([body]).stream().pipeThrough(new CompressionStream("gzip"));
  }
  const zlib = builtIn<typeof import("node:zlib")>("node:zlib");
  const streams = builtIn<typeof import("node:stream")>("node:stream");
  if (zlib === undefined || streams === undefined) return undefined;
  const gzip = zlib.createGzip({ flush: zlib.constants.Z_SYNC_FLUSH });
  const lines = streams.Readable.fromWeb(body as NodeStream);
  // The reader of `gzip` gets the errors, too.
  streams.pipeline(lines, gzip, () => {});
  const chunks: AsyncIterator<Bytes> = gzip[Symbol.asyncIterator]();
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: () => void gzip.destroy(),
    },
    { highWaterMark: 0 },
  );
}

function takesGzip({ headers }: Request): boolean {
  const codings = headers.get("accept-encoding")?.toLowerCase().split(",") ?? [];
  return codings.some((coding) => /^\s*(?:x-)?gzip\s*(?:;(?!\s*q=0(?:\.0*)?\s*$)|$)/.test(coding));
}

/** Waits for a store or a callback. Returns `undefined` if it takes too long. */
async function soon(promised: unknown, patienceMs = STORE_PATIENCE_MS): Promise<unknown> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, patienceMs);
  });
  try {
    return await Promise.race([promised, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Responses in memory. The least recently used responses are dropped first. */
class Kept {
  readonly #most: number;
  #bytes = 0;
  readonly #answers = new Map<string, { answer: KeptAnswer; until: number; bytes: number }>();

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string, at: number): KeptAnswer | undefined {
    const found = this.#drop(key);
    if (found === undefined || found.until <= at) return undefined;
    this.set(key, found.answer, found.until);
    return found.answer;
  }

  set(key: string, answer: KeptAnswer, until: number): void {
    this.#drop(key);
    const bytes = key.length + answer.body.length + ENTRY_BYTES;
    this.#answers.set(key, { answer, until, bytes });
    this.#bytes += bytes;
    for (const [oldest] of this.#answers) {
      if (this.#bytes <= this.#most) break;
      this.#drop(oldest);
    }
  }

  #drop(key: string): { answer: KeptAnswer; until: number } | undefined {
    const found = this.#answers.get(key);
    if (found) {
      this.#answers.delete(key);
      this.#bytes -= found.bytes;
    }
    return found;
  }
}

/** About how many bytes a response takes in addition to its text. */
const ENTRY_BYTES = 500;

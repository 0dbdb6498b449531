/**
 * A server for web apps. It sends requests to the service with its client's own token.
 * @module tallyfold/server
 */

// The core decides what a page may request, what it gets, and what is kept. This file carries the bytes and keeps the answers.
// It imports nothing of a host.

import { type CoreVisibleRows, type Glue, glue } from "../wasm/tallyfold_pages.js";
import source from "../wasm/tallyfold_pages_bg.wasm";
import type { BytesOf, Client } from "./client/client.js";
import { onAbort, pause } from "./http/abort.js";
import { ErrorLog } from "./http/error_log.js";
import { Full, Shared, Turns } from "./http/turns.js";
import { Module } from "./loading/start.js";
import type { PagesArguments } from "./values/declared.js";
import { invalidArgument, TallyfoldError } from "./values/error.js";
import type { WebRequest, WebResponse } from "./values/host.js";
import { optionalFunction, own, pairsOf } from "./values/input.js";
import { isNext, isWorkers } from "./values/runtime.js";
import type { Api, Dimension, Metric } from "./values/types.js";

const module = new Module(glue, source, "pageQuestion");

/** The core of a server for web apps. The first call compiles it. */
function pagesCore(): Glue {
  return module.glue;
}

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
   * waits for it for a second at most. If the function throws, the server's promise rejects with the same error.
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
 * Identical concurrent requests are one call to the service. If the visitor disconnects whose request began the
 * call, the call ends, and the next waiting request begins another one. If too many calls wait (`queue`), further
 * requests get status 503 with `Retry-After`. The response for a window that ended more than an hour ago never
 * changes, so the server keeps it. The server refuses requests from pages of another origin. If the service is
 * down, the web app gets the error at once, without the retries of the client.
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

/** What the core makes of a request. */
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
  /** What the page has requested, if its user may see some rows only. */
  readonly narrowedTo?: Dimension[];
  readonly key: string;
  readonly isSettled: boolean;
}

/** The windows of a range, in order of time. */
interface WindowsQuestion {
  readonly windows: MetricsQuestion[];
  readonly key: string;
}

interface AuditLogsQuestion {
  readonly type: "auditLogs";
  readonly page?: number;
  readonly perPage?: number;
}

/** What a page gets. */
interface Answer {
  readonly status: number;
  readonly headers: [string, string][];
  readonly body: Bytes | ReadableStream<Bytes>;
}

/** What a page gets for a window, which may be kept. */
interface KeptAnswer extends Answer {
  readonly body: Bytes;
  readonly isSettled: boolean;
}

/** The lines of a window of a range, and its answer unless its call has failed. */
interface Found {
  readonly lines: Bytes;
  readonly answer?: KeptAnswer;
}

/** Runs a call to the service when it is its turn. `since` is how many requests had failed when the visitor began to wait. */
type Turn = <T>(signal: AbortSignal, ask: (since: bigint) => Promise<T>) => Promise<T>;

/** A request has a few hundred bytes. Of a longer one, as much is read as the core needs to refuse it. */
const LONGEST_BODY = 16 * 1024;
/** After so many seconds a request may come again that found the queue full. */
const BUSY_SECONDS = 1;
/** A shorter body takes less time than its compression. */
const WORTH_COMPRESSING = 1024;
/** A store or a callback that takes longer is left alone. */
const STORE_PATIENCE_MS = 1000;
/** A range whose provisional windows take longer begins without them, and browsers don't keep it. */
const RANGE_PATIENCE_MS = 1000;
/** So many windows of a range are looked up before the page has read the first of them. */
const AHEAD = 64;

class PageServer {
  readonly #client: Client;
  readonly #bytesOf: BytesOf;
  /** What keys begin with. */
  readonly #service: string;
  readonly #authorize: (request: Request) => unknown;
  readonly #store: AnswerStore | undefined;
  readonly #options: PagesArguments;
  readonly #provisionalMs: number;
  readonly #turns: Turns;
  readonly #kept: Kept;
  /** The caller's own; otherwise errors go to the console. */
  readonly #onFailure: ((error: TallyfoldError, reference: string) => unknown) | undefined;
  readonly #log = new ErrorLog();
  /** Of errors that several requests have met. */
  readonly #references = new WeakMap<TallyfoldError, string>();
  /** The calls under way, by key. */
  readonly #underWay = new Map<string, Shared<KeptAnswer>>();
  /** What tags of ranges begin with. With another one, browsers don't use what they have kept. */
  #own = crypto.randomUUID();

  constructor(given: PageServerOptions) {
    const { client, authorize, store, onFailure, ...options } = own(given);
    if (typeof client?.bytesOf !== "function") {
      throw invalidArgument("client", "want a Client of tallyfold, which asks the service");
    }
    if (typeof authorize !== "function") {
      const want = "want a function that returns true for a request that may be answered";
      throw invalidArgument("authorize", want);
    }
    if (store && (typeof store.get !== "function" || typeof store.set !== "function")) {
      throw invalidArgument("store", "want an object with the functions get and set");
    }
    const [provisionalMs, concurrency, memoryBytes, queue] = pagesCore().pagesOptions(options);
    this.#onFailure = optionalFunction("onFailure", onFailure, "want a function");
    this.#client = client;
    this.#bytesOf = client.bytesOf();
    // Others may use the same store, and must not find this client's answers.
    this.#service = store ? this.#bytesOf.sharedIdentity() : "";
    this.#authorize = authorize;
    this.#store = store ?? undefined;
    this.#options = options;
    this.#provisionalMs = provisionalMs as number;
    this.#turns = new Turns(concurrency as number, queue as number);
    this.#kept = new Kept(memoryBytes as number);
  }

  async answer(request: Request): Promise<Response> {
    // `authorize` may read the body, too.
    const own = request.body ? request.clone() : request;
    const allowed = await this.#authorize(request);
    const rows = isObject(allowed) ? new (pagesCore().CoreVisibleRows)(allowed) : undefined;
    const permission = { isAllowed: allowed === true || rows !== undefined, rows };
    const body = permission.isAllowed ? await beginning(own) : "";
    const answer = body === undefined ? GONE : await this.#answered(request, body, permission);
    return response(answer, request);
  }

  /** The answer to a request, also if it can't be asked, or if the call fails. */
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
      if (error instanceof Full) return answerOf(pagesCore().busyAnswer(BUSY_SECONDS));
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
    if (line !== undefined) console.error(`tallyfold: the page server got no answer ${line}`);
    // What it rejects with must not end the process.
    if (onFailure) await soon(onFailure(error, reference));
    return reference;
  }

  #question(request: Request, body: string, { isAllowed, rows }: Permission): Question {
    const { host, pathname, search } = new URL(request.url);
    // Some hosts leave the header out of a `Request`.
    const headers = [...request.headers, ["host", host]].flat();
    const asked = [request.method, pathname + search, body, ...headers];
    const now = this.#bytesOf.now();
    const { pageQuestion } = pagesCore();
    return pageQuestion(this.#options, this.#service, asked, isAllowed, rows?.copy(), now);
  }

  async #to(
    question: Question,
    { signal, headers }: Request,
    rows: CoreVisibleRows | undefined,
  ): Promise<Answer> {
    const since = this.#bytesOf.failures();
    const turn: Turn = (signal, ask) => this.#turns.take(signal, () => ask(since));
    switch (question.type) {
      case "metrics":
        return this.#visible(question, signal, turn, rows);
      case "windows":
        return this.#range(question, signal, headers.get("if-none-match"), rows);
      case "auditLogs": {
        const ask = () => this.#bytesOf.auditLogs(question, signal, since);
        return good(await this.#turns.take(signal, ask));
      }
      case "token":
        return good(encoded(JSON.stringify(await this.#client.token(question.api, { signal }))));
    }
  }

  /** The rows of an answer that the user may see. */
  async #visible(
    question: MetricsQuestion,
    signal: AbortSignal,
    turn: Turn,
    rows: CoreVisibleRows | undefined,
  ): Promise<KeptAnswer> {
    const { start, end, dimensions, narrowedTo } = question;
    const answer = await this.#shared(question, signal, turn);
    if (rows === undefined) return answer;
    const body = rows.narrow(start, end, dimensions, narrowedTo, answer.body) as Bytes;
    return { ...answer, body };
  }

  /** The answer that is kept, or that of the call under way, or that of a new call. */
  async #shared(question: MetricsQuestion, signal: AbortSignal, turn: Turn): Promise<KeptAnswer> {
    const { key } = question;
    for (;;) {
      const kept = this.#kept.get(key, this.#nowMs());
      if (kept) return kept;
      const underWay = this.#underWay.get(key);
      if (!underWay || underWay.isOver) break;
      const answer = await underWay.outcome(signal);
      if (answer) return answer;
      // Its visitor has left.
    }
    const own = new Shared<KeptAnswer>();
    this.#underWay.set(key, own);
    try {
      return await own.by(signal, () => this.#asked(question, signal, turn));
    } finally {
      if (this.#underWay.get(key) === own) this.#underWay.delete(key);
    }
  }

  async #asked(question: MetricsQuestion, signal: AbortSignal, turn: Turn): Promise<KeptAnswer> {
    const { key, isSettled: isOld, metric } = question;
    const stored = isOld ? await this.#stored(key) : undefined;
    const ask = (since: bigint) => this.#bytesOf.metrics(metric, question, signal, since);
    const [body, isSettled] = stored ? [stored, true] : await turn(signal, ask);
    const answer = { ...good(body), body, isSettled };
    const until = isSettled ? Number.POSITIVE_INFINITY : this.#nowMs() + this.#provisionalMs;
    this.#kept.set(key, answer, until);
    if (isSettled && stored === undefined) {
      const keeping = this.#keep(key, body);
      // A Worker ends with its answer; elsewhere no request waits for this.
      if (isWorkers()) await soon(keeping);
    }
    return answer;
  }

  /** The answer with all windows of a range. Those that may still change come first, because the tag is made of them. */
  async #range(
    { windows, key }: WindowsQuestion,
    visitor: AbortSignal,
    known: string | null,
    rows: CoreVisibleRows | undefined,
  ): Promise<Answer> {
    const leaving = new AbortController();
    const forget = onAbort(visitor, () => leaving.abort(visitor.reason));
    const { signal } = leaving;
    const limits = new Turns(this.#turns.most, Number.POSITIVE_INFINITY);
    const since = this.#bytesOf.failures();
    const turn: Turn = (signal, ask) =>
      limits.take(signal, () => this.#patiently(signal, () => ask(since)));
    const begun = new Map<MetricsQuestion, Promise<Found>>();
    const find = (window: MetricsQuestion): Promise<Found> => {
      const known = begun.get(window);
      if (known) return known;
      const finding = this.#found(window, signal, turn, rows);
      // What it rejects with, the stream of the answer meets.
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
      const asked = pagesCore().rangeAnswer(tag as string | undefined, known ?? undefined);
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
    const body = new ReadableStream<Bytes>({
      pull: async (controller) => {
        for (const window of windows.slice(place, place + AHEAD)) find(window);
        const window = windows[place];
        place += 1;
        if (window === undefined) {
          controller.enqueue(pagesCore().lastLine() as Bytes);
          controller.close();
          end();
          return;
        }
        try {
          controller.enqueue((await find(window)).lines);
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

  /** The tag of a range; `undefined` if a window has failed. */
  async #tagOf(
    windows: MetricsQuestion[],
    key: string,
    find: (window: MetricsQuestion) => Promise<Found>,
  ): Promise<string | undefined> {
    const own = this.#own;
    const provisional = windows.filter((window) => !window.isSettled);
    const found = await Promise.all(provisional.map(find));
    let tag = pagesCore().rangeTag(own, key);
    for (const [place, { answer }] of found.entries()) {
      if (answer === undefined) return undefined;
      tag = pagesCore().rangeTagWith(tag, provisional[place]?.key ?? "", answer.body);
    }
    return tag;
  }

  /** The lines of a window of a range, also if its call fails. */
  async #found(
    window: MetricsQuestion,
    signal: AbortSignal,
    turn: Turn,
    rows: CoreVisibleRows | undefined,
  ): Promise<Found> {
    const { start, end } = window;
    try {
      const answer = await this.#visible(window, signal, turn, rows);
      if (window.isSettled && !answer.isSettled) this.#own = crypto.randomUUID();
      const lines = pagesCore().windowLines(start, end, answer.isSettled, answer.body);
      return { answer, lines: lines as Bytes };
    } catch (error) {
      if (signal.aborted || !TallyfoldError.is(error)) throw error;
      if (window.isSettled) this.#own = crypto.randomUUID();
      const reference = await this.#referenceTo(error);
      const { code, status, message, retryAfter } = error;
      const parts = [code, status, message, retryAfter, reference] as const;
      return { lines: pagesCore().failedLine(start, end, ...parts) as Bytes };
    }
  }

  /** Takes a turn, and waits as long as too many others wait. */
  async #patiently<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await this.#turns.take(signal, ask);
      } catch (error) {
        if (!(error instanceof Full)) throw error;
        await pause(BUSY_SECONDS * 1000, signal);
      }
    }
  }

  #nowMs(): number {
    return this.#bytesOf.now().monotonicMs;
  }

  async #stored(key: string): Promise<Bytes | undefined> {
    if (this.#store === undefined) return undefined;
    try {
      const text = await soon(this.#store.get(key));
      const body = typeof text === "string" ? pagesCore().unsealed(key, text) : undefined;
      return body === undefined ? undefined : encoded(body);
    } catch {
      return undefined;
    }
  }

  /** A store that fails does no harm. */
  async #keep(key: string, body: Bytes): Promise<void> {
    if (this.#store === undefined) return;
    try {
      const text = pagesCore().sealed(key, new TextDecoder().decode(body));
      await this.#store.set(key, text);
    } catch {
      // The service is asked again.
    }
  }
}

type Bytes = Uint8Array<ArrayBuffer>;

/** What `authorize` has decided. */
interface Permission {
  readonly isAllowed: boolean;
  readonly rows: CoreVisibleRows | undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

const NOT_MODIFIED = 304;
/** For a visitor who has left, and does not see it. */
const GONE: Answer = { status: 499, headers: [], body: new Uint8Array() };

function good(body: Bytes): Answer {
  const [status, , ...flat] = pagesCore().goodAnswer("");
  return { status, headers: pairsOf(flat), body };
}

/** The answer to a request that can't be asked, or with a reference to the failure of its call. */
function failed(error: unknown, reference?: string): Answer {
  if (!TallyfoldError.is(error)) throw error;
  const { code, status, message, retryAfter } = error;
  return answerOf(pagesCore().failedAnswer(code, status, message, retryAfter, reference));
}

/** What the core answers: the status, the body, and names and values of the headers in turn. */
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

/** The body of a request, or the beginning of one that is too long; `undefined` if the visitor leaves in the middle. */
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

/** The answer as a response, compressed if that is worth it. */
function response({ status, headers, body }: Answer, request: Request): Response {
  if (status === NOT_MODIFIED) return new Response(null, { status, headers });
  const isStream = body instanceof ReadableStream;
  // Cloudflare compresses what a Worker answers by itself. Next sends the body of a route without its coding's header.
  const isLong = (isStream || body.length > WORTH_COMPRESSING) && !isWorkers() && !isNext();
  if (!isLong || typeof CompressionStream !== "function") {
    return new Response(body, { status, headers });
  }
  const all: [string, string][] = [...headers, ["vary", "accept-encoding"]];
  if (!takesGzip(request)) return new Response(body, { status, headers: all });
  const stream = isStream ? body : new Blob([body]).stream();
  const compressed = stream.pipeThrough(new CompressionStream("gzip"));
  return new Response(compressed, { status, headers: [...all, ["content-encoding", "gzip"]] });
}

function takesGzip({ headers }: Request): boolean {
  const codings = headers.get("accept-encoding")?.toLowerCase().split(",") ?? [];
  return codings.some((coding) => /^\s*(?:x-)?gzip\s*(?:;(?!\s*q=0(?:\.0*)?\s*$)|$)/.test(coding));
}

/** What comes within the patience for a store or a callback. */
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

/** Answers in memory; the least recently used ones are dropped first. */
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

/** About how many bytes an answer takes in addition to its text. */
const ENTRY_BYTES = 500;

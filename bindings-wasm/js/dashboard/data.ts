// Loads the dashboard's counts with a client of the server for web apps. The client reads a range in one request. While the
// page is open, it keeps the settled windows of the last queries. The library reads and adds up all counts.

import { Client } from "../src/client/client.js";
import { init } from "../src/loading/library.js";
import { Plan } from "../src/ranges/plan.js";
import type { CountTable } from "../src/tables/table.js";
import { TallyfoldError } from "../src/values/error.js";
import { joined } from "../src/values/input.js";
import type { Fetch, FetchInit, FetchResponse, Progress, Window } from "../src/values/types.js";
import type { DashboardQuery, LoadOptions } from "./elements.js";
import { iso, msOf } from "./range.js";
import { turn } from "./turns.js";

/** The counts of a range, as far as they could be read, and the error if some could not be read. */
export interface Loaded {
  /** `undefined` if nothing could be read. */
  readonly table: CountTable | undefined;
  readonly error?: TallyfoldError;
}

const sources = new Map<string, Source>();

/** Returns the source of counts for one server for web apps. All elements of the page share it. */
export function sourceOf(src: string): Source {
  const address = new URL(src, document.baseURI).href.replace(/\/+$/, "");
  const source = sources.get(address) ?? new Source(address);
  sources.set(address, source);
  return source;
}

/** The maximum number of tables that are kept. */
const KEPT = 6;
/** If a table of the query is kept, and fewer windows than this are wanted, they are requested one by one. */
const WORTH_A_RANGE = 2;

export class Source {
  readonly #client: Client;
  readonly #ranges: Ranges;
  /** The tables that were read, by metric, dimensions and window length. The most recently read table is the last. */
  readonly #tables = new Map<string, CountTable>();
  readonly #underWay = new Map<string, Promise<Loaded>>();

  constructor(address: string) {
    this.#ranges = new Ranges(address);
    this.#client = new Client({
      clusterEndpoint: address,
      tokenless: true,
      fetch: this.#ranges.fetch,
      maxRetries: 2,
    });
  }

  /**
   * Loads the counts of a range. Coalesces identical concurrent requests that have no signal. The result contains the library's
   * errors, but if the signal aborts, the promise rejects.
   */
  load(query: DashboardQuery, options: LoadOptions = {}): Promise<Loaded> {
    const key = JSON.stringify([keyOf(query), query.start, query.end]);
    const underWay = options.signal === undefined ? this.#underWay.get(key) : undefined;
    if (underWay) return underWay;
    const loading = this.#load(query, options).finally(() => this.#underWay.delete(key));
    if (options.signal === undefined) this.#underWay.set(key, loading);
    return loading;
  }

  async #load(query: DashboardQuery, { signal, onProgress }: LoadOptions): Promise<Loaded> {
    const key = keyOf(query);
    const have = this.#tables.get(key);
    const stop = new AbortController();
    const begin = (range: Window) => this.#ranges.begin(query, range, stop.signal);
    // The whole range is requested before the library is compiled, so that the counts come sooner.
    const whole = have === undefined ? begin(query) : undefined;
    try {
      await init();
      const wanted = wantedOf(query, have);
      if (whole) whole.want(wanted);
      else if (wanted.size >= WORTH_A_RANGE) begin(spanOf(wanted))?.want(wanted);
      const table = await this.#client.collect({
        ...query,
        have,
        concurrency: 8,
        // The collect does not wait out an outage: the viewer sees what could be read, and can try again.
        patienceMs: 0,
        signal,
        onProgress: onProgress && (({ done, planned }: Progress) => onProgress(done, planned)),
      } as never);
      this.#keep(key, table);
      return { table };
    } catch (error) {
      if (!TallyfoldError.is(error)) throw error;
      if (error.partial) this.#keep(key, error.partial);
      return { table: error.partial, error };
    } finally {
      stop.abort();
    }
  }

  #keep(key: string, table: CountTable): void {
    this.#tables.delete(key);
    this.#tables.set(key, table);
    for (const oldest of this.#tables.keys()) {
      if (this.#tables.size <= KEPT) break;
      this.#tables.delete(oldest);
    }
  }
}

function keyOf({ metric, dimensions, window }: DashboardQuery): string {
  return JSON.stringify([metric, dimensions, window]);
}

/** The windows to read, as `start/end` in milliseconds. */
function wantedOf({ start, end, window }: DashboardQuery, have: CountTable | undefined) {
  const plan = new Plan({ start, end, window });
  const wanted = new Set(Array.from(plan, (it) => placeOf(it.start, it.end)));
  plan[Symbol.dispose]();
  if (have) {
    const open = new Set(have.provisional.map((it) => placeOf(it.start, it.end)));
    for (const it of have.windows) {
      const place = placeOf(it.start, it.end);
      if (!open.has(place)) wanted.delete(place);
    }
  }
  return wanted;
}

/** The range from the start of the first window to the end of the last. */
function spanOf(wanted: ReadonlySet<string>): Window {
  const times = Array.from(wanted, (place) => place.split("/").map(Number));
  const start = Math.min(...times.map(([from]) => from as number));
  const end = Math.max(...times.map(([, to]) => to as number));
  return { start: iso(start), end: iso(end) };
}

function placeOf(start: string, end: string): string {
  return `${Date.parse(start)}/${Date.parse(end)}`;
}

const NEWLINE = 0x0a;

/** The number of windows that may wait for the library before the stream of the range pauses. */
const AHEAD = 64;

/** How long windows are read without a pause. In the pauses, the page draws and responds to clicks. */
const AT_ONCE_MS = 8;

/** The maximum number of windows that the server sends in one response. */
const MOST_WINDOWS = 3_000;

/**
 * Answers the client's requests for single windows from the lines of the responses for the whole range. Requests the windows
 * that these responses lack one by one, or all windows if the server does not support ranges.
 */
class Ranges {
  readonly #address: string;
  /** The streams and their keys. Streams may have the same key, such as this week's range and last week's range. */
  readonly #streams = new Map<RangeStream, string>();
  #isMissing = false;

  constructor(address: string) {
    this.#address = address;
  }

  /**
   * Requests a range. Its lines are read once it is known which windows are wanted. Returns `undefined` if the server does not
   * support ranges.
   */
  begin(query: DashboardQuery, range: Window, signal: AbortSignal): RangeStream | undefined {
    if (this.#isMissing) return undefined;
    const path = `/v1.1/analytics/${query.metric}`;
    const stream = new RangeStream();
    const key = streamKey(path, query.dimensions);
    this.#streams.set(stream, key);
    signal.addEventListener("abort", () => {
      stream.end();
      this.#streams.delete(stream);
    });
    void this.#read(query, range, stream, signal);
    return stream;
  }

  /** Requests the parts of a range one after the other, until one of them can't be read completely. */
  async #read(
    { metric, window, dimensions }: DashboardQuery,
    range: Window,
    stream: RangeStream,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      for (const { start, end } of partsOf(range, msOf(window))) {
        const asked = new URLSearchParams({ start, end, window, dimensions: dimensions.join(",") });
        const url = `${this.#address}/v1.1/analytics/${metric}/windows?${asked}`;
        // The browser revalidates what it has stored.
        const response = await fetch(url, {
          cache: "no-cache",
          credentials: "same-origin",
          signal,
        });
        const type = response.headers.get("content-type") ?? "";
        const isRange = response.ok && type.includes("ndjson");
        if ([404, 405, 501].includes(response.status)) this.#isMissing = true;
        if (!isRange || !(await stream.read(response))) return;
      }
    } catch {
      // Each window is then requested by itself. The errors of these requests report what is wrong.
    } finally {
      stream.end();
    }
  }

  /** The client's `fetch`. */
  readonly fetch: Fetch = async (url: string, init: FetchInit): Promise<FetchResponse> => {
    const found = init.body && this.#streams.size > 0 && (await this.#found(url, init.body));
    return found || (await fetch(url, init as RequestInit));
  };

  async #found(url: string, body: Uint8Array): Promise<FetchResponse | undefined> {
    const { start, end, dimensions } = JSON.parse(new TextDecoder().decode(body));
    const path = url.slice(url.lastIndexOf("/v1.1/"));
    const [key, place] = [streamKey(path, dimensions), placeOf(start, end)];
    const all = Array.from(this.#streams);
    const found = all.find(([stream, own]) => own === key && stream.wants(place));
    return await found?.[0].take(place);
  }
}

/** Cuts a range at edges of its windows into parts of at most `MOST_WINDOWS` windows. */
function partsOf(range: Window, windowMs: number): Window[] {
  const parts: Window[] = [];
  const end = Date.parse(range.end);
  for (let from = Date.parse(range.start); from < end; ) {
    const to = Math.min((Math.floor(from / windowMs) + MOST_WINDOWS) * windowMs, end);
    parts.push({ start: iso(from), end: iso(to) });
    from = to;
  }
  return parts;
}

function streamKey(path: string, dimensions: readonly string[]): string {
  return `${path} ${dimensions.join(",")}`;
}

/** The lines of a range, in one or several responses. Each line is kept until its window is requested. */
class RangeStream {
  #wanted = new Set<string>();
  readonly #arrived = new Map<string, FetchResponse>();
  readonly #waiting = new Map<string, (response: FetchResponse | undefined) => void>();
  #isOver = false;
  #taken = () => {};
  #known = () => {};
  readonly #isKnown = new Promise<void>((resolve) => {
    this.#known = resolve;
  });

  /** Sets which windows are wanted, and lets `read` begin. */
  want(wanted: ReadonlySet<string>): void {
    this.#wanted = new Set(wanted);
    this.#known();
  }

  /** Reads one response. Returns whether it is complete. */
  async read(response: Response): Promise<boolean> {
    await this.#isKnown;
    const date = response.headers.get("date");
    const headers: [string, string][] = [["content-type", "application/json"]];
    if (date) headers.push(["date", date]);
    const text = new TextDecoder();
    let place: string | undefined;
    let until = performance.now() + AT_ONCE_MS;
    for await (const line of linesOf(response)) {
      if (performance.now() > until) {
        await turn();
        until = performance.now() + AT_ONCE_MS;
      }
      if (place !== undefined) {
        // Making a `Response` for each window would take longer than reading the window.
        const whole = async () => line.slice().buffer;
        await this.#put(place, { status: 200, headers, arrayBuffer: whole });
        place = undefined;
        continue;
      }
      const { start, end, error, done } = JSON.parse(text.decode(line));
      if (done) return true;
      if (error) await this.#put(placeOf(start, end), refusal(error));
      else place = placeOf(start, end);
    }
    return false;
  }

  /** Whether the window is wanted, and no request has taken it or waits for it. */
  wants(place: string): boolean {
    return this.#wanted.has(place) && !this.#waiting.has(place);
  }

  /** Takes the response for a window, and waits if it has not arrived yet. `undefined` if the range lacks the window. */
  take(place: string): Promise<FetchResponse | undefined> | FetchResponse | undefined {
    const found = this.#arrived.get(place);
    if (found || this.#isOver || !this.#wanted.has(place)) {
      this.#arrived.delete(place);
      this.#wanted.delete(place);
      this.#taken();
      return found;
    }
    return new Promise((resolve) => this.#waiting.set(place, resolve));
  }

  end(): void {
    this.#isOver = true;
    this.#known();
    this.#taken();
    for (const resolve of this.#waiting.values()) resolve(undefined);
    this.#waiting.clear();
  }

  async #put(place: string, response: FetchResponse): Promise<void> {
    if (!this.#wanted.has(place)) return;
    if (this.#waiting.has(place)) return this.#answer(place, response);
    this.#arrived.set(place, response);
    while (this.#arrived.size > AHEAD && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#taken = resolve;
      });
    }
  }

  #answer(place: string, response: FetchResponse): void {
    // If the client requests this window again, the request goes to the server.
    this.#wanted.delete(place);
    this.#waiting.get(place)?.(response);
    this.#waiting.delete(place);
  }
}

/**
 * The response that the server would send to a request for this window alone. The server has already retried its call to the
 * service, so the client does not retry it.
 */
function refusal(error: {
  readonly code: string;
  readonly message: string;
  readonly status?: number;
}): FetchResponse {
  const passedOn = [error.code, error.status].filter((part) => part !== undefined).join(" ");
  const body = new TextEncoder().encode(JSON.stringify(error));
  return {
    status: 502,
    headers: [
      ["content-type", "application/json"],
      ["tallyfold-error", passedOn],
    ],
    arrayBuffer: async () => body.buffer,
  };
}

async function* linesOf({ body }: Response): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader();
  /** The beginning of a line whose end has not arrived. */
  const begun: Uint8Array[] = [];
  while (reader) {
    const { done, value } = await reader.read();
    if (done) return;
    let from = 0;
    for (let at = value.indexOf(NEWLINE); at >= 0; at = value.indexOf(NEWLINE, from)) {
      const end = value.subarray(from, at);
      yield begun.length > 0 ? joined([...begun.splice(0), end]) : end;
      from = at + 1;
    }
    if (from < value.length) begun.push(value.subarray(from));
  }
}

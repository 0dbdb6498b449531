// Where the dashboard's counts come from: a client of the server for web apps, which reads a range in one request and keeps
// what no longer changes for as long as the page is open. The library reads and adds up all counts.

import { Client } from "../src/client/client.js";
import { init } from "../src/loading/library.js";
import { Plan } from "../src/ranges/plan.js";
import type { CountTable } from "../src/tables/table.js";
import { TallyfoldError } from "../src/values/error.js";
import { joined } from "../src/values/input.js";
import type { Fetch, FetchInit, FetchResponse, Progress, Window } from "../src/values/types.js";
import type { DashboardQuery, LoadOptions } from "./elements.js";
import { iso } from "./range.js";
import { turn } from "./turns.js";

/** What was read of a range: all of it, or as much as could be read, and why not more. */
export interface Loaded {
  /** `undefined` if nothing could be read. */
  readonly table: CountTable | undefined;
  readonly error?: TallyfoldError;
}

const sources = new Map<string, Source>();

/** The counts of one server for web apps, shared by all elements of the page. */
export function sourceOf(src: string): Source {
  const address = new URL(src, document.baseURI).href.replace(/\/+$/, "");
  const source = sources.get(address) ?? new Source(address);
  sources.set(address, source);
  return source;
}

/** The maximum number of tables that are kept. */
const KEPT = 6;
/** A range of fewer windows is read window by window. */
const WORTH_A_RANGE = 2;

export class Source {
  readonly #client: Client;
  readonly #ranges: Ranges;
  /** What was read, by metric, dimensions and length of the windows; the one used last at the end. */
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
   * The counts of a range. Identical concurrent requests without a signal are coalesced. The library's errors are in the result; the
   * promise rejects if the signal aborts.
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
    // The whole range is requested before the library is compiled, so that its counts come sooner.
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
        // A viewer sees what is there, and can try again.
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

/** From the first of the windows to the last. */
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

/**
 * Answers the client's requests for single windows from the lines of one request for the whole range. Windows
 * that the range lacks are requested one by one; so are all windows if the server has no ranges.
 */
class Ranges {
  readonly #address: string;
  /** Several may have the same key: this week's range, and last week's. */
  readonly #streams = new Map<RangeStream, string>();
  #isMissing = false;

  constructor(address: string) {
    this.#address = address;
  }

  /** Requests a range. Its lines are read once it is known which windows are wanted. */
  begin(query: DashboardQuery, range: Window, signal: AbortSignal): RangeStream | undefined {
    if (this.#isMissing) return undefined;
    const asked = new URLSearchParams({
      start: range.start,
      end: range.end,
      window: query.window,
      dimensions: query.dimensions.join(","),
    });
    const path = `/v1.1/analytics/${query.metric}`;
    const stream = new RangeStream();
    const key = streamKey(path, query.dimensions);
    this.#streams.set(stream, key);
    signal.addEventListener("abort", () => {
      stream.end();
      this.#streams.delete(stream);
    });
    void this.#read(`${this.#address}${path}/windows?${asked}`, stream, signal);
    return stream;
  }

  async #read(url: string, stream: RangeStream, signal: AbortSignal): Promise<void> {
    try {
      // The browser revalidates what it has stored.
      const response = await fetch(url, { cache: "no-cache", credentials: "same-origin", signal });
      const type = response.headers.get("content-type") ?? "";
      if (response.ok && type.includes("ndjson")) await stream.read(response);
      else if ([400, 404, 405, 501].includes(response.status)) this.#isMissing = true;
    } catch {
      // Each window is then requested by itself, and its error reports what is wrong.
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

function streamKey(path: string, dimensions: readonly string[]): string {
  return `${path} ${dimensions.join(",")}`;
}

/** The lines of a range, each kept until its window is requested. */
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

  /** Sets which windows are wanted. */
  want(wanted: ReadonlySet<string>): void {
    this.#wanted = new Set(wanted);
    this.#known();
  }

  async read(response: Response): Promise<void> {
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
        // A `Response` of its own for each window would take longer than the window.
        const whole = async () => line.slice().buffer;
        await this.#put(place, { status: 200, headers, arrayBuffer: whole });
        place = undefined;
        continue;
      }
      const { start, end, error, done } = JSON.parse(text.decode(line));
      if (done) return;
      if (error) await this.#put(placeOf(start, end), refusal(error));
      else place = placeOf(start, end);
    }
  }

  /** Whether the window is wanted, and no request has taken it or waits for it. */
  wants(place: string): boolean {
    return this.#wanted.has(place) && !this.#waiting.has(place);
  }

  /** The answer for a window; `undefined` if the range does not have it. */
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
    // A window that is requested again is requested by itself.
    this.#wanted.delete(place);
    this.#waiting.get(place)?.(response);
    this.#waiting.delete(place);
  }
}

/** What the server would answer if the window was requested by itself. The server has retried its call, so the client doesn't. */
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
  /** The beginning of a line whose end has not come. */
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

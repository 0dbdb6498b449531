/// <reference types="node" preserve="true" />
// Sends exports over `fetch`. The core decides what to send, what an answer means, and when to try again.

import type { CorePush } from "../../wasm/tallyfold_export.js";
import { awaited, pause } from "../http/abort.js";
import { Deadline } from "../http/deadline.js";
import type { Outgoing } from "../http/exchange.js";
import { exchange } from "../http/exchange.js";
import { builtIn } from "../loading/runtime.js";
import type { Exportable } from "../tables/transfer.js";
import type { PushArguments, PushReport } from "../values/declared.js";
import { invalidArgument, reported } from "../values/error.js";
import {
  addressOf,
  flatHeaders,
  optionalFunction,
  optionalSignal,
  pairsOf,
} from "../values/input.js";
import type { Now } from "../values/time.js";
import { clocks } from "../values/time.js";
import type { Abortable, Fetch } from "../values/types.js";
import { Export, type ExportOptions, exportCore, exported } from "./exporting.js";

/** The options of {@link push}. */
export interface PushOptions extends ExportOptions, PushArguments, Abortable {
  /** A `fetch` to use in place of the host's own. */
  readonly fetch?: Fetch | undefined;
  /** The time limit of each message, in milliseconds; `Infinity` for none. `30,000` unless told otherwise. */
  readonly timeoutMs?: number | undefined;
  /** How many samples an earlier push of the same counts has finished: this one goes on after them. */
  readonly finished?: number | bigint | undefined;
  /**
   * Called with the number of samples that are finished, whenever it has changed, and awaited if it returns a promise.
   * Store it, and pass it as `finished` to a push that is to go on where this one has ended.
   */
  readonly onFinished?: ((samples: bigint) => unknown) | undefined;
  /** The clocks to use in place of the host's own. */
  readonly now?: (() => Now) | undefined;
}

/** The options that are read here. The core has to know that there are such. */
const OWN = ["fetch", "finished", "now", "onFinished", "onNote", "signal", "timeoutMs"];

/** The time limit of a message. */
const TIMEOUT_MS = 30_000;

/**
 * Sends counts to another system: as POST requests over `fetch`, or as datagrams in Node.
 *
 * A message that is refused as too large is cut in two. After an answer 429, the failures of a server and broken
 * connections it is sent again, for as long as `patienceMs`. Any other refusal ends the push.
 *
 * @throws {@link TallyfoldError}: what {@link exportCounts} throws; `rate_limited`, `server_error`, `network_failed` or
 * `timed_out` when the patience is over; `forbidden`, `redirected` or `unexpected_status` for other refusals. Its
 * `report` says what was sent. If the signal aborts, it throws the signal's reason.
 * @example
 * const report = await push(table, {
 *   format: "remote-write",
 *   url: "https://prometheus.example/api/v1/write",
 *   headers: { authorization },
 *   labels: { cluster: "production" },
 * });
 */
export async function push(counts: Exportable, options: PushOptions): Promise<PushReport> {
  return pushed(exported(counts, options, pushNames()), options);
}

/** @internal The names of the options that a push has beside those of an export. */
export function pushNames(): string[] {
  return [...OWN, ...exportCore().pushOptionNames()];
}

/** @internal Sends an export, and frees it. */
export async function pushed(given: Export, options: PushOptions): Promise<PushReport> {
  const host = hostOf(options);
  const core = corePush(given, options);
  try {
    for (;;) {
      host.signal?.throwIfAborted();
      const step: Step = core.step(host.now());
      switch (step.type) {
        case "send":
          await send(core, step.message, host);
          break;
        case "wait":
          await pause(step.ms, host.signal);
          break;
        case "finished":
          await awaited(host.onFinished?.(step.samples), host.signal);
          break;
        case "done":
          return core.report();
      }
    }
  } catch (error) {
    throw reported(error, () => core.report());
  } finally {
    core.free();
    given[Symbol.dispose]();
  }
}

type Step =
  | { readonly type: "send"; readonly message: Message }
  | { readonly type: "wait"; readonly ms: number }
  | { readonly type: "finished"; readonly samples: bigint }
  | { readonly type: "done" };

interface Message {
  readonly url: string;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body: Uint8Array<ArrayBuffer>;
  readonly isDatagram: boolean;
}

type Host = Pick<PushOptions, "fetch" | "onFinished" | "signal"> & {
  readonly timeoutMs: number;
  readonly now: () => Now;
};

function hostOf(options: PushOptions): Host {
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  if (typeof timeoutMs !== "number" || !(timeoutMs > 0)) {
    throw invalidArgument("timeoutMs", "want milliseconds above 0, or Infinity");
  }
  const { fetch, onFinished, signal } = options;
  return {
    fetch: optionalFunction("fetch", fetch, "want a function like the standard fetch"),
    onFinished: optionalFunction("onFinished", onFinished, "want a function"),
    signal: optionalSignal(signal),
    now: clocks(options.now),
    timeoutMs,
  };
}

function corePush(given: Export, options: PushOptions): CorePush {
  const { url, headers, finished } = options;
  const all = { ...options, url: addressOf("url", url), headers: flatHeaders(headers) };
  const { CorePush } = exportCore();
  return new CorePush(Export.coreOf(given), all, OWN, finished ?? 0);
}

async function send(core: CorePush, message: Message, host: Host): Promise<void> {
  if (message.isDatagram) return datagram(core, message);
  const deadline = new Deadline(host.timeoutMs, host.signal);
  const exchanged = {
    head: (status: number, headers: [string, string][]) => core.head(status, headers.flat()),
    chunk: (chunk: Uint8Array) => {
      core.chunk(chunk);
    },
    end: () => core.end(),
    failed: (failure: "network" | "timeout" | "hidden", detail: string) =>
      core.failed(failure, detail),
  };
  try {
    await exchange(exchanged, outgoing(message), host.fetch, deadline, "omit", undefined);
  } finally {
    deadline.end();
  }
}

function outgoing({ url, headers, body }: Message): Outgoing {
  const values = pairsOf(headers).map(([, value]) => value);
  return {
    method: "POST",
    url,
    headers: () => pairsOf(headers),
    body: () => body,
    // Such as Datadog's 202, whose body says what was rejected.
    takes: (status) => status < 300,
    // Of `Bearer x` or `Token x`, the second part too.
    secrets: () => values.flatMap((value) => [value, ...value.split(" ").slice(1)]).filter(Boolean),
  };
}

/** Sends a datagram. That it was sent is all that can be known of it. */
async function datagram(core: CorePush, { url, body }: Message): Promise<void> {
  const dgram = builtIn<typeof import("node:dgram")>("node:dgram");
  if (dgram === undefined) {
    throw invalidArgument("url", "datagrams need Node 20.16 or later, Deno or Bun");
  }
  const [, host = "", port] = /^udp:\/\/\[?(.*?)\]?:(\d+)\/*$/.exec(url) ?? [];
  const socket = dgram.createSocket(host.includes(":") ? "udp6" : "udp4");
  try {
    await new Promise<void>((resolve, reject) => {
      socket.on("error", reject);
      socket.send(body, Number(port), host, (error) => (error ? reject(error) : resolve()));
    });
    core.sent();
  } catch (error) {
    const { code = "Error" } = error as { code?: string };
    core.failed("network", code);
  } finally {
    socket.close();
  }
}

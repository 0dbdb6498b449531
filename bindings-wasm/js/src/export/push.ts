/// <reference types="node" />
// Sends exports: over `fetch`, or as datagrams.

import type { CorePush } from "../../wasm/tallyfold_export.js";
import { type Message, sendAll, wayOf } from "../http/sending.js";
import type { PushArguments, PushReport } from "../values/declared.js";
import { invalidArgument, reported, TallyfoldError } from "../values/error.js";
import { addressOf, flatHeaders, optionalFunction, own } from "../values/input.js";
import { builtIn } from "../values/runtime.js";
import type { Now } from "../values/time.js";
import type { Abortable, Fetch } from "../values/types.js";
import { Export, type ExportOptions, exportCore, exported } from "./exporting.js";
import type { Exportable } from "./transfer.js";

/** The options of {@link push}. */
export interface PushOptions extends ExportOptions, PushArguments, Abortable {
  /** A `fetch` to use instead of the host's own. */
  readonly fetch?: Fetch | undefined;
  /** The time limit of each message, in milliseconds; `Infinity` for none. Default: `30,000`. */
  readonly timeoutMs?: number | undefined;
  /** How many samples an earlier push of the same counts has finished: this one resumes after them. */
  readonly finished?: number | bigint | undefined;
  /**
   * A function that gets the number of finished samples whenever it has changed, and is awaited if it returns a
   * promise. Store the number, and pass it as `finished` to a push that resumes where this one has ended.
   */
  readonly onFinished?: ((samples: bigint) => unknown) | undefined;
  /** The clocks to use instead of the host's own. */
  readonly now?: (() => Now) | undefined;
}

/** The options that are read here. The core must know their names, because it refuses unknown options. */
const OWN = ["fetch", "finished", "now", "onFinished", "onNote", "signal", "timeoutMs"];

/** The time limit of a message, in milliseconds. */
const TIMEOUT_MS = 30_000;

/**
 * Sends counts to another system: as POST requests over `fetch`, or as datagrams in Node, Deno and Bun.
 *
 * If the destination refuses a message as too large, the push cuts it in two. After a status 429, a transient failure
 * of the server or a broken connection, the push sends the message again, for up to `patienceMs`. It does not do so if
 * the message may have arrived and must be sent at most once: see `guarantee`. Any other refusal ends the push.
 *
 * @throws {@link TallyfoldError}: the errors of {@link exportCounts}; `rate_limited`, `server_error`,
 * `network_failed` or `timed_out` when `patienceMs` is over, or if the message may not be sent again; `forbidden`,
 * `redirected` or `unexpected_status` for other refusals. Its `report` contains how much was sent. If the signal
 * aborts, the promise rejects with the signal's reason.
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

/** @internal The names of the options that a push has in addition to an export's. */
export function pushNames(): string[] {
  return [...OWN, ...exportCore().pushOptionNames()];
}

/** How an outbox stores the progress of a push: how many samples are finished, and how many are in doubt. */
interface Marks {
  readonly inDoubt: bigint;
  readonly store: (samples: bigint, inDoubt: bigint) => Promise<void>;
}

/** @internal Sends an export, and frees it. */
export async function pushed(given: Export, from: PushOptions, marks?: Marks): Promise<PushReport> {
  const options = own(from);
  const way = wayOf(options, TIMEOUT_MS);
  const onFinished = optionalFunction("onFinished", options.onFinished, "want a function");
  const store = marks?.store ?? ((samples: bigint) => onFinished?.(samples));
  const core = corePush(given, options, marks?.inDoubt);
  try {
    await sendAll(core, way, store, (message) => datagram(core, message));
    return core.report();
  } catch (error) {
    throw TallyfoldError.is(error) ? reported(error, () => ({ report: core.report() })) : error;
  } finally {
    core.free();
    given[Symbol.dispose]();
  }
}

function corePush(given: Export, options: PushOptions, inDoubt: bigint | undefined): CorePush {
  const { url, headers, finished } = options;
  const all = { ...options, url: addressOf("url", url), headers: flatHeaders(headers) };
  const { CorePush } = exportCore();
  return new CorePush(Export.coreOf(given), all, OWN, finished ?? 0, inDoubt);
}

/** Sends a datagram. There is no response, so the push never learns whether it has arrived. */
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

// Notifies receivers of alerts. This has its own WebAssembly, because pages judge counts, but don't notify receivers.

import { glue } from "../wasm/tallyfold_notify.js";
import source from "../wasm/tallyfold_notify_bg.wasm";
import { sendAll, type WayOptions, wayOf } from "./http/sending.js";
import { Module } from "./loading/start.js";
import type {
  Check,
  NotifyArguments,
  Receipt,
  ReceiverArguments,
  ReceiverKind,
} from "./values/declared.js";
import { invalidArgument, reported, stoppedBy } from "./values/error.js";
import { addressOf, fieldsOf, flatHeaders, OPTIONS } from "./values/input.js";
import { stringable } from "./values/printing.js";
import type { Instant } from "./values/time.js";
import type { Abortable, Fetch } from "./values/types.js";

const module = new Module(glue, source, "CoreNotifications");

/** A receiver of alerts: `{ kind: "slack", name: "team", url }`. */
export interface Receiver extends ReceiverArguments {
  /** The kind of receiver. */
  readonly kind: ReceiverKind;
}

/** The options of {@link notify}. */
export interface NotifyOptions extends NotifyArguments, Abortable {
  /** The receivers to notify. */
  readonly receivers: readonly Receiver[];
  /** The `state` of the previous result. Store it after each call. */
  readonly state?: string | undefined;
  /** The time from which ends of alerts are computed. By default, the clock's time. */
  readonly now?: Instant | undefined;
  /** A `fetch` to use instead of the host's own. */
  readonly fetch?: Fetch | undefined;
  /** The time limit of each message, in milliseconds; `Infinity` for none. Default: `10,000`. */
  readonly timeoutMs?: number | undefined;
}

/** The result of {@link notify}: what became of the messages, and the state for the next call. */
export interface Notified {
  /** What each receiver was notified of, as a document with a checksum: pass it as `state`. */
  readonly state: string;
  /** What became of the messages to each receiver, in the order of the receivers. */
  readonly receivers: readonly Receipt[];
  /** Whether the receivers have accepted all messages. The next call sends the other messages again. */
  readonly complete: boolean;
}

/** The options that are read here. The core must know their names, because it refuses unknown options. */
const OWN = ["fetch", "receivers", "signal", "timeoutMs"];

/** The time limit of a message, in milliseconds. */
const TIMEOUT_MS = 10_000;

/**
 * Notifies receivers of what a check has found, and of what is over.
 *
 * With each call, an Alertmanager gets all incidents that fire. Other receivers get a message when an incident
 * begins, when it becomes more severe and when it is over. If a receiver does not accept a message, the call
 * repeats the message for a few seconds, and the next call sends it again. So a failure of a receiver throws no
 * error: the result reports it.
 *
 * @throws {@link TallyfoldError} of kind `config` for arguments that can't be used, before anything is sent.
 * If the signal aborts, the promise rejects with an error of this call, which has the name and message of the signal's
 * reason, and the reason as its `cause`. Its property `notified` is the result so far: store its `state`, because
 * receivers that have accepted messages would get them again.
 * @example
 * const check = rules.check({ delivery: table });
 * const receivers = [{ kind: "slack", name: "team", url: process.env.SLACK_URL }];
 * const { state, complete } = await notify(check, { receivers, state: load() });
 * store(state);
 */
export async function notify(check: Check, options: NotifyOptions): Promise<Notified> {
  const all = fieldsOf("options", options, OPTIONS);
  const { receivers, labels, now, ...given } = all;
  const { fetch, signal, timeoutMs } = all;
  const usual = wayOf({ fetch, signal, timeoutMs } satisfies WayOptions, TIMEOUT_MS);
  const way = { ...usual, forgivesMistakes: true };
  if (!Array.isArray(check?.findings) || !Array.isArray(check.incidents)) {
    throw invalidArgument("check", "want the result of Rules.check");
  }
  if (!Array.isArray(receivers)) throw invalidArgument("receivers", "want an array of receivers");
  await module.compile();
  const { CoreNotifications } = module.glue;
  const core = new CoreNotifications(
    check.incidents,
    check.findings,
    BigInt(check.leftOut ?? 0) > 0n,
    receivers.map(receiver),
    { ...given, labels: flatHeaders(labels), now: now ?? new Date() },
    OWN,
  );
  const result = (isWhole: boolean): Notified => {
    const [state, receivers] = core.finish() as [string, Receipt[]];
    const complete = isWhole && receivers.every(({ code }) => code === undefined);
    return stringable({ state, receivers, complete });
  };
  try {
    await sendAll(core, way);
    return result(true);
  } catch (error) {
    if (!signal?.aborted) throw error;
    throw reported(stoppedBy(signal.reason), () => ({ notified: result(false) }));
  } finally {
    core.free();
  }
}

function receiver(given: Receiver): object {
  const { url, headers, ...rest } = fieldsOf("receivers", given, "want an array of receivers");
  return { ...rest, url: addressOf("url", url), headers: flatHeaders(headers) };
}

// Sends messages to other systems over `fetch`: exports and alerts. The core decides what to send, what a response means,
// and when to retry.

import { clocks } from "../values/clocks.js";
import { invalidArgument, TallyfoldError } from "../values/error.js";
import { optionalFunction, optionalSignal, own, pairsOf } from "../values/input.js";
import type { Now } from "../values/time.js";
import type { ExchangeFailure, Fetch } from "../values/types.js";
import { awaited, pause } from "./abort.js";
import { Deadline } from "./deadline.js";
import { exchange } from "./exchange.js";
import type { Outgoing } from "./network_error.js";

/** A state machine of the core that has messages to send: a push, or notifications. */
export interface Sends {
  step(now: Now): unknown;
  head(status: number, headers: string[]): boolean;
  chunk(chunk: Uint8Array): boolean;
  end(): void;
  failed(failure: unknown, detail: string): void;
}

/** How messages are sent. */
export interface Way {
  readonly fetch: Fetch | undefined;
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number;
  readonly now: () => Now;
  /** Whether a mistake in `fetch` counts as a failure of the network, so that it doesn't end the other messages. */
  readonly forgivesMistakes?: boolean;
}

/** The options of a caller for a {@link Way}. */
export interface WayOptions {
  readonly fetch?: Fetch | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  readonly now?: (() => Now) | undefined;
}

/** A message from the core. */
export interface Message {
  readonly url: string;
  /** Alternating names and values. */
  readonly headers: string[];
  readonly body: Uint8Array<ArrayBuffer>;
  readonly isDatagram: boolean;
}

type Step =
  | { readonly type: "send"; readonly message: Message }
  | { readonly type: "wait"; readonly ms: number }
  | { readonly type: "finished"; readonly samples: bigint; readonly inDoubt: bigint }
  | { readonly type: "done" };

/** Checks a caller's options, and adds the defaults. */
export function wayOf(given: WayOptions, usualTimeoutMs: number): Way {
  const options = own(given);
  const timeoutMs = options.timeoutMs ?? usualTimeoutMs;
  if (typeof timeoutMs !== "number" || !(timeoutMs > 0)) {
    throw invalidArgument("timeoutMs", "want milliseconds above 0, or Infinity");
  }
  return {
    fetch: optionalFunction("fetch", options.fetch, "want a function like the standard fetch"),
    signal: optionalSignal(options.signal),
    now: clocks(options.now),
    timeoutMs,
  };
}

/** Sends all messages. The function `datagram` sends each message that is a datagram. */
export async function sendAll(
  core: Sends,
  way: Way,
  onFinished?: (samples: bigint, inDoubt: bigint) => unknown,
  datagram?: (message: Message) => Promise<void>,
): Promise<void> {
  for (;;) {
    way.signal?.throwIfAborted();
    const step = core.step(way.now()) as Step;
    switch (step.type) {
      case "send":
        if (step.message.isDatagram) await datagram?.(step.message);
        else await post(core, step.message, way);
        break;
      case "wait":
        await pause(step.ms, way.signal);
        break;
      case "finished":
        await awaited(onFinished?.(step.samples, step.inDoubt), way.signal);
        break;
      case "done":
        return;
    }
  }
}

async function post(core: Sends, message: Message, way: Way): Promise<void> {
  const deadline = new Deadline(way.timeoutMs, way.signal);
  const exchanged = {
    head: (status: number, headers: [string, string][]) => core.head(status, headers.flat()),
    chunk: (chunk: Uint8Array) => core.chunk(chunk),
    end: () => core.end(),
    failed: (failure: ExchangeFailure, detail: string) => core.failed(failure, detail),
  };
  try {
    await exchange(exchanged, outgoing(message), way.fetch, deadline, "omit", undefined);
  } catch (error) {
    way.signal?.throwIfAborted();
    if (!way.forgivesMistakes || TallyfoldError.is(error)) throw error;
    core.failed("network", (error as Error).name);
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
    // For example Datadog's 202, whose body reports what was rejected.
    takes: (status) => status < 300,
    // For `Bearer x` or `Token x`, the second part is a secret, too.
    secrets: () => values.flatMap((value) => [value, ...value.split(" ").slice(1)]).filter(Boolean),
  };
}

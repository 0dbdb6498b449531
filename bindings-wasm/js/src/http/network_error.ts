// What an error of a `fetch` means: what the core is told of it, and what a caller may see of it. The core knows
// the names of what happened (`core/src/calls/broken.rs`), and says it in words.

import { isBrowser } from "../loading/runtime.js";
import { because, TallyfoldError } from "../values/error.js";
import type { Broken } from "./deadline.js";
import type { Exchanged, Outgoing } from "./exchange.js";

/** What a `fetch` gave in place of a response. */
export class NoResponse extends Error {
  readonly code = "NO_RESPONSE";
}

/** What an engine throws for a mistake in a program. */
const MISTAKES = /^(?:Type|Range|Reference|Syntax|Eval|URI)Error$/;

/** The `TypeError` of a failed exchange, in the words of each browser, of undici and of polyfills. */
const FAILED =
  /^(?:the connection was closed|Failed to fetch|Load failed|NetworkError when|Network request failed|network error|fetch failed|terminated|error sending request|The Internet connection|\s*A network error)/i;

/**
 * What proves that nothing of a request was sent: there was no connection, or no TLS. (A time limit of the caller proves
 * nothing, because `fetch` does not tell how far it has got.)
 */
const UNSENT =
  /^(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|UND_ERR_CONNECT_TIMEOUT|ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNSUPPORTED_PROTOCOL|\w+_ALERT_(?:HANDSHAKE_FAILURE|PROTOCOL_VERSION)|TLSV1_UNRECOGNIZED_NAME))$/;

interface Told {
  readonly code?: unknown;
  readonly syscall?: unknown;
  readonly name?: unknown;
  readonly message?: unknown;
  readonly cause?: Told;
}

/**
 * Reports a failed exchange to its call.
 *
 * @param isOwn Whether the `fetch` is the host's own. A mistake in the caller's is thrown as it is.
 * @throws the call's final error, if this ends it.
 */
export function report(
  call: Exchanged,
  request: Outgoing,
  { cause, timedOut }: Broken,
  isOwn: boolean,
): void {
  const told = readable(cause);
  if (!(isOwn || timedOut) && isMistake(told)) throw cause;
  try {
    if (timedOut) call.failed("timeout", told.word);
    else if (isOwn && isBrowser() && !told.code) call.failed(...inPage(request.url, told.word));
    else call.failed(isOwn && told.isUnsent ? "not_sent" : "network", told.word);
  } catch (error) {
    const isOurs = TallyfoldError.is(error) && /^(?:network_failed|timed_out)$/.test(error.code);
    throw isOurs && told.code !== "NO_RESPONSE"
      ? because(error, shown(told, request, isOwn))
      : error;
  }
}

interface Readable {
  readonly code?: string;
  readonly name?: string;
  readonly message: string;
  readonly word: string;
  readonly isUnsent: boolean;
}

/** The parts of an error, which may have getters that throw. */
function readable(cause: unknown): Readable {
  try {
    const error = cause as Told | undefined;
    const inner = [error?.cause, error].find((link) => typeof link?.code === "string");
    const { code, name } = { code: inner?.code, name: error?.name };
    const message = String((inner ?? error)?.message);
    const word = [code, name].find((it): it is string => typeof it === "string") ?? "Error";
    return {
      ...(typeof code === "string" && { code }),
      ...(typeof name === "string" && { name }),
      message,
      word,
      isUnsent: UNSENT.test(word) || /^(?:connect|getaddrinfo)$/.test(String(inner?.syscall)),
    };
  } catch {
    return { message: "", word: "Error", isUnsent: false };
  }
}

function isMistake({ code, name, message }: Readable): boolean {
  return code === undefined && MISTAKES.test(name ?? "") && !FAILED.test(message);
}

/** What can be said in a page, which a browser tells nothing. */
function inPage(url: string, word: string): ["network" | "hidden", string] {
  const host = globalThis as {
    location?: { origin: string; protocol: string };
    navigator?: { onLine?: boolean };
  };
  const { protocol, origin } = new URL(url);
  if (host.navigator?.onLine === false) return ["network", "OFFLINE"];
  const own = host.location;
  if (own === undefined || own.origin === origin) return ["network", word];
  const isMixed =
    own.protocol === "https:" && protocol === "http:" && !/\/\/(?:localhost|127\.|\[)/.test(origin);
  return isMixed ? ["network", "MIXED_CONTENT"] : ["hidden", own.origin];
}

/**
 * A copy of the error that holds no request, no response and nothing else that hung on it. What the caller's own
 * `fetch` says is left out, and what quotes the request.
 */
function shown(
  { code, name, message }: Readable,
  request: Outgoing,
  isOwn: boolean,
): Error | undefined {
  const isCode =
    code !== undefined && /^(?:E|UND_ERR_|CERT_|DEPTH_|SELF_|UNABLE_)[A-Z_]{2,40}$/.test(code);
  if (!isCode && !(isOwn && code === undefined)) return undefined;
  const isQuoted = request.secrets().some((secret) => message.includes(secret));
  const text = isOwn && !isQuoted ? message : (code ?? "");
  const error = name === "TypeError" && !isCode ? new TypeError(text) : new Error(text);
  return isCode ? Object.assign(error, { code }) : error;
}

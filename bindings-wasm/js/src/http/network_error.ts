// Interprets the errors of `fetch`: decides what to report to the core, and what the caller may see. The core explains
// the reported names in its messages (`core/src/calls/broken.rs`).

import { because, TallyfoldError } from "../values/error.js";
import { isBrowser } from "../values/runtime.js";
import type { ExchangeFailure } from "../values/types.js";
import type { Broken } from "./deadline.js";

/** What is sent: a request of a call, or a message of a push or of notifications. */
export interface Outgoing {
  readonly method: string;
  readonly url: string;
  headers(): [string, string][];
  body(): Uint8Array<ArrayBuffer> | undefined;
  /** The texts that no error message may quote. */
  secrets(): string[];
  /** Whether a response with this status other than 200 is a success, too, so that its whole body is read. */
  takes?(status: number): boolean;
}

/** Receives the events of an exchange: a call, a push, or notifications. */
export interface Exchanged {
  head(status: number, headers: [string, string][]): boolean;
  /** Returns `false` if no more of the body is needed. */
  chunk(chunk: Uint8Array): unknown;
  end(): void;
  failed(failure: ExchangeFailure, detail: string): void;
}

/** The error for a `fetch` that returned something other than a usable response. */
export class NoResponse extends Error {
  readonly code = "NO_RESPONSE";
}

/** The names of the errors that JavaScript engines throw for programming mistakes. */
const MISTAKES = /^(?:Type|Range|Reference|Syntax|Eval|URI)Error$/;

/** The messages of a `TypeError` for a failed exchange, from browsers, undici, other runtimes, polyfills and the sandbox. */
const FAILED =
  /^(?:the connection was closed|Failed to fetch|Load failed|NetworkError when|Network request failed|network error|fetch failed|terminated|error sending request|error reading a body|request or response body error|The Internet connection|\s*A network error)/i;

/** A complete response has more bytes than this. Fewer bytes may be the beginning of a first response. */
const LEAST_ANSWER = 64;

/**
 * The error codes that prove that nothing of a request was sent, because there was no connection or no TLS. A timeout of
 * the caller proves nothing, because `fetch` does not report how far it got.
 */
const UNSENT =
  /^(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|UND_ERR_CONNECT_TIMEOUT|ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNSUPPORTED_PROTOCOL|\w+_ALERT_(?:HANDSHAKE_FAILURE|PROTOCOL_VERSION)|TLSV1_UNRECOGNIZED_NAME))$/;

/** The error codes for a failed connection to the server or to a proxy. */
const UNREACHED = /^(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH)$/;

interface Told {
  readonly code?: unknown;
  readonly syscall?: unknown;
  /** The host name that was looked up. */
  readonly hostname?: unknown;
  /** The port of the connection. */
  readonly port?: unknown;
  /** One error for each address, if the host has several. */
  readonly errors?: readonly Told[];
  readonly name?: unknown;
  readonly message?: unknown;
  readonly cause?: Told;
  readonly socket?: { readonly bytesRead?: unknown };
}

/**
 * Reports a failed exchange to its call.
 *
 * @param isOwn Whether the `fetch` is the host's own, not the caller's.
 * @param hasBegun Whether the response had begun.
 * @throws The call's final error, if the failure ends the call; the original error, if it is a programming mistake.
 */
export function report(
  call: Exchanged,
  request: Outgoing,
  { cause, timedOut }: Broken,
  isOwn: boolean,
  hasBegun: boolean,
): void {
  const told = readable(cause, request.url);
  // A browser may describe a failed exchange in any language, so its messages can't be recognized.
  const isInPage = isOwn && isBrowser();
  if (!timedOut && !isInPage && isMistake(told) && !(isOwn && quotes(told, request))) throw cause;
  try {
    if (timedOut) call.failed("timeout", told.word);
    else if (!hasBegun && told.isStale) call.failed("stale", told.word);
    else if (isInPage && !told.code) call.failed(...inPage(request.url, told.word));
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
  /** The reason that `fetch` reports for an error without a code, such as `bad port`. */
  readonly reason?: string;
  readonly word: string;
  readonly isUnsent: boolean;
  /** Whether undici reused a connection, and the server closed it without a response. */
  readonly isStale: boolean;
}

/** Reads the parts of an error. Its getters may throw. */
function readable(cause: unknown, url: string): Readable {
  try {
    const error = cause as Told | undefined;
    const inner = [error?.cause, error].find((link) => typeof link?.code === "string");
    const { code, name } = { code: inner?.code, name: error?.name };
    const message = String((inner ?? error)?.message);
    const reason = inner === undefined ? error?.cause?.message : undefined;
    const own = [code, name].find((it): it is string => typeof it === "string") ?? "Error";
    const word =
      UNREACHED.test(own) && isElsewhere(inner?.errors?.[0] ?? inner, url) ? `PROXY_${own}` : own;
    return {
      ...(typeof code === "string" && { code }),
      ...(typeof name === "string" && { name }),
      message,
      ...(typeof reason === "string" && { reason }),
      word,
      isUnsent: UNSENT.test(own) || /^(?:connect|getaddrinfo)$/.test(String(inner?.syscall)),
      isStale: code === "UND_ERR_SOCKET" && Number(inner?.socket?.bytesRead) > LEAST_ANSWER,
    };
  } catch {
    return { message: "", word: "Error", isUnsent: false, isStale: false };
  }
}

/** Whether the failed connection was to a host or port other than those in the address, so to a proxy. */
function isElsewhere(error: Told | undefined, url: string): boolean {
  const { hostname, port, protocol } = new URL(url);
  if (typeof error?.hostname === "string") return error.hostname !== hostname;
  const wanted = port || (protocol === "https:" ? 443 : 80);
  return typeof error?.port === "number" && error.port !== Number(wanted);
}

function isMistake({ code, name, message }: Readable): boolean {
  return code === undefined && MISTAKES.test(name ?? "") && !FAILED.test(message);
}

/** Whether an error contains a text that no message may quote. */
function quotes({ message, reason = "" }: Readable, request: Outgoing): boolean {
  return request.secrets().some((secret) => message.includes(secret) || reason.includes(secret));
}

/** Returns the failure and its detail for an exchange in a page, because browsers report no details to pages. */
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
 * Copies an error without its other properties, which may contain the request or the response. If the error comes from the
 * caller's own `fetch`, or if it quotes a secret of the request, the message of the copy is only the code. Returns
 * `undefined` for an error with an unknown code, and for an error without a code from the caller's own `fetch`.
 */
function shown(told: Readable, request: Outgoing, isOwn: boolean): Error | undefined {
  const { code, name, reason } = told;
  const message = reason === undefined ? told.message : `${told.message}: ${reason}`;
  const isCode =
    code !== undefined && /^(?:E|UND_ERR_|CERT_|DEPTH_|SELF_|UNABLE_|Z_)[A-Z_]{2,40}$/.test(code);
  if (!isCode && !(isOwn && code === undefined)) return undefined;
  const text = isOwn && !quotes(told, request) ? message : (code ?? "");
  const error = name === "TypeError" && !isCode ? new TypeError(text) : new Error(text);
  return isCode ? Object.assign(error, { code }) : error;
}

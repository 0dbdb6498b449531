import type { ErrorCode, PushReport } from "./declared.js";
import { isWorkers } from "./runtime.js";
import type { Window } from "./types.js";

/** Who has to act on an error: see {@link TallyfoldError.kind}. */
export type ErrorKind = "config" | "auth" | "service" | "response";

/** The fields of an error. */
export interface ErrorFields {
  readonly code: ErrorCode;
  readonly kind: ErrorKind;
  readonly message: string;
  readonly status?: number | undefined;
  readonly path?: string | undefined;
  readonly offset?: number | undefined;
  readonly retryAfter?: number | undefined;
  readonly excerpt?: string | undefined;
  readonly argument?: string | undefined;
}

/** A window of a long range that has failed. */
export interface Failure {
  /** The window. */
  readonly window: Window;
  /** The final error of its call. */
  readonly error: TallyfoldError;
}

/** Shared by every copy of this package in one program. */
const brand = Symbol.for("tallyfold.TallyfoldError");

/**
 * The only error class of this package. Its properties, message and stack never contain a secret, a token, or text
 * from the body of a token endpoint.
 *
 * Some errors have a `cause`. If your own `accessToken` caused the error, `cause` is the error that it threw, or an
 * error that describes what is wrong with its result. For `network_failed` and `timed_out`, it is a copy of the host's
 * error, such as an error with the code `ECONNREFUSED`; if the error may contain a part of the request, there is no
 * `cause`. For `out_of_memory`, `crashed`, `wasm_forbidden`, and bytes that {@link init} refuses, it is the error of
 * WebAssembly. If an object was lost in a crash, it is the error of that crash. For an `invalid_checkpoint` that names a
 * file, it may be the original error.
 *
 * @example
 * try {
 *   await client.eventDelivery(query);
 * } catch (error) {
 *   if (TallyfoldError.is(error) && error.code === "rate_limited") await later();
 *   else throw error;
 * }
 */
export class TallyfoldError extends Error {
  /**
   * Who has to act. `config`: the caller's arguments or order of calls; in most cases, nothing was sent.
   * `auth`: the credentials or the tokens. `service`: the service or the network. `response`: data
   * that is not a valid result, such as a response or a saved table, or could not be processed.
   */
  declare readonly kind: ErrorKind;

  /** What went wrong, from a closed list. */
  declare readonly code: ErrorCode;

  /** The HTTP status, if a status caused the error. */
  declare readonly status: number | undefined;

  /** The JSON path of the value at fault, such as `$.counts[3].success`. */
  declare readonly path: string | undefined;

  /** The offset of the byte at fault from the start of the body, or of the rules. */
  declare readonly offset: number | undefined;

  /**
   * The seconds after which the service allows the next request, if its response has a `Retry-After`. Always a safe
   * integer.
   */
  declare readonly retryAfter: number | undefined;

  /**
   * The beginning of the body with which an API refused a request, as one line of at most 200 characters. The
   * token and the client secret are masked in it; HTML is left out.
   */
  declare readonly excerpt: string | undefined;

  /** The name of the argument at fault, such as `groupBy`. */
  declare readonly argument: string | undefined;

  /** The parts of the long range that were not read; empty for other errors. */
  declare readonly gaps: readonly Window[];

  /** Each window of the long range that has failed, in the order of time; empty for other errors. */
  declare readonly failures: readonly Failure[];

  /** For an error of `push`, how much was sent by then. */
  declare readonly report?: PushReport;

  private constructor({ message, ...named }: ErrorFields) {
    super(message);
    Object.assign(this, named);
  }

  /** @internal */
  static of(fields: ErrorFields): TallyfoldError {
    // Bundlers rename a class that refers to itself by name.
    return withCaller(() => new this(fields));
  }

  /**
   * Whether a value is an error of this package. Unlike `instanceof`, it also recognizes errors of
   * another copy of the package, which bundlers and test runners may load.
   *
   * @param value Anything, such as what a `catch` caught.
   */
  static is(value: unknown): value is TallyfoldError {
    return typeof value === "object" && value !== null && brand in value;
  }

  /** @internal */
  get [brand](): true {
    return true;
  }
}

/**
 * Makes an error whose stack includes the caller's own code. Engines keep ten frames, and frames of
 * WebAssembly, which don't help a user, would fill them.
 */
function withCaller(make: () => TallyfoldError): TallyfoldError {
  const limit = Error.stackTraceLimit;
  const isLimited = typeof limit === "number" && limit > 0 && Object.isExtensible(Error);
  if (isLimited) Error.stackTraceLimit = limit + FRAMES;
  const error = make();
  if (isLimited) Error.stackTraceLimit = limit;
  const { stack } = error;
  if (typeof stack !== "string") return error;
  const lines = stack.split("\n").filter((line) => !/wasm:\/\/|wasm-function/.test(line));
  hide(error, { stack: lines.join("\n") });
  return error;
}

/** More frames than a call has inside of this package. */
const FRAMES = 30;

const nothing = { partial: undefined, gaps: Object.freeze([]), failures: Object.freeze([]) };
hide(TallyfoldError.prototype, { name: "TallyfoldError", ...nothing });

/** @internal Like `name` in JavaScript's own errors, the fields are not enumerable and can be overwritten. */
export function hide(error: object, fields: object): void {
  for (const [name, value] of Object.entries(fields)) {
    Object.defineProperty(error, name, { value, writable: true, configurable: true });
  }
}

/** @internal Adds to an error what was done before it. */
export function reported<E extends Error>(error: E, done: () => object): E {
  try {
    hide(error, done());
  } catch {
    // The instance that knows what was done has ended.
  }
  return error;
}

/** @internal An error of one call for the reason of a signal. Other calls may get the same reason, so nothing is added to it. */
export function stoppedBy(reason: unknown): DOMException {
  const { name = "AbortError", message = "the signal has aborted" } = Object(reason);
  const error = new DOMException(message, name);
  hide(error, { cause: reason });
  return error;
}

/** @internal Sets the cause of an error that something outside of the core has caused. */
export function because<E>(error: E, cause: unknown): E {
  if (TallyfoldError.is(error)) hide(error, { cause });
  return error;
}

/** @internal An error about the order of calls, which the host notices before the core does. */
export function outOfOrder(message: string): TallyfoldError {
  return refused("out_of_order", undefined, message);
}

/** @internal An error about an argument that only the host understands. */
export function invalidArgument(argument: string, message: string): TallyfoldError {
  return refused("invalid_argument", argument, message);
}

/** @internal An error about an argument that doesn't exist. */
export function unknownArgument(argument: string, want: string): TallyfoldError {
  return refused("unknown_argument", argument, `there is no such argument; ${want}`);
}

/** @internal An error about an address that only the host understands. */
export function invalidAddress(argument: string, message: string): TallyfoldError {
  return refused("invalid_base_address", argument, message);
}

/** @internal The error about a request to this machine that the host would send to a proxy. */
export function insecureAddress(host: string): TallyfoldError {
  const message = `a proxy would see what is sent to this machine: add ${host} to NO_PROXY`;
  return refused("insecure_base_address", undefined, message);
}

/** @internal An error about arguments that were not given. */
export function missingArgument(argument: string, message: string): TallyfoldError {
  return refused("missing_argument", argument, message);
}

/** @internal An error about a checkpoint that can't be used. */
export function invalidCheckpoint(message: string): TallyfoldError {
  return refused("invalid_checkpoint", undefined, message);
}

/**
 * @internal The error of a call in which the WebAssembly instance has ended; without `memory`, the instance could not be
 * made.
 */
export function crashed(memory: WebAssembly.Memory | undefined, cause: unknown): TallyfoldError {
  const isFull = memory === undefined || !hasRoom(memory);
  const code = isFull ? "out_of_memory" : "crashed";
  const what = isFull ? FULL : STOPPED;
  const message = `${code}: ${what}; ${LOST}`;
  return because(TallyfoldError.of({ code, kind: "response", message }), cause);
}

const FULL =
  "WebAssembly has no more memory: keep fewer tables, or request fewer dimensions or shorter windows";
const STOPPED = "tallyfold has stopped in the middle of this call; please report its cause";
const LOST = "tables and calls under way are lost; the next call starts with an empty memory";

/** Whether the memory could still double, and so did not run out. The function finds this out by growing the memory. */
function hasRoom(memory: WebAssembly.Memory): boolean {
  try {
    memory.grow(Math.max(memory.buffer.byteLength, 1 << 30) / 65_536);
    return true;
  } catch {
    return false;
  }
}

/** @internal The error if the host does not allow WebAssembly to be compiled. */
export function wasmForbidden(cause: unknown): TallyfoldError {
  return because(refused("wasm_forbidden", undefined, isWorkers() ? IN_WORKER : BY_POLICY), cause);
}

const BY_POLICY =
  "this host does not allow WebAssembly; a page's content security policy has to list 'wasm-unsafe-eval' in script-src";
const IN_WORKER =
  'a Worker may not compile WebAssembly; with the bundler condition "workerd", this package imports compiled modules';

/** @internal The error about an object of an instance that has ended. */
export function lost(): TallyfoldError {
  return outOfOrder(
    "its WebAssembly instance has ended, and its contents are lost; make a new one",
  );
}

/** @internal For an error about a lost object, the error that ended its instance; otherwise the same error. */
export function rootOf(error: unknown): unknown {
  const isRemains = TallyfoldError.is(error) && error.code === "out_of_order";
  return isRemains && TallyfoldError.is(error.cause) ? error.cause : error;
}

function refused(code: ErrorCode, argument: string | undefined, text: string): TallyfoldError {
  const message = [code, argument, text].filter((part) => part !== undefined).join(": ");
  return TallyfoldError.of({ code, kind: "config", message, ...(argument && { argument }) });
}

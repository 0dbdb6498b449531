// The WebAssembly module of the library. The sandbox, servers, exports, health and notifications have modules of their own.

import { type Glue, glue } from "../../wasm/tallyfold_wasm.js";
import source from "../../wasm/tallyfold_wasm_bg.wasm";
import { compiledFrom, type WasmSource } from "./compile.js";
import { isRenewable } from "./globals.js";
import { Module } from "./start.js";

/** @internal The module, and its instance. */
export const library = new Module(makeGlue, source, "staging", {
  forget,
  isNeeded: () => hasFailed,
});
/** What {@link core} returns; `undefined` if `core` must first check the instance. */
let current: Glue | undefined;
/** Whether a machine may remember more than its tokens: what the service has refused, and when to retry. */
let hasFailed = false;

/**
 * @internal The core. The first call compiles it, so that an import costs nothing and has no side effects. A new core
 * replaces one that has trapped. It also replaces one whose memory is large and contains only machines and plans, which
 * their owners make again, unless a machine has noted a failure.
 */
export function core(): Glue {
  // When a memory has grown, its earlier views are empty.
  if (current !== undefined && staging.length > 0) return current;
  const { glue } = library;
  // A large memory must be checked each time: it is replaced as soon as nothing in it is needed.
  current = library.isLarge ? undefined : glue;
  return glue;
}

function makeGlue(lost: () => Error): Glue {
  const made = glue(lost);
  for (const { prototype } of [made.CoreMachine, made.CoreAggregatorPlan]) {
    Object.defineProperty(prototype, isRenewable, { value: true });
  }
  return made;
}

/** Resets what belongs to an instance that has ended, including the view of its memory. */
function forget(): void {
  current = undefined;
  hasFailed = false;
  staging = new Uint8Array();
}

/** @internal Notes that something went wrong that a machine must remember. */
export function noteFailure(): void {
  hasFailed = true;
}

/** The size in bytes of the core's buffer for chunks, and a view of the buffer. */
const STAGING = 64 * 1024;
let staging: Uint8Array = new Uint8Array();

/**
 * @internal Copies bytes into the core's buffer for chunks, as many as fit at a time, and calls `take` with their number.
 * Each byte is copied once, and the core's memory never contains more of the chunk than the buffer holds.
 */
export function stage(bytes: Uint8Array, take: (length: number) => unknown): void {
  let from = 0;
  do {
    const piece = bytes.length <= STAGING ? bytes : bytes.subarray(from, from + STAGING);
    if (staging.length === 0) staging = staged(core());
    staging.set(piece);
    take(piece.length);
    from += STAGING;
  } while (from < bytes.length);
}

function staged(glue: Glue): Uint8Array {
  const { memory } = library.instance;
  const address = glue.staging();
  return new Uint8Array(memory.buffer, address, STAGING);
}

/**
 * Compiles the WebAssembly off the main thread. A function that needs it earlier compiles it on the calling thread. A
 * page needs `init` only before it calls a function that returns no promise, such as {@link CountTable.fromJSON},
 * because the calls of a {@link Client} wait for the compilation.
 *
 * @param module The file `tallyfold/tallyfold.wasm` of this version, to use instead of the WebAssembly in this
 * package. Pass it before the first use: later, it can't be replaced.
 * @throws {@link TallyfoldError} with code `invalid_argument` for anything else, and `wasm_forbidden` if the host does
 * not allow the compilation.
 * @example
 * await init();
 * const table = CountTable.fromJSON(localStorage.getItem("yesterday"));
 */
export async function init(module?: WasmSource | Promise<WasmSource>): Promise<void> {
  const given = await module;
  if (given === undefined) await library.compile();
  else library.provide(await compiledFrom(given));
}

/** The version of this package. */
export function version(): string {
  return core().version();
}

// The WebAssembly module of the library: all but the sandbox.

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
/** What {@link core} gives, as long as there is nothing to look at. */
let current: Glue | undefined;
/** Whether a machine remembers more than its tokens: what the service has refused, and when it may be asked again. */
let hasFailed = false;

/**
 * @internal The core. The first call compiles it, so that an import costs nothing and changes nothing. There is another one
 * when the last one has trapped, or when its memory is large and nothing is in it but machines and plans, which
 * their owners make anew.
 */
export function core(): Glue {
  // A memory that has grown leaves the views of it empty.
  if (current !== undefined && staging.length > 0) return current;
  const { glue } = library;
  // What is in a large memory has to be looked at each time.
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

/** Forgets what is true of an instance that has ended, and keeps no view of its memory. */
function forget(): void {
  current = undefined;
  hasFailed = false;
  staging = new Uint8Array();
}

/** @internal Says that something went wrong that a machine has to remember. */
export function noteFailure(): void {
  hasFailed = true;
}

/** How many bytes the core has staged for chunks, and they themselves. */
const STAGING = 64 * 1024;
let staging: Uint8Array = new Uint8Array();

/**
 * @internal Writes bytes where the core reads chunks, as many as fit at a time, and says how many. Each byte
 * is copied once, and of a chunk of any size the core's memory holds a part.
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
 * Compiles the WebAssembly off the main thread. A function that is called earlier compiles it on its own thread. A
 * page needs `init` only before it calls a function that returns no promise, such as {@link CountTable.fromJSON}:
 * the calls of a {@link Client} wait for the compilation.
 *
 * @param module The file `tallyfold/tallyfold.wasm` of this version, to use instead of the WebAssembly in this
 * package. Pass it before the first use: later, it can't be replaced.
 * @throws {@link TallyfoldError} with code `invalid_argument` for anything else, and the host's error if it does
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

// The WebAssembly module of the library: all but the sandbox.

import { type Glue, glue } from "../../wasm/tallyfold_wasm.js";
import source from "../../wasm/tallyfold_wasm_bg.wasm";
import { isRenewable } from "./registry.js";
import { Module } from "./start.js";

/** The module, and its instance. */
export const library = new Module(makeGlue, source, "staging", forget);
/** What {@link core} gives, as long as there is nothing to look at. */
let current: Glue | undefined;

/** A memory of more bytes is given back when nothing is in it: it never shrinks. */
const LARGE = 256 << 20;
let isLarge = false;
/** Whether a machine remembers more than its tokens: what the service has refused, and when it may be asked again. */
let isTroubled = false;

/**
 * The core. The first call compiles it, so that an import costs nothing and changes nothing. There is another one
 * when the last one has trapped, or when its memory is large and nothing is in it but machines and plans, which
 * their owners make anew.
 */
export function core(): Glue {
  // A memory that has grown leaves the views of it empty.
  if (current === undefined || isLarge || staging.length === 0) current = lookedAt();
  return current;
}

function lookedAt(): Glue {
  const { memory, population } = library.instance;
  isLarge ||= memory.buffer.byteLength > LARGE;
  if (isLarge && population.objects === 0 && !isTroubled) library.end();
  return library.instance.glue;
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
  isLarge = false;
  isTroubled = false;
  staging = new Uint8Array();
}

/** Says that something went wrong that a machine has to remember. */
export function troubled(): void {
  isTroubled = true;
}

/** How many bytes the core has staged for chunks, and they themselves. */
const STAGING = 64 * 1024;
let staging: Uint8Array = new Uint8Array();

/**
 * Writes bytes where the core reads chunks, as many as fit at a time, and says how many. Each byte
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

// Replacements for globals that a host may lack: `Symbol.dispose`, `Symbol.asyncDispose`, and `TextDecoder` and `TextEncoder`,
// which jsdom lacks; and for the `FinalizationRegistry` of the glue. build.mjs replaces the originals with these.

import { builtIn } from "../values/runtime.js";

const symbols: { dispose?: symbol; asyncDispose?: symbol } = Symbol;

/** The `Symbol.dispose` of the host; if it has none, the symbol that transpilers of `using` look for. */
export const disposeSymbol: symbol = symbols.dispose ?? Symbol.for("Symbol.dispose");
export const asyncDisposeSymbol: symbol = symbols.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

type Text = Pick<typeof globalThis, "TextDecoder" | "TextEncoder">;

export const Decoder: Text["TextDecoder"] = found("TextDecoder");
export const Encoder: Text["TextEncoder"] = found("TextEncoder");

/** Returns the host's class, or the class of `node:util`. If there is neither, returns a class that throws. */
function found<N extends keyof Text>(name: N): Text[N] {
  const own = globalThis[name] ?? builtIn<Text>("node:util")?.[name];
  return own ?? (missing(name) as unknown as Text[N]);
}

function missing(name: string): () => never {
  return function missing() {
    throw new TypeError(
      `this host has no ${name}: set globalThis.${name} before the first use of tallyfold, in Node to ` +
        `require("node:util").${name}`,
    );
  };
}

interface Forgotten<T> {
  readonly target: WeakKey;
  readonly held: T;
}

/** How many objects an instance's memory contains, except objects that are made again when the instance is replaced. */
export interface Population {
  objects: number;
}

/** The prototype of a class has this property if the objects are made again when their instance is replaced. */
export const isRenewable: unique symbol = Symbol("isRenewable");

let population: Population = { objects: 0 };

/** Calls `make`. The registries that it creates count their objects in `there`. */
export function counted<T>(there: Population, make: () => T): T {
  population = there;
  return make();
}

/**
 * A `FinalizationRegistry` for objects that are usually released soon. Registering and unregistering an object takes a
 * tenth of the time that it takes to read a small body. So an object is registered only when the next one is made, or in
 * the next microtask. Until then, this class keeps it alive.
 */
export class Registry<T> {
  readonly #registry: FinalizationRegistry<T> | undefined;
  readonly #population = population;
  /** How much each object adds to the population: 0 or 1, because all are of one class; -1 before the first object. */
  #one = -1;
  #latest: Forgotten<T> | undefined;
  #willEnter = false;
  /** An object that is kept for the same reason as the objects in `kept` of table.ts. */
  #kept: WeakKey | undefined;

  constructor(forgotten: (held: T) => void) {
    // build.mjs replaces the bare name `FinalizationRegistry` with this class.
    const { FinalizationRegistry: Native } = globalThis;
    this.#registry =
      Native &&
      new Native((held) => {
        this.#population.objects -= this.#one;
        forgotten(held);
      });
  }

  register(target: WeakKey, held: T): void {
    if (this.#one < 0) this.#one = isRenewable in target ? 0 : 1;
    this.#population.objects += this.#one;
    this.#enter();
    this.#latest = { target, held };
    if (this.#willEnter) return;
    this.#willEnter = true;
    // Not every host has `queueMicrotask`.
    Promise.resolve().then(() => {
      this.#willEnter = false;
      this.#enter();
    });
  }

  unregister(target: WeakKey): void {
    this.#population.objects -= this.#one;
    this.#kept ??= target;
    if (this.#latest?.target === target) this.#latest = undefined;
    else this.#registry?.unregister(target);
  }

  #enter(): void {
    if (!this.#latest) return;
    const { target, held } = this.#latest;
    this.#latest = undefined;
    this.#registry?.register(target, held, target);
  }
}

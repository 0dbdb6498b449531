// What takes the place of globals that a host may lack: `Symbol.dispose`, `TextDecoder` and `TextEncoder` (jsdom has
// neither); and of `FinalizationRegistry`, as the glue uses it. build.mjs puts these in the place of the originals.

import { builtIn } from "../values/runtime.js";

const symbols: { dispose?: symbol; asyncDispose?: symbol } = Symbol;

/** What `Symbol.dispose` means in this package: the host's own, or the one that transpilers of `using` look for. */
export const disposeSymbol: symbol = symbols.dispose ?? Symbol.for("Symbol.dispose");
export const asyncDisposeSymbol: symbol = symbols.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

type Text = Pick<typeof globalThis, "TextDecoder" | "TextEncoder">;

export const Decoder: Text["TextDecoder"] = found("TextDecoder");
export const Encoder: Text["TextEncoder"] = found("TextEncoder");

/** The host's own, or that of Node, if it is there. */
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

/** How many objects there are in an instance's memory, without those that are made anew when it is replaced. */
export interface Population {
  objects: number;
}

/** A class whose objects are made anew has this in its prototype. */
export const isRenewable: unique symbol = Symbol("isRenewable");

let population: Population = { objects: 0 };

/** The objects of all registries that `make` makes are counted there. */
export function counted<T>(there: Population, make: () => T): T {
  population = there;
  return make();
}

/**
 * A `FinalizationRegistry` for objects that are mostly released at once. Registering and
 * unregistering takes a tenth of the time of reading a small body. So an object is registered only
 * when the next one is made or the turn of the event loop ends; until then, it is kept alive.
 */
export class Registry<T> {
  readonly #registry: FinalizationRegistry<T> | undefined;
  readonly #population = population;
  /** What one object counts, once there is one: all are of one class. */
  #one = -1;
  #latest: Forgotten<T> | undefined;
  #willEnter = false;
  /** For the same reason as the objects that `kept` in table.ts keeps. */
  #kept: WeakKey | undefined;

  constructor(forgotten: (held: T) => void) {
    // Under its own name it would be this class.
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

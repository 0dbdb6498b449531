// What the glue takes for `FinalizationRegistry`: build.mjs puts it in its place.

interface Forgotten<T> {
  readonly target: WeakKey;
  readonly held: T;
}

/**
 * A `FinalizationRegistry` for objects that are mostly released at once. Registering and
 * unregistering takes a tenth of the time of reading a small body. So an object is registered only
 * when the next one is made or the turn of the event loop ends; until then, it is kept alive.
 */
export class Registry<T> {
  readonly #registry: FinalizationRegistry<T> | undefined;
  #latest: Forgotten<T> | undefined;
  #willEnter = false;
  /** For the same reason as the objects of shapes.ts. */
  #kept: WeakKey | undefined;

  constructor(forgotten: (held: T) => void) {
    // Under its own name it would be this class.
    const { FinalizationRegistry: Native } = globalThis;
    this.#registry = Native && new Native(forgotten);
  }

  register(target: WeakKey, held: T): void {
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

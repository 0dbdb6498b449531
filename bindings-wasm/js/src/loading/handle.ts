import { outOfOrder } from "../values/error.js";

/** Passes an object to `use`, and then disposes of the object. */
export function used<T extends Disposable, R>(object: T, use: (object: T) => R): R {
  try {
    return use(object);
  } finally {
    object[Symbol.dispose]();
  }
}

/**
 * An object in the core's memory, until it is released. If it is never released, the glue frees it
 * when the garbage collector collects this handle.
 */
export class Handle<T extends { free(): void }> {
  #object: T | undefined;

  constructor(object: T) {
    this.#object = object;
  }

  get released(): boolean {
    return this.#object === undefined;
  }

  /** The object. Throws an error with code `out_of_order` if it was released. */
  get object(): T {
    if (this.#object === undefined) throw outOfOrder("it was disposed of; make a new one");
    return this.#object;
  }

  release(): void {
    this.#object?.free();
    this.#object = undefined;
  }
}

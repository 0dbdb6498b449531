// Starts a WebAssembly module at its first use, synchronously and without top-level await. Starts it again after its
// instance has trapped.

import {
  because,
  crashed,
  type ErrorFields,
  invalidArgument,
  lost,
  TallyfoldError,
} from "../values/error.js";
import { compiled, type Source, soonCompiled } from "./compile.js";
import { counted, type Population } from "./globals.js";

/** An empty memory with more bytes than this is replaced, because a memory never shrinks. */
const LARGE = 256 << 20;

/** What the glue of every module contains. */
interface Glue {
  readonly imports: WebAssembly.Imports;
  use(exports: object): void;
  setErrorFactory(factory: (fields: ErrorFields) => unknown): void;
}

/** What every module exports. */
interface Exports {
  readonly memory: WebAssembly.Memory;
  __wbindgen_start(): void;
}

interface Instance<G> {
  readonly glue: G;
  readonly memory: WebAssembly.Memory;
  readonly population: Population;
}

/** Functions that a module may have. */
interface Own {
  /** Called when an instance has ended. */
  forget?(): void;
  /** Whether the instance must stay, although its population is 0. */
  isNeeded?(): boolean;
}

/**
 * A module and its instance. Each instance has a glue of its own, so that an object of an
 * instance that has ended can't reach the memory of the next one: its methods throw `out_of_order`,
 * except the {@link HARMLESS} ones and `Call.attempt`.
 */
export class Module<G extends Glue> {
  readonly #makeGlue: (lost: () => Error) => G;
  readonly #source: Source;
  readonly #mark: string;
  readonly #own: Own;
  #compiled: WebAssembly.Module | undefined;
  #compiling: Promise<void> | undefined;
  #instance: Instance<G> | undefined;

  /** @param mark The name of an export that no other module has. */
  constructor(makeGlue: (lost: () => Error) => G, source: Source, mark: string, own: Own = {}) {
    this.#makeGlue = makeGlue;
    this.#source = source;
    this.#mark = mark;
    this.#own = own;
  }

  /** Whether the module is already compiled. */
  get isCompiled(): boolean {
    return this.#compiled !== undefined;
  }

  /** Compiles off the main thread. If the instance is needed earlier, it is compiled synchronously. */
  compile(): Promise<void> {
    this.#compiling ??= this.#soon();
    return this.#compiling;
  }

  /** Uses a module that the caller has compiled, unless there is one already. */
  provide(module: WebAssembly.Module): void {
    const has = (list: { name: string }[], name: string) => list.some((it) => it.name === name);
    const { exports, imports } = WebAssembly.Module;
    const given = Object.values(this.#makeGlue(lost).imports).flatMap(Object.keys);
    const isOurs =
      has(exports(module), this.#mark) && imports(module).every(({ name }) => given.includes(name));
    if (!isOurs) throw invalidArgument("module", "want tallyfold.wasm of the same version");
    this.#compiled ??= module;
  }

  /** The instance in use. */
  get instance(): Instance<G> {
    this.#instance ??= this.#start();
    return this.#instance;
  }

  /** Whether the memory is large. It stays so until the instance ends. */
  get isLarge(): boolean {
    return this.instance.memory.buffer.byteLength > LARGE;
  }

  /** The glue of the current instance. If its memory is large and nothing in it is needed, a new instance replaces it first. */
  get glue(): G {
    const isEmpty = this.instance.population.objects === 0 && !this.#own.isNeeded?.();
    if (isEmpty && this.isLarge) this.end();
    return this.instance.glue;
  }

  /** Ends the current instance, and releases its memory. The next call starts a new instance. */
  end(error?: TallyfoldError): void {
    this.#instance?.glue.use(remains(error));
    this.#instance = undefined;
    this.#own.forget?.();
  }

  async #soon(): Promise<void> {
    if (this.isCompiled) return;
    const module = await soonCompiled(this.#source);
    this.#compiled ??= module;
  }

  #start(): Instance<G> {
    this.#compiled ??= compiled(this.#source);
    const population = { objects: 0 };
    const glue = counted(population, () => this.#makeGlue(lost));
    const exports = instantiated(this.#compiled, glue.imports);
    const { memory } = exports;
    const instance = { glue, memory, population };
    const failed = (thrown: unknown): unknown => {
      if (!isTrap(thrown)) return thrown;
      const error = crashed(memory, thrown);
      if (this.#instance === instance) this.end(error);
      return error;
    };
    glue.use(guarded(exports, failed));
    exports.__wbindgen_start();
    glue.setErrorFactory((fields) => TallyfoldError.of(fields));
    return instance;
  }
}

function instantiated(module: WebAssembly.Module, imports: WebAssembly.Imports): Exports {
  try {
    return new WebAssembly.Instance(module, imports).exports as unknown as Exports;
  } catch (thrown) {
    // There is not enough memory for the instance.
    throw crashed(undefined, thrown);
  }
}

/** Wraps the exports: when one of them throws, the error goes through `failed`. */
function guarded(exports: object, failed: (thrown: unknown) => unknown): object {
  const all = Object.entries(exports).map(([name, value]) => [
    name,
    typeof value === "function" ? guard(value, failed) : value,
  ]);
  return Object.fromEntries(all);
}

type Anything = (...all: unknown[]) => unknown;

function guard(call: Anything, failed: (thrown: unknown) => unknown): Anything {
  // The arguments are listed, because rest arguments would slow down every call while a small body is read.
  const listed: Anything = (a, b, c, d, e, f, g, h) => {
    try {
      return call(a, b, c, d, e, f, g, h);
    } catch (thrown) {
      throw failed(thrown);
    }
  };
  if (call.length <= listed.length) return listed;
  return (...all) => {
    try {
      return call(...all);
    } catch (thrown) {
      throw failed(thrown);
    }
  };
}

/**
 * Whether the code of the module was interrupted, by `unreachable` or because the stack is full. Other errors that code
 * outside of the module throws while the module calls it are passed on unchanged.
 */
function isTrap(thrown: unknown): boolean {
  return thrown instanceof WebAssembly.RuntimeError || thrown instanceof RangeError;
}

/** The exports that may be called even if their instance has ended. */
const HARMLESS = /_free$|^corecall_close$|^__externref_table_dealloc$/;

/** The exports of an instance that has ended. */
function remains(error: TallyfoldError | undefined): object {
  const get = (_: object, name: string): unknown => {
    if (HARMLESS.test(name)) return () => undefined;
    // A call whose instance has ended has no attempt. The glue gets no error, and finds `undefined` in the table.
    if (name === "corecall_attempt") return () => [0, 0, 0];
    if (name === "__wbindgen_externrefs") return { get: () => undefined };
    throw because(lost(), error);
  };
  return new Proxy({}, { get });
}

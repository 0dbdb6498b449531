import { compiledFrom, type WasmSource } from "./compile.js";
import { library } from "./library.js";

export type { WasmSource } from "./compile.js";

/**
 * Compiles the WebAssembly off the main thread; what is called before that compiles it at once, where it is
 * called. A page needs this only before it calls something that gives no promise, such as
 * {@link CountTable.fromJSON}: a call of a {@link Client} waits by itself.
 *
 * @param module The file `tallyfold/tallyfold.wasm` of this version, to be used in place of the one inside this
 * package. It has to come before the first use: once one is in use, it stays.
 * @throws {@link TallyfoldError} with code `invalid_argument` for anything else, and what the host throws if it
 * may not compile.
 * @example
 * await init();
 * const table = CountTable.fromJSON(localStorage.getItem("yesterday"));
 */
export async function init(module?: WasmSource | Promise<WasmSource>): Promise<void> {
  const given = await module;
  if (given === undefined) await library.compile();
  else library.provide(await compiledFrom(given));
}

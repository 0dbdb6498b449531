// Compiles WebAssembly: synchronously, or off the main thread if the caller can wait for a promise.

import { inflateSync } from "fflate/browser";
import { because, invalidArgument, wasmForbidden } from "../values/error.js";
import type { WasmModule, WebResponse } from "../values/host.js";
import { builtIn } from "../values/runtime.js";

/** @internal What build.mjs makes of a `.wasm` file: its deflated bytes in base64, or the module for Cloudflare Workers. */
export type Source = string | WebAssembly.Module;

/** A WebAssembly module, its bytes, or a response with its bytes. */
export type WasmSource = WasmModule | ArrayBuffer | ArrayBufferView<ArrayBuffer> | WebResponse;

/** @internal Compiles what a caller has passed to `init`. */
export async function compiledFrom(given: WasmSource): Promise<WebAssembly.Module> {
  if (given instanceof WebAssembly.Module) return given;
  const bytes = given instanceof ArrayBuffer || ArrayBuffer.isView(given) ? given : body(given);
  try {
    return await WebAssembly.compile(await bytes);
  } catch (cause) {
    if (!(cause instanceof WebAssembly.CompileError)) throw cause;
    // The host forbids the compilation, so the caller's argument is not at fault.
    if (/policy|CSP|unsafe-eval|disallowed/i.test(cause.message)) throw wasmForbidden(cause);
    throw because(invalidArgument("module", "these bytes aren't WebAssembly"), cause);
  }
}

function body(given: Response): Promise<ArrayBuffer> {
  if (typeof given?.arrayBuffer !== "function") {
    throw invalidArgument("module", "want a WebAssembly.Module, its bytes or a Response");
  }
  if (!given.ok) throw invalidArgument("module", `the response has status ${given.status}`);
  return given.arrayBuffer();
}

/** @internal Compiles synchronously. */
export function compiled(source: Source): WebAssembly.Module {
  if (typeof source !== "string") return source;
  try {
    return new WebAssembly.Module(inflated(decoded(source)));
  } catch (thrown) {
    throw refusal(thrown);
  }
}

/** The bytes of this package are valid, so a compile error means that the host forbids the compilation. */
function refusal(thrown: unknown): unknown {
  return thrown instanceof WebAssembly.CompileError ? wasmForbidden(thrown) : thrown;
}

/** @internal Compiles off the main thread. */
export async function soonCompiled(source: Source): Promise<WebAssembly.Module> {
  if (typeof source !== "string") return source;
  await turn();
  try {
    return await WebAssembly.compile(await soonInflated(decoded(source)));
  } catch (thrown) {
    throw refusal(thrown);
  }
}

/** Lets the event loop run once. A timer isn't used, because it is slow in a hidden page, and tests may replace it. */
export function turn(): Promise<void> {
  if (typeof MessageChannel !== "function") return Promise.resolve();
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}

type Bytes = Uint8Array<ArrayBuffer>;

/** Node's zlib takes 2 ms, fflate takes 15 ms. */
function inflated(bytes: Bytes): Bytes {
  const zlib = builtIn<{ inflateRawSync(bytes: Bytes): Bytes }>("node:zlib");
  return zlib?.inflateRawSync(bytes) ?? inflateSync(bytes);
}

async function soonInflated(bytes: Bytes): Promise<BufferSource> {
  let stream: DecompressionStream;
  try {
    stream = new DecompressionStream("deflate-raw");
  } catch {
    // The host has no `DecompressionStream`, or it does not support this format.
    return inflated(bytes);
  }
  return new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer();
}

function decoded(base64: string): Bytes {
  const { fromBase64 } = Uint8Array as { fromBase64?: (base64: string) => Bytes };
  if (fromBase64) return fromBase64.call(Uint8Array, base64);
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

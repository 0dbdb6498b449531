// Compiles WebAssembly: at once, or off the main thread where there is a promise to wait for.

import { inflateSync } from "fflate/browser";
import { because, invalidArgument, wasmForbidden } from "../values/error.js";
import type { WasmModule, WebResponse } from "../values/host.js";
import { builtIn } from "../values/runtime.js";

/** @internal What build.mjs makes of a `.wasm` file: its bytes, deflated, in base64; or for Cloudflare Workers the module. */
export type Source = string | WebAssembly.Module;

/** A WebAssembly module, its bytes, or a response with its bytes. */
export type WasmSource = WasmModule | ArrayBuffer | ArrayBufferView<ArrayBuffer> | WebResponse;

/** @internal Compiles what a caller has handed over. */
export async function compiledFrom(given: WasmSource): Promise<WebAssembly.Module> {
  if (given instanceof WebAssembly.Module) return given;
  const bytes = given instanceof ArrayBuffer || ArrayBuffer.isView(given) ? given : body(given);
  try {
    return await WebAssembly.compile(await bytes);
  } catch (cause) {
    if (!(cause instanceof WebAssembly.CompileError)) throw cause;
    // That is not the caller's argument.
    if (/policy|CSP|unsafe-eval|disallowed/i.test(cause.message)) throw wasmForbidden(cause);
    throw because(invalidArgument("module", "these bytes are no WebAssembly"), cause);
  }
}

function body(given: Response): Promise<ArrayBuffer> {
  if (typeof given?.arrayBuffer !== "function") {
    throw invalidArgument("module", "want a WebAssembly.Module, its bytes or a Response");
  }
  if (!given.ok) throw invalidArgument("module", `the response has status ${given.status}`);
  return given.arrayBuffer();
}

/** @internal Compiles at once. */
export function compiled(source: Source): WebAssembly.Module {
  if (typeof source !== "string") return source;
  try {
    return new WebAssembly.Module(inflated(decoded(source)));
  } catch (thrown) {
    throw refusal(thrown);
  }
}

/** These bytes are valid: what keeps them from being compiled is the host. */
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

/** Lets the thread do other things in between. A timer may be slow in a page that is not shown, or a test's own. */
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

/** Node's own takes 2 ms, the other one 15. */
function inflated(bytes: Bytes): Bytes {
  const zlib = builtIn<{ inflateRawSync(bytes: Bytes): Bytes }>("node:zlib");
  return zlib?.inflateRawSync(bytes) ?? inflateSync(bytes);
}

async function soonInflated(bytes: Bytes): Promise<BufferSource> {
  let stream: DecompressionStream;
  try {
    stream = new DecompressionStream("deflate-raw");
  } catch {
    // The host has none, or not for this format.
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

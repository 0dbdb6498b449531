// Compiles WebAssembly: at once, or off the main thread where there is a promise to wait for.

import { inflateSync } from "fflate/browser";
import { builtIn } from "./host.js";

/** What build.mjs makes of a `.wasm` file: its bytes, deflated, in base64; or for Cloudflare Workers the module. */
export type Source = string | WebAssembly.Module;

/** Compiles at once. */
export function compiled(source: Source): WebAssembly.Module {
  if (typeof source !== "string") return source;
  return new WebAssembly.Module(inflated(decoded(source)));
}

/** Compiles off the main thread. */
export async function soonCompiled(source: Source): Promise<WebAssembly.Module> {
  if (typeof source !== "string") return source;
  const deflated = decoded(source);
  return WebAssembly.compile(await soonInflated(deflated));
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

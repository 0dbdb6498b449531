// Types of the host. If a program is checked without the types of the DOM and of Node, with `lib: ["ES2022"]` alone, each
// type here is only the part that this package needs.

/** The instances of a global class. */
type Instance<N extends string, Otherwise> = typeof globalThis extends {
  readonly [K in N]: { readonly prototype: infer T };
}
  ? T
  : Otherwise;

/** A standard `URL`. */
export type Url = Instance<"URL", { readonly href: string }>;
/** A standard `AbortSignal`. */
export type Signal = Instance<
  "AbortSignal",
  { readonly aborted: boolean; readonly reason: unknown; throwIfAborted(): void }
>;
/** A standard `Request`. */
export type WebRequest = Instance<"Request", { readonly method: string; readonly url: string }>;
/** A standard `Response`. */
export type WebResponse = Instance<
  "Response",
  { readonly status: number; readonly ok: boolean; arrayBuffer(): Promise<ArrayBuffer> }
>;
/** The options of a standard `Request`. */
export type WebRequestInit = typeof globalThis extends {
  readonly Request: { new (input: string, init?: infer I): unknown };
}
  ? NonNullable<I>
  : object;
/** A standard `ReadableStream` of bytes, such as the stream of a `Blob`. */
export type ByteStream = typeof globalThis extends {
  readonly Blob: { readonly prototype: { stream(): infer S } };
}
  ? S
  : object;
/** A compiled WebAssembly module. */
export type WasmModule = typeof globalThis extends {
  readonly WebAssembly: { readonly Module: { readonly prototype: infer T } };
}
  ? T
  : object;

declare module "*.wasm" {
  /** The file's bytes, deflated, in base64; for Cloudflare Workers the compiled module. */
  const source: string | WebAssembly.Module;
  export default source;
}

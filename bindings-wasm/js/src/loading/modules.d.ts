declare module "*.wasm" {
  /** The file's deflated bytes in base64, or the compiled module for Cloudflare Workers. */
  const source: string | WebAssembly.Module;
  export default source;
}

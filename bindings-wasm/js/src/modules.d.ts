declare module "*.wasm" {
  /** The file's bytes in base64. */
  const base64: string;
  export default base64;
}

// What four bundlers make of a script, minified, and how many bytes a page loads.

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompressSync, gzipSync } from "node:zlib";
import resolve from "@rollup/plugin-node-resolve";
import { transform, build as withEsbuild } from "esbuild";
import { rollup } from "rollup";
import { build as withVite } from "vite";
import webpack from "webpack";

/** Each gives the text of the one script that comes out of `entry`. */
export const bundlers = {
  async esbuild(entry) {
    const options = { bundle: true, minify: true, format: "esm", logLevel: "error", write: false };
    const { outputFiles } = await withEsbuild({ ...options, entryPoints: [entry] });
    return only(outputFiles).text;
  },

  async Rollup(entry) {
    const bundle = await rollup({ input: entry, plugins: [resolve()] });
    const { output } = await bundle.generate({ format: "es" });
    // It leaves minifying to others.
    return (await transform(only(output).code, { minify: true, format: "esm" })).code;
  },

  async Vite(entry) {
    const build = { write: false, target: "es2022", rolldownOptions: { input: entry } };
    const options = { configFile: false, logLevel: "error", root: dirname(entry) };
    const { output } = await withVite({ ...options, build });
    return only(output).code;
  },

  async webpack(entry) {
    const path = await mkdtemp(join(dirname(entry), "webpack-"));
    const output = { path, filename: "out.js" };
    const options = { mode: "production", entry, output, performance: { hints: false } };
    const stats = await promisify(webpack)(options);
    if (stats.hasErrors()) throw new Error(stats.toString());
    const text = await readFile(join(path, "out.js"), "utf8");
    await rm(path, { recursive: true });
    return text;
  },
};

/** The sizes of a text: as it is, and on its way through gzip and brotli. */
export function sizes(text) {
  const gzip = gzipSync(text, { level: 9 }).length;
  return { bytes: Buffer.byteLength(text), gzip, brotli: brotliCompressSync(text).length };
}

function only(outputs) {
  if (outputs.length !== 1) throw new Error(`${outputs.length} files, not one`);
  return outputs[0];
}

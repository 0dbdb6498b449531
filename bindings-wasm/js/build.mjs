// Builds dist/: the library as ESM and CommonJS, each with the wasm inside, its types, the CLI.

import { execFileSync } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";

const common = {
  bundle: true,
  target: "es2022",
  // Inlined as base64: no host has to find, fetch or copy a file beside the script.
  loader: { ".wasm": "base64" },
  // What `using` looks for is not yet in every host; `dispose.ts` says what stands in for it, and
  // `registry.ts` what stands in for the registry of the glue.
  define: {
    "Symbol.dispose": "disposeSymbol",
    "Symbol.asyncDispose": "asyncDisposeSymbol",
    FinalizationRegistry: "Registry",
  },
  inject: ["src/dispose.ts", "src/registry.ts"],
  // `sideEffects: false` is told to those who import dist/. Obeyed here, it drops `initSync`.
  ignoreAnnotations: true,
  legalComments: "none",
  logLevel: "warning",
};
const library = { ...common, platform: "neutral", entryPoints: ["src/index.ts"] };
const node = { ...common, platform: "node", entryPoints: ["src/node.ts"] };
const server = { ...common, platform: "neutral", entryPoints: ["src/server.ts"] };
const cli = { ...common, platform: "node", entryPoints: ["src/cli.ts"] };

await rm("dist", { recursive: true, force: true });
await mkdir("dist");
// npm packs what lies in this folder, and the licences lie at the root.
await Promise.all(
  ["LICENSE", "LICENSE-MIT", "LICENSE-APACHE"].map((name) => copyFile(`../../${name}`, name)),
);
await Promise.all([
  build({ ...library, format: "esm", outfile: "dist/index.js" }),
  build({ ...library, format: "cjs", outfile: "dist/index.cjs" }),
  build({ ...node, format: "esm", outfile: "dist/node.js" }),
  build({ ...node, format: "cjs", outfile: "dist/node.cjs" }),
  build({ ...server, format: "esm", outfile: "dist/server.js" }),
  build({ ...server, format: "cjs", outfile: "dist/server.cjs" }),
  // The CLI uses the library beside it, not a copy of its own.
  build({ ...cli, format: "esm", outfile: "dist/cli.js", external: ["./index.js", "./node.js"] }),
]);
await declarations("index", "node", "server");

/** Writes the types that the entries reach, once for each module system. */
async function declarations(...entries) {
  const all = await mkdtemp(join(tmpdir(), "tallyfold-types-"));
  execFileSync("node_modules/.bin/tsc", ["--outDir", all], { stdio: "inherit" });
  const reached = new Set(entries);
  for (const name of reached) {
    const text = await readFile(join(all, `${name}.d.ts`), "utf8");
    if (text.includes('"../')) throw new Error(`public types of ${name}.ts mention generated glue`);
    for (const [, next] of text.matchAll(/"\.\/([\w-]+)\.js"/g)) reached.add(next);
    await writeFile(`dist/${name}.d.ts`, text);
    await writeFile(`dist/${name}.d.cts`, text.replace(/("\.\/[\w-]+)\.js"/g, '$1.cjs"'));
  }
  await rm(all, { recursive: true });
}

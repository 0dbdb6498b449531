// Builds dist/, which is flat: each source file as an ES module of its own, so that a bundler ships only what is
// used; the same once more for Cloudflare Workers; a CommonJS file for each entry; the wasm files; and the types.

import { execFileSync } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { build } from "esbuild";
import { commandPage, dashboard, notebookWidget } from "./build_dashboard.mjs";

/** What `exports` in package.json names. */
const entries = ["index", "node", "server", "export", "health"];
/** The modules: the file that is exported, and what build-wasm.sh calls it. */
const modules = {
  "tallyfold.wasm": "tallyfold_wasm",
  "sandbox.wasm": "tallyfold_sandbox",
  "pages.wasm": "tallyfold_pages",
  "export.wasm": "tallyfold_export",
  "health.wasm": "tallyfold_health",
  "notify.wasm": "tallyfold_notify",
};
/** The globals that are replaced, and what loading/globals.ts exports in place of each. */
const standIns = [
  ["Symbol.dispose", "disposeSymbol"],
  ["Symbol.asyncDispose", "asyncDisposeSymbol"],
  ["FinalizationRegistry", "Registry"],
  ["TextDecoder", "Decoder"],
  ["TextEncoder", "Encoder"],
];
const common = {
  bundle: true,
  target: "es2022",
  define: Object.fromEntries(standIns.map(([name, own]) => [name, own])),
  legalComments: "none",
  logLevel: "warning",
};

/** Prepares its tables when it is first used, and not when it is imported: that takes 10 ms, 60 on a slow phone. */
const lateInflate = {
  name: "late inflate",
  setup(own) {
    const filter = /^fflate\/browser$/;
    own.onResolve({ filter }, ({ path }) => ({ path, namespace: "late" }));
    own.onLoad({ filter, namespace: "late" }, async () => {
      // An assignment takes 400 bytes less than an export of this script.
      const contents = 'import { inflateSync } from "fflate/browser"; inflate = inflateSync;';
      const stdin = { contents, resolveDir: import.meta.dirname };
      const { outputFiles } = await build({ ...common, format: "iife", write: false, stdin });
      return {
        contents: `let inflate;
          export function inflateSync(bytes) {
            if (inflate === undefined) load();
            return inflate(bytes);
          }
          function load() {
            ${outputFiles[0].text}
          }`,
      };
    });
  },
};

await rm("dist", { recursive: true, force: true });
await mkdir("dist");
// npm packs what lies in this folder, and the licences lie at the root.
for (const name of ["LICENSE", "LICENSE-MIT", "LICENSE-APACHE"]) {
  await copyFile(`../../${name}`, name);
}
// Its inflate is in compile.js.
await copyFile("node_modules/fflate/LICENSE", "dist/LICENSE-fflate");
for (const [file, name] of Object.entries(modules)) {
  await copyFile(`wasm/${name}_bg.wasm`, `dist/${file}`);
  await writeFile(`dist/${name}_bg.js`, await inlined(`wasm/${name}_bg.wasm`));
  const types = "declare const module: WebAssembly.Module;\nexport default module;\n";
  await writeFile(`dist/${file}.d.ts`, types);
}
await esModules("dist", (name) => `./${name}.js`);
// A Worker may not compile bytes. It imports the files, which are compiled before it starts.
const files = Object.fromEntries(
  Object.entries(modules).map(([file, name]) => [`${name}_bg`, file]),
);
await esModules("dist/workerd", (name) => `../${files[name]}`);
await Promise.all(entries.map(commonJs));
await declarations();
await dashboard();
await commandPage();
await notebookWidget();

/**
 * A script with the bytes inside, so that no host has to find, fetch or copy a file. They are deflated, because
 * base64 of the bytes themselves is a fifth larger on its way through gzip.
 */
async function inlined(file) {
  const bytes = await readFile(`${file}.deflated`);
  return `export default "${bytes.toString("base64")}";\n`;
}

/** @param wasm Where a module of `wasm/` is. */
async function esModules(outdir, wasm) {
  const all = await readdir("src", { recursive: true });
  const sources = all.filter((name) => /^[\w/]+\.ts$/.test(name));
  const glue = Object.values(modules).map((name) => `wasm/${name}.js`);
  const { outputFiles } = await build({
    ...common,
    platform: "neutral",
    format: "esm",
    external: ["node:*"],
    entryPoints: [...sources.map((name) => `src/${name}`), ...glue],
    entryNames: "[name]",
    outdir,
    write: false,
    // Imports of types only are dropped.
    tsconfigRaw: {},
    plugins: [
      lateInflate,
      {
        name: "each file on its own",
        setup(own) {
          own.onResolve({ filter: /^\./ }, ({ kind, path }) => {
            if (kind === "entry-point") return undefined;
            const name = basename(path);
            const isWasm = name.endsWith(".wasm");
            return { path: isWasm ? wasm(name.slice(0, -5)) : `./${name}`, external: true };
          });
          own.onLoad({ filter: /\/(src|wasm)\/[\w/]+\.[jt]s$/ }, async ({ path }) => {
            const text = await readFile(path, "utf8");
            return {
              contents: importStandIns(text, path) + text,
              loader: path.endsWith(".ts") ? "ts" : "js",
            };
          });
        },
      },
    ],
  });
  await mkdir(outdir, { recursive: true });
  for (const { path, text } of outputFiles) {
    if (text.trim() !== "") await writeFile(path, text);
  }
}

/** Imports, for what a file mentions. */
function importStandIns(text, path) {
  return standIns
    .filter(([name]) => text.includes(name) && basename(path) !== "globals.ts")
    .map(([_, own]) => `import { ${own} } from "./globals.js";`)
    .join("");
}

/** One file, because Node takes its time to find and read each. */
function commonJs(entry) {
  return build({
    ...common,
    platform: entry === "node" ? "node" : "neutral",
    format: "cjs",
    entryPoints: [`src/${entry}.ts`],
    outfile: `dist/${entry}.cjs`,
    inject: ["src/loading/globals.ts"],
    plugins: [
      lateInflate,
      {
        name: "wasm inside",
        setup(own) {
          own.onLoad({ filter: /\.wasm$/ }, async ({ path }) => ({
            contents: await inlined(path),
          }));
        },
      },
    ],
  });
}

/** Writes the types that the entries reach, once for each module system. */
async function declarations() {
  const all = await mkdtemp(join(tmpdir(), "tallyfold-types-"));
  execFileSync("node_modules/.bin/tsc", ["--outDir", all], { stdio: "inherit" });
  const files = await readdir(all, { recursive: true });
  const own = files.filter((path) => path.startsWith("src"));
  const paths = new Map(own.map((path) => [basename(path), path]));
  // The elements' classes are Lit's, which is no dependency: the public types are these.
  paths.set("dashboard.d.ts", "dashboard/elements.d.ts");
  const reached = new Set([...entries, "dashboard"]);
  for (const name of reached) {
    const written = await readFile(join(all, paths.get(`${name}.d.ts`)), "utf8");
    if (written.includes("/wasm/"))
      throw new Error(`public types of ${name}.ts mention generated glue`);
    const text = written.replace(/"\.[\w./]*\/(\w+)\.js"/g, '"./$1.js"');
    for (const [, next] of text.matchAll(/"\.\/(\w+)\.js"/g)) reached.add(next);
    await writeFile(`dist/${name}.d.ts`, text);
    // The dashboard is for browsers, which have no CommonJS.
    if (name === "dashboard") continue;
    await writeFile(`dist/${name}.d.cts`, text.replace(/("\.\/\w+)\.js"/g, '$1.cjs"'));
  }
  await rm(all, { recursive: true });
}

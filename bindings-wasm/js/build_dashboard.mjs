// Builds the dashboard: dist/dashboard.js and its parts, which are loaded when they are needed, the page of the command, and the widget
// of notebooks. `node build_dashboard.mjs` builds only these, when the rest of dist/ is there.

import { createHash } from "node:crypto";
import { appendFile, copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const common = {
  bundle: true,
  format: "esm",
  target: "es2022",
  platform: "browser",
  splitting: true,
  minify: true,
  legalComments: "none",
  logLevel: "warning",
  tsconfigRaw: { compilerOptions: { useDefineForClassFields: true } },
};

/** Where the command takes its page from. */
const PAGE = "../../cli/page";
/** Where the library in Python takes the widget of notebooks from. */
const WIDGET = "../../bindings-python/python/tallyfold/_notebook/widget.js";

/** The elements as ES modules that import the package's own modules, so that a page has each of them once. */
export async function dashboard() {
  for (const name of await readdir("dist")) {
    if (/^dashboard.*\.js$/.test(name)) await rm(`dist/${name}`);
  }
  await build({
    ...common,
    entryPoints: { dashboard: "dashboard/index.ts" },
    outdir: "dist",
    chunkNames: "dashboard-[name]-[hash]",
    // A server that renders pages imports this too, and has no document.
    define: { HTMLElement: "ElementHere", document: "documentHere" },
    inject: ["dashboard/globals.ts"],
    plugins: [
      {
        name: "modules of the package",
        setup(own) {
          own.onResolve({ filter: /\/src\/.*\.js$/ }, ({ path }) => ({
            path: `./${basename(path)}`,
            external: true,
          }));
        },
      },
    ],
  });
  await flatten("dist/dashboard.js");
  // Entries of their own, because their types need those of the framework.
  for (const framework of ["react", "vue"]) {
    await writeFile(`dist/dashboard_${framework}.js`, 'import "./dashboard.js";\n');
    await copyFile(`dashboard/${framework}.d.ts`, `dist/dashboard_${framework}.d.ts`);
  }
  // Their code is in the bundle.
  for (const name of ["lit", "uplot"]) {
    await copyFile(`node_modules/${name}/LICENSE`, `dist/LICENSE-${name}`);
  }
}

/**
 * Has a module name all modules that it imports through others, so that a page without a bundler requests them at once. They stand
 * last, which leaves the order as it was in which modules run.
 */
async function flatten(file) {
  const { metafile } = await build({
    ...common,
    entryPoints: [file],
    write: false,
    outdir: ".",
    metafile: true,
  });
  const seen = new Set();
  const look = (path) => {
    for (const { path: next, kind } of metafile.inputs[path].imports) {
      if (kind !== "import-statement" || seen.has(next)) continue;
      seen.add(next);
      look(next);
    }
  };
  look(file);
  const imports = Array.from(seen, (path) => `export{}from"./${relative(dirname(file), path)}";`);
  await appendFile(file, imports.join(""));
}

/** The page of `tallyfold dashboard`: whole, compressed, and with names that change with the content. */
export async function commandPage() {
  await rm(PAGE, { recursive: true, force: true });
  await mkdir(PAGE, { recursive: true });
  const { outputFiles, metafile } = await build({
    ...common,
    entryPoints: { dashboard: "dist/dashboard.js" },
    outdir: PAGE,
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    write: false,
    metafile: true,
  });
  for (const { path, contents } of outputFiles) await packed(basename(path), contents);
  // Parts that are loaded later are entry points, too.
  const isEntry = ([, { entryPoint }]) => entryPoint === "dist/dashboard.js";
  const [path, { imports }] = Object.entries(metafile.outputs).find(isEntry);
  const style = await readFile("dashboard/page.css");
  const styleName = `page-${createHash("sha256").update(style).digest("hex").slice(0, 8)}.css`;
  await packed(styleName, style);
  const page = await readFile("dashboard/page.html", "utf8");
  // The browser requests them next to the module that imports them, and not after it.
  const early = imports
    .filter(({ kind }) => kind === "import-statement")
    .map((it) => `<link rel="modulepreload" href="${basename(it.path)}" />\n    `);
  const text = page
    .replace("page.css", styleName)
    .replace("<script", `${early.join("")}<script`)
    .replace("dashboard.js", basename(path));
  await writeFile(join(PAGE, "index.html"), text);
}

/** The widget of notebooks: one module with the elements, the library and its WebAssembly inside. */
export async function notebookWidget() {
  await build({
    ...common,
    splitting: false,
    entryPoints: ["dashboard/notebook.ts"],
    outfile: WIDGET,
    plugins: [
      {
        name: "modules of the package inside",
        setup(own) {
          own.onResolve({ filter: /\/src\/.*\.js$/ }, ({ path }) => ({
            path: resolve("dist", basename(path)),
          }));
        },
      },
    ],
  });
}

async function packed(name, contents) {
  await writeFile(join(PAGE, `${name}.gz`), gzipSync(contents, { level: 9 }));
}

if (process.argv[1] === import.meta.filename) {
  await dashboard();
  await commandPage();
  await notebookWidget();
}

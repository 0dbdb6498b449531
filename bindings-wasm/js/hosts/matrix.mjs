// `make test-hosts`: the packed package in every host that users have. Each has to see the sandbox's counts.
// Words after the command choose hosts: `node hosts/matrix.mjs Deno workerd`.

import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { dirname, extname, join } from "node:path";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { CHROMIUM } from "../test/chromium.mjs";
import { count, DAY, ready, rowsOf } from "../test/dashboard_world.mjs";
import { run } from "../test/installed.mjs";
import { bundlers, sizes } from "./bundlers.mjs";

const here = import.meta.dirname;
const home = join(here, "work");
const tool = (path) => join(here, "node_modules", path);

/** What a user's program does. */
const PROGRAM = `
async function table() {
  const sandbox = new Sandbox({ seed: 3 });
  const client = new Client({
    ...sandbox.credentials,
    clusterEndpoint: "http://localhost",
    fetch: sandbox.fetch,
    dangerouslyAllowBrowser: true,
  });
  const start = "2026-03-01T12:00:00Z";
  const end = "2026-03-01T12:15:00Z";
  return client.eventDelivery({ start, end, dimensions: ["integration"] });
}
async function counts() {
  const { length, totals } = await table();
  const { success, errors, filtered } = totals;
  return [version(), length, success, errors, filtered].join(" ");
}`;
/** The same with requests over HTTP to a sandbox on this machine. */
const PROXIED = `import { Client, Sandbox, version } from "tallyfold";
import { serve } from "tallyfold/node";
const sandbox = new Sandbox({ seed: 3 });
const served = await serve(sandbox);
const client = new Client({ ...sandbox.credentials, clusterEndpoint: served.url, maxRetries: 0 });
try {
  const start = "2026-03-01T12:00:00Z";
  const end = "2026-03-01T12:15:00Z";
  const { length, totals } = await client.eventDelivery({ start, end, dimensions: ["integration"] });
  const { success, errors, filtered } = totals;
  console.log([version(), length, success, errors, filtered].join(" "));
} catch (error) {
  console.log(error.message);
}
await served.close();
process.exit();
`;
const ESM = `import { Client, Sandbox, version } from "tallyfold";\n${PROGRAM}\n`;
const CJS = `const { Client, Sandbox, version } = require("tallyfold");\n${PROGRAM}\n`;
const PAGE = `${ESM}counts().then((it) => { document.title = it; }, (it) => { document.title = it.stack; });`;
const html = (head) => `<!doctype html><meta charset="utf-8">${head}`;
const script = (src) => html(`<script type="module" src="${src}"></script>`);

/** What jsdom lacks, and what to do about it. */
const SENTENCE = /this host has no Response.*jest-fixed-jsdom/;

/** For each host, what it sees. */
const hosts = {
  ...Object.fromEntries(
    ["20", "22", "24"].flatMap((version) => {
      const node = tool(`node${version}/bin/node`);
      return [
        [`Node ${version}, ES module`, () => command(node, ["main.mjs"])],
        [`Node ${version}, CommonJS`, () => command(node, ["main.cjs"])],
      ];
    }),
  ),
  "TypeScript 5.7": () => checked(tool("typescript57/bin/tsc")),
  "TypeScript, newest": () => checked(tool("typescript/bin/tsc")),
  Deno: () =>
    command(tool(".bin/deno"), ["run", "--quiet", "-A", "--node-modules-dir=manual", "main.mjs"]),
  Bun: () => command(tool(".bin/bun"), ["main.mjs"]),
  "Node 24, past a proxy": () => pastProxy(tool("node24/bin/node"), ["proxied.mjs"]),
  "Bun, past a proxy": () => pastProxy(tool(".bin/bun"), ["proxied.mjs"]),
  "Deno, past a proxy": () =>
    pastProxy(tool(".bin/deno"), ["run", "-A", "--node-modules-dir=manual", "proxied.mjs"]),
  workerd,
  vitest: () =>
    command(process.execPath, [
      tool("vitest/vitest.mjs"),
      "run",
      "seen.test.mjs",
      "--silent=false",
    ]),
  "jest, jest-fixed-jsdom": () => jest("jest-fixed-jsdom"),
  // Bare jsdom has no `fetch`: what is missing has to be said.
  "jest, jsdom": () =>
    jest("jsdom").then(
      () => "no error",
      ({ stdout, stderr }) => (SENTENCE.test(stdout + stderr) ? expected : stdout + stderr),
    ),
  ...Object.fromEntries(
    Object.entries(bundlers).map(([name, bundle]) => [name, () => bundled(bundle)]),
  ),
  "page, import map": () =>
    page({
      "/": html(
        `<script type="importmap">{ "imports": { "tallyfold": "/tallyfold/index.js" } }</script>
         <script type="module">${PAGE}</script>`,
      ),
    }),
  "page, strict CSP": () => {
    const policy =
      "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; require-trusted-types-for 'script'";
    return page({ "/": script("/main.js"), "/main.js": besideIt(PAGE) }, policy);
  },
  "page, module worker": () =>
    page({
      "/": html(`<script type="module">
        const worker = new Worker("/worker.js", { type: "module" });
        worker.onmessage = ({ data }) => { document.title = data; };
      </script>`),
      "/worker.js": besideIt(`${ESM}counts().then(postMessage, (it) => postMessage(it.stack));`),
    }),
  "page, on a CPU six times slower": slowPhone,
  Next: next,
  "Next, the guide's dashboard": nextDashboard,
};

const chosen = process.argv.slice(2);
await rm(home, { recursive: true, force: true });
await install();
const browser = await chromium.launch(CHROMIUM);
const expected = (await command(process.execPath, ["main.mjs"])).split("\n").at(-1);
let failed = 0;
const rows = [];
for (const [name, see] of Object.entries(hosts)) {
  if (chosen.length > 0 && !chosen.some((word) => name.includes(word))) continue;
  const seen = await see().catch((error) => [error.message, error.stdout].join("\n"));
  const isRight = seen.includes(expected);
  if (!isRight) failed += 1;
  rows.push([name, isRight ? "ok" : "FAILED", ...(await bytesOf(name))]);
  console.log(`${name}: ${isRight ? "ok" : `FAILED, wanted ${expected}, saw\n${seen}`}`);
}
await browser.close();
print(rows);
console.log(`${rows.length - failed} passed, ${failed} failed`);
if (failed > 0) process.exitCode = 1;
else await rm(home, { recursive: true });

/** A project of a user, with the package in it. */
async function install() {
  const place = join(home, "node_modules/tallyfold");
  await mkdir(place, { recursive: true });
  await run("tar", ["xf", process.env.TALLYFOLD_TARBALL, "-C", place, "--strip-components=1"]);
  const show = "counts().then(console.log);\n";
  await write({
    "package.json": '{ "private": true }',
    "main.mjs": ESM + show,
    "main.cjs": CJS + show,
    "proxied.mjs": PROXIED,
    "page.mjs": PAGE,
    "errorCodes.mjs": 'import { errorCodes } from "tallyfold";\nglobalThis.shown = errorCodes;\n',
    "Client.mjs": 'import { Client } from "tallyfold";\nglobalThis.shown = Client;\n',
    "seen.test.mjs": `import { test } from "vitest";\n${ESM}
      test("it", async () => console.log(await counts()));`,
    "seen.jest.cjs": `${CJS}test("it", async () => console.log(await counts()));`,
    "jest.config.json": '{ "testMatch": ["**/seen.jest.cjs"] }',
  });
}

/** What a program prints. */
async function command(file, given, options) {
  const { stdout, stderr } = await run(file, given, { cwd: home, timeout: 240_000, ...options });
  return `${stdout}${stderr}`.trim();
}

/** What a program prints whose environment sets a proxy. The proxy must see nothing, because the program runs on loopback. */
async function pastProxy(file, given) {
  const seen = [];
  const proxy = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    response.writeHead(502).end();
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${proxy.address().port}`;
  const env = { ...process.env, HTTP_PROXY: url, http_proxy: url, NODE_USE_ENV_PROXY: "1" };
  for (const name of ["NO_PROXY", "no_proxy"]) delete env[name];
  try {
    let text = await command(file, given, { env });
    // Deno has no option for a single request.
    if (text.includes("add 127.0.0.1 to NO_PROXY")) {
      text = await command(file, given, { env: { ...env, NO_PROXY: "127.0.0.1" } });
    }
    return seen.length === 0 ? text : `the proxy saw ${seen.join(", ")}`;
  } finally {
    proxy.close();
  }
}

function jest(environment) {
  const given = [tool("jest/bin/jest.js"), `--env=${environment}`, "seen.jest.cjs"];
  return command(process.execPath, given);
}

/** What `tsc` says of the program, in both module systems: nothing but what is expected. */
async function checked(tsc) {
  const compilerOptions = { strict: true, noEmit: true, module: "nodenext", target: "es2022" };
  const lib = ["es2022", "dom", "dom.iterable"];
  const typed = `${ESM}export const seen: Promise<string> = counts();\n`;
  const files = ["main.mts", "main.cts"];
  const options = { compilerOptions: { ...compilerOptions, lib, types: [] }, files };
  await write({
    "typed/main.mts": typed,
    "typed/main.cts": typed,
    "typed/tsconfig.json": JSON.stringify(options),
  });
  await command(process.execPath, [tsc, "-p", "typed"]);
  return expected;
}

/** Bundled as Cloudflare's own tool does it, in the server that Cloudflare runs. */
async function workerd() {
  const { Miniflare } = await import("miniflare");
  const outdir = join(home, "worker");
  await write({
    "worker.mjs": `${ESM}
      import { exportCounts } from "tallyfold/export";
      async function answer() {
        const counts = await table();
        const csv = exportCounts(counts, { format: "csv" });
        const lines = (await new Response(csv.stream()).text()).trim().split("\\n");
        if (lines.length !== counts.length + 1) throw new Error(lines.join("\\n"));
      }
      export default {
        fetch: () =>
          answer().then(counts).then((it) => new Response(it), (it) => new Response(it.stack)),
      };`,
  });
  await build({
    entryPoints: [join(home, "worker.mjs")],
    outdir,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    format: "esm",
    conditions: ["workerd", "worker", "browser"],
    loader: { ".wasm": "copy" },
    logLevel: "error",
  });
  const miniflare = new Miniflare({
    modules: true,
    rootPath: outdir,
    scriptPath: "worker.mjs",
    modulesRules: [{ type: "CompiledWasm", include: ["**/*.wasm"] }],
    compatibilityDate: "2026-01-01",
  });
  try {
    return await (await miniflare.dispatchFetch("http://localhost/")).text();
  } finally {
    await miniflare.dispose();
  }
}

async function bundled(bundle) {
  return page({ "/": script("/main.js"), "/main.js": await bundle(join(home, "page.mjs")) });
}

/** A page without a bundler and without an import map. */
function besideIt(text) {
  return text.replace('"tallyfold"', '"/tallyfold/index.js"');
}

/** The title that a page sets. */
async function page(files, policy) {
  const server = createServer(async (request, response) => {
    const path = request.url.replace(/^\/tallyfold\//, "");
    const isHtml = extname(path) === "" && path !== "/main.js";
    response.setHeader("content-type", isHtml ? "text/html" : "text/javascript");
    if (policy) response.setHeader("content-security-policy", policy);
    const file = join(home, "node_modules/tallyfold/dist", path);
    response.end(files[request.url] ?? (await readFile(file).catch(() => "")));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await titleOf(`http://127.0.0.1:${server.address().port}/`);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

async function titleOf(url) {
  const tab = await browser.newPage();
  const errors = [];
  tab.on("pageerror", (error) => errors.push(error.message));
  try {
    await tab.goto(url);
    await tab.waitForFunction("document.title !== ''", null, { timeout: 20_000 });
    return await tab.title();
  } catch (error) {
    throw new Error([error.message, ...errors].join("\n"));
  } finally {
    await tab.close();
  }
}

/**
 * How long the main thread is held up at a time, at most, by a page that imports `Client` and awaits a call. It is
 * the least of up to 20 runs, because other programs take their part of the CPU. A browser reports what takes
 * longer than 50 ms.
 */
async function slowPhone() {
  const { Sandbox } = await import(join(home, "node_modules/tallyfold/dist/index.js"));
  const { serve } = await import(join(home, "node_modules/tallyfold/dist/node.js"));
  const served = await serve(new Sandbox({ seed: 3 }));
  const { clientId, clientSecret, controlAudience } = new Sandbox({ seed: 3 }).credentials;
  const response = await fetch(`${served.url}/v1.1/oauth/token`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      client_id: clientId,
      client_secret: clientSecret,
      audience: controlAudience,
    }),
  });
  const { access_token: accessToken } = await response.json();
  await write({
    "slow.mjs": `import { Client } from "tallyfold";
      const longest = [0];
      const see = (list) => longest.push(...list.getEntries().map(({ duration }) => duration));
      new PerformanceObserver(see).observe({ type: "longtask", buffered: true });
      const token = { accessToken: ${JSON.stringify(accessToken)}, expiresIn: 600 };
      const clusterEndpoint = ${JSON.stringify(served.url)};
      const client = new Client({ clusterEndpoint, accessToken: async () => token });
      const start = "2026-03-01T12:00:00Z";
      const end = "2026-03-01T12:15:00Z";
      const table = await client.eventDelivery({ start, end, dimensions: ["integration"] });
      const seen = () => [table.length, Math.round(Math.max(...longest))].join(" ");
      setTimeout(() => fetch("/seen/" + seen()), 500);`,
  });
  const text = await bundlers.esbuild(join(home, "slow.mjs"));
  let seen;
  const server = createServer((request, response) => {
    if (request.url.startsWith("/seen/")) seen(decodeURI(request.url.slice(6)));
    const isScript = request.url === "/main.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? text : request.url === "/" ? script("/main.js") : "");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}/`;
  const longest = [];
  for (let round = 0; round < 20 && longest.at(-1) !== 0; round++) {
    const tab = await browser.newPage();
    await tab.goto(`${url}empty`);
    const session = await tab.context().newCDPSession(tab);
    await session.send("Emulation.setCPUThrottlingRate", { rate: 6 });
    const result = new Promise((resolve) => {
      seen = resolve;
    });
    await tab.goto(url);
    const [rows, ms] = (await result).split(" ").map(Number);
    if (rows !== 30) return `${rows} rows`;
    longest.push(ms);
    await tab.close();
  }
  server.close();
  server.closeAllConnections();
  await served.close();
  console.log(`longest task of each run: ${longest.map((ms) => ms || "at most 50").join(", ")} ms`);
  return Math.min(...longest) <= 50 ? expected : `${Math.min(...longest)} ms`;
}

/** A component of the server and one of the page, each of which has to see the counts. */
async function next() {
  await write({
    "next.config.mjs": `export default { turbopack: { root: ${JSON.stringify(here)} } };`,
    "app/layout.jsx": `export default function Layout({ children }) {
      return <html><body>{children}</body></html>;
    }`,
    "app/page.jsx": `${ESM}
      import { Page } from "./client.jsx";
      export const dynamic = "force-dynamic";
      export default async function Home() {
        return <><p>{await counts()}</p><Page /></>;
      }`,
    "app/client.jsx": `"use client";
      import { useEffect } from "react";
      ${ESM}
      export function Page() {
        useEffect(() => { counts().then((it) => { document.title = it; }); }, []);
        return null;
      }`,
  });
  return nextServes(home, {}, async (url) => {
    const served = await (await fetch(url)).text();
    if (!served.includes(expected)) return `server: ${served}`;
    return await titleOf(url);
  });
}

/** The program of the guide: the total in its page is what the library counts. */
async function nextDashboard() {
  const { Client, Sandbox } = await import(join(home, "node_modules/tallyfold/dist/index.js"));
  const { serve } = await import(join(home, "node_modules/tallyfold/dist/node.js"));
  const sandbox = new Sandbox({ seed: 3 });
  const served = await serve(sandbox);
  try {
    const folder = "next-dashboard";
    const text = await readFile(join(here, "../../../docs/guides/dashboard/next.md"), "utf8");
    for (const [, name, block] of text.matchAll(/^```\w+ title="([^"]+)"\n(.*?)^```$/gms)) {
      await write({ [`${folder}/${name}`]: block });
    }
    const settings = `export default { turbopack: { root: ${JSON.stringify(here)} } };`;
    await write({
      [`${folder}/next.config.mjs`]: settings,
      [`${folder}/package.json`]: '{ "private": true }',
    });
    const credentials = { ...sandbox.credentials, clusterEndpoint: served.url };
    const given = Object.entries(credentials).map(([name, value]) => {
      return [`TALLYFOLD_${name.replace(/[A-Z]/g, "_$&").toUpperCase()}`, String(value)];
    });
    const { totals } = await new Client(credentials).collect({
      ...DAY,
      metric: "event_delivery",
      dimensions: ["integration"],
      window: "15m",
    });
    const wanted = [totals.errors, totals.filtered, totals.success].map(count);
    const seen = await nextServes(join(home, folder), Object.fromEntries(given), async (url) => {
      const tab = await browser.newPage();
      await tab.goto(`${url}/#range=${DAY.start}/${DAY.end}`);
      await tab.locator("tallyfold-dashboard .reading").waitFor({ state: "attached" });
      await ready(tab);
      return (await rowsOf(tab)).at(-1).slice(1);
    });
    return String(seen) === String(wanted) ? expected : `${seen}, not ${wanted}`;
  } finally {
    await served.close();
  }
}

/** Builds a project of Next, starts it, and gives what is seen at its address. */
async function nextServes(cwd, more, see) {
  const cli = tool("next/dist/bin/next");
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: "1" };
  await command(process.execPath, [cli, "build"], { cwd, env });
  const { spawn } = await import("node:child_process");
  const given = [cli, "start", "-p", "0", "-H", "127.0.0.1"];
  const server = spawn(process.execPath, given, { cwd, env: { ...env, ...more } });
  try {
    const url = await new Promise((resolve, reject) => {
      let text = "";
      server.stdout.on("data", (data) => {
        text += data;
        const [found] = text.match(/http:\/\/127\.0\.0\.1:\d+/) ?? [];
        if (found) resolve(found);
      });
      server.on("exit", () => reject(new Error(text)));
    });
    return await see(url);
  } finally {
    server.kill();
  }
}

async function write(files) {
  for (const [name, text] of Object.entries(files)) {
    const path = join(home, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
}

/** The bytes of `Client` and of `errorCodes`, where a bundler makes them. */
async function bytesOf(name) {
  if (!(name in bundlers)) return ["", ""];
  const shown = async (entry) => {
    const { bytes, gzip, brotli } = sizes(await bundlers[name](join(home, `${entry}.mjs`)));
    return [bytes, gzip, brotli].map((it) => it.toLocaleString("en")).join(" / ");
  };
  return [await shown("Client"), await shown("errorCodes")];
}

function print(rows) {
  const all = [["host", "", "Client: bytes / gzip / brotli", "errorCodes"], ...rows];
  const widths = all[0].map((_, at) => Math.max(...all.map((row) => row[at].length)));
  for (const row of all) {
    console.log(
      row
        .map((cell, at) => cell.padEnd(widths[at]))
        .join("  ")
        .trimEnd(),
    );
  }
}

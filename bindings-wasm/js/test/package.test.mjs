// The packed tarball, used as a stranger would: from an ES module, from CommonJS, through Vite
// and in Chromium.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { build } from "vite";

const run = promisify(execFile);
const tarball = process.env.TALLYFOLD_TARBALL;
const { version } = JSON.parse(await readFile(new URL("../package.json", import.meta.url)));

describe("the packed package", () => {
  let home;

  before(async () => {
    assert.ok(tarball, "TALLYFOLD_TARBALL names the packed package");
    home = await mkdtemp(join(tmpdir(), "tallyfold-package-"));
    await writeFile(join(home, "package.json"), '{ "private": true }');
    await run("npm", ["install", "--offline", "--no-audit", "--no-fund", tarball], { cwd: home });
  });
  after(() => rm(home, { recursive: true, force: true }));

  test("works in an ES module", async () => {
    const script = 'import { version } from "tallyfold"; console.log(version());';
    assert.equal(await output("main.mjs", script), version);
  });

  test("works in a CommonJS script", async () => {
    const script = 'const { version } = require("tallyfold"); console.log(version());';
    assert.equal(await output("main.cjs", script), version);
  });

  test("has a command", async () => {
    const { stdout } = await run("npx", ["--offline", "tallyfold", "--version"], { cwd: home });
    assert.equal(stdout.trim(), `tallyfold ${version}`);
  });

  test("works in a page that Vite built", async () => {
    const page = 'import { version } from "tallyfold"; document.title = version();';
    const root = join(home, "page");
    await mkdir(root);
    await writeFile(join(root, "index.html"), '<script type="module" src="./main.js"></script>');
    await writeFile(join(root, "main.js"), page);
    await build({ root, logLevel: "error" });
    await inChromium(join(root, "dist"), async (tab) => {
      await tab.waitForFunction("document.title !== ''");
      assert.equal(await tab.title(), version);
    });
  });

  test("works in a page without a bundler", async () => {
    const root = join(home, "node_modules/tallyfold/dist");
    await inChromium(root, async (tab) => {
      const found = await tab.evaluate("import('/index.js').then((it) => it.version())");
      assert.equal(found, version);
    });
  });

  async function output(name, script) {
    await writeFile(join(home, name), script);
    const { stdout } = await run(process.execPath, [name], { cwd: home });
    return stdout.trim();
  }
});

/** Serves `root` on loopback, opens it in Chromium and fails on any error of the page. */
async function inChromium(root, look) {
  const types = { ".html": "text/html", ".js": "text/javascript" };
  const server = createServer(async (request, response) => {
    const path = request.url === "/" ? "/index.html" : request.url;
    const body = await readFile(join(root, path)).catch(() => "");
    response.setHeader("content-type", types[extname(path)] ?? "text/plain");
    response.end(body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  try {
    const tab = await browser.newPage();
    const errors = [];
    tab.on("pageerror", (error) => errors.push(error));
    await tab.goto(`http://127.0.0.1:${server.address().port}/`);
    await look(tab);
    assert.deepEqual(errors, []);
  } finally {
    await browser.close();
    server.close();
  }
}

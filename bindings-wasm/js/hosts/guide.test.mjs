// The programs of the guide's pages about the dashboard, as they stand there, with the packed package: bundled, type-checked
// and opened in Chromium. What is on the screen is what the library gives for the same question.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer as createSocket } from "node:net";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { build, createServer, preview } from "vite";
import { Client, Sandbox } from "../dist/index.js";
import { serve } from "../dist/node.js";
import { CHROMIUM, PAGE_MS } from "../test/chromium.mjs";
import { count, DAY, ready, rowsOf } from "../test/dashboard_world.mjs";

const run = promisify(execFile);
const here = dirname(fileURLToPath(import.meta.url));
const docs = join(here, "../../../docs");
const python = process.env.PYTHON ?? join(here, "../../../.venv/bin/python");
const { resolve } = createRequire(import.meta.url);

describe("the guide's dashboard", () => {
  let home;
  let browser;
  let served;
  let client;
  const env = { ...process.env };

  before(async () => {
    assert.ok(process.env.TALLYFOLD_TARBALL, "TALLYFOLD_TARBALL names the packed package");
    // Here, so that the programs find the frameworks.
    home = await mkdtemp(join(here, "work-"));
    const place = join(home, "node_modules/tallyfold");
    await mkdir(place, { recursive: true });
    await run("tar", ["xf", process.env.TALLYFOLD_TARBALL, "-C", place, "--strip-components=1"]);
    await writeFile(join(home, "package.json"), '{ "private": true, "type": "module" }');
    browser = await chromium.launch(CHROMIUM);
    const sandbox = new Sandbox({ seed: 3 });
    served = await serve(sandbox);
    client = new Client({ ...sandbox.credentials, clusterEndpoint: served.url });
    for (const [name, value] of Object.entries(sandbox.credentials)) {
      env[`TALLYFOLD_${name.replace(/[A-Z]/g, (it) => `_${it}`).toUpperCase()}`] = value;
    }
    env.TALLYFOLD_CLUSTER_ENDPOINT = served.url;
  });
  after(async () => {
    await browser?.close();
    await served?.close();
    // A program that has just been stopped may still write.
    if (home) await rm(home, { recursive: true, maxRetries: 20 });
  });

  /** The files of a page: blocks of code that have a title. */
  async function written(page, change = (text) => text) {
    const folderOfPage = page === "page" ? "start" : "guides/dashboard";
    const text = await readFile(join(docs, folderOfPage, `${page}.md`), "utf8");
    const blocks = [...text.matchAll(/^```\w+ title="([^"]+)"\n(.*?)^```$/gms)];
    assert.ok(blocks.length > 0, `${page}.md has no files`);
    const folder = join(home, page);
    for (const [, name, block] of blocks) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), change(block));
    }
    return folder;
  }

  /** Starts a program, which ends with the test; gives the address that it prints, or undefined if it prints nothing. */
  function started(t, cwd, file, given, more = {}) {
    const program = spawn(file, given, { cwd, env: { ...env, ...more } });
    t.after(() => program.kill());
    return new Promise((resolve, reject) => {
      const all = [];
      for (const input of [program.stdout, program.stderr]) {
        createInterface({ input }).on("line", (line) => {
          all.push(line);
          const [address] = line.match(/http:\/\/127\.0\.0\.1:\d+/) ?? [];
          if (address) resolve(address);
        });
      }
      program.on("exit", () => reject(new Error(all.join("\n"))));
      program.on("error", reject);
    });
  }

  async function opened(t, address, range = DAY) {
    const tab = await browser.newPage();
    tab.setDefaultTimeout(PAGE_MS);
    const errors = [];
    tab.on("pageerror", (error) => errors.push(error));
    t.after(async () => {
      await tab.close();
      assert.deepEqual(errors, []);
    });
    await tab.goto(`${address}/#range=${range.start}/${range.end}`);
    await tab.locator("tallyfold-dashboard .reading").waitFor({ state: "attached" });
    await ready(tab);
    return tab;
  }

  /** The counts of the ranked table are the library's, digit for digit. */
  async function assertCounts(tab) {
    const table = await client.collect({
      ...DAY,
      metric: "event_delivery",
      dimensions: ["integration"],
      window: "15m",
    });
    const cells = ({ errors, filtered, success }) => [errors, filtered, success].map(count);
    const ranked = table.groupBy("integration").top(12, { by: "undelivered" });
    assert.deepEqual(await rowsOf(tab), [
      ...ranked.map((row) => [row.dimensions.integration, ...cells(row)]),
      ["All destinations", ...cells(table.totals)],
    ]);
    return ranked[0].dimensions.integration;
  }

  /** A page of Vite, as it is while one develops, and as it is built. */
  async function bundled(t, page) {
    const port = await freePort();
    const folder = await written(page, (text) => text.replaceAll("8000", port));
    const program = spawn(process.execPath, ["server.mjs"], { cwd: folder, env, stdio: "inherit" });
    t.after(() => program.kill());
    const options = { root: folder, logLevel: "error" };
    const listen = { port: 0, host: "127.0.0.1" };
    const developed = await createServer({ ...options, server: listen });
    t.after(() => developed.close());
    await developed.listen();
    await build(options);
    const built = await preview({ ...options, preview: listen });
    t.after(() => built.close());
    await listening(port);
    for (const { resolvedUrls } of [developed, built]) {
      const tab = await opened(t, resolvedUrls.local[0].replace(/\/$/, ""));
      const first = await assertCounts(tab);
      assert.equal(
        await tab.locator("tallyfold-dashboard h1, h2").first().textContent(),
        "Deliveries",
      );
      await tab.locator("tallyfold-destinations").getByRole("button", { name: first }).click();
      await ready(tab);
      assert.equal(await tab.locator("#chosen").textContent(), `Last chosen: ${first}`);
    }
    return folder;
  }

  test("in a plain page", async (t) => {
    const folder = await written("page");
    // From another folder, and also for what is not there.
    const address = await started(t, home, process.execPath, [join(folder, "server.mjs")], {
      PORT: "0",
    });
    await assertCounts(await opened(t, address));
    for (const missing of ["/none", "/modules/none.js", "/modules/../server.mjs", "/constructor"]) {
      assert.equal((await fetch(address + missing)).status, 404, missing);
    }
  });

  test("in React, typed", async (t) => {
    const folder = await bundled(t, "react");
    await writeFile(
      join(folder, "src/wrong.tsx"),
      `import "tallyfold/dashboard/react";
      // @ts-expect-error A unit that there is not.
      export const unit = <tallyfold-trend unit="events" />;
      // @ts-expect-error The event has no such detail.
      export const event = <tallyfold-reasons ontallyfold-select={({ detail }) => detail.name} />;
      // @ts-expect-error A view has no address.
      export const address = <tallyfold-heatmap address="hash" />;
      // @ts-expect-error The elements have other names.
      export const name = <tallyfold-table />;
      export const right = <tallyfold-heatmap by="write_key" unit="percent" className="wide" key="1" />;`,
    );
    await checked(folder, { jsx: "react-jsx" }, [resolve("typescript57/bin/tsc")]);
  });

  test("in Vue, typed", async (t) => {
    const folder = await bundled(t, "vue");
    await writeFile(
      join(folder, "src/Wrong.vue"),
      `<script setup lang="ts">
      import "tallyfold/dashboard/vue";
      </script>
      <template>
        <!-- @vue-expect-error A unit that there is not. -->
        <tallyfold-trend unit="events" />
        <!-- @vue-expect-error The event has no such detail. -->
        <tallyfold-reasons @tallyfold-select="(event) => event.detail.name" />
        <tallyfold-heatmap by="write_key" unit="percent" class="wide" :key="1" />
      </template>`,
    );
    const start = `require("vue-tsc").run(${JSON.stringify(resolve("typescript57/lib/tsc"))})`;
    await writeFile(join(here, "vue_tsc.cjs"), start);
    t.after(() => rm(join(here, "vue_tsc.cjs")));
    await checked(folder, {}, [join(here, "vue_tsc.cjs")]);
  });

  test("in FastAPI", async (t) => {
    const folder = await written("fastapi");
    const packages = join(folder, "node_modules");
    await mkdir(packages);
    await run("ln", ["-s", join(home, "node_modules/tallyfold"), packages]);
    const given = ["-m", "uvicorn", "main:app", "--port", "0"];
    const address = await started(t, folder, python, given);
    await assertCounts(await opened(t, address));
  });

  test("with a theme", async (t) => {
    const folder = await written("page");
    const theme = await written("themes");
    for (const file of ["index.html", "style.css"]) {
      await writeFile(join(folder, file), await readFile(join(theme, file)));
    }
    const address = await started(t, folder, process.execPath, ["server.mjs"], { PORT: "0" });
    const tab = await opened(t, address);
    await assertCounts(tab);
    const looks = () =>
      tab.locator("tallyfold-dashboard").evaluate((it) => {
        const tab = it.shadowRoot.querySelector("[aria-selected=true]");
        const view = it.shadowRoot.querySelector("tallyfold-destinations");
        const style = getComputedStyle(view.shadowRoot.querySelector("[part=title]"));
        return [
          style.fontFamily,
          style.letterSpacing !== "normal",
          getComputedStyle(tab).borderBottomColor,
        ];
      });
    assert.deepEqual(await looks(), ["Georgia, serif", true, "rgb(10, 107, 94)"]);
    await tab.emulateMedia({ colorScheme: "dark" });
    assert.deepEqual(await looks(), ["Georgia, serif", true, "rgb(95, 208, 189)"]);
  });

  /** What a compiler of TypeScript says of a folder: nothing. */
  async function checked(folder, options, compiler) {
    const compilerOptions = {
      ...{ strict: true, noEmit: true, target: "es2022", module: "esnext", types: [] },
      ...{ moduleResolution: "bundler", lib: ["esnext", "dom", "dom.iterable"] },
      ...options,
    };
    const text = JSON.stringify({ compilerOptions, include: ["src"] });
    await writeFile(join(folder, "tsconfig.json"), text);
    await run(process.execPath, [...compiler, "-p", folder], { cwd: folder }).catch((error) => {
      assert.fail(error.stdout + error.stderr);
    });
  }
});

/** A port that nobody listens on. */
async function freePort() {
  const socket = createSocket();
  await new Promise((resolve) => socket.listen(0, "127.0.0.1", resolve));
  const { port } = socket.address();
  await new Promise((resolve) => socket.close(resolve));
  return port;
}

/** Until a server answers at a port. */
async function listening(port) {
  for (const end = Date.now() + PAGE_MS; Date.now() < end; ) {
    if (await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined)) return;
  }
  throw new Error(`nobody listens on port ${port}`);
}

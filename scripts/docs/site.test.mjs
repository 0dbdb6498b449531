// Tests the built site as its readers see it: nothing is loaded from elsewhere, nothing is cut off, and axe finds no violation.

import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { CHROMIUM, PAGE_MS } from "../../bindings-wasm/js/test/chromium.mjs";

const require = createRequire(import.meta.url);
const tools = createRequire(new URL("../../bindings-wasm/js/package.json", import.meta.url));
const { chromium } = tools("playwright-core");
const axe = require.resolve("axe-core/axe.min.js");
const folder = fileURLToPath(new URL("../../site", import.meta.url));
const site = "http://docs.example";
const all = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".html"));
// The pages of JavaScript's classes and functions have the same layout, so a few of them are enough. Rustdoc has its own look.
const pages = all.filter(
  (name) =>
    !name.startsWith("reference/rust/") && (!name.startsWith("reference/js/") || /\/(index|Client|CountTable)\.html$/.test(name)),
);
const looks = [
  [1280, "light"],
  [400, "dark"],
];

describe("the page", () => {
  let browser;
  /** For each look, one browser page that opens file after file, and the addresses that it has requested elsewhere. */
  const readers = [];
  before(async () => {
    browser = await chromium.launch(CHROMIUM);
    for (const [width, colorScheme] of looks) {
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
      page.setDefaultTimeout(PAGE_MS);
      const foreign = [];
      await page.route("**", (route) => {
        const { origin, pathname } = new URL(route.request().url());
        const path = folder + pathname;
        if (origin === site && existsSync(path)) return route.fulfill({ path });
        foreign.push(route.request().url());
        return route.abort();
      });
      readers.push({ page, foreign, look: `${width} wide, ${colorScheme}` });
    }
  });
  after(() => browser.close());

  for (const name of pages) {
    test(name, async () => {
      const read = async ({ page, foreign, look }) => {
        await page.goto(`${site}/${name}`);
        assert.deepEqual(foreign.splice(0), []);
        assert.ok(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"));
        // Python's examples must be code. Markdown renders `>>>` as a quotation.
        if (name.startsWith("reference/python")) {
          assert.equal(await page.locator("blockquote").count(), 0);
        }
        if (name === "reference/python-tables.html") {
          assert.ok((await page.locator(".highlight").count()) > 20);
        }
        if (name === "reference/python-sandbox.html") {
          for (const member of ["record", "inject", "credentials", "stats", "revoke_tokens"]) {
            assert.equal(await page.locator(`[id="tallyfold.Sandbox.${member}"]`).count(), 1, member);
          }
          const argument = (of) => page.locator("tr.doc-section-item", { hasText: of }).last();
          assert.match(await argument("the seed of generated traffic").innerText(), /None\s*$/);
          assert.match(await argument("the write key of their source").innerText(), /required\s*$/);
        }
        // Angle brackets of types are shown without a backslash.
        assert.ok(!(await page.locator("article").innerText()).includes("\\<"));
        // Reference pages are long and look alike, so axe checks them in only one look.
        if (name.startsWith("reference/") && look !== looks.at(-1).join(" wide, ")) return;
        await page.addScriptTag({ path: axe });
        const { violations } = await page.evaluate(`axe.run({ resultTypes: ["violations"] })`);
        const found = violations.map(({ id, nodes }) => [id, nodes.length, nodes[0].html]);
        assert.deepEqual(found, [], look);
      };
      await Promise.all(readers.map(read));
    });
  }

  test("copies commands without prompts and output", async () => {
    const [{ page }] = readers;
    await page.goto(`${site}/cli/run.html`);
    await page.evaluate(() => {
      window.copied = "";
      navigator.clipboard = undefined;
      document.addEventListener("copy", () => (window.copied = getSelection().toString() || document.activeElement.value));
    });
    const block = page.locator(".highlight", { hasText: "$ tallyfold run" }).first();
    await block.getByRole("button").first().click();
    const copied = await page.evaluate("copied");
    assert.ok(copied.startsWith("tallyfold run --config"), copied);
    assert.ok(!copied.includes("serving"), copied);
  });

  test("is there for each guide", () => assert.ok(pages.length > 15));
});

// demo-dashboard.mjs URL TABLE PICTURE: opens `tallyfold dashboard` in Chromium, prints its row of totals, and writes a picture. Fails
// if the counts differ from the table that the command has saved for the same range.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { CHROMIUM } from "../bindings-wasm/js/test/chromium.mjs";
import { count, ready, rowsOf } from "../bindings-wasm/js/test/dashboard_world.mjs";

const tools = new URL("../bindings-wasm/js/package.json", import.meta.url);
const { chromium } = createRequire(tools)("playwright-core");
const [url, table, picture] = process.argv.slice(2);
const { totals } = JSON.parse(readFileSync(table, "utf8")).clusters[0];

const browser = await chromium.launch(CHROMIUM);
try {
  const viewport = { width: 1280, height: 900 };
  const tab = await browser.newPage({ viewport, locale: "en", deviceScaleFactor: 2 });
  tab.setDefaultTimeout(120_000);
  await tab.goto(url);
  await ready(tab);
  const shown = (await rowsOf(tab)).at(-1);
  const expected = ["errors", "filtered", "success"].map((name) => count(BigInt(totals[name])));
  assert.deepEqual(shown, ["All destinations", ...expected]);
  const [, failed, filtered, delivered] = shown;
  console.log(`${shown[0]}: ${delivered} delivered, ${failed} failed, ${filtered} filtered`);
  await tab.screenshot({ path: picture });
} finally {
  await browser.close();
}

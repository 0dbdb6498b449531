// demo-page.mjs URL TABLE PICTURE: opens the dashboard in Chromium, prints what it shows, and writes
// its table as JSON and a picture of it.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { CHROMIUM } from "../bindings-wasm/js/test/chromium.mjs";

const tools = new URL("../bindings-wasm/js/package.json", import.meta.url);
const { chromium } = createRequire(tools)("playwright-core");
const [url, table, picture] = process.argv.slice(2);

const browser = await chromium.launch(CHROMIUM);
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(120_000);
  await page.goto(url.trim());
  await page.waitForSelector("body[data-ready]");
  console.log(await page.innerText("body"));
  writeFileSync(table, await page.evaluate("saved"));
  await page.screenshot({ path: picture, fullPage: true });
} finally {
  await browser.close();
}

// Pictures of the dashboard: which there are, and how they are taken. `node test/dashboard_pictures.mjs` writes those of the docs
// and those that the tests compare.

import { mkdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { CHROMIUM } from "./chromium.mjs";
import { World } from "./dashboard_world.mjs";

/** The pictures that the tests compare. */
export const COMPARED = {
  "dashboard-light": { width: 1280, colorScheme: "light" },
  "dashboard-dark": { width: 1280, colorScheme: "dark" },
  "dashboard-phone": { width: 390, colorScheme: "light" },
  pipeline: { width: 1280, colorScheme: "light", view: "tallyfold-pipeline" },
};

/** The pictures of the docs. */
const SHOWN = {
  "dashboard-light": { width: 1280, colorScheme: "light" },
  "dashboard-dark": { width: 1280, colorScheme: "dark" },
  "dashboard-phone-light": { width: 390, colorScheme: "light" },
  "dashboard-phone-dark": { width: 390, colorScheme: "dark" },
};

/** Where the pictures are that the tests compare. */
export const compared = (name) => new URL(`pictures/${name}.png`, import.meta.url);

/** A picture of a world as PNG. With `isMasked`, text and charts are drawn as bars. */
export async function pictureOf(browser, world, { width, colorScheme, view }, isMasked) {
  const tab = await world.open(browser, { viewport: { width, height: 900 }, colorScheme });
  try {
    if (isMasked) await tab.evaluate(mask);
    const target = view ? tab.locator(view).first() : tab;
    return await target.screenshot({ animations: "disabled", ...(view ? {} : { fullPage: true }) });
  } finally {
    await tab.context().close();
  }
}

/** Draws each text as a bar, with characters of one width, and each chart as a box: machines have different fonts. */
async function mask() {
  const style = new CSSStyleSheet();
  style.replaceSync(`*, *::before, *::after, *::placeholder {
    color: transparent !important;
    font: 12px / 18px monospace !important;
    letter-spacing: 0 !important;
    text-decoration: line-through 10px #888 !important;
  }
  svg { background: #888 !important; }
  canvas { visibility: hidden !important; }`);
  const all = (root) => {
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, style];
    for (const { shadowRoot } of root.querySelectorAll("*")) if (shadowRoot) all(shadowRoot);
  };
  all(document);
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
}

if (process.argv[1] === import.meta.filename) {
  const browser = await chromium.launch(CHROMIUM);
  const world = await new World().listen();
  await mkdir(new URL("pictures/", import.meta.url), { recursive: true });
  for (const [name, options] of Object.entries(COMPARED)) {
    await writeFile(compared(name), await pictureOf(browser, world, options, true));
  }
  const docs = fileURLToPath(new URL("../../../docs/images/", import.meta.url));
  for (const [name, options] of Object.entries(SHOWN)) {
    await writeFile(`${docs}${name}.png`, await pictureOf(browser, world, options, false));
  }
  world.close();
  await browser.close();
}

// The custom properties that the guide names, in Chromium: each changes what the guide says, and there are no others.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { chromium } from "playwright-core";
import { CHROMIUM } from "./chromium.mjs";
import { ready, World } from "./dashboard_world.mjs";

const guide = await readFile(
  new URL("../../../docs/guides/dashboard/themes.md", import.meta.url),
  "utf8",
);
const [, example] = guide.match(/^```css title="style.css"\n(.*?)^```$/ms);
/** The properties of the table: `--tallyfold-share-0` to `--tallyfold-share-7` are eight. */
const documented = guide
  .split("\n")
  .filter((line) => line.startsWith("| `--"))
  .flatMap((line) => {
    const [, names] = line.split("|");
    const range = names.match(/`(--[\w-]+?)(\d)` to `\1(\d)`/);
    if (!range) return [...names.matchAll(/`(--[\w-]+)`/g)].map(([, name]) => name);
    const [, name, from, to] = range;
    return Array.from({ length: to - from + 1 }, (_, at) => `${name}${Number(from) + at}`);
  });

describe("a theme of the dashboard", () => {
  let browser;
  let world;
  before(async () => {
    browser = await chromium.launch(CHROMIUM);
    world = new World();
    // A window that fails has a notice.
    world.fails = (body) => body.includes('"start":"2026-03-10T06:00');
    await world.listen();
  });
  after(async () => {
    world.close();
    await browser.close();
  });

  async function opened(t, options) {
    const tab = await world.open(browser, options);
    t.after(() => tab.context().close());
    return tab;
  }

  /** Adds a stylesheet to the page. */
  const styled = (tab, text) =>
    tab.evaluate((text) => {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(text);
      document.adoptedStyleSheets = [sheet];
    }, text);

  /** Properties of the style of what matches in the dashboard, also inside of its views. */
  const styleOf = (tab, selector, ...names) =>
    tab
      .locator(selector)
      .first()
      .evaluate((it, names) => names.map((name) => getComputedStyle(it)[name]), names);

  test("of the guide sets the backgrounds, colours, font and corners", async (t) => {
    const tab = await opened(t, { colorScheme: "light", hash: "event_name=Account+Clicked" });
    await styled(tab, example);
    const scheme = {
      light: {
        background: "rgb(251, 250, 247)",
        soft: "rgb(226, 243, 240)",
        accent: "rgb(10, 107, 94)",
      },
      dark: { background: "rgb(21, 20, 15)", soft: "rgb(20, 53, 48)", accent: "rgb(95, 208, 189)" },
    };
    for (const [colorScheme, { background, soft, accent }] of Object.entries(scheme)) {
      await tab.emulateMedia({ colorScheme });
      const dashboard = await styleOf(tab, "tallyfold-dashboard", "backgroundColor", "fontFamily");
      assert.deepEqual(dashboard, [background, "Georgia, serif"]);
      assert.deepEqual(
        await styleOf(tab, "tallyfold-dashboard [aria-selected=true]", "borderBottomColor"),
        [accent],
      );
      assert.deepEqual(await styleOf(tab, "tallyfold-dashboard .crumb", "backgroundColor"), [soft]);
    }
    // The page has no other colour beneath the dashboard.
    await tab.setViewportSize({ width: 1280, height: 5_000 });
    const height = await tab
      .locator("tallyfold-dashboard")
      .evaluate((it) => [it.offsetHeight, innerHeight]);
    assert.ok(height[0] >= height[1], `${height}`);
    const corners = {
      "tallyfold-pipeline .card": "2px",
      "tallyfold-dashboard .notice": "2px",
      "tallyfold-dashboard .refresh": "1.5px",
      "tallyfold-dashboard .segments": "2px",
      "tallyfold-dashboard .segments button": "1.5px",
      "tallyfold-dashboard .crumb": "1.5px",
      "tallyfold-dashboard .picker > button": "1.5px",
      "tallyfold-destinations input[type=search]": "1.5px",
    };
    for (const [selector, radius] of Object.entries(corners)) {
      assert.deepEqual(await styleOf(tab, selector, "borderTopLeftRadius"), [radius], selector);
    }
  });

  test("has square corners everywhere with a radius of 0, and the usual ones without", async (t) => {
    const tab = await opened(t);
    const radii = () => tab.evaluate(seen, ["borderTopLeftRadius", "borderTopRightRadius"]);
    assert.deepEqual((await radii()).sort(), ["0px", "2px", "3px", "6px", "8px"]);
    await styled(tab, ":root { --tallyfold-radius: 0px }");
    assert.deepEqual(await radii(), ["0px"]);
  });

  test("has only properties that do something, each of them documented", async (t) => {
    const used = new Set();
    for (const file of await readdir(new URL("../dashboard/", import.meta.url))) {
      const text = await readFile(new URL(`../dashboard/${file}`, import.meta.url), "utf8");
      for (const [name] of text.matchAll(/--tallyfold-[\w-]+/g)) used.add(name);
    }
    used.delete("--tallyfold-");
    assert.deepEqual([...used].sort(), documented.toSorted());
    const tab = await opened(t);
    const names = [
      "backgroundColor",
      "color",
      "borderTopColor",
      "fill",
      "fontFamily",
      "borderTopLeftRadius",
    ];
    const done = new Set();
    for (const hash of ["view=overview", "view=time", "view=time&heatmap.colour=change"]) {
      await tab.evaluate((hash) => {
        location.hash = hash;
      }, hash);
      await ready(tab);
      await tab.evaluate(open);
      for (const name of documented) {
        const value =
          { radius: "17px", font: "Marked", mono: "Marked" }[name.slice(12)] ?? "rgb(1, 2, 3)";
        await styled(tab, `:root { ${name}: ${value} }`);
        if ((await tab.evaluate(seen, names)).includes(value)) done.add(name);
      }
    }
    assert.deepEqual(
      documented.filter((name) => !done.has(name)),
      [],
    );
  });
});

/** Opens the menus of all views. */
async function open() {
  const all = (root) =>
    [...root.querySelectorAll("*")].flatMap((it) => [
      it,
      ...(it.shadowRoot ? all(it.shadowRoot) : []),
    ]);
  for (const it of all(document)) if (it.localName === "details") it.open = true;
  for (let frame = 0; frame < 10; frame++) await new Promise((done) => requestAnimationFrame(done));
}

/** The values that properties of styles have in any element, of the dashboard and of the views in it. */
function seen(names) {
  const values = new Set();
  const visit = (element) => {
    const style = getComputedStyle(element);
    for (const name of names) values.add(style[name]);
    for (const child of element.shadowRoot?.querySelectorAll("*") ?? []) visit(child);
  };
  visit(document.querySelector("tallyfold-dashboard"));
  return [...values];
}

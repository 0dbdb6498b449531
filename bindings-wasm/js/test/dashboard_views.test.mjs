// The views of the dashboard in Chromium: what they show is what the library gives, digit for digit.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { basename, extname } from "node:path";
import { after, before, describe, test } from "node:test";
import { AxeBuilder } from "@axe-core/playwright";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { Client, CountTable, compare, Sandbox } from "tallyfold";
import { explain, Rules } from "tallyfold/health";
import { CHROMIUM, PAGE_MS } from "./chromium.mjs";
import { count, share } from "./dashboard_world.mjs";
import * as world from "./views_world.mjs";

const { BEFORE, FAILING, HOSTILE, INCIDENT, RANGE } = world;
const VIEWS = {
  heatmap: "Heatmap",
  trend: "Trend",
  cause: "Cause",
  values: "Values",
  silent: "Silent",
  corrections: "Corrections",
  budget: "Budget",
  timeline: "Timeline",
};
/** The characters that views show as escapes, and the bars of rows. */
const PARTS = `export { HIDDEN } from "./dashboard/menus.ts";
  export { trendsOf } from "./dashboard/trends.ts";`;
/** The modules that the pages load, by path. */
const files = new Map();
let server;
let origin;
let browser;
let now;
let earlier;
let late;

before(async () => {
  const { sandbox, client } = world.evening();
  now = await world.counts(client, RANGE);
  earlier = await world.counts(client, BEFORE);
  world.arriveLate(sandbox);
  late = await world.counts(client, RANGE);

  const lines = Object.entries(VIEWS).map(
    ([name, view]) => `import { ${view} } from "./dashboard/${name}.ts";
      customElements.define("tallyfold-${name}", ${view});`,
  );
  const { outputFiles } = await build({
    stdin: { contents: [...lines, PARTS].join("\n"), resolveDir: `${import.meta.dirname}/..` },
    bundle: true,
    format: "esm",
    splitting: true,
    outdir: "/",
    target: "es2022",
    write: false,
    tsconfigRaw: { compilerOptions: { useDefineForClassFields: true } },
    plugins: [
      {
        name: "modules of the package",
        setup(own) {
          own.onResolve({ filter: /\/src\/.*\.js$/ }, ({ path }) => ({
            path: `/dist/${basename(path)}`,
            external: true,
          }));
        },
      },
    ],
  });
  for (const { path, contents } of outputFiles) files.set(path, contents);
  server = createServer(async ({ url }, response) => {
    const text = files.get(url) ?? (await ownFile(url).catch(() => undefined));
    const types = { ".js": "text/javascript", "": "text/html" };
    response.setHeader("content-type", types[extname(url)] ?? "text/plain");
    response.statusCode = text === undefined ? 404 : 200;
    response.end(text);
  }).listen(0);
  await new Promise((resolve) => server.once("listening", resolve));
  origin = `http://localhost:${server.address().port}`;
  browser = await chromium.launch(CHROMIUM);
});
after(async () => {
  await browser?.close();
  server?.close();
});

async function ownFile(url) {
  if (url === "/") return PAGE;
  if (!url.startsWith("/dist/")) return undefined;
  return await readFile(`${import.meta.dirname}/../dist/${basename(url)}`);
}

const PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Views</title>
  <link rel="icon" href="data:,"><meta name="viewport" content="width=device-width">
  <style>:root { color-scheme: light dark } body { background: light-dark(#fff, #14171c) }</style>
  <main></main><script type="module" src="/stdin.js"></script>`;

/** Shows a view with properties. Tables are passed as JSON. */
async function show(t, name, properties, { scheme = "light", width = 1100, dir = "ltr" } = {}) {
  const looks = { colorScheme: scheme, viewport: { width, height: 900 } };
  const context = await browser.newContext(looks);
  context.setDefaultTimeout(PAGE_MS);
  t.after(() => context.close());
  const tab = await context.newPage();
  const wrong = [];
  tab.on("pageerror", (error) => wrong.push(error.stack));
  t.after(() => assert.deepEqual(wrong, []));
  await tab.goto(origin);
  const tables = ["table", "tableBefore"];
  const given = Object.fromEntries(
    Object.entries(properties).map(([key, value]) => [
      key,
      tables.includes(key) ? JSON.stringify(value) : value,
    ]),
  );
  await tab.evaluate(
    async ({ name, given, tables, dir }) => {
      const { CountTable } = await import("/dist/table.js");
      document.dir = dir;
      const view = document.createElement(`tallyfold-${name}`);
      globalThis.view = view;
      globalThis.events = [];
      for (const type of ["select", "brush", "state"]) {
        addEventListener(`tallyfold-${type}`, ({ detail }) => events.push([type, detail]));
      }
      for (const key of tables) if (given[key]) given[key] = CountTable.fromJSON(given[key]);
      Object.assign(view, given);
      document.querySelector("main").append(view);
      await view.updateComplete;
    },
    { name, given, tables, dir },
  );
  return tab;
}

/** Until the view shows what the last key or click changed: views are updated in tasks of their own. */
const updated = (tab) =>
  tab.evaluate(async () => {
    while (!(await globalThis.view.updateComplete));
  });
/** Until the chart is drawn in its size. */
const drawn = async (tab) => {
  await tab.locator("canvas").waitFor();
  await updated(tab);
  await tab.evaluate(async () => {
    for (let frame = 0; frame < 3; frame++) {
      await new Promise((done) => requestAnimationFrame(done));
    }
  });
};
const text = async (tab, selector) => {
  await updated(tab);
  return await tab.locator(selector).innerText();
};
const events = (tab) => tab.evaluate(() => globalThis.events);
/** The text of each cell of a table's body. */
const cells = async (tab, selector = "tbody tr") => {
  await updated(tab);
  return await tab.$$eval(selector, (rows) =>
    rows.map((row) => Array.from(row.cells, (cell) => cell.textContent.trim())),
  );
};
/** The name of the counts that has a character that doesn't show, as views show it. */
const escaped = (value) => value.replace("\u202e", "\\u{202e}");
const words = (string) => string.replace(/\s+/g, " ").trim();

describe("<tallyfold-heatmap>", () => {
  const numbers = { numbers: "yes" };

  for (const [unit, state, of] of [
    ["counts", {}, (row) => count(row.errors)],
    ["percent", {}, (row) => share(row.rates.error)],
    ["counts", { share: "filtered" }, (row) => count(row.filtered)],
    ["percent", { share: "filtered" }, (row) => share(row.rates.filter)],
  ]) {
    test(`shows what the library gives: ${unit} ${JSON.stringify(state)}`, async (t) => {
      const tab = await show(t, "heatmap", { table: now, unit, state: { ...state, ...numbers } });
      const shown = await cells(tab);
      const byValue = now.groupBy("integration");
      const by = state.share === "filtered" ? "filtered" : "errors";
      const top = byValue.top(20, { by }).map(({ dimensions }) => dimensions.integration);
      assert.equal(shown.length, 21);
      for (const [line, value] of top.entries()) {
        const series = byValue.filter({ integration: value }).byWindow("15m").fillZeros();
        assert.deepEqual(shown[line].slice(1), Array.from(series, of), value.slice(0, 20));
        assert.ok(escaped(value).startsWith(shown[line][0].replace(/…$/, "")));
      }
      const others = byValue.rows
        .map(({ dimensions }) => dimensions.integration)
        .filter((value) => !top.includes(value));
      const rest = byValue.filter({ integration: others }).groupBy().byWindow("15m").fillZeros();
      assert.equal(words(shown[20][0]), `and ${others.length} others`);
      assert.deepEqual(shown[20].slice(1), Array.from(rest, of));
    });
  }

  for (const [by, where] of [
    ["reason", {}],
    ["integration", { reason: ["compliance filter: consent withheld"] }],
  ]) {
    test(`shows reasons as shares of all events: by ${by}`, async (t) => {
      const state = { share: "filtered", ...numbers };
      const tab = await show(t, "heatmap", { table: now, by, where, unit: "percent", state });
      const rows = now.filter(where).groupBy(by);
      const top = rows.top(6, { by: "filtered" }).map(({ dimensions }) => dimensions[by]);
      const shown = await cells(tab);
      for (const [line, value] of top.entries()) {
        const one = { [by]: value };
        const all = by === "reason" ? now.groupBy() : now.filter(one).groupBy();
        const [part, whole] = [rows.filter(one).groupBy(), all].map((it) =>
          Array.from(it.byWindow("15m").fillZeros(), (row) => row),
        );
        const wanted = part.map(({ filtered }, slot) => {
          const { success, errors, filtered: others } = whole[slot];
          const events = success + errors + others;
          return events === 0n ? "–" : share(Number(filtered) / Number(events));
        });
        assert.deepEqual(shown[line].slice(1), wanted, value);
      }
    });
  }

  test("is used by keyboard, and says each cell", async (t) => {
    const tab = await show(t, "heatmap", { table: now, tableBefore: earlier });
    await tab.keyboard.press("Tab");
    for (let at = 0; at < 20; at++) {
      const isInside = await tab.evaluate(() => view.shadowRoot.activeElement?.tagName === "TD");
      if (isInside) break;
      await tab.keyboard.press("Tab");
    }
    await tab.keyboard.press("ArrowDown");
    for (let at = 0; at < 80; at++) await tab.keyboard.press("ArrowRight");
    const window = { start: INCIDENT.start, end: "2026-03-10T20:15:00Z" };
    const said = (table, range) => {
      const [row] = table.between(range).filter({ integration: FAILING }).groupBy();
      const [failed, filtered] = [count(row.errors), count(row.filtered)];
      return `${share(row.rates.error)} failed, ${failed} failed, ${filtered} filtered, ${count(row.success)} delivered.`;
    };
    const then = { start: "2026-03-03T20:00:00Z", end: "2026-03-03T20:15:00Z" };
    assert.equal(
      words(await text(tab, "output")),
      `${FAILING}, Mar 10, 20:00 – 20:15 UTC: ${said(now, window)} Last week: ${said(earlier, then)}`,
    );
    await tab.keyboard.down("Shift");
    for (let at = 0; at < 5; at++) await tab.keyboard.press("ArrowRight");
    assert.deepEqual(await events(tab), []);
    await tab.keyboard.up("Shift");
    assert.deepEqual(await events(tab), [["brush", INCIDENT]]);
    await tab.keyboard.press("Enter");
    const chosen = { dimension: "integration", value: FAILING };
    assert.deepEqual((await events(tab)).at(-1), ["select", chosen]);
    await tab.locator("[part=brush]").waitFor();
    await tab.keyboard.press("Escape");
    await tab.locator("[part=brush]").waitFor({ state: "detached" });
    await updated(tab);
    // One cell takes part in the order of the tab key.
    assert.equal(await tab.locator("table [tabindex='0']").count(), 1);
  });

  test("follows the direction of the page", async (t) => {
    const tab = await show(t, "heatmap", { table: now, locale: "ar-EG" }, { dir: "rtl" });
    await tab.locator("tbody tr:first-child td").first().focus();
    await tab.keyboard.press("ArrowLeft");
    const place = await tab.evaluate(() => view.shadowRoot.activeElement.cellIndex);
    assert.equal(place, 2);
  });

  test("marks a range by a drag, and opens a value by a click", async (t) => {
    const tab = await show(t, "heatmap", { table: now });
    const row = tab.locator("tbody tr").nth(1);
    await row.locator("td").nth(80).hover();
    await tab.mouse.down();
    await row.locator("td").nth(83).hover();
    await row.locator("td").nth(85).hover();
    await tab.mouse.up();
    await row.locator("th").click();
    const chosen = { dimension: "integration", value: FAILING };
    assert.deepEqual(await events(tab), [
      ["brush", INCIDENT],
      ["select", chosen],
    ]);
  });

  test("marks what is provisional and what is missing", async (t) => {
    const table = world.withGap(now);
    const tab = await show(t, "heatmap", { table });
    const row = tab.locator("tbody tr").nth(1);
    assert.equal(await row.locator("td.provisional").count(), table.provisional.length);
    assert.equal(await row.locator("td.missing").count(), 8);
    const marks = words(await text(tab, "[part=marks]"));
    assert.match(marks, /provisional: .* missing: /);
    await row.locator("td.missing").first().focus();
    assert.match(await text(tab, "output"), /missing: nothing is known of this time/);
  });

  test("marks what was asked for and is not there", async (t) => {
    const range = { start: RANGE.start, end: "2026-03-11T00:15:00Z" };
    const tab = await show(t, "heatmap", { table: now, range });
    assert.equal(await tab.locator("tbody tr").nth(1).locator("td.missing").count(), 1);
  });

  test("colours by the change since last week", async (t) => {
    const state = { colour: "change" };
    const tab = await show(t, "heatmap", { table: now, tableBefore: earlier, state });
    const failing = tab.locator("tbody tr").nth(1).locator("td");
    assert.match(await failing.nth(80).getAttribute("class"), /change6/);
    assert.match(await failing.nth(40).getAttribute("class"), /change3/);
  });

  test("shows values as text, however hostile", async (t) => {
    const tab = await show(t, "heatmap", { table: now });
    const first = tab.locator("tbody th").first();
    assert.match(await first.textContent(), /<img src=x/);
    assert.equal(await tab.locator("img").count(), 0);
    assert.equal(await tab.evaluate(() => globalThis.hacked), undefined);
    const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${wide} px too wide`);
  });

  test("draws a bounded number of rows", async (t) => {
    const { client, values } = world.manyValues(5_000);
    const table = await world.counts(client, world.HOUR);
    const tab = await show(t, "heatmap", { table, rows: 10 });
    assert.equal(await tab.locator("tbody tr").count(), 11);
    const last = words(await text(tab, "tbody tr:last-child th"));
    assert.equal(last, `and ${count(values - 10)} others`);
  });
});

describe("<tallyfold-trend>", () => {
  const whole = (table) => Array.from(table.groupBy().byWindow("15m").fillZeros());

  for (const [unit, measure, of] of [
    ["counts", undefined, (row) => count(row.errors)],
    ["counts", "filtered", (row) => count(row.filtered)],
    ["counts", "delivered", (row) => count(row.success)],
    ["percent", undefined, (row) => share(row.rates.error)],
    ["percent", "filtered", (row) => share(row.rates.filter)],
    ["percent", "delivered", (row) => share(row.rates.delivery)],
  ]) {
    test(`has a table with what the library gives: ${measure} ${unit}`, async (t) => {
      const state = { measure };
      const properties = { table: now, tableBefore: earlier, unit, state };
      const tab = await show(t, "trend", properties);
      await drawn(tab);
      await tab.locator("summary", { hasText: "Table" }).click();
      await tab.locator("tbody tr").first().waitFor();
      const shown = await cells(tab);
      assert.deepEqual(
        shown.map((row) => row.slice(1)),
        whole(now).map((row, at) => [
          of(row),
          of(whole(earlier)[at]),
          row.settled ? "settled" : "provisional",
        ]),
      );
    });
  }

  test("begins with what its attribute names, until another button is pressed", async (t) => {
    const tab = await show(t, "trend", { table: now });
    const pressed = () => text(tab, "[aria-label=Events] [aria-pressed=true]");
    assert.equal(words(await pressed()), "Failed");
    await tab.evaluate(() => view.setAttribute("measure", "delivered"));
    await tab.evaluate(() => view.updateComplete);
    assert.equal(words(await pressed()), "Delivered");
    for (const name of ["Failed", "Filtered", "Delivered"]) {
      await tab.getByRole("button", { name, exact: true }).click();
      await tab.evaluate(() => view.updateComplete);
      assert.equal(words(await pressed()), name);
    }
  });

  test("draws the line where its counts are", async (t) => {
    const tab = await show(t, "trend", { table: now });
    await drawn(tab);
    const { data } = await tab.evaluate(async () => {
      const { width, height } = view.shadowRoot.querySelector("canvas");
      const context = view.shadowRoot.querySelector("canvas").getContext("2d");
      return { data: Array.from(context.getImageData(0, 0, width, height).data.slice(0)).length };
    });
    assert.ok(data > 0);
    const ink = await tab.evaluate(() => {
      const canvas = view.shadowRoot.querySelector("canvas");
      const { width, height } = canvas;
      const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
      let red = 0;
      for (let at = 0; at < data.length; at += 4) {
        if (data[at] > 150 && data[at + 1] < 90 && data[at + 3] > 200) red += 1;
      }
      return red;
    });
    assert.ok(ink > 500, `${ink} pixels of the line`);
  });

  test("is used by keyboard, and says each time", async (t) => {
    const tab = await show(t, "trend", { table: now });
    await drawn(tab);
    await tab.locator(".chart").focus();
    await tab.keyboard.press("Home");
    for (let at = 0; at < 80; at++) await tab.keyboard.press("ArrowRight");
    const row = whole(now)[80];
    await tab.evaluate(() => view.updateComplete);
    assert.equal(
      words(await text(tab, "output")),
      `Mar 10, 20:00 – 20:15 UTC: ${count(row.errors)} failed (${share(row.rates.error)}), ${count(row.filtered)} filtered ` +
        `(${share(row.rates.filter)}), ${count(row.success)} delivered (${share(row.rates.delivery)}).`,
    );
    await tab.keyboard.down("Shift");
    for (let at = 0; at < 5; at++) await tab.keyboard.press("ArrowRight");
    await tab.keyboard.up("Shift");
    assert.deepEqual(await events(tab), [["brush", INCIDENT]]);
  });

  test("marks a range by a drag", async (t) => {
    const tab = await show(t, "trend", { table: now });
    await drawn(tab);
    const { x, y, width } = await tab.locator(".u-over").boundingBox();
    const at = (hour) => x + (width * hour) / 24;
    await tab.mouse.move(at(20.1), y + 20);
    await tab.mouse.down();
    await tab.mouse.move(at(21), y + 20);
    await tab.mouse.move(at(21.4), y + 20);
    await tab.mouse.up();
    assert.deepEqual(await events(tab), [["brush", INCIDENT]]);
  });

  test("leaves out what is missing", async (t) => {
    const tab = await show(t, "trend", { table: world.withGap(now) });
    await drawn(tab);
    assert.match(await text(tab, "[part=marks]"), /missing/);
    await tab.locator("summary", { hasText: "Table" }).click();
    await tab.locator("tbody tr").first().waitFor();
    const shown = await cells(tab);
    assert.deepEqual(shown[20].slice(1), ["", "", "missing"]);
    assert.equal(shown.filter(([, , , state]) => state === "missing").length, 8);
  });

  describe("of hours, whose first and last lie in the range only in part", () => {
    const range = { start: "2026-03-03T13:15:00Z", end: "2026-03-10T13:15:00Z" };
    const [first, last] = [
      { start: range.start, end: "2026-03-03T14:00:00Z" },
      { start: "2026-03-10T13:00:00Z", end: range.end },
    ];
    const week = 604_800_000;
    const earlierBy = (it) => new Date(Date.parse(it) - week).toISOString();
    const properties = { state: { measure: "delivered" }, range };
    before(async () => {
      const { client } = world.evening();
      properties.table = await world.counts(client, range);
      const [start, end] = [range.start, range.end].map(earlierBy);
      properties.tableBefore = await world.counts(client, { start, end });
    });

    /** The trend at a quarter past one, or later. */
    async function shown(t, more = {}, now = "2026-03-10T13:22:00Z") {
      const tab = await show(t, "trend", { ...properties, ...more });
      await tab.clock.setFixedTime(now);
      await tab.evaluate(() => {
        view.range = { ...view.range };
        return view.updateComplete;
      });
      await drawn(tab);
      return tab;
    }

    test("says which time the counts are of", async (t) => {
      const tab = await shown(t);
      const totals = (table, part) => table.between(part).totals;
      const sentence = ({ errors, filtered, success, rates }) =>
        `${count(errors)} failed (${share(rates.error)}), ${count(filtered)} filtered (${share(rates.filter)}), ` +
        `${count(success)} delivered (${share(rates.delivery)}).`;
      const said = ({ start, end }) =>
        `${sentence(totals(properties.table, { start, end }))} Last week: ` +
        sentence(totals(properties.tableBefore, { start: earlierBy(start), end: earlierBy(end) }));
      assert.equal(
        words(await text(tab, "output")),
        `Mar 10, 13:00 – 13:15 UTC, so far: ${said(last)}`,
      );
      await tab.locator(".chart").focus();
      await tab.keyboard.press("Home");
      await tab.evaluate(() => view.updateComplete);
      assert.equal(
        words(await text(tab, "output")),
        `Mar 3, 13:15 – 14:00 UTC, 45 of 60 minutes: ${said(first)}`,
      );
      await tab.locator("summary", { hasText: "Table" }).click();
      await tab.locator("tbody tr").first().waitFor();
      const rows = (await cells(tab)).map((row) => row.map(words));
      assert.equal(rows.length, 169);
      const row = (name, part) => [
        name,
        count(totals(properties.table, part).success),
        count(
          totals(properties.tableBefore, {
            start: earlierBy(part.start),
            end: earlierBy(part.end),
          }).success,
        ),
        "settled",
      ];
      assert.deepEqual(rows[0], row("Mar 3, 13:15 – 14:00, 45 of 60 minutes", first));
      assert.deepEqual(rows.at(-1), row("Mar 10, 13:00 – 13:15, so far", last));
      assert.equal(rows[1][0], "Mar 3, 14:00 – 15:00");
    });

    test("says so far only as long as the hour lasts", async (t) => {
      const tab = await shown(t, {}, "2026-03-10T14:00:00Z");
      assert.match(
        words(await text(tab, "output")),
        /^Mar 10, 13:00 – 13:15 UTC, 15 of 60 minutes:/,
      );
    });

    test("draws counts of a part as points next to the line, and shares in the line", async (t) => {
      /** The rows with ink of the line in the last columns that have any. */
      const rowsAtEnd = (tab) =>
        tab.evaluate(() => {
          const canvas = view.shadowRoot.querySelector("canvas");
          const ink = getComputedStyle(view.shadowRoot.querySelector(".ink")).color;
          const wanted = ink.match(/\d+/g).map(Number);
          const { width, height } = canvas;
          const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
          const isInk = (x, y) => {
            const at = 4 * (y * width + x);
            const isNear = wanted.every((value, part) => Math.abs(data[at + part] - value) < 40);
            return isNear && data[at + 3] > 100;
          };
          const columns = Array.from({ length: width }, (_, x) =>
            Array.from({ length: height }, (_, y) => y).filter((y) => isInk(x, y)),
          );
          const last = columns.findLastIndex((rows) => rows.length > 0);
          return [...new Set(columns.slice(last - 12).flat())].sort((one, other) => one - other);
        });
      const tab = await shown(t);
      const rows = await rowsAtEnd(tab);
      const gaps = rows.slice(1).map((row, at) => row - rows[at]);
      assert.ok(Math.max(...gaps) > 20, `no gap between the line and the point: ${rows}`);
      assert.match(await text(tab, "[part=legend]"), /covers less time than the line/);
      const settled = await shown(t, { table: now, range: RANGE });
      assert.doesNotMatch(await text(settled, "[part=legend]"), /covers less time/);
      const shares = await shown(t, { unit: "percent" });
      assert.doesNotMatch(await text(shares, "[part=legend]"), /covers less time/);
    });
  });

  test("says why it can't show what is usual, and tries again", async (t) => {
    const tab = await show(t, "trend", { table: now, range: RANGE, state: { usual: "shown" } });
    await tab.evaluate((range) => {
      const dimensions = ["integration", "reason"];
      const query = { metric: "event_delivery", dimensions, ...range, window: "15m" };
      const load = async () => {
        if (globalThis.isThere) return view.table;
        throw new Error("no history <b>");
      };
      Object.assign(view, { query, load });
    }, RANGE);
    const alert = tab.getByRole("alert");
    await alert.waitFor();
    assert.match(words(await alert.innerText()), /^Something went wrong\. no history <b>/);
    const button = tab.getByRole("button", { name: "Usual" });
    assert.equal(await button.getAttribute("aria-pressed"), "true");
    await button.click();
    await alert.waitFor({ state: "detached" });
    await button.click();
    await alert.waitFor();
    await tab.evaluate(() => {
      globalThis.isThere = true;
    });
    await alert.getByRole("button", { name: "Try again" }).click();
    await alert.waitFor({ state: "detached" });
    await tab.locator(".legend", { hasText: "usual" }).waitFor();
  });

  test("draws no line where a part of a step is missing", async (t) => {
    const table = CountTable.mergeAll([
      now.between({ start: RANGE.start, end: "2026-03-10T05:15:00Z" }),
      now.between({ start: "2026-03-10T05:45:00Z", end: RANGE.end }),
    ]);
    const range = { start: "2026-03-03T00:00:00Z", end: RANGE.end };
    const tab = await show(t, "trend", { table, range, state: { measure: "delivered" } });
    await drawn(tab);
    assert.match(await text(tab, "[part=legend]"), /covers less time than the line/);
    await tab.locator("summary", { hasText: "Table" }).click();
    await tab.locator("tbody tr").first().waitFor();
    const rows = await cells(tab);
    assert.deepEqual(
      rows.filter(([, , , state]) => state === "partial").map(([name]) => words(name)),
      ["Mar 10, 05:00 – 06:00"],
    );
  });
});

describe("<tallyfold-cause>", () => {
  const properties = () => ({ table: now, tableBefore: earlier, marked: INCIDENT });
  const before = { start: "2026-03-10T18:30:00Z", end: INCIDENT.start };

  test("explains what the library explains, and names the injected cause", async (t) => {
    const tab = await show(t, "cause", properties());
    await tab.locator("[part=sentence]").waitFor();
    const found = explain(now.between(before), now.between(INCIDENT), "error_rate");
    assert.equal(await text(tab, "[part=sentence]"), found.sentence);
    const [{ where, before: then, now: there, events: moved, ...cause }] = found.causes;
    assert.deepEqual(where, { integration: FAILING });
    assert.deepEqual((await cells(tab))[0].map(words), [
      FAILING,
      share(cause.share).replace(/%.*/, (it) => it),
      `+${count(moved)}`,
      `${count(there.part)} of ${count(there.whole)}`,
      count(Math.round(cause.expected)),
      `${count(then.part)} of ${count(then.whole)}`,
    ]);
    await tab.locator("tbody button").first().click();
    const chosen = { dimension: "integration", value: FAILING };
    assert.deepEqual((await events(tab)).at(-1), ["select", chosen]);
  });

  test("compares with last week, and says what is normal", async (t) => {
    const marked = { start: "2026-03-10T12:00:00Z", end: "2026-03-10T13:30:00Z" };
    const state = { against: "week" };
    const tab = await show(t, "cause", { ...properties(), marked, state });
    await tab.locator("[part=sentence]").waitFor();
    const then = { start: "2026-03-03T12:00:00Z", end: "2026-03-03T13:30:00Z" };
    const found = explain(earlier.between(then), now.between(marked), "error_rate");
    assert.ok(found.isNormal);
    assert.equal(await text(tab, "[part=sentence]"), found.sentence);
    assert.equal(await text(tab, "[part=badge]"), "within normal variation");
  });

  test("compares each hour with last week if no range is marked", async (t) => {
    const tab = await show(t, "cause", { ...properties(), marked: undefined, range: RANGE });
    await tab.locator(".change").first().waitFor();
    const hour = (table, at) => {
      const start = new Date(Date.parse(table === now ? RANGE.start : BEFORE.start) + at * 3.6e6);
      return table.between({ start, end: new Date(start.getTime() + 3.6e6) });
    };
    const events = Array.from({ length: 24 }, (_, at) => {
      const { causes, probability } = explain(hour(earlier, at), hour(now, at), "error_rate");
      const isFailing = causes[0]?.where.integration === FAILING && probability < 0.05 / 72;
      return isFailing ? causes[0].events : 0n;
    });
    // The incident lasts from 20:00 to 21:30. Its last half hour is not clear enough by itself.
    const moved = events[20];
    assert.equal(
      events.reduce((sum, it) => sum + it, 0n),
      moved,
    );
    const change = tab.locator(".change", { hasText: FAILING });
    assert.match(
      words(await change.innerText()),
      new RegExp(`^\\+${count(moved)} failed events, Mar 10, 20:00 – 21:00 UTC Destination`),
    );
    await change.getByRole("button", { name: FAILING }).click();
    const chosen = { dimension: "integration", value: FAILING };
    assert.deepEqual((await tab.evaluate(() => globalThis.events)).at(-1), ["select", chosen]);
    // The hours that are there are compared as well if others are missing.
    const part = JSON.stringify(world.withGap(now));
    await tab.evaluate(async (text) => {
      const { CountTable } = await import("/dist/table.js");
      view.table = CountTable.fromJSON(text);
    }, part);
    await tab.getByText("incomplete: a part of this time is missing").waitFor();
    await change.waitFor();
    await tab.evaluate(() => Object.assign(view, { table: view.tableBefore }));
    await tab.getByText("Nothing to compare with").waitFor();
  });

  test("says when everything has changed alike", async (t) => {
    const sandbox = new Sandbox();
    for (const [day, factor] of [
      ["2026-03-03", 2],
      ["2026-03-10", 1],
    ]) {
      for (let at = 0; at < 16; at++) {
        const timestamp = new Date(Date.parse(`${day}T12:00Z`) + at * 900_000);
        const event = { timestamp, eventName: "e", writeKey: "w", outcome: "success" };
        for (let place = 0; place < 100; place++) {
          sandbox.record({ ...event, integration: `number ${place}`, count: factor * 500 });
        }
      }
    }
    const clusterEndpoint = "http://localhost";
    const client = new Client({ ...sandbox.credentials, clusterEndpoint, fetch: sandbox.fetch });
    const [table, tableBefore] = await Promise.all(
      ["2026-03-10", "2026-03-03"].map((day) =>
        world.counts(client, { start: `${day}T12:00:00Z`, end: `${day}T16:00:00Z` }),
      ),
    );
    const tab = await show(t, "cause", { table, tableBefore });
    await tab.getByText("everything alike").first().waitFor();
  });

  test("says if there is nothing to compare a range with", async (t) => {
    const tab = await show(t, "cause", { ...properties(), marked: undefined });
    await tab.evaluate((marked) => Object.assign(view, { marked }), {
      start: RANGE.start,
      end: INCIDENT.start,
    });
    await tab.getByText("Nothing to compare with").waitFor();
  });
});

test("the bar of a step at the edge is settled only if its part of the range is covered", async (t) => {
  const tab = await show(t, "silent", { table: now });
  const from = (start) => ({ start, end: "2026-03-10T12:00:00Z" });
  const gap = CountTable.mergeAll([
    now.between({ start: RANGE.start, end: "2026-03-10T00:15:00Z" }),
    now.between(from("2026-03-10T00:30:00Z")),
  ]);
  const range = { start: "2026-03-10T00:15:00Z", end: RANGE.end };
  const first = (table) =>
    tab.evaluate(
      async ([json, within]) => {
        const { CountTable } = await import("/dist/table.js");
        const { trendsOf } = await import("/stdin.js");
        return trendsOf(CountTable.fromJSON(json), "integration", within).marks[0];
      },
      [JSON.stringify(table), range],
    );
  assert.equal(await first(now), "settled");
  assert.equal(await first(gap), "partial");
});

describe("<tallyfold-values> and <tallyfold-silent>", () => {
  test("list what only one of the weeks has", async (t) => {
    const tab = await show(t, "values", { table: now, tableBefore: earlier });
    const compared = compare(earlier.groupBy("integration"), now.groupBy("integration"));
    assert.deepEqual(compared.new.length, 1);
    assert.deepEqual(compared.vanished.length, 1);
    const [{ after: fresh }] = compared.new;
    const [{ before: gone }] = compared.vanished;
    const [head, appeared, headGone, vanished] = await cells(tab);
    assert.deepEqual([head, headGone], [["Destinations (1)"], ["Destinations (1)"]]);
    const three = (it) => [it.success, it.errors, it.filtered].map(count);
    assert.ok(escaped(HOSTILE).startsWith(appeared[0].replace(/…$/, "")));
    assert.deepEqual(appeared.slice(1), three(fresh));
    assert.deepEqual(vanished, [world.VANISHED, ...three(gone)]);
    const said = "destinations and reasons, compared with the same time last week";
    assert.equal(await text(tab, ".note"), said);
  });

  test("say that a new value may have had events in windows that were not read", async (t) => {
    const { start, end } = BEFORE;
    const later = new Date(Date.parse(start) + 15 * 60_000).toISOString();
    for (const [from, isSaid] of [
      [start, false],
      [later, true],
    ]) {
      const tableBefore = earlier.between({ start: from, end });
      const tab = await show(t, "values", { table: now, tableBefore, range: RANGE });
      const said = await text(tab, ".body");
      assert.equal(/may have had events then/.test(said), isSaid);
    }
  });

  test("list who is silent, and since when", async (t) => {
    const tab = await show(t, "silent", { table: now, tableBefore: earlier });
    const lacking = earlier
      .between({ start: "2026-03-03T13:30:00Z", end: BEFORE.end })
      .filter({ integration: world.SILENT }).totals;
    assert.deepEqual(await cells(tab), [
      [world.SILENT, "Mar 10, 13:30", count(lacking.success), "0", "0"],
      [world.VANISHED, "before Mar 10, 00:00", "77", "0", "0"],
    ]);
  });

  test("rank values by all of their events", async (t) => {
    const { now, earlier } = await world.gone();
    const expected = [world.NEVER_DELIVERED, "only filtered", "delivered 0"];
    const vanished = await cells(await show(t, "values", { table: now, tableBefore: earlier }));
    const heads = vanished.map(([value]) => value);
    const from = heads.indexOf(world.NEVER_DELIVERED);
    assert.deepEqual(heads.slice(from, from + 3), expected);
    const silent = await cells(await show(t, "silent", { table: now, tableBefore: earlier }));
    assert.deepEqual(
      silent.slice(0, 3).map(([value]) => value),
      expected,
    );
  });

  test("say which values were not looked at", async (t) => {
    const tab = await show(t, "silent", { table: now, tableBefore: now });
    assert.match(await text(tab, "[part=empty]"), /Group by events or sources to check those/);
  });

  test("say if there is no last week", async (t) => {
    const tab = await show(t, "silent", { table: now });
    assert.match(await text(tab, "[part=empty]"), /Nothing to compare with/);
  });
});

describe("<tallyfold-corrections>", () => {
  test("lists what late data has changed", async (t) => {
    const tab = await show(t, "corrections", { table: now });
    assert.match(await text(tab, "[part=empty]"), /4 windows may still change/);
    await tab.evaluate(async (json) => {
      const { CountTable } = await import("/dist/table.js");
      view.table = CountTable.fromJSON(json);
      await view.updateComplete;
    }, JSON.stringify(late));
    const delta = compare(now, late).totalDelta;
    assert.deepEqual(delta, { success: 5n, errors: 31n, filtered: 0n });
    const shown = await cells(tab);
    assert.deepEqual(
      shown.map(([, , ...counts]) => counts),
      [
        ["0", "+31", "0"],
        ["+5", "0", "0"],
      ],
    );
    assert.match(words(shown[0][0]), /^Mar 10, 23:15 – 23:30 provisional 1 group/);
    assert.match(words(shown[0][0]), new RegExp(FAILING));
  });
});

describe("<tallyfold-budget>", () => {
  const rules = `
    [[rule]]
    name = "of all" # a note
    kind = "budget"
    budget = "1%"
    burn = [{ rate = 1.5, long = "2h", short = "15m" }]

    [[rule]]
    name = "no budget"
    kind = "threshold"
    measure = "errors"
    above = 1

    [[rule]]
    name = 'of some'
    kind = "budget"
    budget = "5%"
    by = ["integration"]
    where = { integration = ["${FAILING}", "Chat"] }
  `;

  test("shows the shares of the library, and what the library finds", async (t) => {
    const tab = await show(t, "budget", { table: now, rules });
    await tab.locator("tbody tr").first().waitFor();
    const [all] = now.groupBy();
    const some = now
      .filter({ integration: [FAILING, "Chat"] })
      .groupBy("integration")
      .top(2, { by: "error_rate" });
    const line = (name, group, row, allowed) => [
      name,
      group,
      share(row.rates.error / allowed),
      share(row.rates.error),
      share(allowed),
      ...[row.errors, row.filtered, row.success].map(count),
    ];
    assert.deepEqual(
      (await cells(tab)).map((row) => row.map(words)),
      [
        line("of all", "all", all, 0.01),
        ...some.map((row) => line("of some", row.dimensions.integration, row, 0.05)),
      ],
    );
    const { findings } = Rules.parse(rules).replay({ delivery: now, ...RANGE });
    const burning = findings.filter(({ kind }) => kind === "budget");
    assert.ok(burning.length > 0);
    assert.deepEqual(
      await tab.locator("[part=burning]").allInnerTexts(),
      burning.map(({ sentence }) => sentence),
    );
  });
});

describe("<tallyfold-timeline>", () => {
  const rules = `[[rule]]
name = "integration fails"
kind = "threshold"
measure = "error_rate"
by = ["integration"]
above = "5%"
severity = "critical"
`;
  const incidents = (text) =>
    Rules.parse(text).replay({ delivery: CountTable.mergeAll([earlier, now]), ...RANGE }).incidents;

  test("shows the incidents that the rules find", async (t) => {
    const tab = await show(t, "timeline", { table: now, tableBefore: earlier, rules });
    await tab.locator("tbody tr").first().waitFor();
    const found = incidents(rules);
    assert.ok(found.length > 0);
    assert.deepEqual(
      await tab.locator("tbody .sentence").allInnerTexts(),
      found.map(({ sentence }) => sentence),
    );
    await tab.locator("tbody .track button").first().click();
    const { since: start, until: end } = found[0];
    assert.deepEqual(await events(tab), [["brush", { start, end }]]);
  });

  test("says that there is no incident only if all rules could judge", async (t) => {
    const strict = rules.replace("error_rate", "errors").replace(`"5%"`, "100000000");
    const tab = await show(t, "timeline", { table: now, rules: strict });
    assert.match(await text(tab, "[part=empty]"), /^No incident\s/);
    // These counts have no sources.
    const silent = `${strict}\n[[rule]]\nname = "silence"\nkind = "silent"\nby = ["write_key"]\n`;
    await tab.evaluate((text) => Object.assign(view, { rules: text }), silent);
    await tab.getByText("1 rule could not judge this range").waitFor();
    assert.match(await text(tab, "[part=empty]"), /^No incident so far/);
  });

  test("replays what is typed, and shows a mistake at its place", async (t) => {
    const tab = await show(t, "timeline", { table: now, tableBefore: earlier, rules });
    await tab.locator("tbody tr").first().waitFor();
    await tab.locator("summary", { hasText: "Rules" }).click();
    const area = tab.locator("textarea");
    await area.fill(rules.replace("above", "abov"));
    await tab.locator("#mistake bdi").waitFor();
    assert.match(await text(tab, "#mistake"), /^line 6, column 1: rule\[0\]\.abov: /);
    assert.equal(await text(tab, ".numbers .wrong"), "6");
    await tab.getByText("Go to line 6").click();
    const place = await area.evaluate(({ selectionStart }) => selectionStart);
    assert.equal(place, rules.indexOf("above"));
    const strict = rules.replace("5%", "99%");
    await area.fill(strict);
    const [only] = incidents(strict);
    await tab.getByText("1 incident").waitFor();
    assert.deepEqual(await tab.locator("tbody .sentence").allInnerTexts(), [only.sentence]);
    assert.equal(await tab.locator("#mistake bdi").count(), 0);
    // The editor stays open.
    assert.ok(await area.isVisible());
  });

  test("reads the history that rules need", async (t) => {
    const tab = await show(t, "timeline", { table: now });
    await tab.evaluate(() => {
      globalThis.asked = [];
      view.load = async (query, { onProgress }) => {
        asked.push(query);
        onProgress(1, 2);
        return view.table;
      };
      view.requestUpdate();
    });
    await tab.getByRole("button", { name: "Read 28 days" }).click();
    await tab.waitForFunction(() => globalThis.asked.length === 2);
    const asked = await tab.evaluate(() => globalThis.asked);
    const needs = Rules.standard().needs();
    assert.deepEqual(
      asked.map(({ metric, dimensions, window }) => ({ metric, dimensions, window })),
      needs.map(({ metric, dimensions, window }) => ({ metric, dimensions, window })),
    );
    for (const { start, end } of asked) {
      assert.equal(end, RANGE.end);
      assert.equal(start, "2026-02-10T00:00:00Z");
    }
  });

  test("says why it can't read the history, until it can", async (t) => {
    const silence = '[[rule]]\nname = "silence"\nkind = "silent"\nby = ["integration"]\n';
    const tab = await show(t, "timeline", { table: now, rules: silence });
    await tab.evaluate(() => {
      globalThis.failures = [];
      addEventListener("tallyfold-error", ({ detail }) => failures.push(detail.error.message));
      view.load = async () => {
        if (globalThis.isThere) return view.table;
        throw new Error("no history <b>");
      };
      view.requestUpdate();
    });
    const button = tab.getByRole("button", { name: "Read 28 days" });
    await button.click();
    const alert = tab.getByRole("alert");
    await alert.waitFor();
    assert.match(words(await alert.innerText()), /^Something went wrong\. no history <b>$/);
    assert.deepEqual(await tab.evaluate(() => globalThis.failures), ["no history <b>"]);
    await tab.evaluate(() => {
      globalThis.isThere = true;
    });
    await button.click();
    await alert.waitFor({ state: "detached" });
    await button.waitFor({ state: "detached" });
  });
});

describe("all views", () => {
  const rules = Rules.standard().text;
  for (const name of Object.keys(VIEWS)) {
    for (const [scheme, width] of [
      ["light", 1100],
      ["dark", 1100],
      ["light", 320],
    ]) {
      test(`${name} has no finding of axe, ${scheme} at ${width} px`, async (t) => {
        const marked = INCIDENT;
        const properties = { table: now, tableBefore: earlier, rules, marked };
        const tab = await show(t, name, properties, { scheme, width });
        await tab.locator("[part=table], canvas, [part=empty]").first().waitFor();
        const { violations } = await new AxeBuilder({ page: tab })
          .disableRules(["page-has-heading-one", "region"])
          .analyze();
        assert.deepEqual(
          violations.map(({ id, nodes }) => [
            id,
            nodes.map(({ html, any }) => [html, any[0]?.message]),
          ]),
          [],
        );
        const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${wide} px too wide`);
      });
    }
  }

  for (const name of Object.keys(VIEWS)) {
    test(`${name} shows characters that don't show as escapes`, async (t) => {
      const properties = { table: now, tableBefore: earlier, rules, marked: INCIDENT };
      const tab = await show(t, name, { ...properties, state: { numbers: "yes" } });
      await tab.locator("[part=table], canvas, [part=empty]").first().waitFor();
      await updated(tab);
      const hidden = await tab.evaluate(() => {
        const all = [view.shadowRoot, ...view.shadowRoot.querySelectorAll(":not(style)")];
        const texts = all.flatMap((it) => [it.textContent, it.title, it.ariaLabel]);
        return texts.filter((text) => /[^\P{C}\n\t]/u.test(text ?? ""));
      });
      assert.deepEqual(hidden, []);
    });
  }

  test("escape exactly the characters that the core's list has", async (t) => {
    const core = new URL("../../../core/src/text/harmless.rs", import.meta.url);
    const [, table] = /UNSEEN: [^=]*= \[(.*?)\];/s.exec(await readFile(core, "utf8"));
    const codes = Array.from(
      table.matchAll(/'(?:\\0|\\u\{(\w+)\})', '\\u\{(\w+)\}'/g),
      ([, first = "0", last]) => [Number.parseInt(first, 16), Number.parseInt(last, 16)],
    );
    assert.ok(codes.length > 20);
    const tab = await show(t, "values", {});
    const wrong = await tab.evaluate(async (codes) => {
      const { HIDDEN } = await import("/stdin.js");
      const isUnseen = (code) => codes.some(([first, last]) => first <= code && code <= last);
      return Array.from({ length: 0x110000 }, (_, code) => code)
        .filter((code) => (String.fromCodePoint(code).search(HIDDEN) === 0) !== isUnseen(code))
        .map((code) => code.toString(16));
    }, codes);
    assert.deepEqual(wrong, []);
  });

  for (const name of Object.keys(VIEWS)) {
    test(`${name} says that it loads, that there is nothing, and what went wrong`, async (t) => {
      const tab = await show(t, name, { loading: true });
      assert.equal(await tab.locator("[part=loading]").count(), 1);
      await tab.evaluate(() => Object.assign(view, { loading: false, error: new Error("<b>no") }));
      await tab.getByText("<b>no").waitFor();
      const sandbox = new Sandbox();
      const client = new Client({
        ...sandbox.credentials,
        clusterEndpoint: "http://localhost",
        fetch: sandbox.fetch,
      });
      const table = await world.counts(client, world.HOUR);
      await tab.evaluate(async (json) => {
        const { CountTable } = await import("/dist/table.js");
        Object.assign(view, { error: undefined, table: CountTable.fromJSON(json) });
      }, JSON.stringify(table));
      // The editor of rules is there without events, too.
      const nothing = name === "timeline" ? "No incident" : "No events";
      await tab.getByText(nothing).first().waitFor();
    });
  }
});

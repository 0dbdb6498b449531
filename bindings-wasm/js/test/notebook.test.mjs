// The widget of notebooks in Chromium, as anywidget loads it: what is on the screen is what the table has.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";
import { CHROMIUM, PAGE_MS } from "./chromium.mjs";
import { count, rowsOf } from "./dashboard_world.mjs";
import { counts, evening, FAILING, HOSTILE, RANGE } from "./views_world.mjs";

const WIDGET = fileURLToPath(
  new URL("../../../bindings-python/python/tallyfold/_notebook/widget.js", import.meta.url),
);

describe("the widget of notebooks", () => {
  let browser;
  let table;
  let ingestion;
  before(async () => {
    browser = await chromium.launch(CHROMIUM);
    const { client } = evening();
    table = await counts(client, RANGE);
    ingestion = await client.collect({
      ...RANGE,
      metric: "event_ingestion",
      dimensions: ["integration"],
      window: "15m",
    });
  });
  after(() => browser?.close());

  /** A page that shows the widget with these traits. Nothing may be requested, and nothing may fail. */
  async function shown(t, traits, { dataset = {}, ...options } = {}) {
    const context = await browser.newContext({ locale: "en", ...options });
    context.setDefaultTimeout(PAGE_MS);
    t.after(() => context.close());
    const tab = await context.newPage();
    const wrong = [];
    tab.on("pageerror", (error) => wrong.push(error));
    tab.on("request", (request) => {
      if (/^https?:/.test(request.url())) wrong.push(request.url());
    });
    await tab.setContent(
      '<!doctype html><html lang="en"><title>Notebook</title><main id="out"></main>',
    );
    const esm = await readFile(WIDGET, "utf8");
    await tab.evaluate(
      async ([esm, traits, dataset]) => {
        Object.assign(document.body.dataset, dataset);
        const url = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
        const { default: widget } = await import(url);
        const model = { get: (name) => traits[name], on() {}, off() {} };
        await widget.render({ model, el: document.querySelector("#out") });
      },
      [esm, { ingestion: "", left_out: "", ...traits }, dataset],
    );
    t.after(() => assert.deepEqual(wrong, []));
    return tab;
  }

  const text = (table) => JSON.stringify(table);

  test("shows the table's counts, after each click", async (t) => {
    const tab = await shown(t, { delivery: text(table) });
    const rows = async (view) => (await rowsOf(tab, view)).map((row) => row.slice(0, 4));
    const cells = ({ errors, filtered, success }) => [errors, filtered, success].map(count);
    const destinations = table.groupBy("integration");
    await tab.locator("tallyfold-destinations tfoot").waitFor();
    assert.deepEqual((await rows()).at(-1), ["All destinations", ...cells(table.totals)]);
    const [first] = destinations.top(1, { by: "undelivered" });
    assert.deepEqual((await rows())[0].slice(1), cells(first));
    // Nothing of a hostile name runs, and it is all text.
    assert.equal(await tab.evaluate(() => globalThis.hacked), undefined);
    assert.ok((await rows()).some(([name]) => name.startsWith(HOSTILE.slice(0, 40))));

    await tab.locator("tallyfold-destinations").getByRole("button", { name: FAILING }).click();
    const own = table.filter({ integration: FAILING });
    await tab.getByRole("navigation", { name: "Shown rows" }).getByText(FAILING).waitFor();
    // By reason, which events have that were not delivered.
    const { errors, filtered } = own.totals;
    assert.deepEqual((await rows()).at(-1).slice(1), [count(filtered), count(errors)]);
    await tab.getByRole("button", { name: "All events" }).click();
    await tab.getByRole("button", { name: "Percent" }).click();
    const percent = new Intl.NumberFormat("en", { style: "percent", minimumFractionDigits: 2 });
    const ranked = destinations.top(destinations.length, { by: "errors" });
    const { rates } = ranked.find((row) => row.dimensions.integration === FAILING);
    assert.deepEqual(
      (await rows()).find(([name]) => name === FAILING).slice(1),
      [rates.error, rates.filter, rates.delivery].map((it) => percent.format(it)),
    );
  });

  test("shows a pipeline of both endpoints", async (t) => {
    const tab = await shown(t, { delivery: text(table), ingestion: text(ingestion) });
    const pipeline = tab.locator("tallyfold-pipeline");
    await pipeline.getByText(count(table.totals.success)).first().waitFor();
    await pipeline.getByText(count(table.totals.errors)).first().waitFor();
  });

  test("shows one window without charts, and says what was added up", async (t) => {
    const one = table.between({ start: RANGE.start, end: "2026-03-10T00:15:00Z" });
    const leftOut = "Added up over event_name: there are too many groups to show each.";
    const tab = await shown(t, { delivery: text(one), left_out: leftOut });
    await tab.getByText(leftOut).waitFor();
    assert.equal(await tab.locator("tallyfold-trend, tallyfold-heatmap").count(), 0);
    assert.deepEqual((await rowsOf(tab)).at(-1).slice(1, 4), [
      count(one.totals.errors),
      count(one.totals.filtered),
      count(one.totals.success),
    ]);
  });

  for (const [name, dataset, scheme] of [
    ["a light JupyterLab", { jpThemeLight: "true" }, "light"],
    ["a dark JupyterLab", { jpThemeLight: "false" }, "dark"],
    ["a dark VS Code", { vscodeThemeKind: "vscode-dark" }, "dark"],
  ]) {
    test(`has the colours of ${name}, and no finding of axe`, async (t) => {
      const tab = await shown(t, { delivery: text(table) }, { dataset });
      await tab.locator("tallyfold-heatmap table").waitFor();
      const own = await tab.locator("#out").evaluate((el) => getComputedStyle(el).colorScheme);
      assert.equal(own, scheme);
      if (scheme === "dark") await tab.addStyleTag({ content: "body { background: #111 }" });
      const { violations } = await new AxeBuilder({ page: tab })
        .disableRules(["page-has-heading-one"])
        .analyze();
      assert.deepEqual(
        violations.map(({ id, nodes }) => [id, nodes[0].html.slice(0, 200)]),
        [],
      );
    });
  }
});

// The dashboard in Chromium: what is on the screen is what the library gives for the same question.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";
import { CountTable, compare } from "tallyfold";
import { exportCounts } from "tallyfold/export";
import { usual } from "tallyfold/health";
import { CHROMIUM } from "./chromium.mjs";
import { count, DAY, emptyTab, ready, rowsOf, share, World } from "./dashboard_world.mjs";

const LOST = { by: "undelivered" };

/** Without whose counts they are: the page asks its server, and that asks the service. */
function own(text) {
  return text.replace(/ "(digest|identity)": "[^"]*",\n/g, "");
}

describe("the dashboard", () => {
  let browser;
  before(async () => {
    browser = await chromium.launch(CHROMIUM);
  });
  after(() => browser?.close());

  /** A world and a tab of its own. */
  async function opened(t, { scene, seed = 3, ...options } = {}, prepare = () => {}) {
    const world = new World({ seed, ...(scene && { scene }) });
    await prepare(world);
    await world.listen();
    const tab = await world.open(browser, options);
    t.after(async () => {
      await tab.context().close();
      world.close();
      assert.deepEqual(tab.errors, []);
      assert.deepEqual(tab.violations, []);
    });
    return { world, tab };
  }

  /** What the library gives for the question that the dashboard asks. */
  function delivery(world, dimensions = ["integration", "reason"], range = DAY) {
    return world.client.collect({
      ...range,
      metric: "event_delivery",
      dimensions,
      window: "15m",
    });
  }

  const cells = ({ errors, filtered, success }) => [errors, filtered, success].map(count);
  const total = (table, name = "All destinations") => [name, ...cells(table.totals)];
  const shownRows = (rows, by) => rows.map((row) => [row.dimensions[by], ...cells(row)]);

  test("may be grouped otherwise while rows are still compared", async (t) => {
    const { world, tab } = await opened(t);
    await tab.evaluate(async () => {
      const dashboard = document.querySelector("tallyfold-dashboard");
      for (let turn = 1; turn <= 60; turn++) {
        dashboard.by = turn % 2 ? "reason" : "integration";
        await new Promise((resolve) =>
          requestAnimationFrame(() => setTimeout(resolve, 5 * (turn % 7))),
        );
      }
    });
    await ready(tab);
    const all = (await delivery(world)).groupBy("integration").top(12, LOST);
    assert.deepEqual((await rowsOf(tab)).slice(0, 12), shownRows(all, "integration"));
  });

  test("shows what the library counts, after each click", async (t) => {
    const { world, tab } = await opened(t);
    const table = await delivery(world);
    const destinations = table.groupBy("integration");
    const all = destinations.top(destinations.length, LOST);
    assert.ok(all.length > 20);
    assert.deepEqual(await rowsOf(tab), [
      ...shownRows(all.slice(0, 12), "integration"),
      total(table),
    ]);

    await tab.getByRole("button", { name: `Show all ${all.length}` }).click();
    assert.deepEqual(await rowsOf(tab), [...shownRows(all, "integration"), total(table)]);

    // Sorted by each column, down and up, and as it was.
    const view = tab.locator("tallyfold-destinations");
    for (const [label, by] of [
      ["Failed", "errors"],
      ["Filtered", "filtered"],
      ["Delivered", "success"],
    ]) {
      const sorted = destinations.top(destinations.length, { by });
      const header = view.getByRole("columnheader", { name: label, exact: true });
      const button = header.getByRole("button");
      await button.click();
      await header.and(tab.locator("[aria-sort=descending]")).waitFor();
      assert.deepEqual((await rowsOf(tab)).slice(0, -1), shownRows(sorted, "integration"));
      await button.click();
      await header.and(tab.locator("[aria-sort=ascending]")).waitFor();
      assert.deepEqual(
        (await rowsOf(tab)).slice(0, -1),
        shownRows(sorted.toReversed(), "integration"),
      );
      await button.click();
      await header.and(tab.locator(":not([aria-sort])")).waitFor();
    }

    await view.getByRole("searchbox").fill("AD");
    const found = all.filter((row) => row.dimensions.integration.toLowerCase().includes("ad"));
    assert.ok(found.length > 0 && found.length < all.length);
    assert.deepEqual(await rowsOf(tab), [...shownRows(found, "integration"), total(table)]);
    await view.getByRole("searchbox").fill("no such destination");
    assert.match(await view.locator("[part=empty]").textContent(), /Nothing contains/);
    await view.getByRole("searchbox").fill("");

    // Percentages.
    await tab.getByRole("button", { name: "Percent" }).click();
    const percent = new Intl.NumberFormat("en", { style: "percent", minimumFractionDigits: 2 });
    const [first] = await rowsOf(tab);
    const { rates } = all[0];
    assert.deepEqual(
      first.slice(1),
      [rates.error, rates.filter, rates.delivery].map((it) => percent.format(it)),
    );
    assert.deepEqual(
      (await rowsOf(tab)).slice(0, -1).map(([name]) => name),
      all.map((row) => row.dimensions.integration),
    );
    for (const [label, rate] of [
      ["Failed", "error"],
      ["Filtered", "filter"],
      ["Delivered", "delivery"],
    ]) {
      // Destinations with the same share are sorted by name.
      const byShare = [...destinations].sort(
        (one, other) => (other.rates[rate] ?? 0) - (one.rates[rate] ?? 0),
      );
      const header = view.getByRole("columnheader", { name: label, exact: true });
      await header.getByRole("button").click();
      await header.and(tab.locator("[aria-sort=descending]")).waitFor();
      assert.deepEqual(
        (await rowsOf(tab)).slice(0, -1).map(([name]) => name),
        byShare.map((row) => row.dimensions.integration),
      );
    }
    const delivered = view.getByRole("columnheader", { name: "Delivered", exact: true });
    for (let click = 0; click < 2; click++) await delivered.getByRole("button").click();
    await view.locator("thead:not(:has([aria-sort]))").waitFor();
    await tab.getByRole("button", { name: "Counts" }).click();

    // Into a destination, and then into a reason of it.
    const [{ dimensions }] = all;
    await view.getByRole("button", { name: dimensions.integration }).click();
    await ready(tab);
    const inside = table.filter({ integration: dimensions.integration });
    const reasons = inside.groupBy("reason");
    const ranked = reasons.top(reasons.length, LOST);
    const name = (row) => row.dimensions.reason || "no reason given";
    assert.deepEqual(await rowsOf(tab), [
      ...ranked.map((row) => [name(row), count(row.filtered), count(row.errors)]),
      ["All reasons", count(inside.totals.filtered), count(inside.totals.errors)],
    ]);
    const filtering = ranked.find((row) => row.filtered > 0n && row.dimensions.reason);
    await tab
      .locator("tallyfold-destinations")
      .first()
      .getByRole("button", { name: filtering.dimensions.reason })
      .click();
    await ready(tab);
    const four = await delivery(world, ["event_name", "integration", "reason"]);
    const deep = four.filter({
      integration: dimensions.integration,
      reason: filtering.dimensions.reason,
    });
    const events = deep.groupBy("event_name");
    assert.deepEqual(await rowsOf(tab), [
      ...shownRows(events.top(events.length, LOST), "event_name"),
      total(deep, "All events"),
    ]);

    // Back out again by the crumbs.
    const crumbs = tab.getByRole("navigation", { name: "Shown rows" });
    await crumbs
      .getByRole("button", { name: `Remove Destination ${dimensions.integration}` })
      .click();
    await ready(tab);
    const everywhere = four.filter({ reason: filtering.dimensions.reason });
    assert.deepEqual((await rowsOf(tab)).at(-1), total(everywhere, "All events"));
    await crumbs.getByRole("button", { name: "All events", exact: true }).click();
    await ready(tab);
    assert.deepEqual((await rowsOf(tab)).at(-1), total(table));
  });

  test("shows a pipeline only of counts that can be compared", async (t) => {
    const { world, tab } = await opened(t);
    const table = await delivery(world);
    const view = tab.locator("tallyfold-pipeline");
    const stage = (name) => view.locator(`[data-stage=${name}]`);
    for (const name of ["success", "errors", "filtered"]) {
      const shown = await stage(name).locator("strong").textContent();
      assert.equal(shown, count(table.totals[name]));
      const incoming = stage("ingested").locator(`[data-count=${name}]`);
      assert.equal(await incoming.textContent(), count(table.totals[name]));
    }
    assert.match(await stage("ingested").textContent(), /every event that came in/);
    const reasons = table.groupBy("reason").top(3, { by: "filtered" });
    const others = reasons.reduce((left, row) => left - row.filtered, table.totals.filtered);
    assert.ok(others > 0n);
    assert.deepEqual(await stage("filtered").locator("li span[data-count]").allTextContents(), [
      ...reasons.map((row) => count(row.filtered)),
      count(others),
    ]);
    await stage("filtered").getByRole("button").first().click();
    await ready(tab);
    assert.match(await stage("ingested").textContent(), /ingestion has no reasons/);
    assert.equal(await stage("ingested").locator("[data-count]").count(), 0);
  });

  test("says why a pipeline is none where an event counts several times", async (t) => {
    const { tab } = await opened(t, {}, (world) => {
      const { fetch } = world.sandbox;
      Object.defineProperty(world.sandbox, "fetch", {
        value: async (url, init) => {
          const response = await fetch(url, init);
          if (!url.includes("event_ingestion")) return response;
          const body = await response.json();
          for (const it of body.counts.slice(0, 1)) it.success = String(BigInt(it.success) + 7n);
          body.totalDelivered = String(
            BigInt(body.totalDelivered) + (body.counts.length ? 7n : 0n),
          );
          return Response.json(body);
        },
      });
    });
    const text = await tab.locator("tallyfold-pipeline [data-stage=ingested]").textContent();
    assert.match(text, /Not compared with delivery: the counts differ/);
    assert.match(text, /several destinations/);
  });

  test("keeps its state in the address: links, back and forward", async (t) => {
    const { world, tab } = await opened(t);
    const [{ dimensions }] = (await delivery(world)).groupBy("integration").top(1, LOST);
    const states = [];
    const note = async () => {
      await ready(tab);
      states.push([new URL(tab.url()).hash, await rowsOf(tab)]);
    };
    await note();
    await tab.getByRole("button", { name: "Percent" }).click();
    await note();
    await tab
      .locator("tallyfold-destinations")
      .getByRole("button", { name: dimensions.integration })
      .click();
    await note();
    await tab
      .getByRole("group", { name: "Group by" })
      .getByRole("button", { name: "Sources" })
      .click();
    await note();
    assert.equal(new Set(states.map(([hash]) => hash)).size, 4);
    for (const [hash, rows] of states.slice(0, -1).reverse()) {
      await tab.goBack();
      await ready(tab);
      assert.deepEqual([new URL(tab.url()).hash, await rowsOf(tab)], [hash, rows]);
    }
    for (const [, rows] of states.slice(1)) {
      await tab.goForward();
      await ready(tab);
      assert.deepEqual(await rowsOf(tab), rows);
    }
    const other = await world.open(browser, { hash: states.at(-1)[0].slice(1) });
    assert.deepEqual(await rowsOf(other), states.at(-1)[1]);
    await other.context().close();
  });

  test("leaves the address of a page alone that wants it so", async (t) => {
    const { tab } = await opened(t, { hash: "chapter" }, (world) => {
      world.element =
        '<tallyfold-dashboard src="/tallyfold" address="none" unit="percent"></tallyfold-dashboard>';
    });
    await tab.getByRole("button", { name: "Counts" }).click();
    await ready(tab);
    assert.equal(new URL(tab.url()).hash, "#chapter");
  });

  test("keeps the viewer's unit in the address if the page has set another one", async (t) => {
    const { tab } = await opened(t, {}, (world) => {
      world.element = '<tallyfold-dashboard src="/tallyfold" unit="percent"></tallyfold-dashboard>';
    });
    await tab.getByRole("button", { name: "Counts" }).click();
    await ready(tab);
    await tab.reload();
    await ready(tab);
    assert.equal(new URL(tab.url()).hash, "#unit=counts");
    assert.equal(await tab.locator("tallyfold-dashboard").evaluate(({ unit }) => unit), "counts");
  });

  test("follows the address rather than properties that were set before the element was defined", async (t) => {
    const { world } = await opened(t);
    const tab = await emptyTab(browser);
    t.after(() => tab.context().close());
    await tab.addInitScript(() => {
      const observer = new MutationObserver(() => {
        const dashboard = document.querySelector("tallyfold-dashboard");
        if (dashboard === null) return;
        observer.disconnect();
        globalThis.wasDefined = customElements.get("tallyfold-dashboard") !== undefined;
        Object.assign(dashboard, { unit: "percent", by: "event_name" });
      });
      observer.observe(document, { childList: true, subtree: true });
    });
    await tab.goto(`${world.url}#by=write_key`);
    await ready(tab);
    const shown = await tab
      .locator("tallyfold-dashboard")
      .evaluate(({ unit, by }) => ({ unit, by, wasDefined }));
    assert.deepEqual(shown, { unit: "percent", by: "write_key", wasDefined: false });
  });

  test("moves through time, and reads each settled window once", async (t) => {
    const { world, tab } = await opened(t);
    await tab.getByRole("button", { name: "Earlier" }).click();
    await ready(tab);
    const range = { start: "2026-03-09T00:00:00Z", end: "2026-03-10T00:00:00Z" };
    const earlier = await delivery(world, ["integration", "reason"], range);
    assert.deepEqual((await rowsOf(tab)).at(-1), total(earlier));
    assert.ok(tab.url().includes("range=2026-03-09T00:00:00Z/2026-03-10T00:00:00Z"), tab.url());
    assert.match(await tab.locator("[part=status]").textContent(), /All windows are settled/);
    await tab.getByRole("button", { name: "Later" }).click();
    await ready(tab);
    assert.deepEqual((await rowsOf(tab)).at(-1), total(await delivery(world)));

    // A preset, and two times.
    await tab.locator(".picker summary").click();
    await tab.getByRole("button", { name: "Last 3 hours" }).click();
    await ready(tab);
    const three = await world.client.collect({
      start: "2026-03-10T21:05:00Z",
      end: "2026-03-11T00:05:00Z",
      metric: "event_delivery",
      dimensions: ["integration", "reason"],
      window: "5m",
    });
    assert.deepEqual((await rowsOf(tab)).at(-1), total(three));
    await tab.locator(".picker summary").click();
    await tab.getByLabel("From").fill("2026-03-08T10:00");
    await tab.getByLabel("To").fill("2026-03-08T09:00");
    await tab.getByRole("button", { name: "Show", exact: true }).click();
    assert.match(await tab.locator(".between").textContent(), /end must be after/);
    await tab.getByLabel("From").fill("2025-12-01T00:00");
    await tab.getByLabel("To").fill("2026-03-01T00:30");
    await tab.getByRole("button", { name: "Show", exact: true }).click();
    assert.match(
      await tab.locator(".between").textContent(),
      /Choose a range of at most 90 days\./,
    );
    await tab.getByLabel("From").fill("2026-03-08T10:00");
    await tab.getByLabel("To").fill("2026-03-08T18:00");
    await tab.getByRole("button", { name: "Show", exact: true }).click();
    await ready(tab);
    const given = { start: "2026-03-08T10:00:00Z", end: "2026-03-08T18:00:00Z" };
    const between = await delivery(world, ["integration", "reason"], given);
    assert.deepEqual((await rowsOf(tab)).at(-1), total(between));
  });

  test("shows a range of 90 days that does not begin with an hour", async (t) => {
    const { tab } = await opened(t);
    await tab.route("**/tallyfold/**", () => {});
    await tab.locator(".picker summary").click();
    await tab.getByLabel("From").fill("2025-12-01T00:30");
    await tab.getByLabel("To").fill("2026-03-01T00:30");
    await tab.locator(".between").getByRole("button", { name: "Show" }).click();
    await tab.waitForURL((url) => url.hash !== "");
    await tab.locator(".reading", { hasText: "Reading" }).waitFor();
    assert.equal(await tab.getByRole("alert").count(), 0);
    assert.equal(new URL(tab.url()).hash, "#range=2025-12-01T00:00:00Z/2026-03-01T00:00:00Z");
  });

  test("asks for a range once, and never for each window", async (t) => {
    const { world } = await opened(t);
    const paths = world.asked.filter((it) => it.includes("/tallyfold/"));
    const days = paths.filter(
      (it) => it === "GET /tallyfold/v1.1/analytics/event_delivery/windows",
    );
    assert.equal(days.length, 2, String(paths));
    assert.equal(paths.filter((it) => it.startsWith("POST")).length, 0, String(paths));
  });

  test("requests several ranges if the server would refuse one for its many windows", async (t) => {
    const { world, tab } = await opened(t, { hash: "range=30d" });
    const requests = () => world.asked.filter((it) => it.includes("/tallyfold/"));
    const read = requests().length;
    assert.equal(read, 2);
    const trend = tab.locator("tallyfold-trend");
    await trend.getByRole("button", { name: "Usual" }).click();
    await trend.locator(".legend", { hasText: "usual" }).waitFor();
    // The month and the two weeks before have 4,224 windows.
    const paths = requests().slice(read);
    const path = "GET /tallyfold/v1.1/analytics/event_delivery/windows";
    assert.equal(paths.filter((it) => it !== path).length, 0);
    assert.equal(paths.length, 2);
  });

  test("requests ranges again after the server has refused one", async (t) => {
    const { world, tab } = await opened(t);
    await tab.route("**/windows?*", (route) => route.fulfill({ status: 400, json: {} }));
    await tab.getByRole("button", { name: "Earlier" }).click();
    await ready(tab);
    await tab.unroute("**/windows?*");
    const read = world.asked.length;
    await tab.getByRole("button", { name: "Earlier" }).click();
    await ready(tab);
    const requests = world.asked.slice(read);
    assert.ok(requests.length > 0);
    assert.equal(requests.filter((it) => it.startsWith("POST")).length, 0);
  });

  test("requests each window if the server has no ranges", async (t) => {
    const { world, tab } = await opened(t);
    let ranges = 0;
    await tab.route("**/windows?*", (route) => {
      ranges += 1;
      return route.fulfill({ status: 404 });
    });
    await tab.getByRole("button", { name: "Earlier" }).click();
    await ready(tab);
    const before = ranges;
    await tab.getByRole("button", { name: "Earlier" }).click();
    await ready(tab);
    assert.ok(before > 0);
    assert.equal(ranges, before);
    const range = { start: "2026-03-08T00:00:00Z", end: "2026-03-09T00:00:00Z" };
    const table = await delivery(world, undefined, range);
    assert.deepEqual((await rowsOf(tab)).at(-1), total(table));
  });

  test("marks provisional windows and shows what late data adds", async (t) => {
    const { world, tab } = await opened(t);
    const status = tab.locator("[part=status]");
    assert.match(await status.textContent(), /Provisional from 23:00 on \(4 windows\)/);
    const was = await rowsOf(tab);
    world.sandbox.record({
      timestamp: "2026-03-10T23:50:00Z",
      outcome: "errors",
      eventName: "order_placed",
      writeKey: "web",
      integration: "Zeppelin",
      count: 9_007_199_254_740_993n,
    });
    await tab.getByRole("button", { name: "Refresh" }).click();
    await ready(tab);
    const table = await delivery(world);
    const rows = await rowsOf(tab);
    assert.notDeepEqual(rows, was);
    assert.deepEqual(rows[0], ["Zeppelin", "9,007,199,254,740,993", "0", "0"]);
    assert.deepEqual(rows.at(-1), total(table));
  });

  test("follows new windows while it is seen", async (t) => {
    const { world, tab } = await opened(t);
    world.now = { monotonicMs: 0, unixMs: Date.parse("2026-03-11T00:20:00Z") };
    await tab.clock.setFixedTime("2026-03-11T00:20:00Z");
    await tab.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await tab.waitForFunction(() => {
      const { shadowRoot } = document.querySelector("tallyfold-dashboard");
      return (
        shadowRoot.querySelector("tallyfold-destinations").range.end === "2026-03-11T00:15:00Z"
      );
    });
    await ready(tab);
    const range = { start: "2026-03-10T00:15:00Z", end: "2026-03-11T00:15:00Z" };
    const table = await delivery(world, ["integration", "reason"], range);
    assert.deepEqual((await rowsOf(tab)).at(-1), total(table));
  });

  test("says what is missing if windows fail, and sums the rest", async (t) => {
    const failing = '"start":"2026-03-10T06:';
    const { world, tab } = await opened(t, {}, (it) => {
      it.fails = (body) => body.includes(failing);
    });
    const alert = tab.getByRole("alert");
    assert.match(await alert.textContent(), /4 windows could not be read/);
    assert.match(
      await alert.textContent(),
      /Mar 10, 06:00 – 07:00 UTC is missing from all numbers/,
    );
    assert.match(
      await tab.locator("[part=status]").textContent(),
      /Missing: Mar 10, 06:00 – 07:00/,
    );
    assert.match(
      await tab.locator("tallyfold-pipeline section").textContent(),
      /a part of this time is missing/,
    );
    world.fails = () => false;
    const [one, two] = await Promise.all([
      delivery(world, undefined, { ...DAY, end: "2026-03-10T06:00:00Z" }),
      delivery(world, undefined, { ...DAY, start: "2026-03-10T07:00:00Z" }),
    ]);
    assert.deepEqual((await rowsOf(tab)).at(-1), total(CountTable.mergeAll([one, two])));
    await alert.getByRole("button", { name: "Try again" }).click();
    await ready(tab);
    assert.equal(await alert.count(), 0);
    assert.deepEqual((await rowsOf(tab)).at(-1), total(await delivery(world)));
  });

  test("says that a session has expired, and goes on after the visitor has signed in", async (t) => {
    const { world, tab } = await opened(t, {}, (it) => {
      it.isSignedIn = false;
    });
    const alert = tab.getByRole("alert");
    assert.match(await alert.textContent(), /Your session has expired/);
    world.isSignedIn = true;
    await alert.getByRole("button", { name: "Try again" }).click();
    await ready(tab);
    assert.deepEqual((await rowsOf(tab)).at(-1), total(await delivery(world)));

    // Later, while there are counts: they stay.
    world.isSignedIn = false;
    await tab.getByRole("button", { name: "Refresh" }).click();
    await ready(tab);
    assert.match(await tab.getByRole("alert").textContent(), /session has expired/);
  });

  test("says that the visitor may not see the counts, and not that the session has expired", async (t) => {
    const { world, tab } = await opened(t, {}, (it) => {
      it.isOpen = false;
    });
    const alert = tab.getByRole("alert");
    assert.match(await alert.textContent(), /You may not see these counts/);
    assert.doesNotMatch(await alert.textContent(), /expired|keeps trying/);
    world.isOpen = true;
    await alert.getByRole("button", { name: "Try again" }).click();
    await ready(tab);
    assert.equal(await alert.count(), 0);
  });

  test("says at once that the service can't be reached, and finds it again", async (t) => {
    const begun = Date.now();
    const { world, tab } = await opened(t, {}, (it) => {
      it.isReachable = false;
    });
    const alert = tab.getByRole("alert");
    assert.match(
      await alert.textContent(),
      /The service can't be reached from your server.*The dashboard keeps trying\./s,
    );
    // One request for the range in ten seconds: nobody retries what the server has retried.
    const asked = world.asked.filter((line) => line.includes("/tallyfold/"));
    assert.deepEqual([...new Set(asked)], ["GET /tallyfold/v1.1/analytics/event_delivery/windows"]);
    assert.ok(asked.length <= 1 + (Date.now() - begun) / 10_000, String(asked));
    world.isReachable = true;
    await alert.waitFor({ state: "detached" });
    await ready(tab);
    assert.deepEqual((await rowsOf(tab)).at(-1), total(await delivery(world)));
  });

  test("says that nothing comes while the service hangs, and shows the counts when they come", async (t) => {
    let go;
    const world = new World();
    world.hangs = new Promise((resolve) => {
      go = resolve;
    });
    await world.listen();
    t.after(() => world.close());
    const tab = await emptyTab(browser);
    t.after(() => tab.context().close());
    await tab.goto(world.url);
    const note = tab.getByText("No counts have arrived for 3 seconds");
    await note.waitFor();
    assert.match(await note.textContent(), /The dashboard keeps trying\./);
    go();
    await note.waitFor({ state: "detached" });
    await ready(tab);
    assert.deepEqual((await rowsOf(tab)).at(-1), total(await delivery(world)));
  });

  test("shows an outage with the reference of the server's log", async (t) => {
    const { tab } = await opened(t, {}, (it) => {
      it.fails = (body) => body.includes("dimensions");
    });
    assert.match(
      await tab.getByRole("alert").textContent(),
      /answered the server with status 500; the server's log contains more under \w+/,
    );
  });

  test("draws bars of half a step half as wide, and as high as their time deserves", async (t) => {
    const range = { start: "2026-03-09T13:15:00Z", end: "2026-03-10T13:15:00Z" };
    const { world, tab } = await opened(t, { hash: `range=${range.start}/${range.end}` });
    const table = (await delivery(world, undefined, range)).groupBy("integration");
    const [{ dimensions }] = table.top(1, LOST);
    const series = table.filter(dimensions).byWindow("30m").fillZeros();
    const lost = Array.from(series, ({ errors, filtered }) => Number(errors + filtered));
    const shares = lost.map((_, at) => (at === 0 || at === lost.length - 1 ? 0.5 : 1));
    const rates = lost.map((count, at) => count / shares[at]);
    const most = Math.max(...rates);
    const bars = await tab
      .locator("tallyfold-destinations tbody tr[aria-rowindex] svg.bars")
      .first()
      .evaluate((svg) => {
        const places = new Map();
        for (const path of svg.querySelectorAll("path[fill]")) {
          for (const [, x, width, height] of path
            .getAttribute("d")
            .matchAll(/M([\d.]+) [\d.]+h([\d.]+)v-([\d.]+)/g)) {
            const at = Math.floor(Number(x));
            const [, sum = 0] = places.get(at) ?? [];
            places.set(at, [Number(width), sum + Number(height)]);
          }
        }
        return [...places].sort(([one], [other]) => one - other);
      });
    assert.equal(lost.length, 49);
    for (const [at, [width, height]] of bars) {
      assert.ok(Math.abs(width - 0.7 * shares[at]) < 0.01, `bar ${at} is ${width} wide`);
      const wanted = (20 * rates[at]) / most;
      assert.ok(Math.abs(height - wanted) < 0.7, `bar ${at} is ${height} high, not ${wanted}`);
    }
    assert.ok(bars.length > 40, `${bars.length} bars`);
  });

  test("says which of the two servers can't be reached", async (t) => {
    const { world, tab } = await opened(t, {}, (it) => {
      it.isReachable = false;
    });
    const alert = tab.getByRole("alert");
    assert.match(await alert.textContent(), /^\s*The service can't be reached from your server/);
    await tab.route("**/tallyfold/**", (route) => route.abort("connectionrefused"));
    await alert.getByRole("button", { name: "Try again" }).click();
    await ready(tab);
    assert.match(await alert.textContent(), /^\s*Your server can't be reached/);
    world.isReachable = true;
    await tab.unroute("**/tallyfold/**");
    await alert.getByRole("button", { name: "Try again" }).click();
    await ready(tab);
    assert.equal(await alert.count(), 0);
  });

  test("says that it reads before it knows how much", async (t) => {
    const { tab } = await opened(t);
    await tab.route("**/tallyfold/**", () => {});
    await tab.evaluate(() => {
      const dashboard = document.querySelector("tallyfold-dashboard");
      globalThis.texts = [];
      new MutationObserver(() => {
        texts.push(dashboard.shadowRoot.querySelector("[part=status] .reading").textContent);
      }).observe(dashboard.shadowRoot, { subtree: true, childList: true, characterData: true });
      dashboard.period = "12h";
    });
    const seen = await tab.waitForFunction(() => {
      const { shadowRoot } = document.querySelector("tallyfold-dashboard");
      const text = shadowRoot.querySelector("[part=status] .reading").textContent.trim();
      return text.startsWith("Reading") && text;
    });
    assert.match(await seen.jsonValue(), /^Reading/);
    const texts = await tab.evaluate(() => globalThis.texts);
    assert.deepEqual(
      texts.filter((text) => / 0 windows/.test(text)),
      [],
    );
  });

  test("shows an empty range as empty", async (t) => {
    const { tab } = await opened(t, {
      hash: "range=2026-03-01T00:00:00Z/2026-03-01T01:00:00Z&integration=Nobody",
    });
    const empty = tab.locator("tallyfold-destinations [part=empty]");
    assert.match(await empty.textContent(), /No events/);
  });

  test("compares with the same time last week", async (t) => {
    const { world, tab } = await opened(t);
    const week = { start: "2026-03-03T00:00:00Z", end: "2026-03-04T00:00:00Z" };
    const now = (await delivery(world)).groupBy("integration");
    const then = (await delivery(world, undefined, week)).groupBy("integration");
    const [{ dimensions, errors }] = now.top(1, LOST);
    const [was] = then.filter(dimensions);
    const signed = new Intl.NumberFormat("en", { signDisplay: "exceptZero" });
    const cell = tab.locator("tallyfold-destinations tbody tr[aria-rowindex] td").nth(4);
    assert.equal((await cell.textContent()).trim(), signed.format(errors - was.errors));
  });

  test("does not compare with a week whose first window is missing", async (t) => {
    const { world, tab } = await opened(t, {}, (it) => {
      it.fails = (body) => body.includes('"start":"2026-03-03T00:00:00');
    });
    const view = tab.locator("tallyfold-destinations");
    const changes = async () => {
      const cells = await view
        .locator("tbody tr[aria-rowindex] td:nth-of-type(5)")
        .allTextContents();
      return new Set(cells.map((it) => it.trim()));
    };
    const compared = tab.locator("tallyfold-cause .compared");
    assert.deepEqual(await changes(), new Set(["–"]));
    assert.doesNotMatch(await compared.textContent(), /last week/);

    world.fails = () => false;
    await tab.getByRole("button", { name: "Refresh" }).click();
    await ready(tab);
    assert.ok((await changes()).size > 5);
    assert.match(await compared.textContent(), /last week/);
  });

  test("draws what is usual, and links to it", async (t) => {
    const { world, tab } = await opened(t);
    const [{ dimensions }] = (await delivery(world)).groupBy("integration").top(1, LOST);
    const trend = tab.locator("tallyfold-trend");
    const learned = trend.locator(".legend", { hasText: "usual" });
    /** Whether the table beneath the line has the bounds that the library computes. */
    const compared = async (measure, write, where) => {
      await learned.waitFor();
      const two = { start: "2026-02-24T00:00:00Z", end: DAY.end };
      const history = await delivery(world, ["integration"], two);
      const values = usual(where ? history.filter(where) : history, measure, DAY);
      const cells = trend.locator("details tbody td:nth-of-type(3)");
      await cells.nth(95).waitFor();
      const shown = (await cells.allTextContents()).map((it) => it.trim());
      assert.equal(values.length, 96);
      assert.deepEqual(
        shown,
        values.map(({ low, high }) => `${write(low)} to ${write(high)}`),
      );
    };
    const whole = (value) => count(Math.round(value));
    await trend.getByRole("button", { name: "Usual" }).click();
    await learned.waitFor();
    await trend.locator("summary", { hasText: "Table" }).click();
    await compared("errors", whole);
    await tab
      .locator("tallyfold-destinations")
      .getByRole("button", { name: dimensions.integration })
      .click();
    await ready(tab);
    await compared("errors", whole, dimensions);
    await tab.getByRole("button", { name: "Percent" }).click();
    await ready(tab);
    await compared("error_rate", share, dimensions);
    const other = await world.open(browser, { hash: new URL(tab.url()).hash.slice(1) });
    await other.locator("tallyfold-trend .legend", { hasText: "usual" }).waitFor();
    await other.context().close();
    await trend.getByRole("button", { name: "Usual" }).click();
    await learned.waitFor({ state: "detached" });
  });

  test("compares no range of more than a week with the week before", async (t) => {
    const { tab } = await opened(t, { hash: "range=2026-03-02T00:00:00Z/2026-03-10T00:00:00Z" });
    assert.match(await tab.locator("[part=status]").textContent(), /more than 7 days are not/);
    const headers = tab.locator("tallyfold-destinations").getByRole("columnheader");
    assert.ok(!(await headers.allTextContents()).includes("Last week"));
  });

  test("exports what it shows, and shows commands for the same numbers", async (t) => {
    const { world, tab } = await opened(t);
    const table = (await delivery(world)).groupBy("integration");
    const view = tab.locator("tallyfold-destinations");
    const texts = {
      CSV: exportCounts(table, { format: "csv" }).text(),
      JSON: own(JSON.stringify(table, null, 1)),
    };
    for (const [label, text] of Object.entries(texts)) {
      await view.locator("summary", { hasText: "Export" }).click();
      const waiting = tab.waitForEvent("download");
      await view.getByRole("button", { name: label, exact: true }).click();
      const download = await waiting;
      assert.equal(own(await readFile(await download.path(), "utf8")), text);
      assert.match(
        download.suggestedFilename(),
        /^destinations-2026-03-10T0000-2026-03-11T0000\.(csv|json)$/,
      );
    }
    await view.locator("summary", { hasText: "Command" }).click();
    await view.locator("pre").first().waitFor();
    const [shell, , javascript] = await view.locator("pre").allTextContents();
    assert.equal(
      shell,
      "tallyfold delivery --from 2026-03-10T00:00:00Z --to 2026-03-11T00:00:00Z \\\n  --window 15m --by integration",
    );
    const [, expression] = /await Client\.fromEnv\(\)\.collect\((\{[\s\S]*?\})\);/.exec(javascript);
    const again = await world.client.collect(new Function(`return ${expression}`)());
    assert.ok(again.groupBy("integration").equals(table));
    await tab.keyboard.press("Escape");
  });

  /** A view as the picture that the menu exports: its texts and its fills. */
  async function pictureOf(tab, name) {
    const view = tab.locator(`tallyfold-${name}`);
    await view.locator("summary", { hasText: "Export" }).click();
    const waiting = tab.waitForEvent("download");
    await view.getByRole("button", { name: "SVG", exact: true }).click();
    const download = await waiting;
    assert.match(download.suggestedFilename(), /\.svg$/);
    const text = await readFile(await download.path(), "utf8");
    // A program other than this page draws it, too.
    const drawn = await tab.evaluate(async (source) => {
      const image = new Image();
      image.src = `data:image/svg+xml,${encodeURIComponent(source)}`;
      await image.decode();
      const root = new DOMParser().parseFromString(source, "image/svg+xml");
      return {
        width: image.naturalWidth,
        texts: Array.from(root.querySelectorAll("text"), (it) => it.textContent),
        fills: Array.from(root.querySelectorAll("rect"), (it) => it.getAttribute("fill")),
      };
    }, text);
    const box = await view.locator("[part=view]").boundingBox();
    assert.equal(drawn.width, Math.floor(box.width));
    return drawn;
  }

  test("saves views as pictures", async (t) => {
    const { world, tab } = await opened(t);
    const table = await delivery(world);
    const pipeline = await pictureOf(tab, "pipeline");
    assert.ok(pipeline.texts.includes("Pipeline"));
    for (const name of ["success", "errors", "filtered"]) {
      assert.ok(pipeline.texts.includes(count(table.totals[name])), name);
    }
    assert.ok(!pipeline.texts.includes("Export"));
    const words = (await pictureOf(tab, "trend")).texts.join(" ");
    assert.match(words, /Failed events over time .* same time last week/);

    await tab.getByRole("tab", { name: "Over time" }).click();
    await ready(tab);
    const cells = tab.locator("tallyfold-heatmap tbody td");
    await cells.first().waitFor();
    const heatmap = await pictureOf(tab, "heatmap");
    assert.ok(heatmap.fills.length > (await cells.count()));
    assert.ok(heatmap.fills.includes("rgba(0,34,78,1)"), "the colour of the largest shares");
    const { integration } = table.groupBy("integration").top(1, { by: "errors" })[0].dimensions;
    assert.ok(heatmap.texts.includes(integration));
  });

  test("saves the alerts with the time and the status of each incident", async (t) => {
    const { tab } = await opened(t, { scene: "outage", hash: "view=alerts" });
    const times = tab.locator("tallyfold-timeline tbody .when");
    await times.first().waitFor();
    // A picture has a text for each line.
    const letters = (text) => text.replace(/\s/g, "");
    const drawn = letters((await pictureOf(tab, "timeline")).texts.join(""));
    for (const time of await times.allTextContents()) {
      assert.ok(drawn.includes(letters(time)), `${time} in ${drawn}`);
    }
  });

  test("is harmed by no value, however strange or many", async (t) => {
    const strange = [
      '<img src=x onerror="globalThis.hacked=1">',
      "javascript:globalThis.hacked=1",
      "\u202eright to left\u2066",
      "__proto__",
      "constructor",
      "'; rm -rf / #",
      "x".repeat(10_000),
      " ",
    ];
    const { tab } = await opened(
      t,
      {
        hash: "range=2026-03-10T10:00:00Z/2026-03-10T10:15:00Z",
        viewport: { width: 1280, height: 900 },
      },
      ({ sandbox }) => {
        const event = {
          timestamp: "2026-03-10T10:01:00Z",
          eventName: "e",
          writeKey: "w",
          outcome: "errors",
        };
        for (const [at, integration] of strange.entries()) {
          sandbox.record({ ...event, integration, count: 1_000_000 - at });
        }
        for (let at = 0; at < 20_000; at++) {
          sandbox.record({ ...event, integration: `group ${at}`, count: 1 });
        }
      },
    );
    const names = (await rowsOf(tab)).slice(0, strange.length).map(([name]) => name);
    const shown = strange.with(2, "\\u{202e}right to left\\u{2066}");
    assert.deepEqual(names.slice(0, 6), shown.slice(0, 6));
    assert.ok(names[6].startsWith("xxx") && names[6].length < 400);
    const overflow = () => tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.equal(await overflow(), 0);
    await tab.getByRole("button", { name: /^Show all/ }).click();
    await ready(tab);
    const rendered = await tab.locator("tallyfold-destinations tbody tr").count();
    assert.ok(rendered < 100, String(rendered));
    const list = tab.locator("tallyfold-destinations .scroll");
    await list.evaluate((it) => it.scrollTo(0, 300_000));
    await tab.waitForFunction(() => {
      const view = document
        .querySelector("tallyfold-dashboard")
        .shadowRoot.querySelector("tallyfold-destinations");
      return Number(view.shadowRoot.querySelector("tbody tr[aria-rowindex]").ariaRowIndex) > 8_000;
    });
    for (const value of strange.slice(0, 6)) {
      await tab.goto(
        `${tab.url().split("#")[0]}#range=2026-03-10T10:00:00Z/2026-03-10T10:15:00Z&integration=${encodeURIComponent(value)}`,
      );
      await ready(tab);
      await tab.waitForFunction(
        (wanted) => document.querySelector("tallyfold-dashboard").where.integration?.[0] === wanted,
        value,
      );
      await ready(tab);
      assert.match((await rowsOf(tab)).at(-1)[1], /^(1,000,000|999,99\d)$/);
    }
    assert.equal(await overflow(), 0);
    assert.equal(await tab.evaluate(() => globalThis.hacked), undefined);
  });

  for (const colorScheme of ["light", "dark"]) {
    for (const width of [320, 1280]) {
      test(`has no finding of axe: ${colorScheme}, ${width} px`, async (t) => {
        const { tab } = await opened(t, { colorScheme, viewport: { width, height: 900 } });
        for (const page of ["Overview", "Over time", "Changes", "Alerts"]) {
          await tab.getByRole("tab", { name: page }).click();
          await ready(tab);
          await tab.waitForTimeout(300);
          const { violations } = await new AxeBuilder({ page: tab })
            .options({ resultTypes: ["violations"] })
            .analyze();
          const found = violations.map(({ id, nodes }) => [
            id,
            nodes.map((it) => String(it.target)),
          ]);
          assert.deepEqual(found, [], page);
          const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.equal(wide, 0, page);
        }
      });
    }
  }

  for (const width of [320, 768, 1280, 1920]) {
    test(`cuts no label short at ${width} px`, async (t) => {
      const range = "range=2026-03-10T01:00:00Z/2026-03-11T00:30:00Z";
      const { tab } = await opened(t, { hash: range, viewport: { width, height: 900 } });
      const cut = (view, selector) =>
        tab.locator(view).evaluate((element, found) => {
          const all = [...element.shadowRoot.querySelectorAll(found)];
          const isCut = (it) => it.scrollWidth > it.clientWidth || it.clientWidth === 0;
          return { all: all.length, cut: all.filter(isCut).map((it) => it.textContent) };
        }, selector);
      const names = await cut("tallyfold-destinations", "tbody .value");
      // On a phone, the longest may end with dots.
      assert.ok(names.all >= 12 && names.cut.length <= (width === 320 ? 3 : 0), String(names.cut));
      await tab.getByRole("tab", { name: "Over time" }).click();
      await ready(tab);
      await tab.locator("tallyfold-heatmap thead").waitFor();
      const times = await cut("tallyfold-heatmap", "thead th[colspan] > span");
      assert.ok(times.all >= 6);
      assert.deepEqual(times.cut, []);
      await tab.getByRole("tab", { name: "Alerts" }).click();
      await ready(tab);
      const labels = tab.locator("tallyfold-timeline .axis span");
      await labels.first().waitFor({ state: "attached" });
      for (const label of await labels.allTextContents()) assert.match(label, /:(00|15|30|45)$/);
      const refresh = await tab.getByRole("button", { name: "Refresh" }).boundingBox();
      const heading = await tab.getByRole("heading", { name: "Event delivery" }).boundingBox();
      assert.ok(Math.abs(refresh.y - heading.y) < 8, "next to the heading");
    });
  }

  test("is used by keyboard", async (t) => {
    const { tab } = await opened(t);
    await tab.getByRole("tab", { name: "Overview" }).focus();
    await tab.keyboard.press("ArrowRight");
    await tab.getByRole("tab", { name: "Over time", selected: true }).waitFor();
    await tab.keyboard.press("Home");
    const summary = tab.locator(".picker summary");
    await summary.focus();
    await tab.keyboard.press("Enter");
    assert.ok(await tab.locator(".picker details").evaluate((it) => it.open));
    await tab.keyboard.press("Escape");
    assert.ok(!(await tab.locator(".picker details").evaluate((it) => it.open)));
    const row = tab.locator("tallyfold-destinations tbody th button").first();
    const name = (await row.textContent()).trim();
    await row.focus();
    await tab.keyboard.press("Enter");
    await ready(tab);
    assert.deepEqual(
      await tab.evaluate(() => document.querySelector("tallyfold-dashboard").where),
      { integration: [name] },
    );
  });

  test("keeps the focus at a row that moves, and at the table if the row is gone", async (t) => {
    const { tab } = await opened(t);
    const view = tab.locator("tallyfold-destinations");
    const names = (await view.locator("tbody th").allTextContents()).map((it) => it.trim());
    const focusedAfter = async (q) => {
      await view.evaluate((it, sought) => it.tell({ q: sought }), q);
      await ready(tab);
      return await view.evaluate(({ shadowRoot: { activeElement } }) =>
        activeElement?.matches(".scroll") ? "the table" : activeElement?.textContent.trim(),
      );
    };
    await view.locator("tbody th button").last().focus();
    assert.equal(await focusedAfter(names.at(-1)), names.at(-1));
    assert.equal(await focusedAfter(undefined), names.at(-1));
    assert.equal(await focusedAfter(names[0]), "the table");
  });

  test("writes numbers and times in the page's language, from right to left too", async (t) => {
    const { world, tab } = await opened(t, { viewport: { width: 1280, height: 900 } }, (it) => {
      it.lang = 'lang="ar-EG" dir="rtl"';
    });
    const { totals } = await delivery(world);
    const [, failed] = (await rowsOf(tab)).at(-1);
    assert.equal(failed, new Intl.NumberFormat("ar-EG").format(totals.errors));
    assert.equal(await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0);
  });

  test("switches clusters, and shows each in its own time zone", async (t) => {
    const { tab } = await opened(t, { timezoneId: "America/New_York" }, (it) => {
      const clusters = JSON.stringify([
        { name: "eu", src: "/tallyfold" },
        { name: "us", src: "/tallyfold/" },
      ]);
      it.element = `<tallyfold-dashboard clusters='${clusters}'></tallyfold-dashboard>`;
    });
    await tab.getByRole("group", { name: "Cluster" }).getByRole("button", { name: "us" }).click();
    await ready(tab);
    assert.ok(tab.url().includes("cluster=us"));
    await tab.getByRole("button", { name: "Local" }).click();
    await ready(tab);
    assert.match(
      await tab.locator(".picker summary").textContent(),
      /Mar 9, 20:00 – Mar 10, 20:00 EDT/,
    );
  });

  test("lists only the corrections of the cluster that is shown", async (t) => {
    const { world, tab } = await opened(t, { hash: "view=changes" }, (it) => {
      const clusters = JSON.stringify([
        { name: "eu", src: "/tallyfold" },
        { name: "us", src: "/us" },
      ]);
      it.element = `<tallyfold-dashboard clusters='${clusters}'></tallyfold-dashboard>`;
    });
    const other = await new World({ seed: 4 }).listen();
    t.after(() => other.close());
    await tab.route("**/us/**", async (route) => {
      const url = route.request().url().replace(`${world.url}us/`, `${other.url}tallyfold/`);
      await route.fulfill({ response: await route.fetch({ url }) });
    });
    const view = tab.locator("tallyfold-corrections section");
    const clusters = tab.getByRole("group", { name: "Cluster" });
    const choose = async (name) => {
      await clusters.getByRole("button", { name }).click();
      await ready(tab);
    };
    await choose("us");
    await choose("eu");
    assert.match(await view.textContent(), /4 windows may still change/);
    world.sandbox.record({
      timestamp: "2026-03-10T23:50:00Z",
      outcome: "errors",
      eventName: "order_placed",
      writeKey: "web",
      integration: "Zeppelin",
      count: 5,
    });
    await tab.getByRole("button", { name: "Refresh" }).click();
    await ready(tab);
    assert.match(await view.textContent(), /Zeppelin/);
    await choose("us");
    assert.match(await view.textContent(), /4 windows may still change/);
    await choose("eu");
    assert.match(await view.textContent(), /Zeppelin/);
  });

  for (const view of ["trend", "heatmap"]) {
    test(`removes a mark everywhere by the Escape key: ${view}`, async (t) => {
      const mark = "mark=2026-03-10T20:00:00Z/2026-03-10T21:30:00Z";
      const { tab } = await opened(t, { hash: `view=time&${mark}` });
      const notice = tab.getByText("Marked: ");
      const brush = tab.locator("tallyfold-heatmap [part=brush]");
      await notice.waitFor();
      await brush.waitFor();
      const place = { trend: ".chart", heatmap: "tbody td" }[view];
      await tab.locator(`tallyfold-${view} ${place}`).first().focus();
      await tab.keyboard.press("Escape");
      await notice.waitFor({ state: "detached" });
      await brush.waitFor({ state: "detached" });
      await ready(tab);
      assert.equal(new URL(tab.url()).hash, "#view=time");
      assert.equal(await tab.locator("tallyfold-trend").evaluate((it) => it.marked), undefined);
    });
  }

  describe("with rows and a mark that the page has set", () => {
    const where = { integration: ["Chat"] };
    const marked = { start: "2026-03-10T20:00:00Z", end: "2026-03-10T21:30:00Z" };

    /** A page that sets both before it adds the element. */
    async function prepared(t, hash = "") {
      const world = new World();
      world.element = "";
      await world.listen();
      const tab = await emptyTab(browser);
      t.after(async () => {
        await tab.context().close();
        world.close();
      });
      await tab.goto(`${world.url}${hash}`);
      await tab.evaluate(
        async (given) => {
          await customElements.whenDefined("tallyfold-dashboard");
          const dashboard = document.createElement("tallyfold-dashboard");
          document.body.append(Object.assign(dashboard, { src: "/tallyfold", ...given }));
        },
        { where, marked },
      );
      await ready(tab);
      return tab;
    }

    const shown = (tab) =>
      tab.locator("tallyfold-dashboard").evaluate((it) => ({ where: it.where, marked: it.marked }));

    for (const [hash, wanted] of [
      ["", { where, marked }],
      ["#unit=percent", { where, marked }],
      ["#event_name=page_viewed", { where: { event_name: ["page_viewed"] }, marked }],
      [
        "#mark=2026-03-10T12:00:00Z/2026-03-10T13:00:00Z",
        { where, marked: { start: "2026-03-10T12:00:00Z", end: "2026-03-10T13:00:00Z" } },
      ],
    ]) {
      test(`shows them unless the address has others: ${hash}`, async (t) => {
        const tab = await prepared(t, hash);
        assert.deepEqual(await shown(tab), wanted);
        assert.equal(new URL(tab.url()).hash, hash);
      });
    }

    test("keeps in the address that the viewer has removed them", async (t) => {
      const tab = await prepared(t);
      await tab.getByRole("button", { name: "Remove Destination Chat" }).click();
      await tab.getByRole("button", { name: "Clear" }).click();
      await ready(tab);
      const { hash } = new URL(tab.url());
      assert.deepEqual(await shown(tab), { where: {}, marked: undefined });
      assert.deepEqual(await shown(await prepared(t, hash)), { where: {}, marked: undefined });
      await tab.goBack();
      await tab.goBack();
      await ready(tab);
      assert.deepEqual(await shown(tab), { where, marked });
      await tab.goForward();
      await ready(tab);
      assert.deepEqual(await shown(tab), { where: {}, marked });
    });
  });

  // The incidents of the sandbox, in a range soon after each has begun.
  for (const [scene, by, measure, start, end] of [
    ["outage", "integration", "error_rate", "21:15", "21:45"],
    ["consent_filter", "write_key", "filtered_rate", "20:15", "21:00"],
    ["schema_mismatch", "event_name", "filtered_rate", "21:00", "22:00"],
    ["silent_source", "write_key", "success", "22:15", "23:45"],
    ["late_data", "write_key", "events", "23:45", "24:00"],
  ]) {
    test(`names the cause of the scene ${scene}`, async (t) => {
      const at = (time) => `${time === "24:00" ? "2026-03-11T00:00" : `2026-03-10T${time}`}:00Z`;
      const range = { start: at(start), end: at(end) };
      const mark = `mark=${range.start}/${range.end}`;
      const hash = `view=time&by=${by}&${mark}&cause.measure=${measure}`;
      const { world, tab } = await opened(t, { scene, hash });
      // What the scene has changed: the same traffic with and without it.
      const quiet = new World();
      const [staged, plain] = await Promise.all(
        [world, quiet].map((one) => delivery(one, [by], range)),
      );
      const moved = compare(plain, staged).rows.map(({ dimensions, delta }) => ({
        name: dimensions[by],
        by: [delta.success, delta.errors, delta.filtered].reduce(
          (sum, one) => sum + (one < 0n ? -one : one),
          0n,
        ),
      }));
      const [victim, ...others] = moved.filter((row) => row.by > 0n);
      assert.ok(victim !== undefined && others.length === 0);
      const card = tab.locator("tallyfold-cause");
      const cells = await card.locator("tbody tr").first().locator("td").allTextContents();
      assert.ok(
        cells.some((cell) => cell.trim() === victim.name),
        `${victim.name}: ${cells}`,
      );
      assert.ok((await card.locator("[part=sentence]").textContent()).includes(victim.name));
    });
  }

  for (const [scene, seed, measure, when] of [
    ["outage", 1, "error_rate", "Mar 10, 21:00 – 22:00"],
    ["outage", 3, "error_rate", "Mar 10, 21:00 – 22:00"],
    ["consent_filter", 3, "filtered_rate", "Mar 10, 20:00 – Mar 11, 00:00"],
    ["schema_mismatch", 3, "filtered_rate", "Mar 10, 21:00 – 22:00"],
    ["silent_source", 3, "events", "Mar 10, 23:00"],
  ]) {
    test(`says at once what has changed in the scene ${scene} with the seed ${seed}, and when`, async (t) => {
      const { world, tab } = await opened(t, { scene, seed });
      const change = tab.locator("tallyfold-cause .change").first();
      const said = (await change.innerText()).replace(/\s+/g, " ");
      assert.equal(await change.getAttribute("data-measure"), measure, said);
      assert.ok(said.includes(when), said);
      // What the scene has changed: the same traffic with and without it.
      const quiet = new World({ seed });
      const [staged, plain] = await Promise.all([world, quiet].map((one) => delivery(one)));
      const moved = compare(plain, staged).rows.filter(
        ({ delta }) => delta.success !== 0n || delta.errors !== 0n || delta.filtered !== 0n,
      );
      const named = await change.locator(".where .value").allTextContents();
      // A source that is silent is missing at nearly all destinations.
      if (scene === "silent_source")
        assert.ok(said.includes("everything alike") && moved.length > 20, said);
      else assert.ok(named.length > 0, said);
      for (const name of named.map((text) => text.trim())) {
        const isMoved = ({ dimensions: { integration, reason } }) =>
          [integration, reason || "no reason given"].includes(name);
        assert.ok(moved.some(isMoved), name);
      }
      await change.getByRole("button", { name: "Show" }).click();
      await ready(tab);
      const place = new URLSearchParams(new URL(tab.url()).hash.slice(1));
      assert.equal(place.get("view"), "time");
      assert.ok(place.has("mark"));
      const sentence = tab.locator("tallyfold-cause [part=sentence]");
      await sentence.waitFor();
      assert.ok((await sentence.innerText()).startsWith(measure));
    });
  }

  test("has views that stand alone, and tell of what was chosen", async (t) => {
    const world = await new World().listen();
    t.after(() => world.close());
    world.element = `<tallyfold-reasons src="/tallyfold" period="24h"></tallyfold-reasons>
      <tallyfold-pipeline src="/tallyfold"></tallyfold-pipeline>
      <tallyfold-heatmap src="/tallyfold" period="12h"></tallyfold-heatmap>`;
    const tab = await emptyTab(browser);
    t.after(() => tab.context().close());
    await tab.goto(world.url);
    await tab.locator("tallyfold-reasons tbody th button").first().waitFor();
    await tab.locator("tallyfold-heatmap table").first().waitFor();
    const table = await delivery(world);
    assert.deepEqual((await rowsOf(tab, "tallyfold-reasons")).at(-1), [
      "All reasons",
      count(table.totals.filtered),
      count(table.totals.errors),
    ]);
    const told = await tab.evaluate(() => {
      return new Promise((resolve) => {
        document.addEventListener("tallyfold-select", ({ detail }) => resolve(detail));
        document
          .querySelector("tallyfold-reasons")
          .shadowRoot.querySelector("tbody th button")
          .click();
      });
    });
    assert.equal(told.dimension, "reason");
  });

  describe("fires events", () => {
    const ELEMENTS = {
      dashboard: '<tallyfold-dashboard src="/tallyfold"></tallyfold-dashboard>',
      trend: '<tallyfold-trend src="/tallyfold"></tallyfold-trend>',
      pipeline: '<tallyfold-pipeline src="/tallyfold"></tallyfold-pipeline>',
    };

    /** The events of a page in their order, and what was on the page when each was fired. */
    async function fired(t, name, fails, wanted) {
      const world = new World();
      world.fails = fails;
      world.element = ELEMENTS[name];
      await world.listen();
      const tab = await emptyTab(browser);
      t.after(async () => {
        await tab.context().close();
        world.close();
      });
      await tab.addInitScript(() => {
        globalThis.fired = [];
        const textOf = (root) =>
          [...root.querySelectorAll("*")].reduce(
            (text, it) => text + (it.shadowRoot ? textOf(it.shadowRoot) : ""),
            root.textContent,
          );
        const has = (root, selector) =>
          root.querySelector(selector) !== null ||
          [...root.querySelectorAll("*")].some(
            (it) => it.shadowRoot && has(it.shadowRoot, selector),
          );
        for (const type of ["tallyfold-load", "tallyfold-error"]) {
          addEventListener(type, ({ detail, target }) => {
            fired.push({
              type,
              total: detail.table?.totals.success.toLocaleString("en"),
              code: detail.error?.code,
              text: textOf(target.shadowRoot),
              hasCanvas: has(target.shadowRoot, "canvas"),
            });
          });
        }
      });
      await tab.goto(world.url);
      await tab.waitForFunction((wanted) => fired.length >= wanted, wanted);
      // Another one would come at the same time.
      await tab.waitForTimeout(500);
      return await tab.evaluate(() => fired);
    }

    for (const name of Object.keys(ELEMENTS)) {
      test(`when counts are on the page: ${name}`, async (t) => {
        const [event, ...others] = await fired(t, name, () => false, 1);
        assert.deepEqual([event.type, others], ["tallyfold-load", []]);
        if (name === "trend") assert.match(event.text, /delivered/);
        else assert.ok(event.text.includes(event.total), event.total);
        assert.equal(event.hasCanvas, name !== "pipeline");
        assert.doesNotMatch(event.text, /Reading|Loading/);
      });

      test(`when no counts could be read: ${name}`, async (t) => {
        const [event, ...others] = await fired(t, name, (body) => body.includes("dimensions"), 1);
        assert.deepEqual([event.type, others], ["tallyfold-error", []]);
        assert.equal(event.code, "server_error");
        assert.match(event.text, /could not be read/);
      });
    }

    test("when some counts could not be read", async (t) => {
      const fails = (body) => body.includes('"start":"2026-03-10T06:');
      const events = await fired(t, "dashboard", fails, 2);
      assert.deepEqual(
        events.map(({ type }) => type),
        ["tallyfold-load", "tallyfold-error"],
      );
      for (const { text } of events) assert.match(text, /Some counts are missing/);
    });
  });

  test("can be imported by a server that renders pages", async () => {
    assert.deepEqual(Object.keys(await import("tallyfold/dashboard")), []);
  });

  test("takes at most 60 kB before the first view", async (t) => {
    const dist = new URL("../dist/", import.meta.url);
    const seen = new Set();
    let bytes = 0;
    const visit = async (name) => {
      if (seen.has(name)) return;
      seen.add(name);
      const text = await readFile(new URL(name, dist), "utf8");
      bytes += gzipSync(text, { level: 9 }).length;
      const imported = text.matchAll(/(?:from|import)\s*"\.\/(dashboard[\w.-]*\.js)"/g);
      for (const [, next] of imported) await visit(next);
    };
    await visit("dashboard.js");
    t.diagnostic(`${bytes} bytes in ${seen.size} files`);
    assert.ok(bytes < 60_000);
    const all = (await readdir(dist)).filter((name) => /^dashboard.*\.js$/.test(name));
    assert.ok(all.length > seen.size);
  });
});

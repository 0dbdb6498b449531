// What the dashboard and its views show after something has changed: a filter, a server, the range, or their place in the page.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { chromium } from "playwright-core";
import { CountTable } from "tallyfold";
import { CHROMIUM } from "./chromium.mjs";
import { count, DAY, emptyTab, ready, rowsOf, share, World } from "./dashboard_world.mjs";

let browser;
before(async () => {
  browser = await chromium.launch(CHROMIUM);
});
after(() => browser?.close());

/** A page with these elements, or with a dashboard. */
async function opened(
  t,
  { element, scene, prepare = () => {}, search = "", hash, ...options } = {},
) {
  const world = new World(scene && { scene });
  if (element) world.element = element;
  await prepare(world);
  await world.listen();
  const tab = await emptyTab(browser, options);
  const errors = [];
  tab.on("pageerror", (error) => errors.push(error.stack));
  t.after(async () => {
    // A request may be under way that another world answers.
    await tab.unrouteAll({ behavior: "ignoreErrors" });
    await tab.context().close();
    world.close();
    assert.deepEqual(errors, []);
  });
  await tab.goto(world.url + search + (hash ? `#${hash}` : ""));
  if (world.element.startsWith("<tallyfold-dashboard")) await ready(tab);
  return { world, tab };
}

const CLUSTERS = ["eu", "us", "ap", "sa", "af"].map((name) => {
  return { name, src: name === "eu" ? "/tallyfold" : `/${name}` };
});
const clustered = (some) =>
  `<tallyfold-dashboard clusters='${JSON.stringify(some)}'></tallyfold-dashboard>`;

/** Answers requests to `/us` from another world. */
async function withOther(t, { world, tab }) {
  const other = await new World({ seed: 4 }).listen();
  t.after(() => other.close());
  await tab.route("**/us/**", async (route) => {
    const url = route.request().url().replace(`${world.url}us/`, `${other.url}tallyfold/`);
    await route.fulfill({ response: await route.fetch({ url }) });
  });
  return other;
}

const delivery = (world, dimensions = ["integration", "reason"], more = {}) =>
  world.client.collect({ ...DAY, metric: "event_delivery", dimensions, window: "15m", ...more });

/** Sets properties of an element, and waits until it is updated. Tables are passed as JSON. */
const set = (tab, selector, values) =>
  tab.locator(selector).evaluate(async (it, values) => {
    Object.assign(it, JSON.parse(values));
    await it.updateComplete;
  }, JSON.stringify(values));

const read = (tab, selector) =>
  tab.waitForFunction((selector) => {
    const view = document.querySelector(selector);
    return view.table !== undefined && !view.loading && !view.shadowRoot.querySelector(".skeleton");
  }, selector);

describe("the range picker", () => {
  test("goes on after a mistake", async (t) => {
    const { tab } = await opened(t, { timezoneId: "America/New_York" });
    const submit = async (from, to) => {
      await tab.locator("#from").fill(from);
      await tab.locator("#to").fill(to);
      await tab.locator(".between .primary").click();
    };
    await tab.locator(".picker summary").click();
    await submit("2026-03-10T10:00", "2026-03-10T09:00");
    const status = tab.locator(".between [role=status]");
    assert.match(await status.textContent(), /The end must be after the start/);
    await tab.keyboard.press("Escape");
    await tab.getByRole("button", { name: "Local" }).click();
    await ready(tab);
    assert.match(await tab.locator(".picker summary").textContent(), /EDT/);
    await tab.locator(".picker summary").click();
    assert.match(await tab.locator(".between .go").textContent(), /Times are in America\/New_York/);
    await submit("2026-03-10T09:00", "2026-03-10T10:00");
    await ready(tab);
    assert.equal(await status.textContent(), "");
    await tab.getByRole("tab", { name: "Changes" }).click();
    await tab.locator("tallyfold-values").waitFor();
  });

  test("moves by whole windows up to now", async (t) => {
    const { world, tab } = await opened(t, { hash: "range=3h" });
    await tab.getByRole("button", { name: "Earlier" }).click();
    await ready(tab);
    const now = "2026-03-11T01:07:12.345Z";
    await tab.clock.setFixedTime(now);
    world.now = { monotonicMs: 0, unixMs: Date.parse(now) };
    for (const end of ["2026-03-11T00:05:00Z", "2026-03-11T01:05:00Z"]) {
      await tab.getByRole("button", { name: "Later" }).click();
      await ready(tab);
      assert.ok(tab.url().endsWith(`/${end}`), tab.url());
    }
  });

  test("names a time zone that is neither UTC nor the browser's", async (t) => {
    const element =
      '<tallyfold-dashboard src="/tallyfold" zone="Europe/Berlin"></tallyfold-dashboard>';
    const { tab } = await opened(t, { element, timezoneId: "America/New_York" });
    const zones = tab.getByRole("group", { name: "Time zone" });
    const pressed = zones.locator("[aria-pressed=true]");
    assert.equal((await pressed.textContent()).trim(), "Europe/Berlin");
    await zones.getByRole("button", { name: "Local" }).click();
    await ready(tab);
    assert.equal((await pressed.textContent()).trim(), "Local");
    assert.match(await tab.locator(".picker summary").textContent(), /EDT/);
    await zones.getByRole("button", { name: "Europe/Berlin" }).click();
    await ready(tab);
    assert.match(await tab.locator(".picker summary").textContent(), /GMT\+1/);
  });

  // In this night, clocks in Berlin show the time from 02:00 to 03:00 twice.
  for (const range of [
    "2025-10-26T00:30:00Z/2025-10-26T02:00:00Z",
    "2025-10-25T22:00:00Z/2025-10-26T00:30:00Z",
    "2025-10-26T00:30:00Z/2025-10-26T01:30:00Z",
    "2025-10-26T01:30:00Z/2025-10-26T03:00:00Z",
  ]) {
    test(`keeps a range that the viewer does not change when clocks go back: ${range}`, async (t) => {
      const { tab } = await opened(t, { hash: `range=${range}&zone=Europe/Berlin` });
      await tab.locator(".picker summary").click();
      await tab.locator(".between .primary").click();
      await ready(tab);
      assert.equal(await tab.locator(".picker details[open]").count(), 0);
      assert.match(tab.url(), new RegExp(`range=${range}`));
    });
  }
});

describe("a view whose code can't be loaded", () => {
  const heatmap = (path) => path.includes("/dashboard-heatmap-");

  test("says so in its place, and loads when the server answers: in the dashboard", async (t) => {
    const { world, tab } = await opened(t);
    world.lacks = heatmap;
    await tab.getByRole("tab", { name: "Over time" }).click();
    const place = tab.locator("tallyfold-heatmap");
    await place.getByRole("alert").getByText("could not be loaded").waitFor();
    const again = place.getByRole("button", { name: "Try again" });
    const asked = world.asked.length;
    await again.click();
    await again.waitFor();
    assert.ok(world.asked.slice(asked).some(heatmap));
    // The other views are there, and the page can be used.
    await tab.locator("tallyfold-trend canvas").first().waitFor();
    world.lacks = () => false;
    await again.focus();
    await tab.keyboard.press("Enter");
    await place.locator("tbody td").first().waitFor();
    assert.equal(await place.getByRole("alert").count(), 0);
    await ready(tab);
  });

  test("says so in its place, and loads when the server answers: alone", async (t) => {
    const { world, tab } = await opened(t, {
      element: '<tallyfold-heatmap src="/tallyfold"></tallyfold-heatmap>',
      prepare: (world) => {
        world.lacks = heatmap;
      },
    });
    const place = tab.locator("tallyfold-heatmap");
    const again = place.getByRole("button", { name: "Try again" });
    await again.waitFor();
    world.lacks = () => false;
    await again.click();
    await place.locator("tbody td").first().waitFor();
    assert.equal(await place.getByRole("alert").count(), 0);
  });

  test("leaves the page to report that it has read the counts", async (t) => {
    const { world, tab } = await opened(t);
    world.lacks = heatmap;
    await tab.getByRole("tab", { name: "Over time" }).click();
    await tab.locator("tallyfold-heatmap").getByRole("alert").waitFor();
    const loaded = tab.evaluate(
      () => new Promise((resolve) => addEventListener("tallyfold-load", () => resolve(true))),
    );
    await tab.getByRole("button", { name: "Refresh" }).click();
    assert.equal(await loaded, true);
  });
});

describe("without events, a view says only what is known", () => {
  const MORNING = { start: "2026-03-10T00:00:00Z", end: "2026-03-10T06:00:00Z" };
  const nobody = { integration: ["Nobody"] };
  const EARLIER = { start: "2026-03-09T00:00:00Z", end: "2026-03-09T06:00:00Z" };
  const silent = new World({ seed: undefined });

  for (const name of ["destinations", "heatmap", "values"]) {
    for (const [what, where, wanted] of [
      ["all was read", {}, "No events were counted in Mar 10, 00:00 – Mar 11, 00:00."],
      [
        "a part is missing",
        {},
        "A part of Mar 10, 00:00 – Mar 11, 00:00 was not read. The rest has no events.",
      ],
      ["nothing was read", {}, "Nothing of Mar 10, 00:00 – Mar 11, 00:00 was read."],
      [
        "the filter matches nothing",
        nobody,
        "No events that match the filter were counted in Mar 10, 00:00 – Mar 11, 00:00.",
      ],
      [
        "a part is missing, and the filter matches nothing",
        nobody,
        "A part of Mar 10, 00:00 – Mar 11, 00:00 was not read. The rest has no events that match the filter.",
      ],
    ]) {
      test(`${name}: ${what}`, async (t) => {
        const { world, tab } = await opened(t, {
          element: `<tallyfold-${name}></tallyfold-${name}>`,
        });
        const ranges = { "a part": MORNING, nothing: EARLIER };
        const [, range = DAY] = Object.entries(ranges).find(([it]) => what.startsWith(it)) ?? [];
        // The filter matches nothing although there are events.
        const from = what.includes("filter") ? world : silent;
        const table = await delivery(from, undefined, range);
        await set(tab, `tallyfold-${name}`, { table, range: DAY, where });
        const said = tab.locator(`tallyfold-${name} [part=empty] p`);
        assert.equal((await said.textContent()).trim(), wanted);
      });
    }
  }
});

describe("a view that stands alone", () => {
  test("reads the dimension of a filter that is set later", async (t) => {
    const element = '<tallyfold-destinations src="/tallyfold"></tallyfold-destinations>';
    const { world, tab } = await opened(t, { element });
    await read(tab, "tallyfold-destinations");
    const table = await delivery(world, ["write_key"]);
    const [{ dimensions }] = table.groupBy("write_key").top(1, { by: "errors" });
    const where = { write_key: [dimensions.write_key] };
    await set(tab, "tallyfold-destinations", { where });
    await read(tab, "tallyfold-destinations");
    const { totals } = table.filter(where);
    assert.deepEqual((await rowsOf(tab)).at(-1), [
      "All destinations",
      ...[totals.errors, totals.filtered, totals.success].map(count),
    ]);
  });

  test("shows an error if the counts of the page lack the dimension of a filter", async (t) => {
    const { world, tab } = await opened(t, {
      element: "<tallyfold-destinations></tallyfold-destinations>",
    });
    const view = tab.locator("tallyfold-destinations");
    const table = await delivery(world);
    await set(tab, "tallyfold-destinations", { table, where: { write_key: ["web"] } });
    assert.match(await view.getByRole("alert").textContent(), /filters by write_key/);
    assert.equal(await view.locator("table").count(), 0);
    await set(tab, "tallyfold-destinations", { where: {} });
    await view.locator("table").waitFor();
  });

  for (const name of ["destinations", "reasons", "pipeline"]) {
    test(`marks missing windows, and says why they are missing: ${name}`, async (t) => {
      const { world, tab } = await opened(t, {
        element: `<tallyfold-${name} src="/tallyfold"></tallyfold-${name}>`,
        prepare: (it) => {
          it.fails = (body) => /"start":"2026-03-10T06:/.test(body);
        },
      });
      const view = tab.locator(`tallyfold-${name}`);
      await view.locator(".swatch.partial").waitFor();
      await view.locator(".swatch.provisional").waitFor();
      assert.match(await view.getByRole("alert").textContent(), /Some counts are missing/);
      world.fails = () => false;
      await view.getByRole("button", { name: "Try again" }).click();
      await view.locator(".swatch.partial").waitFor({ state: "detached" });
      assert.equal(await view.getByRole("alert").count(), 0);
    });
  }

  test("reads from its new server only", async (t) => {
    const element = '<tallyfold-trend src="/tallyfold"></tallyfold-trend>';
    const page = await opened(t, { element });
    const { world, tab } = page;
    const other = await withOther(t, page);
    await read(tab, "tallyfold-trend");
    await tab.waitForLoadState("networkidle");
    await set(tab, "tallyfold-trend", { src: "/us" });
    await read(tab, "tallyfold-trend");
    const requests = () => world.asked.filter((it) => it.includes("/tallyfold/")).length;
    const [mine, others] = [requests(), other.asked.length];
    await tab.getByRole("button", { name: "Usual" }).click();
    await tab.locator("tallyfold-trend .key.usual").waitFor();
    assert.equal(requests(), mine);
    assert.ok(other.asked.length > others);
  });

  for (const name of ["destinations", "trend"]) {
    test(`reads again after it was moved while reading: ${name}`, async (t) => {
      let go;
      const { tab } = await opened(t, {
        element: `<tallyfold-${name} src="/tallyfold"></tallyfold-${name}>`,
        prepare: (it) => {
          it.hangs = new Promise((resolve) => {
            go = resolve;
          });
        },
      });
      await tab.waitForFunction(
        (name) => document.querySelector(name).loading,
        `tallyfold-${name}`,
      );
      await tab.evaluate(() => document.body.append(document.querySelector("main > *")));
      go();
      await read(tab, `tallyfold-${name}`);
    });
  }
});

describe("counts with missing windows", () => {
  /** Steps are longer than windows: 30 hours of five minutes. */
  const RANGE = { start: "2026-03-09T18:00:00Z", end: DAY.end };
  const EARLIER = { start: "2026-03-02T18:00:00Z", end: "2026-03-04T00:00:00Z" };
  const without = (table, { start, end }, hole) =>
    CountTable.mergeAll([
      table.between({ start, end: hole.start }),
      table.between({ start: hole.end, end }),
    ]);

  async function given(t, name, hole, holeBefore) {
    const page = await opened(t, { element: `<tallyfold-${name}></tallyfold-${name}>` });
    const counts = (range) => delivery(page.world, ["integration"], { ...range, window: "5m" });
    const [now, earlier] = [await counts(RANGE), await counts(EARLIER)];
    await set(page.tab, `tallyfold-${name}`, {
      table: hole ? without(now, RANGE, hole) : now,
      tableBefore: holeBefore ? without(earlier, EARLIER, holeBefore) : earlier,
      range: RANGE,
    });
    return page.tab.locator(`tallyfold-${name}`);
  }

  const LAST_WEEK = { start: "2026-03-03T05:00:00Z", end: "2026-03-03T05:05:00Z" };

  test("are not compared with an incomplete step of last week: trend", async (t) => {
    const view = await given(t, "trend", undefined, LAST_WEEK);
    await view.locator("summary", { hasText: "Table" }).click();
    const row = view.locator("tbody tr");
    const lastWeek = async (time) =>
      await row
        .filter({ hasText: `Mar 10, ${time}` })
        .locator("td")
        .nth(1)
        .textContent();
    assert.equal(await lastWeek("05:00 – 05:15"), "");
    assert.match(await lastWeek("05:15 – 05:30"), /^\d/);
  });

  test("are not compared with an incomplete step of last week: heatmap", async (t) => {
    const view = await given(t, "heatmap", undefined, LAST_WEEK);
    const readout = async (slot) => {
      await view.locator("tbody tr").first().locator("td").nth(slot).focus();
      return await view.locator(".readout").textContent();
    };
    // Each column is half an hour.
    assert.doesNotMatch(await readout(22), /Last week/);
    assert.match(await readout(23), /Last week/);
  });

  test("are marked as incomplete even if they are provisional", async (t) => {
    const hole = { start: "2026-03-10T23:40:00Z", end: "2026-03-10T23:45:00Z" };
    const view = await given(t, "heatmap", hole);
    const last = view.locator("tbody tr").first().locator("td").last();
    assert.match(await last.getAttribute("class"), /partial/);
  });
});

test("alerts that were found with history stay when the range moves on", async (t) => {
  const { world, tab } = await opened(t, {
    element:
      '<tallyfold-dashboard src="/tallyfold" period="3h" view="alerts"></tallyfold-dashboard>',
    scene: "outage",
  });
  await tab.locator("tallyfold-dashboard").evaluate((it) => {
    it.rules =
      '[[rule]]\nname = "failing"\nkind = "threshold"\nmeasure = "error_rate"\nabove = "1%"\nby = ["integration"]';
  });
  const button = tab.getByRole("button", { name: /Read \d+ day/ });
  await button.click();
  await button.waitFor({ state: "detached" });
  const summary = tab.locator("tallyfold-timeline .summary");
  await summary.getByText(/^[1-9]\d* incident/).waitFor();
  world.now = { monotonicMs: 0, unixMs: Date.parse("2026-03-11T00:10:10Z") };
  await tab.clock.setFixedTime("2026-03-11T00:10:10Z");
  const texts = await tab.evaluate(async () => {
    const dashboard = document.querySelector("tallyfold-dashboard");
    const { shadowRoot } = dashboard.shadowRoot.querySelector("tallyfold-timeline");
    const texts = new Set();
    const timer = setInterval(() => {
      texts.add(shadowRoot.querySelector(".summary b")?.textContent);
    }, 20);
    await dashboard.refresh();
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    clearInterval(timer);
    return [...texts];
  });
  await ready(tab);
  for (const text of texts) assert.match(text ?? "", /^[1-9]\d* incident/);
  assert.equal(await button.count(), 0);
});

describe("after a change of the cluster", () => {
  test("alerts are those of the shown cluster", async (t) => {
    const page = await opened(t, {
      element: clustered(CLUSTERS.slice(0, 2)),
      hash: "view=alerts",
      scene: "outage",
    });
    const { tab } = page;
    await withOther(t, page);
    const button = tab.getByRole("button", { name: /Read \d+ days/ });
    await button.click();
    await button.waitFor({ state: "detached" });
    await tab.getByRole("group", { name: "Cluster" }).getByRole("button", { name: "us" }).click();
    // The history of the first cluster is not shown, and that of the second can be read.
    await button.waitFor();
  });

  test("the selector names the cluster of the address", async (t) => {
    const page = await opened(t, { element: clustered(CLUSTERS) });
    const { tab } = page;
    await withOther(t, page);
    const selector = tab.getByRole("combobox", { name: "Cluster" });
    for (const name of ["us", "eu", "us", "eu"]) {
      await selector.selectOption(name);
      await ready(tab);
    }
    await tab.goBack();
    await ready(tab);
    assert.match(tab.url(), /cluster=us/);
    assert.equal(await selector.inputValue(), "us");
  });
});

for (const known of [1, 2, 5]) {
  test(`a cluster that the page does not have is an error: one of ${known}`, async (t) => {
    const { world, tab } = await opened(t, {
      element: `<div>${clustered(CLUSTERS.slice(0, known))}</div>`,
      hash: "cluster=asia",
    });
    const alert = tab.getByRole("alert");
    assert.match(await alert.textContent(), /there is no cluster “asia”: want eu/);
    assert.ok(!world.asked.some((path) => path.includes("/tallyfold/")));
    const selector = tab.locator("header [aria-label=Cluster]");
    if (known > 4) await selector.selectOption("eu");
    else await selector.getByRole("button", { name: "eu" }).click();
    await ready(tab);
    assert.ok((await rowsOf(tab)).length > 10);
    assert.equal(await alert.count(), 0);
  });
}

test("commands print the numbers of the shown cluster only", async (t) => {
  const { tab } = await opened(t, { element: clustered(CLUSTERS.slice(0, 2)), hash: "cluster=eu" });
  const view = tab.locator("tallyfold-destinations");
  await view.locator("summary", { hasText: "Command" }).click();
  await view.locator("pre").first().waitFor();
  const [shell, ...programs] = await view.locator("pre").allTextContents();
  assert.match(shell, /^tallyfold delivery --cluster eu --from /);
  for (const program of programs) assert.match(program, /cluster "eu"/);
});

test("a range without any delivery is compared with last week and with ingestion", async (t) => {
  const { tab } = await opened(t);
  const empty = await delivery(new World({ seed: undefined }));
  await tab.evaluate(async (json) => {
    const dashboard = document.querySelector("tallyfold-dashboard");
    const { CountTable } = await import("/modules/table.js");
    dashboard.table = CountTable.fromJSON(json);
    dashboard.requestUpdate();
    await dashboard.updateComplete;
  }, JSON.stringify(empty));
  const stages = tab.locator("tallyfold-pipeline [data-stage=success] strong");
  await stages.getByText(/^0$/).waitFor();
  const ingested = tab.locator("tallyfold-pipeline [data-stage=ingested] [data-count]");
  assert.equal(await ingested.count(), 3);
  await tab.locator("tallyfold-trend canvas").first().waitFor();
  await tab.getByRole("tab", { name: "Changes" }).click();
  await tab.locator("tallyfold-silent tbody tr").nth(5).waitFor();
});

for (const name of ["pipeline", "reasons", "destinations"]) {
  test(`counts that lack a dimension are no failure: ${name}`, async (t) => {
    const element = `<tallyfold-${name}></tallyfold-${name}>`;
    const { world, tab } = await opened(t, { element });
    const table = await delivery(world, ["event_name"]);
    await set(tab, `tallyfold-${name}`, { table });
    const view = tab.locator(`tallyfold-${name}`);
    if (name === "pipeline") {
      const failed = view.locator("[data-stage=errors] strong");
      assert.equal(await failed.textContent(), count(table.totals.errors));
    } else await view.getByText("These counts do not have this dimension").waitFor();
    await view.locator("summary", { hasText: "Export" }).click();
    await view.getByRole("button", { name: "SVG" }).waitFor();
  });
}

test("files and commands are of the range that is shown while another one is read", async (t) => {
  const { world, tab } = await opened(t);
  let go;
  world.hangs = new Promise((resolve) => {
    go = resolve;
  });
  t.after(() => go());
  await tab.locator(".picker summary").click();
  await tab.getByRole("button", { name: "Last 3 days" }).click();
  await tab.locator(".grid.stale").waitFor();
  const view = tab.locator("tallyfold-destinations");
  await view.locator("summary", { hasText: "Command" }).click();
  assert.match(await view.locator("pre").first().textContent(), /--from 2026-03-10T00:00:00Z/);
});

test("a search does not outlast the rows that it searches, and never hides without its box", async (t) => {
  const search = "event_name=Account+Clicked&reasons.q=play";
  const { tab } = await opened(t, { hash: `${search}&destinations.q=web` });
  await tab.locator("tallyfold-reasons").getByRole("searchbox").waitFor();
  await tab.getByRole("button", { name: "Sources", exact: true }).click();
  await ready(tab);
  assert.doesNotMatch(tab.url(), /\.q=/);
  assert.ok((await rowsOf(tab)).length > 1);
});

test("no counts of the last range stand next to those of the new one", async (t) => {
  const { tab } = await opened(t);
  const ingested = tab.locator("tallyfold-pipeline [data-stage=ingested] [data-count]");
  assert.equal(await ingested.count(), 3);
  await tab.route("**/event_ingestion**", () => {});
  await tab.locator(".picker summary").click();
  await tab.getByRole("button", { name: "Last hour" }).click();
  await tab.waitForFunction(
    () => document.querySelector("tallyfold-dashboard").range.start === "2026-03-10T23:05:00Z",
  );
  const isCompared = await tab.evaluate(async () => {
    const dashboard = document.querySelector("tallyfold-dashboard");
    await new Promise((resolve) => setTimeout(resolve, 500));
    const view = dashboard.shadowRoot.querySelector("tallyfold-pipeline");
    await view.updateComplete;
    return view.tableBefore !== undefined;
  });
  assert.equal(await ingested.count(), 0);
  assert.equal(isCompared, false);
});

describe("a dashboard that is removed and added again", () => {
  const move = (tab) =>
    tab.evaluate(async () => {
      const dashboard = document.querySelector("tallyfold-dashboard");
      dashboard.remove();
      await new Promise((resolve) => setTimeout(resolve, 100));
      document.querySelector("main").append(dashboard);
    });

  test("keeps the defaults of its links", async (t) => {
    const { world, tab } = await opened(t);
    await tab.locator(".picker summary").click();
    await tab.getByRole("button", { name: "Last hour" }).click();
    await ready(tab);
    await move(tab);
    await ready(tab);
    await tab.getByRole("tab", { name: "Changes" }).click();
    await ready(tab);
    const { hash } = new URL(tab.url());
    assert.match(hash, /range=1h/);
    const other = await world.open(browser, { hash: hash.slice(1) });
    t.after(() => other.context().close());
    assert.match(await other.locator(".picker summary").textContent(), /Last hour/);
  });

  test("follows new windows", async (t) => {
    const world = await new World().listen();
    const tab = await emptyTab(browser);
    t.after(async () => {
      await tab.context().close();
      world.close();
    });
    await tab.clock.install({ time: "2026-03-11T00:05:00Z" });
    await tab.goto(world.url);
    await tab.clock.resume();
    await ready(tab);
    await tab.evaluate(() => {
      const dashboard = document.querySelector("tallyfold-dashboard");
      dashboard.remove();
      document.querySelector("main").append(dashboard);
    });
    world.now = { monotonicMs: 0, unixMs: Date.parse("2026-03-11T00:21:00Z") };
    await tab.clock.fastForward(16 * 60_000);
    await tab.waitForFunction(
      () => document.querySelector("tallyfold-dashboard").range.end === "2026-03-11T00:15:00Z",
    );
  });

  test("asks again for what it was reading", async (t) => {
    let go;
    const world = new World();
    world.hangs = new Promise((resolve) => {
      go = resolve;
    });
    await world.listen();
    const tab = await emptyTab(browser);
    t.after(async () => {
      await tab.context().close();
      world.close();
    });
    await tab.goto(world.url);
    await tab.waitForFunction(() => document.querySelector("tallyfold-dashboard").isReading);
    await tab.evaluate(() => document.body.append(document.querySelector("tallyfold-dashboard")));
    go();
    await ready(tab);
    assert.equal((await rowsOf(tab)).at(-1)[0], "All destinations");
  });
});

describe("a filter by reason", () => {
  async function filtered(t, hash) {
    const world = new World({ scene: "outage" });
    const [row] = (await delivery(world)).groupBy("reason").top(1, { by: "filtered" });
    const { reason } = row.dimensions;
    await world.listen();
    const asked = new URLSearchParams({ reason }).toString();
    const tab = await world.open(browser, { hash: `${asked}&${hash}` });
    t.after(async () => {
      await tab.context().close();
      world.close();
      assert.deepEqual(tab.errors, []);
    });
    return { world, tab, reason };
  }

  test("leaves shares those of all events", async (t) => {
    const { world, tab, reason } = await filtered(t, "unit=percent&destinations.sort=filtered");
    const table = await delivery(world);
    const whole = new Map(
      table
        .groupBy("integration")
        .rows.map((row) => [row.dimensions.integration, row.success + row.errors + row.filtered]),
    );
    const rows = table.filter({ reason: [reason] }).groupBy("integration").rows;
    const rates = rows.map((row) => {
      const { integration } = row.dimensions;
      return [integration, Number(row.filtered) / Number(whole.get(integration))];
    });
    rates.sort(([, one], [, other]) => other - one);
    const shown = (await rowsOf(tab)).map(([name, , part]) => [name, part]);
    const all = [...whole.values()].reduce((sum, it) => sum + it, 0n);
    const own = rows.reduce((sum, it) => sum + it.filtered, 0n);
    assert.deepEqual(
      shown.slice(0, 3),
      rates.slice(0, 3).map(([name, it]) => [name, share(it)]),
    );
    assert.deepEqual(shown.at(-1), ["All destinations", share(Number(own) / Number(all))]);
  });

  test("leaves the error budget that of all events", async (t) => {
    const { world, tab } = await filtered(t, "view=alerts");
    const budget = tab.locator("tallyfold-budget");
    await budget.locator("tbody tr").first().waitFor();
    const other = await world.open(browser, { hash: "view=alerts" });
    t.after(() => other.context().close());
    const used = async (page) =>
      await page
        .locator("tallyfold-budget tbody tr")
        .evaluateAll((rows) => rows.map((row) => row.textContent.replace(/\s+/g, " ")));
    assert.deepEqual(await used(tab), await used(other));
    assert.match(
      await budget.locator("section").textContent(),
      /The filter by reason does not apply here/,
    );
  });

  test("lets a change be explained by counts only", async (t) => {
    const mark = "mark=2026-03-10T21:15:00Z/2026-03-10T21:45:00Z";
    const { tab } = await filtered(t, `view=time&${mark}`);
    const measures = tab.getByRole("combobox", { name: "What changed" });
    assert.equal(await measures.inputValue(), "events");
    assert.deepEqual(
      await measures.locator("option").evaluateAll((all) => all.map((it) => it.value)),
      ["errors", "filtered", "success", "events"],
    );
  });
});

test("the usual values of another unit are not drawn", async (t) => {
  const { tab } = await opened(t, { hash: "view=time&trend.usual=shown" });
  const usual = tab.locator("tallyfold-trend .key.usual");
  await usual.waitFor();
  await tab.locator("tallyfold-trend").evaluate((it) => {
    it.load = () => new Promise(() => {});
  });
  await tab.getByRole("button", { name: "Percent" }).click();
  await tab.getByRole("heading", { name: "Failed share over time" }).waitFor();
  assert.equal(await usual.count(), 0);
});

test("corrections are those of the shown rows", async (t) => {
  const { world, tab } = await opened(t, { hash: "view=changes" });
  const late = { timestamp: "2026-03-10T23:50:00Z", eventName: "order_placed", writeKey: "web" };
  for (const [integration, count] of [
    ["Zeppelin", 5],
    ["Chat", 3],
  ]) {
    world.sandbox.record({ ...late, outcome: "errors", integration, count });
  }
  await tab.getByRole("button", { name: "Refresh" }).click();
  await ready(tab);
  const view = tab.locator("tallyfold-corrections section");
  const failed = async () => (await view.locator("tbody tr td").nth(2).textContent()).trim();
  assert.equal(await failed(), "+8");
  const hash = new URLSearchParams({ integration: "Chat", view: "changes" }).toString();
  await tab.evaluate((hash) => {
    location.hash = hash;
  }, hash);
  await tab.locator(".crumb", { hasText: "Chat" }).waitFor();
  await ready(tab);
  assert.equal(await failed(), "+3");
  assert.doesNotMatch(await view.textContent(), /Zeppelin/);
});

test("the parameters of the page stay in the address", async (t) => {
  const element = '<tallyfold-dashboard src="/tallyfold" address="query"></tallyfold-dashboard>';
  const { tab } = await opened(t, { element, search: "?tab=a%20b&flag&unit=counts" });
  await tab.getByRole("button", { name: "Percent" }).click();
  await ready(tab);
  assert.equal(new URL(tab.url()).search, "?tab=a%20b&flag&unit=percent");
  await tab.getByRole("button", { name: "Counts" }).click();
  await ready(tab);
  assert.equal(new URL(tab.url()).search, "?tab=a%20b&flag");
});

test("parameters of the page with a dot stay in the address, too", async (t) => {
  const element = '<tallyfold-dashboard src="/tallyfold" address="query"></tallyfold-dashboard>';
  const { tab } = await opened(t, { element, search: "?user.id=5&user.sort=name&trend.q=1" });
  await tab.locator("tallyfold-destinations tbody th button").first().click();
  await ready(tab);
  assert.match(tab.url(), /\?user\.id=5&user\.sort=name&by=reason&integration=/);
});

test("a long table shows rows after it was sorted", async (t) => {
  const { tab } = await opened(t, {
    prepare: ({ sandbox }) => {
      const event = { eventName: "order_placed", writeKey: "web", outcome: "errors" };
      for (let value = 0; value < 400; value++) {
        const integration = `integration ${value}`;
        sandbox.record({
          ...event,
          timestamp: "2026-03-10T12:00:00Z",
          integration,
          count: 1 + value,
        });
      }
    },
  });
  const view = tab.locator("tallyfold-destinations");
  await view.getByRole("button", { name: /^Show all/ }).click();
  const scroll = view.locator(".scroll");
  await scroll.evaluate((it) => {
    it.scrollTop = 7_000;
  });
  const seen = () =>
    scroll.evaluate((it) => {
      const { top, bottom } = it.getBoundingClientRect();
      const rows = [...it.querySelectorAll("tbody tr[aria-rowindex]")];
      return rows.filter((row) => {
        const own = row.getBoundingClientRect();
        return own.top > top && own.bottom < bottom;
      }).length;
    });
  await tab.waitForTimeout(300);
  assert.ok((await seen()) > 10);
  await view.getByRole("columnheader", { name: "Failed", exact: true }).getByRole("button").click();
  await view.locator("[aria-sort]").waitFor();
  assert.ok((await seen()) > 10);
});

test("commands and files of a marked range are of that range", async (t) => {
  const mark = "mark=2026-03-10T21:15:00Z/2026-03-10T21:45:00Z";
  const { tab } = await opened(t, { hash: `view=time&${mark}`, scene: "outage" });
  const view = tab.locator("tallyfold-cause");
  await view.locator("[part=sentence]").waitFor();
  await view.locator("summary", { hasText: "Command" }).click();
  const text = await view.locator("pre").first().textContent();
  assert.match(text, /--from 2026-03-10T21:15:00Z --to 2026-03-10T21:45:00Z/);
  await view.locator("summary", { hasText: "Export" }).click();
  const [file] = await Promise.all([
    tab.waitForEvent("download"),
    view.getByRole("button", { name: "JSON" }).click(),
  ]);
  assert.equal(file.suggestedFilename(), "cause-2026-03-10T2115-2026-03-10T2145.json");
});

test("the focus stays on the page after a filter or a mark is removed", async (t) => {
  const mark = "mark=2026-03-10T21:15:00Z/2026-03-10T21:45:00Z";
  const { tab } = await opened(t, { hash: `integration=Chat&${mark}` });
  const focused = () =>
    tab.evaluate(() => {
      const element = document.querySelector("tallyfold-dashboard").shadowRoot.activeElement;
      return element?.id || element?.className;
    });
  const press = async (name) => {
    await tab.getByRole("button", { name, exact: true }).focus();
    await tab.keyboard.press("Enter");
    await ready(tab);
  };
  await press("Remove Destination Chat");
  assert.equal(await focused(), "crumbs");
  await press("Clear");
  assert.equal(await focused(), "panel");
});

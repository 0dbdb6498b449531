// What a page gives the dashboard's elements by mistake, and names that hide what they are, in Chromium.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { chromium } from "playwright-core";
import { CHROMIUM } from "./chromium.mjs";
import { emptyTab, ready, rowsOf, World } from "./dashboard_world.mjs";

let browser;
before(async () => {
  browser = await chromium.launch(CHROMIUM);
});
after(() => browser?.close());

/** A page with elements. `fired` has the events of errors, and what was on the page when each was fired. */
async function opened(t, element, { hash = "", file, prepare = () => {} } = {}) {
  const world = new World();
  world.element = element;
  prepare(world);
  await world.listen();
  const tab = await emptyTab(browser);
  const wrong = [];
  tab.on("pageerror", (error) => wrong.push(error.stack));
  t.after(async () => {
    await tab.context().close();
    world.close();
    assert.deepEqual(wrong, []);
  });
  await tab.addInitScript(() => {
    globalThis.fired = [];
    globalThis.textIn = (root) =>
      [...root.querySelectorAll("*")].reduce(
        (text, it) => text + (it.shadowRoot ? textIn(it.shadowRoot) : ""),
        root.textContent,
      );
    addEventListener("tallyfold-error", ({ detail: { error }, target }) => {
      fired.push({ message: error.message, text: textIn(target.shadowRoot) });
    });
  });
  if (file) await tab.route("**/rules.toml", (route) => file(route));
  await tab.goto(world.url + hash);
  return { world, tab };
}

const fired = (tab) => tab.evaluate(() => globalThis.fired);
/** So many errors, and none more at the same time. */
async function firedOf(tab, wanted) {
  await tab.waitForFunction((wanted) => globalThis.fired.length >= wanted, wanted);
  await tab.waitForTimeout(500);
  const all = await fired(tab);
  assert.equal(all.length, wanted, JSON.stringify(all));
  return all;
}

describe("an attribute that makes no sense", () => {
  const SRC = 'src="/tallyfold"';
  for (const [element, attribute, why] of [
    [`dashboard ${SRC} zone="Mars/X"`, "zone", /“Mars\/X” is not a time zone/],
    [`dashboard ${SRC} period="2 days"`, "period", /“2 days” is not a range/],
    [`dashboard clusters="{not json"`, "clusters", /want JSON such as/],
    [`dashboard clusters='{"eu":"/tallyfold"}'`, "clusters", /want JSON such as/],
    [`dashboard clusters='[{"name":"eu"}]'`, "clusters", /want JSON such as/],
    [
      `dashboard ${SRC} period="2025-12-01T00:00:00Z/2026-03-01T00:30:00Z"`,
      "period",
      /is not a range of at most 90 days/,
    ],
    [`destinations ${SRC} zone="Mars/X"`, "zone", /“Mars\/X” is not a time zone/],
    [`trend ${SRC} zone="Mars/X"`, "zone", /“Mars\/X” is not a time zone/],
    [`heatmap ${SRC} zone="Mars/X"`, "zone", /“Mars\/X” is not a time zone/],
    [`timeline ${SRC} zone="Mars/X"`, "zone", /“Mars\/X” is not a time zone/],
    [`destinations ${SRC} period="2 days"`, "period", /“2 days” is not a range/],
    [`trend ${SRC} period="-5h"`, "period", /“-5h” is not a range/],
  ]) {
    test(`is an error on the page, and an event: ${element}`, async (t) => {
      const { world, tab } = await opened(
        t,
        `<tallyfold-${element}></tallyfold-${element.split(" ")[0]}>`,
      );
      const [{ message, text }] = await firedOf(tab, 1);
      assert.match(message, why);
      assert.match(text, why);
      const alert = tab.getByRole("alert");
      assert.match(await alert.textContent(), new RegExp(`The attribute ${attribute} is invalid`));
      assert.equal(await alert.count(), 1);
      assert.ok(!world.asked.some((path) => path.includes("/tallyfold/")));
    });
  }

  for (const name of ["dashboard", "destinations"]) {
    test(`is mended by a later value of the property: ${name}`, async (t) => {
      const { world, tab } = await opened(t, `<tallyfold-${name} ${SRC}></tallyfold-${name}>`);
      const set = (values) =>
        tab
          .locator(`tallyfold-${name}`)
          .evaluate((it, values) => Object.assign(it, values), values);
      const row = tab.locator("tallyfold-destinations tbody th button").first();
      await row.waitFor();
      const requests = () => world.asked.filter((it) => it.includes("/tallyfold/")).length;
      for (const [wrong, right] of [
        [{ zone: "Mars/X" }, { zone: "Europe/Berlin" }],
        [{ period: "" }, { period: "12h" }],
      ]) {
        // No request of the last reading is under way.
        await tab.waitForLoadState("networkidle");
        await set(wrong);
        await tab.getByRole("alert").waitFor();
        assert.equal(await row.count(), 0);
        const before = requests();
        await tab.locator(`tallyfold-${name}`).evaluate((it) => it.refresh());
        assert.equal(requests(), before);
        await set(right);
        await row.waitFor();
        assert.equal(await tab.getByRole("alert").count(), 0);
      }
      assert.equal((await fired(tab)).length, 2);
    });
  }

  for (const name of [
    ...["dashboard", "destinations", "reasons", "pipeline", "trend", "heatmap", "cause", "values"],
    ...["silent", "corrections", "budget", "timeline"],
  ]) {
    test(`has its default again after it was removed: ${name}`, async (t) => {
      const { tab } = await opened(
        t,
        `<tallyfold-${name} ${SRC} period="1h" by="event_name"></tallyfold-${name}>`,
      );
      const settled = () =>
        tab.waitForFunction((name) => {
          const it = document.querySelector(`tallyfold-${name}`);
          const { isReading, table, loading } = it;
          return table && !isReading && !loading;
        }, name);
      await settled();
      await tab.locator(`tallyfold-${name}`).evaluate(async (it) => {
        it.where = { integration: ["Webhooks"] };
        await it.updateComplete;
        Object.assign(it, { where: undefined, unit: undefined });
        for (const attribute of ["by", "period"]) it.removeAttribute(attribute);
        await it.updateComplete;
      });
      await settled();
      const now = await tab.locator(`tallyfold-${name}`).evaluate((it) => {
        const { where, by, period, unit } = it;
        return { where, by, period, unit };
      });
      const defaults = { where: {}, by: "integration", period: "24h", unit: "counts" };
      assert.deepEqual(now, defaults);
      if (name !== "destinations") return;
      assert.equal(await tab.getByRole("heading").textContent(), "Destinations");
      assert.ok((await rowsOf(tab)).length > 10);
    });
  }

  for (const rows of ["x", "-1", "1.5"]) {
    test(`is the default number of rows of the heatmap: ${rows}`, async (t) => {
      const element = `<tallyfold-heatmap ${SRC} by="destination" rows="${rows}"></tallyfold-heatmap>`;
      const { tab } = await opened(t, element);
      await tab.locator("tallyfold-heatmap tbody tr").first().waitFor();
    });
  }

  test("is left out if the address has it", async (t) => {
    const hash = "#zone=Mars/X&range=2+days&view=nowhere&by=nothing";
    const { tab } = await opened(t, `<tallyfold-dashboard ${SRC}></tallyfold-dashboard>`, { hash });
    await ready(tab);
    assert.ok((await rowsOf(tab)).length > 10);
    assert.match(await tab.locator(".picker summary").textContent(), /Mar 10, 00:00.*UTC/s);
    assert.deepEqual(await fired(tab), []);
  });

  for (const name of ["dashboard", "trend", "destinations", "timeline"]) {
    test(`is named if it is missing: ${name}`, async (t) => {
      const { tab } = await opened(t, `<tallyfold-${name}></tallyfold-${name}>`);
      await tab.getByText("No server").waitFor();
      await tab.getByText("Set the attribute src to the path of the server for web apps").waitFor();
    });
  }
});

describe("a file of rules", () => {
  const ELEMENT =
    '<tallyfold-dashboard src="/tallyfold" rules="/rules.toml" view="alerts"></tallyfold-dashboard>';
  const RULES = `[[rule]]
name = "own rule"
kind = "budget"
budget = "1%"
burn = [{ rate = 1.5, long = "2h", short = "15m" }]
`;
  const shown = (tab) => tab.evaluate(() => textIn(document));

  for (const [name, answer, why] of [
    ["404", (route) => route.fulfill({ status: 404 }), "status 404"],
    ["500", (route) => route.fulfill({ status: 500, body: RULES }), "status 500"],
    ["no network", (route) => route.abort(), "Failed to fetch"],
    [
      "HTML",
      (route) => route.fulfill({ contentType: "text/html; charset=utf-8", body: "<p>Sign in" }),
      "it is an HTML page",
    ],
  ]) {
    test(`has no stand-in if it can't be read, and can be read again: ${name}`, async (t) => {
      let isThere = false;
      const file = (route) =>
        isThere ? route.fulfill({ contentType: "text/plain", body: RULES }) : answer(route);
      const { tab } = await opened(t, ELEMENT, { file });
      await ready(tab);
      const message = `the rules file /rules.toml could not be read: ${why}`;
      const [error] = await firedOf(tab, 1);
      assert.equal(error.message, message);
      assert.ok(error.text.includes(message));
      assert.doesNotMatch(await shown(tab), /incident|Used/);
      const alert = tab.getByRole("alert");
      assert.ok((await alert.textContent()).includes(message));

      isThere = true;
      await alert.getByRole("button", { name: "Try again" }).click();
      await tab.locator("tallyfold-budget").getByRole("rowheader", { name: "own rule" }).waitFor();
      await tab
        .locator("tallyfold-timeline")
        .getByText(/incident/)
        .first()
        .waitFor();
      assert.equal(await alert.count(), 0);
    });
  }

  test("has no stand-in while it is being read", async (t) => {
    let go;
    const coming = new Promise((resolve) => {
      go = resolve;
    });
    const file = async (route) => {
      await coming;
      await route.fulfill({ body: RULES });
    };
    const { tab } = await opened(t, ELEMENT, { file });
    await tab.getByText("All windows are settled").or(tab.getByText("Provisional from")).waitFor();
    assert.doesNotMatch(await shown(tab), /incident|Used/);
    go();
    await tab.getByRole("rowheader", { name: "own rule" }).waitFor();
  });

  test("is told once if it is invalid, and what is typed is not", async (t) => {
    const file = (route) => route.fulfill({ body: RULES.replace("budget =", "budgets =") });
    const { tab } = await opened(t, ELEMENT, { file });
    const [{ message }] = await firedOf(tab, 1);
    assert.match(message, /rule\[0\]\.budgets/);
    await tab.getByText("The rules are invalid").waitFor();
    assert.doesNotMatch(await shown(tab), /incident/);
    const area = tab.getByRole("textbox", { name: "Rules as TOML" });
    await area.fill(RULES);
    await tab.getByRole("rowheader", { name: "own rule" }).waitFor();
    await area.fill(RULES.replace("kind", "kid"));
    await tab.getByText("The rules are invalid").waitFor();
    await firedOf(tab, 1);
  });

  test("comes back in place of what is typed", async (t) => {
    const { tab } = await opened(t, ELEMENT, { file: (route) => route.fulfill({ body: RULES }) });
    const area = tab.getByRole("textbox", { name: "Rules as TOML" });
    const open = async () => {
      await tab.getByRole("tab", { name: "Alerts" }).click();
      await tab.locator("summary", { hasText: "Rules" }).click();
    };
    await open();
    await area.fill(RULES.replace("own rule", "typed rule"));
    await tab.getByRole("rowheader", { name: "typed rule" }).waitFor();
    // What was typed stays while another page is shown.
    await tab.getByRole("tab", { name: "Overview" }).click();
    await open();
    await tab.getByRole("rowheader", { name: "typed rule" }).waitFor();
    await tab.getByRole("button", { name: "Reset" }).click();
    await tab.getByRole("rowheader", { name: "own rule" }).waitFor();
    assert.equal(await area.inputValue(), RULES);
  });

  describe("leaves alone the error of a view that needs no rules", () => {
    // Without the two weeks of history, the chart can't show what is usual.
    const prepare = (world) => {
      world.fails = (body) => body.includes('"start":"2026-02-2');
    };
    const fail = async (tab) => {
      await tab.getByRole("tab", { name: "Overview" }).click();
      await tab.locator("tallyfold-trend").getByRole("button", { name: "Usual" }).click();
    };

    test("after the viewer has typed rules", async (t) => {
      const { tab } = await opened(t, ELEMENT, {
        prepare,
        file: (route) => route.fulfill({ body: RULES }),
      });
      await tab.locator("summary", { hasText: "Rules" }).click();
      const area = tab.getByRole("textbox", { name: "Rules as TOML" });
      await area.fill(RULES.replace("own rule", "typed rule"));
      await tab.getByRole("rowheader", { name: "typed rule" }).waitFor();
      await fail(tab);
      const [{ message, text }] = await firedOf(tab, 1);
      assert.match(message, /windows failed/);
      assert.match(text, /The counts could not be read/);
    });

    test("and then reports a mistake in the rules", async (t) => {
      const element = ELEMENT.replace('view="alerts"', "");
      const file = (route) => route.fulfill({ body: RULES.replace("budget =", "budgets =") });
      const { tab } = await opened(t, element, { prepare, file });
      await ready(tab);
      await fail(tab);
      await firedOf(tab, 1);
      await tab.getByRole("tab", { name: "Alerts" }).click();
      await tab.getByText("The rules are invalid").waitFor();
      const [, { message }] = await firedOf(tab, 2);
      assert.match(message, /rule\[0\]\.budgets/);
    });
  });

  for (const name of ["budget", "timeline"]) {
    test(`of one view is told if it is invalid: ${name}`, async (t) => {
      const element = `<tallyfold-${name} src="/tallyfold" rules="[[rule]"></tallyfold-${name}>`;
      const { tab } = await opened(t, element);
      const [{ message, text }] = await firedOf(tab, 1);
      assert.match(message, /invalid_rules/);
      assert.match(text, /line 1/);
    });
  }
});

describe("a name with characters that don't show", () => {
  const EVIL = "\u202eevil";
  const BLANK = "\u200b";
  const LITERAL = "\\u{202e}evil";

  const prepare = ({ sandbox }) => {
    const event = { timestamp: "2026-03-10T23:20:00Z", eventName: EVIL, writeKey: EVIL };
    const count = 900_000_000;
    for (const [at, integration] of [EVIL, BLANK, LITERAL, "a\0b\n\u{e0041}"].entries()) {
      const own = { ...event, integration, count: count - at };
      sandbox.record({ ...own, outcome: "errors" });
      sandbox.record({ ...own, outcome: "filtered", reason: EVIL });
    }
  };

  test("is shown as what it is, and stays the value", async (t) => {
    const element = '<tallyfold-dashboard src="/tallyfold"></tallyfold-dashboard>';
    const { tab } = await opened(t, element, { prepare });
    await ready(tab);
    const names = (await rowsOf(tab)).map(([name]) => name);
    assert.deepEqual(names.slice(0, 4), [
      "\\u{202e}evil",
      "\\u{200b}",
      "\\\\u{202e}evil",
      "a\\x00b\\n\\u{e0041}",
    ]);
    for (const page of ["Overview", "Over time", "Changes", "Alerts"]) {
      await tab.getByRole("tab", { name: page }).click();
      await ready(tab);
      assert.deepEqual(await hiddenIn(tab), [], page);
    }
    await tab.getByRole("tab", { name: "Overview" }).click();
    await tab
      .locator("tallyfold-destinations")
      .getByRole("button", { name: names[0], exact: true })
      .click();
    await ready(tab);
    assert.deepEqual(
      await tab.locator("tallyfold-dashboard").evaluate(({ where }) => where.integration),
      [EVIL],
    );
    assert.deepEqual(await hiddenIn(tab), []);
    await tab.getByRole("button", { name: "Remove Destination \\u{202e}evil" }).waitFor();
  });

  test("is the value in each command", async (t) => {
    const element = '<tallyfold-dashboard src="/tallyfold"></tallyfold-dashboard>';
    const name = "a\0b\n\u{e0041}";
    const hash = `#${new URLSearchParams({ integration: name })}`;
    const { tab } = await opened(t, element, { prepare, hash });
    await ready(tab);
    const view = tab.locator("tallyfold-destinations");
    await view.locator("summary", { hasText: "Command" }).click();
    await view.locator("pre").first().waitFor();
    const [shell, python, javascript] = await view.locator("pre").allTextContents();
    assert.ok(shell.includes(String.raw`$'integration=a\U00000000b\U0000000a\U000e0041'`));
    assert.ok(python.includes(String.raw`integration=["a\u0000b\n\U000e0041"]`));
    const [, filter] = /\.filter\((\{.*?\})\)/.exec(javascript);
    assert.deepEqual(new Function(`return ${filter}`)(), { integration: [name] });
  });

  /** What the page has of such characters, in texts and in the names of its parts. */
  const hiddenIn = (tab) =>
    tab.evaluate(() => {
      const hidden = /[^\P{C}\n\t]/u;
      const found = [];
      const look = (root) => {
        for (const it of root.querySelectorAll("*")) {
          const texts = [...it.childNodes].filter(({ nodeType }) => nodeType === 3);
          const all = [it.title, it.ariaLabel, ...texts.map(({ data }) => data)];
          if (it.localName !== "style")
            found.push(...all.filter((text) => text && hidden.test(text)));
          if (it.shadowRoot) look(it.shadowRoot);
        }
      };
      look(document);
      return found;
    });
});

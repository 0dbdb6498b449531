// The dashboard in Chromium, by the browser's own trace: bytes, the first view, interactions on a slow CPU, and memory.
//
// `make bench` runs it. Its server and the sandbox run in this process, and are warm: each page is opened once before.
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { gzipSync } from "node:zlib";
import { CHROMIUM } from "../../bindings-wasm/js/test/chromium.mjs";
import { DAY, NOW, World } from "../../bindings-wasm/js/test/dashboard_world.mjs";
import { atMost, median, tell } from "./measuring.mjs";

const { chromium } = createRequire(new URL("../../bindings-wasm/js/package.json", import.meta.url))(
  "playwright-core",
);

const ROUNDS = 7;
const SLOWER = 6;
/** In addition to the 30 integrations of the sandbox. */
const MORE_INTEGRATIONS = 10;
/** Those of the sandbox. */
const REASONS = [
  "compliance filter: region blocked",
  "compliance filter: consent withheld",
  "playbook filter: internal traffic",
  "playbook filter: sampled out",
  "pipeline filter: duplicate event",
  "pipeline filter: schema mismatch",
];
const QUARTER_MS = 15 * 60_000;
const MONTH = "range=2026-02-09T00:00:00Z/2026-03-11T00:00:00Z";

/** A world with as many groups as the limits name. */
async function worldOf() {
  const world = new World();
  const event = { eventName: "e", writeKey: "w" };
  for (let at = Date.parse(DAY.start); at < Date.parse(DAY.end); at += QUARTER_MS) {
    const timestamp = new Date(at).toISOString();
    for (let number = 0; number < MORE_INTEGRATIONS; number++) {
      for (const [at, reason] of REASONS.entries()) {
        const count = 1 + ((number * at) % 17);
        const integration = `Integration ${number}`;
        world.sandbox.record({
          ...event,
          timestamp,
          integration,
          reason,
          outcome: "filtered",
          count,
        });
      }
    }
  }
  return await world.listen();
}

/** A tab at the time of the sandbox, whose other clocks are the machine's. */
async function tabOf(browser) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const tab = await context.newPage();
  await tab.addInitScript((now) => {
    const began = performance.now();
    const Real = Date;
    globalThis.Date = class extends Real {
      constructor(...given) {
        super(...(given.length ? given : [Date.now()]));
      }
      static now() {
        return Math.floor(now + performance.now() - began);
      }
    };
    /** The text of a cell of the ranked table, if there is one. */
    globalThis.cell = (selector) =>
      document
        .querySelector("tallyfold-dashboard")
        ?.shadowRoot?.querySelector("tallyfold-destinations")
        ?.shadowRoot?.querySelector(selector)
        ?.textContent.trim();
    /** Marks when the frame is drawn that shows something. */
    globalThis.markWhen = (name, isThere) => {
      const look = () => {
        if (!isThere()) return requestAnimationFrame(look);
        // A message that is sent before a frame is drawn arrives after it.
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => performance.mark(name);
        return port2.postMessage(0);
      };
      requestAnimationFrame(look);
    };
    markWhen("first-view", () => cell("tbody tr[aria-rowindex] [data-count]"));
  }, Date.parse(NOW));
  return tab;
}

/** What Chromium traced while `act` ran: its marks by name, in ms, and the longest task of the page's main thread. */
async function traced(browser, tab, act) {
  const categories = ["blink.user_timing", "toplevel", "__metadata"];
  await browser.startTracing(tab, { categories });
  await act();
  const { traceEvents } = JSON.parse(await browser.stopTracing());
  const marks = traceEvents.filter(({ cat }) => cat.includes("blink.user_timing"));
  const { pid, tid } = marks.find(({ name }) => name === "first-view" || name.startsWith("done"));
  const at = new Map(marks.filter((it) => it.pid === pid).map(({ name, ts }) => [name, ts / 1e3]));
  const began = at.get("navigationStart") ?? 0;
  const tasks = traceEvents.filter(
    (it) =>
      it.pid === pid &&
      it.tid === tid &&
      it.dur &&
      it.name.endsWith("RunTask") &&
      it.ts / 1e3 >= began,
  );
  return { at, longest: Math.max(0, ...tasks.map(({ dur }) => dur / 1e3)) };
}

/** Says how a measurement is to be, in the unit of the report. */
function within(work, unit, value, limit) {
  const medians = unit === "seconds" ? [value / 1e3, limit / 1e3] : [value, limit];
  tell({
    language: "Chromium",
    work,
    peer: "the limit",
    medians,
    unit,
    ratio: value / limit,
    target: atMost(1),
  });
}

/** The dashboard's own code that a page loads before the first view. */
async function bytes() {
  const dist = new URL("../../bindings-wasm/js/dist/", import.meta.url);
  const seen = new Set(["dashboard.js"]);
  let sum = 0;
  for (const name of seen) {
    const text = await readFile(new URL(name, dist), "utf8");
    sum += gzipSync(text, { level: 9 }).length;
    const imported = text.matchAll(/(?:from|import)\s*"\.\/(dashboard[\w.-]*\.js)"/g);
    for (const [, next] of imported) seen.add(next);
  }
  within("dashboard: code before the first view, gzipped", "bytes", sum, 60_000);
}

async function firstView(browser, world) {
  const times = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const tab = await tabOf(browser);
    const { at } = await traced(browser, tab, async () => {
      await tab.goto(world.url);
      await tab.waitForFunction(() => performance.getEntriesByName("first-view").length);
    });
    // The first one warms the server.
    if (round > 0) times.push(at.get("first-view") - at.get("navigationStart"));
    await tab.context().close();
  }
  within("dashboard: first view of 24 h, 96 windows", "seconds", median(times), 700);
}

/** What a visitor clicks, and what is on the screen then. */
const INTERACTIONS = [
  [
    "sort",
    (view) => view.getByRole("button", { name: "Filtered" }),
    "thead [aria-sort]",
    /Filtered/,
  ],
  ["switch", (_, tab) => tab.getByRole("button", { name: "Percent" }), "tfoot [data-count]", /%/],
  [
    "drill",
    (view) => view.locator("tbody th button").first(),
    "tbody th",
    /^(no reason|\w+ filter)/,
  ],
];

async function interactions(browser, world) {
  const times = new Map(INTERACTIONS.map(([name]) => [name, []]));
  const tasks = new Map(INTERACTIONS.map(([name]) => [name, []]));
  for (let round = 0; round < ROUNDS; round++) {
    const tab = await tabOf(browser);
    await tab.goto(world.url);
    await tab.waitForFunction(() => performance.getEntriesByName("first-view").length);
    // Until what is compared is read, too.
    await tab.waitForLoadState("networkidle");
    const session = await tab.context().newCDPSession(tab);
    await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
    const view = tab.locator("tallyfold-destinations").first();
    for (const [name, target, selector, wanted] of INTERACTIONS) {
      await tab.evaluate(
        ([name, selector, source]) => {
          const wanted = new RegExp(source);
          const options = { capture: true, once: true };
          addEventListener(
            "click",
            ({ timeStamp }) => {
              performance.mark(`begun ${name}`, { startTime: timeStamp });
              markWhen(`done ${name}`, () => wanted.test(cell(selector) ?? ""));
            },
            options,
          );
        },
        [name, selector, wanted.source],
      );
      await target(view, tab).scrollIntoViewIfNeeded();
      const box = await target(view, tab).boundingBox();
      const { at, longest } = await traced(browser, tab, async () => {
        await tab.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
        await tab.waitForFunction(
          (name) => performance.getEntriesByName(name).length,
          `done ${name}`,
        );
      });
      times.get(name).push(at.get(`done ${name}`) - at.get(`begun ${name}`));
      tasks.get(name).push(longest);
    }
    await tab.context().close();
  }
  for (const [name, all] of times) {
    within(`dashboard: ${name}, CPU ${SLOWER}x slower`, "seconds", median(all), 100);
    within(`dashboard: ${name}, longest task`, "seconds", median(tasks.get(name)), 50);
  }
}

async function month(browser, world) {
  const tab = await tabOf(browser);
  await tab.addInitScript(() => {
    const look = () => {
      const root = document.querySelector("tallyfold-dashboard")?.shadowRoot;
      const bar = root?.querySelector("progress");
      if (bar?.position > 0) globalThis.progressed = true;
      requestAnimationFrame(look);
    };
    look();
  });
  await tab.goto(`${world.url}#${MONTH}`);
  await tab.waitForFunction(() => performance.getEntriesByName("first-view").length, null, {
    timeout: 300_000,
  });
  await tab.waitForFunction(
    () => {
      const root = document.querySelector("tallyfold-dashboard").shadowRoot;
      const { range } = root.querySelector("tallyfold-destinations");
      const isWhole = Date.parse(range.end) - Date.parse(range.start) === 30 * 86_400_000;
      return isWhole && !root.querySelector("progress") && globalThis.progressed;
    },
    null,
    { timeout: 300_000 },
  );
  await tab.waitForLoadState("networkidle", { timeout: 300_000 });
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  // What the page's process has for itself, with its heaps of JavaScript and of WebAssembly.
  const own = processInfo
    .filter(({ type }) => type === "renderer")
    .map(({ id }) => privateBytes(id));
  const limit = 150 * 2 ** 20;
  within(
    "dashboard: memory of a page with 30 days, 2,880 windows",
    "bytes",
    Math.max(...own),
    limit,
  );
  await tab.context().close();
}

function privateBytes(pid) {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const sizes = text.matchAll(/^Private_\w+: +(\d+) kB$/gm);
  return Array.from(sizes, ([, kB]) => Number(kB) * 1024).reduce((sum, it) => sum + it, 0);
}

const browser = await chromium.launch(CHROMIUM);
const world = await worldOf();
await bytes();
await firstView(browser, world);
await interactions(browser, world);
await month(browser, world);
world.close();
await browser.close();

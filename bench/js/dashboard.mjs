// Measures the dashboard in Chromium with the browser's own trace: bytes, first view, interactions on a slow CPU, and memory.
//
// `make bench` runs it. The server and the sandbox run in this process. The first round warms them up and is not counted.
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { CHROMIUM } from "../../bindings-wasm/js/test/chromium.mjs";
import { DAY, NOW, World } from "../../bindings-wasm/js/test/dashboard_world.mjs";
import { atMost, median, tell } from "./measuring.mjs";

const own = createRequire(new URL("../../bindings-wasm/js/package.json", import.meta.url));
const { chromium } = own("playwright-core");
const { build } = own("esbuild");

const ROUNDS = 7;
const SLOWER = 6;
/** In addition to the 30 integrations of the sandbox. */
const MORE_INTEGRATIONS = 10;
/** The reasons of the sandbox's traffic. */
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

/** Makes a world with as many groups as the limits are stated for. Its page loads the dashboard as a bundler packs it. */
async function worldOf(modules) {
  const world = new World();
  world.modules = modules;
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

/** Opens a tab whose `Date` starts at the time of the sandbox. Its other clocks are the machine's. */
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
    globalThis.viewOf = (name) =>
      document.querySelector("tallyfold-dashboard")?.shadowRoot?.querySelector(name)?.shadowRoot;
    /** The text of a cell of a view, if there is one. */
    globalThis.cell = (selector, name = "tallyfold-destinations") =>
      viewOf(name)?.querySelector(selector)?.textContent.trim();
    // Requests a frame only when the first row is there, because each frame takes time.
    const looking = setInterval(() => {
      if (!cell("tbody tr[aria-rowindex] [data-count]")) return;
      clearInterval(looking);
      requestAnimationFrame(() => {
        // A message that is sent before a frame is drawn arrives after it.
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => performance.mark("first-view");
        port2.postMessage(0);
      });
    }, 10);
  }, Date.parse(NOW));
  return tab;
}

/** Traces Chromium while `act` runs. Returns the page's marks by name, in ms, and the times of its main thread's tasks. */
async function traced(browser, tab, act) {
  const categories = ["blink.user_timing", "devtools.timeline", "toplevel", "__metadata"];
  await browser.startTracing(tab, { categories });
  await act();
  const { traceEvents } = JSON.parse(await browser.stopTracing());
  traceEvents.sort((one, other) => one.ts - other.ts);
  const marks = traceEvents.filter(({ cat }) => cat.includes("blink.user_timing"));
  const { pid, tid } = marks.find(({ name }) => ["first-view", "changed"].includes(name));
  const at = new Map(marks.filter((it) => it.pid === pid).map(({ name, ts }) => [name, ts / 1e3]));
  const began = at.get("navigationStart") ?? 0;
  const own = traceEvents.filter((it) => it.pid === pid && it.tid === tid);
  const tasks = tasksOf(own).filter(({ start }) => start >= began);
  /** When the page has drawn its first frame after a mark: the end of the task that has drawn it. */
  const drawnAfter = (mark) => {
    const frame = own.find((it) => it.name === "Layerize" && it.ts / 1e3 >= at.get(mark)).ts / 1e3;
    return tasks.find(({ start, end }) => start <= frame && frame <= end).end;
  };
  /** The processor time of the tasks between two times. It leaves out the time in which the machine ran something else. */
  const cpuBetween = (from, to) =>
    tasks
      .filter(({ start, end }) => end > from && start < to)
      .reduce((sum, { cpu }) => sum + cpu, 0);
  return { at, drawnAfter, cpuBetween, longest: Math.max(0, ...tasks.map(({ cpu }) => cpu)) };
}

/**
 * The tasks of a thread, in ms: when each starts and ends, and how long the thread itself ran. In the trace, the callbacks of
 * promises that a task has settled come after the task. Nothing else can run in between, so they count as a part of the task.
 */
function tasksOf(events) {
  const tasks = [];
  for (const { name, ts, dur, tdur = dur } of events) {
    const last = tasks.at(-1);
    // An event inside a task is a part of it.
    if (!dur || (last && ts / 1e3 < last.end)) continue;
    if (name.endsWith("RunTask")) {
      tasks.push({ start: ts / 1e3, end: (ts + dur) / 1e3, cpu: tdur / 1e3 });
    } else if (name === "BlinkScheduler_PerformMicrotaskCheckpoint" && last) {
      last.end = (ts + dur) / 1e3;
      last.cpu += tdur / 1e3;
    }
  }
  return tasks;
}

/** Prints a measurement and its limit. Times are in milliseconds here, and in seconds in the report. */
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

/** Measures the dashboard's own code that a page loads before the first view. */
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

/** Bundles the dashboard with the library. Returns the folder. */
async function bundled() {
  const outdir = await mkdtemp(join(tmpdir(), "tallyfold-dashboard-"));
  await build({
    entryPoints: [
      fileURLToPath(new URL("../../bindings-wasm/js/dist/dashboard.js", import.meta.url)),
    ],
    outdir,
    bundle: true,
    splitting: true,
    minify: true,
    format: "esm",
    target: "es2022",
  });
  return `${outdir}/`;
}

async function firstView(browser, world) {
  const [times, cpus, tasks] = [[], [], []];
  for (let round = 0; round <= ROUNDS; round++) {
    const tab = await tabOf(browser);
    const { at, cpuBetween, longest } = await traced(browser, tab, async () => {
      await tab.goto(world.url);
      await tab.waitForFunction(() => performance.getEntriesByName("first-view").length);
      // Waits until the counts of the week before are read, too.
      await tab.waitForLoadState("networkidle");
    });
    await tab.context().close();
    // The first round warms up the server.
    if (round === 0) continue;
    const [from, to] = [at.get("navigationStart"), at.get("first-view")];
    times.push(to - from);
    cpus.push(cpuBetween(from, to));
    tasks.push(longest);
  }
  within("dashboard: first view of 24 h, 96 windows", "seconds", median(times), 700);
  within("dashboard: first view, own processor time", "seconds", median(cpus), 700);
  within("dashboard: first view, longest task", "seconds", median(tasks), 50);
}

/** What a visitor clicks, and what the page shows then: a view, an element in it, and the text of that element. */
const INTERACTIONS = [
  {
    name: "sort",
    target: (view) => view.getByRole("button", { name: "Filtered" }),
    seen: ["tallyfold-destinations", "thead [aria-sort]", "Filtered"],
  },
  {
    name: "switch",
    target: (_, tab) => tab.getByRole("button", { name: "Percent" }),
    seen: ["tallyfold-pipeline", "strong[data-count]", "%"],
  },
  {
    name: "drill",
    target: (view) => view.locator("tbody th button").first(),
    seen: ["tallyfold-destinations", "tbody th", "^(no reason|\\w+ filter)"],
  },
];
/** The time after a click in which all views are updated. */
const AFTER_MS = 600;

async function interactions(browser, world) {
  const [times, cpus, tasks] = [0, 1, 2].map(
    () => new Map(INTERACTIONS.map(({ name }) => [name, []])),
  );
  for (let round = 0; round < ROUNDS; round++) {
    const tab = await tabOf(browser);
    await tab.goto(world.url);
    await tab.waitForFunction(() => performance.getEntriesByName("first-view").length);
    // Waits until the counts of the week before are read, too.
    await tab.waitForLoadState("networkidle");
    const session = await tab.context().newCDPSession(tab);
    await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
    const view = tab.locator("tallyfold-destinations").first();
    for (const { name, target, seen } of INTERACTIONS) {
      await target(view, tab).scrollIntoViewIfNeeded();
      const box = await target(view, tab).boundingBox();
      // A visitor's pointer is at its target before the click.
      await tab.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      await tab.evaluate(markChange, seen);
      const { at, drawnAfter, cpuBetween, longest } = await traced(browser, tab, async () => {
        await tab.mouse.down();
        await tab.mouse.up();
        await tab.waitForTimeout(AFTER_MS);
        await tab.waitForFunction(() => performance.getEntriesByName("changed").length);
      });
      const [from, to] = [at.get("begun"), drawnAfter("changed")];
      times.get(name).push(to - from);
      cpus.get(name).push(cpuBetween(from, to));
      tasks.get(name).push(longest);
    }
    await tab.context().close();
  }
  for (const [name, all] of times) {
    within(`dashboard: ${name}, CPU ${SLOWER}x slower`, "seconds", median(all), 100);
    within(`dashboard: ${name}, own processor time`, "seconds", median(cpus.get(name)), 100);
    within(`dashboard: ${name}, longest task`, "seconds", median(tasks.get(name)), 50);
  }
}

/** Marks when the visitor has clicked, and when the page has changed. It requests no frame, because each frame takes time. */
function markChange([name, selector, wanted]) {
  performance.clearMarks();
  addEventListener(
    "click",
    ({ timeStamp }) => performance.mark("begun", { startTime: timeStamp }),
    { capture: true, once: true },
  );
  const observer = new MutationObserver(() => {
    if (!new RegExp(wanted).test(cell(selector, name) ?? "")) return;
    observer.disconnect();
    performance.mark("changed");
  });
  const options = { subtree: true, childList: true, characterData: true, attributes: true };
  observer.observe(viewOf(name), options);
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
  // The private memory of the page's process, which includes its heaps of JavaScript and WebAssembly.
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
const modules = await bundled();
const world = await worldOf(modules);
await bytes();
await firstView(browser, world);
await interactions(browser, world);
await month(browser, world);
world.close();
await browser.close();
await rm(modules, { recursive: true });

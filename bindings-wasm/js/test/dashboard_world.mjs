// A page with the dashboard, its server, and the sandbox behind it, at a fixed time.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { Client, Sandbox } from "tallyfold";
import { nodeListener } from "tallyfold/node";
import { pageServer } from "tallyfold/server";
import { PAGE_MS } from "./chromium.mjs";

/** The time in the page, in its server and in the sandbox. */
export const NOW = "2026-03-11T00:05:00Z";
/** The last 24 hours then. */
export const DAY = { start: "2026-03-10T00:00:00Z", end: "2026-03-11T00:00:00Z" };

/** The modules of the package, as a page without a bundler loads them. */
const MODULES = fileURLToPath(new URL("../dist/", import.meta.url));
/** The policy that `tallyfold dashboard` sends. */
const command = new URL("../../../cli/src/commands/dashboard.rs", import.meta.url);
const [, policy] = /const POLICY: &str = "([^"]+)"/.exec(await readFile(command, "utf8"));
const POLICY = policy.replace(/\\\n\s*/g, "");

/** What the page is, and how it can be made to fail. */
export class World {
  now = { monotonicMs: 0, unixMs: Date.parse(NOW) };
  /** Whether visitors may see the counts. */
  isOpen = true;
  /** Whether what is in front of the server, such as a middleware, finds visitors signed in. */
  isSignedIn = true;
  /** Which requests of the server fail: told by their bodies. */
  fails = () => false;
  /** Whether the service can be reached. */
  isReachable = true;
  /** The service answers when this has resolved. */
  hangs = undefined;
  /** The paths that the page asked for. */
  asked = [];
  element = '<tallyfold-dashboard src="/tallyfold"></tallyfold-dashboard>';
  lang = 'lang="en"';
  /** Which modules of the page the server does not have: told by their paths. */
  lacks = () => false;
  /** The folder of the page's modules. */
  modules = MODULES;
  #server;

  /** @param options Of the sandbox, such as its scene. */
  constructor(options = {}) {
    this.sandbox = new Sandbox({ seed: 3, now: () => this.now, ...options });
    const fetch = async (url, init) => {
      if (!this.isReachable) throw new TypeError("fetch failed");
      await this.hangs;
      const text = init.body === undefined ? "" : new TextDecoder().decode(init.body);
      if (this.fails(text)) return new Response("{}", { status: 500 });
      return await this.sandbox.fetch(url, init);
    };
    const { credentials } = this.sandbox;
    const given = { ...credentials, clusterEndpoint: "http://localhost", now: () => this.now };
    this.client = new Client({ ...given, fetch, maxRetries: 0 });
    const handle = pageServer({
      client: this.client,
      authorize: () => this.isOpen,
      provisionalMs: 0,
      queue: 10_000,
      onFailure: () => {},
    });
    const counts = nodeListener(handle);
    this.#server = createServer((request, response) => {
      const { pathname } = new URL(request.url, "http://localhost");
      this.asked.push(`${request.method} ${pathname}`);
      if (pathname.startsWith("/tallyfold/")) {
        if (!this.isSignedIn) return response.writeHead(401).end();
        return counts(request, response);
      }
      return this.#file(pathname, response);
    });
  }

  async listen() {
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.#server.address().port}/`;
    return this;
  }

  close() {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #file(path, response) {
    if (path === "/") {
      response.setHeader("content-type", "text/html");
      response.setHeader("content-security-policy", POLICY);
      return response.end(`<!doctype html><html ${this.lang}><head><meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark"><title>Delivery</title>
        <script type="module" src="/modules/dashboard.js"></script></head>
        <body><main>${this.element}</main></body></html>`);
    }
    const file = this.modules + path.replace("/modules/", "");
    const text = this.lacks(path) ? undefined : await readFile(file).catch(() => undefined);
    response.setHeader("content-type", "text/javascript");
    if (text === undefined) response.writeHead(path === "/favicon.ico" ? 204 : 404);
    return response.end(text);
  }

  /** A tab at the fixed time. `errors` has what went wrong in it, `violations` what its policy has forbidden. */
  async open(browser, { hash = "", ...options } = {}) {
    const tab = await emptyTab(browser, options);
    tab.errors = [];
    tab.on("pageerror", (error) => tab.errors.push(error));
    tab.violations = [];
    tab.on("console", (message) => {
      if (/Content Security Policy/.test(message.text())) tab.violations.push(message.text());
    });
    await tab.goto(this.url + (hash && `#${hash}`));
    await ready(tab);
    return tab;
  }
}

/** A tab without a page, in a context of its own, at the time of the sandbox. */
export async function emptyTab(browser, options) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(PAGE_MS);
  const tab = await context.newPage();
  await tab.clock.setFixedTime(NOW);
  return tab;
}

/** Until all counts have been read and drawn, those that are compared, too. */
export async function ready(tab) {
  for (const end = Date.now() + PAGE_MS; Date.now() < end; ) {
    if (await tab.evaluate(isReady)) return;
  }
  throw new Error("the dashboard is still reading");
}

async function isReady() {
  const dashboard = document.querySelector("tallyfold-dashboard");
  const busy = (root) =>
    root.querySelector("progress, [aria-busy=true], .skeleton") !== null ||
    /Reading (ingestion|\d)/.test(root.textContent) ||
    [...root.querySelectorAll("*")].some((it) => it.shadowRoot && busy(it.shadowRoot));
  // What was clicked begins to read when the element is updated.
  for (let frame = 0; frame < 4; frame++) {
    await dashboard?.updateComplete;
    await new Promise((resolve) => requestAnimationFrame(() => resolve()));
    const root = dashboard?.shadowRoot;
    // Views out of sight are updated after the others.
    await Promise.all(Array.from(root?.querySelectorAll("*") ?? [], (it) => it.updateComplete));
    if (!root?.querySelector(".reading")?.textContent.trim() || busy(root)) return false;
  }
  return true;
}

/** The rows of a ranked table, as a reader sees them. */
export async function rowsOf(tab, name = "tallyfold-destinations") {
  return await tab
    .locator(name)
    .first()
    .evaluate(async (view) => {
      // What was clicked a moment before is shown once both are updated.
      await document.querySelector("tallyfold-dashboard")?.updateComplete;
      await view.updateComplete;
      const rows = [...view.shadowRoot.querySelectorAll("tbody tr[aria-rowindex], tfoot tr")];
      return rows.map((row) => [
        row.querySelector("th").textContent.trim(),
        ...[...row.querySelectorAll("[data-count]")].map((cell) => cell.textContent.trim()),
      ]);
    });
}

const counted = new Intl.NumberFormat("en");

/** A count as the page writes it. */
export function count(value) {
  return counted.format(value);
}

const percent = new Intl.NumberFormat("en", { style: "percent", minimumFractionDigits: 2 });

/** A share as the page writes it. */
export function share(value) {
  if (value === null) return "–";
  return value > 0 && value < 0.00005 ? "<0.01%" : percent.format(value);
}

// How the tests, the demo and the test of the site start Chromium.

import { existsSync } from "node:fs";

const INSTALLED = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];

export const CHROMIUM = {
  executablePath: process.env.CHROMIUM ?? INSTALLED.find((path) => existsSync(path)),
  // A busy machine takes long to start it.
  timeout: 120_000,
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
};

/** How many milliseconds a test waits for a page. On an idle machine, pages take far less. */
export const PAGE_MS = 120_000;

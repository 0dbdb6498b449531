// Detects the environment that JavaScript runs in.

/**
 * Whether this is a page or a worker in a browser, where every visitor can read what the program
 * holds. Servers that only have some of a browser's globals are excluded. The core decides what is
 * refused in a browser.
 */
export function isBrowser(): boolean {
  const host = globalThis as {
    document?: unknown;
    WorkerGlobalScope?: unknown;
    process?: { versions?: { node?: unknown; bun?: unknown } };
    Deno?: unknown;
    navigator?: { userAgent?: unknown };
  };
  const isServer =
    typeof host.process?.versions?.node === "string" ||
    typeof host.process?.versions?.bun === "string" ||
    typeof host.Deno === "object" ||
    host.navigator?.userAgent === "Cloudflare-Workers";
  return !isServer && (host.document !== undefined || host.WorkerGlobalScope !== undefined);
}

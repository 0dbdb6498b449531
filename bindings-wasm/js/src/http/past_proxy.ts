// Sends requests to this machine directly, not through a proxy. Tokens and secrets go to this machine over plain http, so a
// proxy on another machine would see them. But the `fetch` of Bun, Deno, and Node with NODE_USE_ENV_PROXY or
// `--use-env-proxy` uses the proxy in HTTP_PROXY, even for loopback addresses.

import { insecureAddress } from "../values/error.js";

/** A dispatcher of undici, which Node's `fetch` uses. */
type Dispatcher = object & { readonly constructor: new (options: object) => Dispatcher };

/** The part of `Deno` that reads environment variables. */
interface Deno {
  readonly env: { get(variable: string): string | undefined };
  readonly permissions: { querySync(wanted: object): { readonly state: string } };
}

/** The symbols under which the versions of undici store the global dispatcher. */
const GLOBAL = [1, 2].map((version) => Symbol.for(`undici.globalDispatcher.${version}`));

/** For each class of dispatchers that use the environment's proxy, a dispatcher that doesn't. */
const direct = new WeakMap<object, Dispatcher>();

/**
 * Returns the option with which the host's own `fetch` sends a request to this machine directly, if the environment sets a
 * proxy.
 *
 * @throws {@link TallyfoldError} with code `insecure_base_address` in Deno, whose `fetch` has no such option, if it would
 * send the request to a proxy over plain http.
 */
export function pastProxy(url: string): { readonly dispatcher?: object; readonly proxy?: false } {
  const { hostname, protocol } = new URL(url);
  if (!isThisMachine(hostname)) return {};
  const host = globalThis as { Bun?: unknown; Deno?: Deno } & Record<symbol, Dispatcher>;
  if (host.Bun) return { proxy: false };
  if (host.Deno && protocol === "http:") refuseProxy(hostname.replace(/[[\]]/g, ""), host.Deno);
  const used = GLOBAL.map((place) => host[place]).find((one) => one !== undefined);
  if (used?.constructor.name !== "EnvHttpProxyAgent") return {};
  const Agent = used.constructor;
  let dispatcher = direct.get(Agent);
  if (dispatcher === undefined) {
    dispatcher = new Agent({ httpProxy: "", httpsProxy: "", noProxy: "*" });
    direct.set(Agent, dispatcher);
  }
  return { dispatcher };
}

/** Without the permission to read the variables, nothing is known about a proxy, and asking for it would open a prompt. */
function refuseProxy(hostname: string, { env, permissions }: Deno): void {
  const read = (variable: string): string | undefined =>
    permissions.querySync({ name: "env", variable }).state === "granted"
      ? env.get(variable)
      : undefined;
  const proxies = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
  const exceptions = read("NO_PROXY") ?? read("no_proxy");
  const isException = exceptions?.split(",").some((one) => one.trim() === hostname);
  if (!isException && proxies.some(read)) throw insecureAddress(hostname);
}

function isThisMachine(hostname: string): boolean {
  // `URL` normalizes addresses.
  return /^(?:(?:.+\.)?localhost\.?|127\.[\d.]+|0\.0\.0\.0|\[::1?\]|\[::ffff:7f[\da-f]{2}:[\da-f]+\])$/.test(
    hostname,
  );
}

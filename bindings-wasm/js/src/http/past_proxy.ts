// Sends requests to this machine directly, not through a proxy. If NODE_USE_ENV_PROXY or `--use-env-proxy` is set, Node's
// `fetch` uses the proxy in HTTP_PROXY, even for loopback addresses. Tokens and secrets go to this machine over plain http,
// so a proxy on another machine would see them.

/** A dispatcher of undici, which Node's `fetch` uses. */
type Dispatcher = object & { readonly constructor: new (options: object) => Dispatcher };

/** The symbols under which the versions of undici store the global dispatcher. */
const GLOBAL = [1, 2].map((version) => Symbol.for(`undici.globalDispatcher.${version}`));

/** For each class of dispatchers that use the environment's proxy, a dispatcher that doesn't. */
const direct = new WeakMap<object, Dispatcher>();

/** Returns the option with which Node's `fetch` sends a request to this machine directly, if the environment sets a proxy. */
export function pastProxy(url: string): { readonly dispatcher?: object } {
  const host = globalThis as unknown as Record<symbol, Dispatcher | undefined>;
  const used = GLOBAL.map((place) => host[place]).find((one) => one !== undefined);
  if (used?.constructor.name !== "EnvHttpProxyAgent" || !isThisMachine(url)) return {};
  const Agent = used.constructor;
  let dispatcher = direct.get(Agent);
  if (dispatcher === undefined) {
    dispatcher = new Agent({ httpProxy: "", httpsProxy: "", noProxy: "*" });
    direct.set(Agent, dispatcher);
  }
  return { dispatcher };
}

function isThisMachine(url: string): boolean {
  const { hostname } = new URL(url);
  // `URL` normalizes addresses.
  return /^(?:(?:.+\.)?localhost\.?|127\.[\d.]+|0\.0\.0\.0|\[::1?\]|\[::ffff:7f[\da-f]{2}:[\da-f]+\])$/.test(
    hostname,
  );
}

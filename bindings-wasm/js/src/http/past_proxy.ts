// The way past a proxy to this machine. Node's `fetch` goes through the proxy that HTTP_PROXY names, if NODE_USE_ENV_PROXY
// or `--use-env-proxy` is set, also to loopback. A proxy on another machine would see tokens and secrets, which go to
// this machine over plain http.

/** A dispatcher of undici, which Node's `fetch` uses. */
type Dispatcher = object & { readonly constructor: new (options: object) => Dispatcher };

/** Where undici keeps the dispatcher of all requests, by its version. */
const GLOBAL = [1, 2].map((version) => Symbol.for(`undici.globalDispatcher.${version}`));

/** For each class of dispatchers that follow the environment, one that doesn't. */
const direct = new WeakMap<object, Dispatcher>();

/** The option of Node's `fetch` that sends a request to this machine past the proxy of the environment. */
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
  // `URL` writes addresses in one way.
  return /^(?:(?:.+\.)?localhost\.?|127\.[\d.]+|0\.0\.0\.0|\[::1?\]|\[::ffff:7f[\da-f]{2}:[\da-f]+\])$/.test(
    hostname,
  );
}

// Recognizes options that are surely valid, so that a page can check them with the core later.

const HOST = "[a-z0-9]+(-[a-z0-9]+)*(\\.[a-z]([a-z0-9-]*[a-z0-9])?)*";
const PORT = "(:([1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}))?";
const PATH = "(/[\\w-]+)*/?";
const ADDRESS = new RegExp(
  `^(https://[a-z]${HOST}|https?://(localhost|127\\.0\\.0\\.1))${PORT}${PATH}$`,
);

const isText = (value: unknown) => typeof value === "string" && /^[\w:/.-]+$/.test(value);
const isWhole = (value: unknown) =>
  Number.isInteger(value) && (value as number) > 0 && (value as number) <= 1e6;

/** The options that a client for metrics in a page usually has, and a check of each. */
const usual: { readonly [name: string]: (value: unknown) => boolean } = {
  clusterEndpoint: (value) => typeof value === "string" && ADDRESS.test(value),
  clientId: isText,
  controlAudience: isText,
  orchestrationAudience: isText,
  timeoutMs: isWhole,
  maxRetries: isWhole,
  longestRetryWaitMs: isWhole,
  hostTokens: (value) => typeof value === "boolean",
  tokenless: (value) => typeof value === "boolean",
  headers: (value) => value === undefined,
  inBrowser: (value) => typeof value === "boolean",
};

/**
 * Whether the core is sure to accept these options. The core still checks them, but later. This function must not return
 * `true` for options that the core refuses.
 */
export function isUsual(options: { readonly [name: string]: unknown }): boolean {
  const isUsualOption = ([name, value]: [string, unknown]) =>
    Object.hasOwn(usual, name) && (value === undefined || usual[name]?.(value) === true);
  const { clusterEndpoint, hostTokens, tokenless } = options;
  // Exactly one source of tokens.
  const isServed = Boolean(hostTokens) !== Boolean(tokenless);
  return isServed && clusterEndpoint !== undefined && Object.entries(options).every(isUsualOption);
}

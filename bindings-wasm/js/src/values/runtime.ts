// The environment that JavaScript runs in: what it is, which modules it has, and where it warns.

/**
 * Whether `fetch` asks for compressed responses in its own way, whatever a request says, as browsers do.
 */
export function choosesCodings(): boolean {
  const host = globalThis as { process?: { versions?: { node?: unknown } } };
  return typeof host.process?.versions?.node !== "string";
}

/**
 * Whether everybody who visits can read what this program holds: a page or a worker of a browser,
 * but not a server program that imitates one.
 */
export function isBrowser(): boolean {
  const host = globalThis as {
    document?: unknown;
    WorkerGlobalScope?: unknown;
    process?: { versions?: { node?: unknown; bun?: unknown } };
    Deno?: unknown;
  };
  const isServer =
    typeof host.process?.versions?.node === "string" ||
    typeof host.process?.versions?.bun === "string" ||
    typeof host.Deno === "object" ||
    isWorkers();
  return !isServer && (host.document !== undefined || host.WorkerGlobalScope !== undefined);
}

/** Whether this is one of Cloudflare's Workers. */
export function isWorkers(): boolean {
  const host = globalThis as { navigator?: { userAgent?: unknown } };
  return host.navigator?.userAgent === "Cloudflare-Workers";
}

/** What Next replaces by a text when it bundles a route, and what no other host has. */
declare const process: { readonly env: { readonly NEXT_RUNTIME?: string } } | undefined;

/** Whether this is a route of Next. */
export function isNext(): boolean {
  return typeof process !== "undefined" && process.env.NEXT_RUNTIME !== undefined;
}

/** A module of Node, where the host has one: Node 20.16 or later, Deno, Bun. */
export function builtIn<T>(name: string): T | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => unknown } };
  return process?.getBuiltinModule?.(name) as T | undefined;
}

/** Warns by a name: in Node as its own warnings, in other hosts in the console. */
export function warning(name: string, message: string): void {
  const { process } = globalThis as {
    process?: { emitWarning?: (message: string, name: string) => void };
  };
  if (process?.emitWarning) process.emitWarning(message, name);
  else console.warn(`${name}: ${message}`);
}

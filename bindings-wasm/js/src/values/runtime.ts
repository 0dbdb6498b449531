// The environment that JavaScript runs in: what it is, which modules it has, and where it warns.

/**
 * Whether `fetch` itself decides which compressed responses to request, whatever the request's headers say, as browsers do.
 */
export function choosesCodings(): boolean {
  const host = globalThis as { process?: { versions?: { node?: unknown } } };
  return typeof host.process?.versions?.node !== "string";
}

/**
 * Whether every visitor can read the secrets of this program: in a page or a worker of a browser,
 * but not in a server program that imitates one.
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

/** Whether this is a Cloudflare Worker. */
export function isWorkers(): boolean {
  const host = globalThis as { navigator?: { userAgent?: unknown } };
  return host.navigator?.userAgent === "Cloudflare-Workers";
}

/** Next replaces this variable with a text when it bundles a route. No other host has the variable. */
declare const process: { readonly env: { readonly NEXT_RUNTIME?: string } } | undefined;

/** Whether this is a route of Next. */
export function isNext(): boolean {
  return typeof process !== "undefined" && process.env.NEXT_RUNTIME !== undefined;
}

/** Returns a module of Node, if the host has it: Node 20.16 or later, Deno, Bun. */
export function builtIn<T>(name: string): T | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => unknown } };
  return process?.getBuiltinModule?.(name) as T | undefined;
}

/** Issues a warning with a name: as a process warning in Node, in the console of other hosts. */
export function warning(name: string, message: string): void {
  const { process } = globalThis as {
    process?: { emitWarning?: (message: string, name: string) => void };
  };
  if (process?.emitWarning) process.emitWarning(message, name);
  else console.warn(`${name}: ${message}`);
}

/** The functions to call when a signal aborts. */
const acts = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `act` when a signal aborts, unless the returned function was called before. Each signal has only one listener,
 * because Node warns of a leak if there are more than ten.
 */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  const all = acts.get(signal) ?? listen(signal);
  all.add(act);
  return () => all.delete(act);
}

/** This is a separate function, because a listener keeps the variables around it alive as long as its signal. */
function listen(signal: AbortSignal): Set<() => void> {
  const all = new Set<() => void>();
  const actAll = (): void => {
    for (const each of all) each();
  };
  signal.addEventListener("abort", actAll, { once: true });
  acts.set(signal, all);
  return all;
}

/**
 * Returns the result of a function of the caller, awaited if it is a promise. If the signal aborts first, throws the
 * signal's reason.
 */
export async function awaited<T>(
  result: T | PromiseLike<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  if (typeof (result as PromiseLike<T> | undefined)?.then !== "function") return result;
  let forget: (() => void) | undefined;
  try {
    return await new Promise<T>((resolve, reject) => {
      forget = signal && onAbort(signal, () => reject(signal.reason));
      Promise.resolve(result).then(resolve, reject);
      if (signal?.aborted) reject(signal.reason);
    });
  } finally {
    forget?.();
  }
}

/**
 * Calls `act` after this many milliseconds, or after 2^31 - 1 ms (24.8 days) if that is less: the host would call it at once
 * if the number were larger.
 */
export function timer(act: () => void, milliseconds: number): ReturnType<typeof setTimeout> {
  return setTimeout(act, Math.min(milliseconds, 2 ** 31 - 1));
}

/** Waits for this many milliseconds. If the signal aborts, throws the signal's reason at once. */
export async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const waits = timer(() => {
      forget?.();
      resolve();
    }, milliseconds);
    const forget =
      signal &&
      onAbort(signal, () => {
        // The timer would keep the process alive.
        clearTimeout(waits);
        reject(signal.reason);
      });
  });
}

/** What to do when a signal aborts. */
const acts = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Does something when a signal aborts, until the returned function is called. There is only one
 * listener for each signal, however many wait for it, because Node warns of a leak above ten.
 */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  const all = acts.get(signal) ?? listen(signal);
  all.add(act);
  return () => all.delete(act);
}

/** A function of its own, because what a listener's surroundings hold lives as long as the signal. */
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
 * What the caller's own function gives, awaited if it is a promise. If the signal aborts first, it
 * throws the signal's reason.
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

/** Waits for some time, unless the signal aborts: then it throws the signal's reason at once. */
export async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      forget?.();
      resolve();
    }, milliseconds);
    const forget =
      signal &&
      onAbort(signal, () => {
        // A timer that is left would keep the process alive.
        clearTimeout(timer);
        reject(signal.reason);
      });
  });
}

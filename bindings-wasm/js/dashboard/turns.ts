// Schedules the updates of the dashboard and its views. Each update is a task of its own, and each view is laid out in a task and
// drawn in a frame of its own, so that no task and no frame delays a click for long.

/**
 * The dashboard comes first, because its update gives the views what they show. Then come views that the viewer has used, then
 * visible views, then the rest.
 */
export type Rank = "dashboard" | "used" | "seen" | "later";

const RANKS: readonly Rank[] = ["dashboard", "used", "seen", "later"];
const waiting: { readonly rank: Rank; readonly go: () => void }[] = [];
/** Resolves when the browser has drawn the last update. */
let last: Promise<void> = Promise.resolve();

/** Resolves when it is the turn of work with this rank. */
export function turnOf(rank: Rank): Promise<void> {
  return new Promise<void>((go) => {
    waiting.push({ rank, go });
    last = last.then(turn).then(next);
  });
}

/** Starts the waiting task that comes first by rank. This is called once for each waiting task. */
async function next(): Promise<void> {
  waiting.sort((one, other) => RANKS.indexOf(one.rank) - RANKS.indexOf(other.rank));
  const first = waiting.shift();
  first?.go();
  // The frame of the dashboard would delay the views that show what has changed.
  if (first?.rank !== "dashboard") await painted();
}

/** Yields to the browser: resolves when other tasks, such as a click, have had a chance to run. */
export function turn(): Promise<void> {
  const { scheduler } = globalThis as { scheduler?: { yield?: () => Promise<void> } };
  return scheduler?.yield?.() ?? new Promise((resolve) => setTimeout(resolve));
}

/** How long to wait for a frame: a hidden page draws none. */
const LONGEST_FRAME_MS = 100;

/** Resolves when the browser has drawn what has changed. */
async function painted(): Promise<void> {
  await turn();
  // The browser would lay out and draw the page in one long task. This does the layout in a task of its own.
  document.documentElement.getBoundingClientRect();
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, LONGEST_FRAME_MS);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      setTimeout(resolve);
    });
  });
}

// Schedules the updates of the dashboard and its views. Each view is updated, laid out and drawn in short tasks of its
// own, so that no task and no frame delays a click for long.

/**
 * A view that the viewer has used comes first. Then comes the dashboard, because its update gives the views what they show, then
 * visible views, then the rest.
 */
export type Rank = "used" | "dashboard" | "seen" | "later";

const RANKS: readonly Rank[] = ["used", "dashboard", "seen", "later"];
const waiting: { readonly rank: Rank; readonly go: () => void }[] = [];
let isRunning = false;
/** Ends the wait for a frame. */
let endWait = () => {};

/** Resolves when it is the turn of work with this rank. */
export function turnOf(rank: Rank): Promise<void> {
  return new Promise<void>((go) => {
    waiting.push({ rank, go });
    if (!isRunning) void run();
    // What a click changes does not wait for the frame of what came before.
    if (rank === "used" || rank === "dashboard") endWait();
  });
}

/** After this time, a task takes up no further work. */
const SHORT_MS = 20;

/** Starts the waiting work, first by rank, until none is left. */
async function run(): Promise<void> {
  isRunning = true;
  do {
    await turn();
    const begun = performance.now();
    let rank = await started();
    // A frame of the dashboard alone would delay the views that show what has changed.
    while (rank === "dashboard" && isUrgent() && performance.now() < begun + SHORT_MS) {
      rank = await started();
    }
    if (rank === "dashboard") continue;
    if (performance.now() > begun + SHORT_MS) await turn();
    await painted();
  } while (waiting.length > 0);
  isRunning = false;
}

/** Whether the dashboard, or a view that the viewer sees, waits for its update. */
function isUrgent(): boolean {
  return waiting.some(({ rank }) => rank !== "later");
}

/** Starts the waiting work that comes first by rank. Resolves when all work that this update causes waits for its turn, too. */
async function started(): Promise<Rank | undefined> {
  waiting.sort((one, other) => RANKS.indexOf(one.rank) - RANKS.indexOf(other.rank));
  const first = waiting.shift();
  first?.go();
  // Lit takes some microtasks to update an element, and to begin the updates of the elements in it.
  for (let left = 10; left > 0; left--) await undefined;
  return first?.rank;
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
  // The browser would lay out and draw the page in one long task. This does the layout before the task that draws.
  document.documentElement.getBoundingClientRect();
  await new Promise<void>((resolve) => {
    endWait = resolve;
    const timer = setTimeout(resolve, LONGEST_FRAME_MS);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      setTimeout(resolve);
    });
  });
}

// Schedules the updates of views. Views that the viewer sees come first, and each update is a task of its own, so that none
// delays a click for long.

/** Views that the viewer has used come first, then visible views. The rest waits until the browser has drawn these. */
export type Rank = "used" | "seen" | "later";

const RANKS: readonly Rank[] = ["used", "seen", "later"];
const waiting: { readonly rank: Rank; readonly go: () => void }[] = [];
/** Resolves when the browser has drawn the view that was used last. */
let drawn = Promise.resolve();
/** Resolves when the frames of the rest are drawn. Each update of the rest has its own frame, so that no frame takes long. */
let rest = Promise.resolve();

/** Resolves when it is the turn of work with this rank. */
export function turnOf(rank: Rank): Promise<void> {
  return new Promise<void>((go) => {
    waiting.push({ rank, go });
    void turn().then(next);
  });
}

/** Starts the waiting task that comes first by rank. This is called once for each waiting task. */
async function next(): Promise<void> {
  waiting.sort((one, other) => RANKS.indexOf(one.rank) - RANKS.indexOf(other.rank));
  const first = waiting.shift();
  if (first?.rank === "used") drawn = painted();
  else if (first?.rank === "seen") await drawn;
  else {
    rest = rest.then(painted);
    await rest;
  }
  first?.go();
}

/** Yields to the browser: resolves when other tasks, such as a click, have had a chance to run. */
export function turn(): Promise<void> {
  const { scheduler } = globalThis as { scheduler?: { yield?: () => Promise<void> } };
  return scheduler?.yield?.() ?? new Promise((resolve) => setTimeout(resolve));
}

/** How long to wait for a frame: a hidden page draws none. */
const LONGEST_FRAME_MS = 100;

/** Resolves when the browser has drawn what has changed. */
function painted(): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LONGEST_FRAME_MS);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      setTimeout(resolve);
    });
  });
}

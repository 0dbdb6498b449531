// When views are updated: first what the viewer sees, and each in a task of its own, so that none holds up a click for long.

/** What the viewer has used comes first, then what is seen. The rest waits until the browser has drawn that. */
export type Rank = "used" | "seen" | "later";

const RANKS: readonly Rank[] = ["used", "seen", "later"];
const waiting: { readonly rank: Rank; readonly go: () => void }[] = [];
/** Resolves when what was used is drawn. */
let drawn = Promise.resolve();
/** Resolves when the last of the rest is drawn: each has a frame of its own, so that no frame takes long. */
let rest = Promise.resolve();

/** Resolves when it is the turn of work with this rank. */
export function turnOf(rank: Rank): Promise<void> {
  return new Promise<void>((go) => {
    waiting.push({ rank, go });
    void turn().then(next);
  });
}

/** Every waiting work has scheduled one call, and each call starts the work that comes first by rank. */
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

/** Resolves when the browser has had its turn. */
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

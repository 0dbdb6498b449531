import { invalidArgument } from "./error.js";
import { optionalFunction } from "./input.js";
import type { Now } from "./types.js";

/** The host's clocks. A suspended machine may stop the first, a user may set the second. */
export function now(): Now {
  return { monotonicMs: Math.floor(performance.now()), unixMs: Date.now() };
}

/** The caller's own clocks, or else the host's. */
export function clocks(own: (() => Now) | undefined): () => Now {
  const given = optionalFunction(
    "now",
    own,
    "want a function that returns { monotonicMs, unixMs }",
  );
  if (given === undefined) return now;
  return () => {
    const at = given();
    // To the functions that take a time, nothing would mean the host's.
    if (at === undefined) throw invalidArgument("now", "want { monotonicMs, unixMs }");
    return at;
  };
}

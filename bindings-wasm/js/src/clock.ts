import type { Now } from "./types.js";

/** The host's clocks. A suspended machine may stop the first, a user may set the second. */
export function now(): Now {
  return { monotonicMs: Math.floor(performance.now()), unixMs: Date.now() };
}

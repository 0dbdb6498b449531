// What explains a change in exact counts: an entry of its own, with a WebAssembly of its own, so that nobody loads it
// unasked.

export type { Amount, Cause, Explanation, Measure } from "./declared.js";
export { type ExplainOptions, explain } from "./explaining.js";
export { init } from "./judge.js";

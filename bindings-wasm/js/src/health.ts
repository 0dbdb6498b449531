// What explains a change in exact counts, and what rules find in them: an entry of its own, with a WebAssembly of its own,
// so that nobody loads it unasked.

export { type ExplainOptions, explain } from "./health/explain.js";
export { init } from "./health/module.js";
export { type CheckOptions, type Observed, type ReplayOptions, Rules } from "./health/rules.js";
export type {
  Amount,
  Cause,
  Check,
  Explanation,
  Finding,
  Measure,
  Need,
  Query,
  Replay,
  RuleKind,
  Severity,
  Status,
  Unjudged,
} from "./values/declared.js";

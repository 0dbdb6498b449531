// Prints what is wrong according to the rules in rules.toml, and what explains the difference between the last hour and the
// hour before. This is health.py in JavaScript, with the same environment, argument, state and output.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Client } from "tallyfold";
import { explain, Rules } from "tallyfold/health";

const quarter = 15 * 60_000;
const hour = 4 * quarter;
const now = process.argv[2] ? new Date(process.argv[2]) : new Date();
const end = Math.floor(now.getTime() / quarter) * quarter;
const rules = Rules.parse(readFileSync(new URL("rules.toml", import.meta.url), "utf8"));
const client = Client.fromEnv();
const counts = {};
for (const { metric, dimensions, window, backMs } of rules.needs()) {
  const range = { start: new Date(end - backMs), end: new Date(end) };
  counts[metric] = await client.collect({ metric, dimensions, window, ...range });
}
const lastHours = [2, 1].map((hours) => ({
  start: new Date(end - hours * hour),
  end: new Date(end - (hours - 1) * hour),
  dimensions: ["write_key", "integration", "reason"],
}));
const [before, last] = await Promise.all(lastHours.map((query) => client.eventDelivery(query)));

const path = process.env.TALLYFOLD_STATE ?? "health.json";
const { findings, healthy, judged, state } = rules.check({
  delivery: counts.event_delivery,
  ingestion: counts.event_ingestion,
  state: existsSync(path) ? readFileSync(path, "utf8") : undefined,
  now,
});
writeFileSync(path, state);
for (const { severity, status, sentence } of findings) {
  console.log(`${severity}, ${status}: ${sentence}`);
}
console.log(`${judged} windows of groups were judged, healthy: ${healthy ? "yes" : "no"}`);
console.log(explain(before, last, "filtered_rate").sentence);

// Runs a program in virtual time, in which events arrive late: `node --import ./late.mjs program.mjs`. The time passes from
// LATE_BEGIN to LATE_END, a minute in a few milliseconds. The program queries a sandbox in this process. Requests to other
// addresses are accepted, and their bodies are recorded. At the end, these bodies and all events are written to LATE_RESULT.

import { writeFileSync } from "node:fs";
import { mock } from "node:test";
import { Sandbox } from "tallyfold";

const MINUTE = 60_000;
const begin = Date.parse(process.env.LATE_BEGIN);
const end = Date.parse(process.env.LATE_END);

/** Events every five minutes. Every fourth time they arrive 50 minutes late, when readings have been equal for a while. */
const events = [];
const LAST = Date.parse("2026-01-31T12:00:00Z");
for (let atMs = Date.parse("2026-01-28T00:02:00Z"); atMs < LAST; atMs += 5 * MINUTE) {
  const at = events.length;
  const count = 1 + (at % 9);
  const arrivesMs = atMs + (at % 4 === 0 ? 50 : 0) * MINUTE;
  events.push({ atMs, arrivesMs, count, outcome: at % 3 === 0 ? "errors" : "success" });
}

const sandbox = new Sandbox({
  clientId: process.env.TALLYFOLD_CLIENT_ID,
  clientSecret: process.env.TALLYFOLD_CLIENT_SECRET,
  controlAudience: process.env.TALLYFOLD_CONTROL_AUDIENCE,
  now: () => ({ monotonicMs: Date.now() - begin, unixMs: Date.now() }),
});
const taken = [];
const waiting = [...events];

function arrive() {
  for (const event of waiting.splice(0)) {
    if (event.arrivesMs > Date.now()) waiting.push(event);
    else {
      const { atMs, count, outcome } = event;
      const of = { eventName: "order", writeKey: "web", integration: "email", reason: "" };
      sandbox.record({ ...of, outcome, count, timestamp: new Date(atMs) });
    }
  }
}

let hasAsked = false;
globalThis.fetch = async (url, init) => {
  hasAsked = true;
  if (String(url).startsWith(process.env.TALLYFOLD_CLUSTER_ENDPOINT)) return sandbox.fetch(url, init);
  taken.push(new TextDecoder().decode(init.body));
  return new Response(null, { status: String(url).endsWith("/v1/metrics") ? 200 : 204 });
};

const inRealTime = setTimeout;
mock.timers.enable({ apis: ["setTimeout", "Date"], now: begin });
performance.now = () => Date.now() - begin;
arrive();

/** Lets a minute pass if there was no request, until LATE_END. A program that still waits then exits with 13. */
function pass() {
  if (hasAsked) hasAsked = false;
  else {
    mock.timers.tick(MINUTE);
    arrive();
  }
  if (Date.now() < end) inRealTime(pass, 4);
}

// No time passes while the program is loaded, until it waits for the first time.
const inVirtualTime = setTimeout;
globalThis.setTimeout = (...given) => {
  globalThis.setTimeout = inVirtualTime;
  if (begin < end) inRealTime(pass, 4);
  return inVirtualTime(...given);
};

process.on("exit", () => {
  writeFileSync(process.env.LATE_RESULT, JSON.stringify({ taken, events }));
});

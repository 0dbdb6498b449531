// Measures what a collect of a day costs in addition to HTTP. The sandbox runs in a process of its own, on loopback.
//
// `node collecting.mjs` alone prints this measurement; `main.mjs` runs it with the others.
import { deepStrictEqual } from "node:assert";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { atMost, median, tell } from "./measuring.mjs";

// The packed package, which `make` installs for the examples.
const require = createRequire(new URL("../../examples/package.json", import.meta.url));
const { Client, Plan } = require("tallyfold");

const CONCURRENCY = 8;
const ROUNDS = 7;
const RANGE = { start: "2026-01-01T00:00:00Z", end: "2026-01-02T00:00:00Z", window: "5m" };
const DIMENSIONS = ["event_name", "integration"];
const CREDENTIALS = {
  clientId: "sandbox-client",
  clientSecret: "sandbox-secret",
  controlAudience: "sandbox-control",
};

/** Measures the share of a collect's wall time that its requests alone do not take. */
export async function collecting() {
  const cli = join(dirname(require.resolve("tallyfold")), "cli.js");
  const server = spawn(process.execPath, [cli, "sandbox", "--seed", "1"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const [said] = await once(server.stdout, "data");
    const [clusterEndpoint] = String(said).match(/http:\/\/\S+/);
    await measure(clusterEndpoint);
  } finally {
    server.kill();
  }
}

async function measure(clusterEndpoint) {
  const { requests, token } = await recorded(clusterEndpoint);
  const client = new Client({ ...CREDENTIALS, clusterEndpoint });
  const query = { ...RANGE, metric: "event_delivery", dimensions: DIMENSIONS, progress: false };
  const ours = () => client.collect({ ...query, concurrency: CONCURRENCY });
  const theirs = () =>
    requestsAlone(`${clusterEndpoint}/v1.1/analytics/event_delivery`, requests, token);
  deepStrictEqual((await ours()).windows.length, requests.length);
  await theirs();
  const [ourTimes, theirTimes] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    ourTimes.push(await seconds(ours));
    theirTimes.push(await seconds(theirs));
  }
  const shares = ourTimes.map((time, round) => (time - theirTimes[round]) / time);
  tell({
    work: `collect of ${requests.length} windows, outside HTTP`,
    peer: "its requests alone",
    medians: [median(ourTimes), median(theirTimes)],
    unit: "seconds",
    ratio: median(shares),
    target: atMost(0.15),
  });
}

/** The bodies of the collect's requests, and a token to send them with. */
async function recorded(clusterEndpoint) {
  const windows = Array.from(new Plan(RANGE), ({ start, end }) => ({ start, end }));
  const requests = windows.map((window) => JSON.stringify({ ...window, dimensions: DIMENSIONS }));
  const response = await fetch(`${clusterEndpoint}/v1.1/oauth/token`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      client_id: CREDENTIALS.clientId,
      client_secret: CREDENTIALS.clientSecret,
      audience: CREDENTIALS.controlAudience,
    }),
  });
  return { requests, token: (await response.json()).access_token };
}

/** Sends the requests with the concurrency of the collect, reads each body chunk by chunk, and discards it. */
async function requestsAlone(url, requests, token) {
  const left = [...requests];
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const work = async () => {
    for (let body = left.shift(); body !== undefined; body = left.shift()) {
      const response = await fetch(url, { method: "POST", headers, body });
      for await (const _ of response.body);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
}

async function seconds(work) {
  globalThis.gc?.();
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1e3;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await collecting();

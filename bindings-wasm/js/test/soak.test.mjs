// A month of five clusters, each in a process of its own: see soak.mjs.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";

const run = promisify(execFile);
/** Set this to repeat a month that has failed. */
const first = Number(process.env.SOAK_SEED ?? Math.floor(Math.random() * 2 ** 32));

describe("a month with late events, wrong clocks, outages and kills comes to the truth", {
  concurrency: 2,
}, () => {
  for (const [cluster, programs] of [
    ["scrape", "backfill"],
    ["send", "backfill"],
    ["scrape"],
    ["send"],
    ["scrape", "send", "backfill"],
  ].entries()) {
    test(`in cluster ${cluster}: ${programs.join(", ")}`, async (t) => {
      const seed = first + cluster * 1000;
      const soak = join(import.meta.dirname, "soak.mjs");
      const args = ["--no-warnings", soak, String(seed), ...programs];
      const { stdout } = await run(process.execPath, args).catch(({ stderr }) =>
        assert.fail(`SOAK_SEED=${first}, seed ${seed}: ${stderr}`),
      );
      t.diagnostic(`SOAK_SEED=${first}: ${stdout.trim()}`);
    });
  }
});

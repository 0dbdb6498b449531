// The faults that every language is put to, over loopback: tests/faults/README.md.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, describe, test } from "node:test";
import { inspect } from "node:util";
import { Client, TallyfoldError } from "tallyfold";
import { FaultServer } from "./fault_server.mjs";

const url = new URL("../../../tests/faults/faults.json", import.meta.url);
const file = JSON.parse(await readFile(url, "utf8"));

const said = listen();

// Most of the time is spent waiting for something that does not come.
describe("faults", { concurrency: 16 }, () => {
  let ran = 0;
  for (const run of file.runs) {
    test(`${run.fault} at ${run.endpoint}`, async () => {
      await check(run);
      ran += 1;
    });
  }
  after(() => {
    assert.equal(ran, file.count);
    assert.equal(new Set(file.runs.map((run) => run.fault)).size, file.faults);
    assertHidden(said);
  });
});

async function check(run) {
  const begin = performance.now();
  const server = await FaultServer.start(file, run);
  try {
    const client = new Client(options(run, server));
    for (const outcome of run.outcomes) {
      const expected = typeof outcome === "string" ? file.outcomes[outcome] : outcome;
      assert.deepEqual(await outcomeOf(client, run.call), expected);
    }
    assertHidden(client);
  } finally {
    await server.end();
  }
  assert.ok(performance.now() - begin >= run.waits_ms);
}

function options(run, { address }) {
  const { client_id, client_secret, control_audience, orchestration_audience, identity } =
    file.client;
  const { timeout_ms, max_retries, longest_retry_wait_ms, tolerate } = run.options;
  return {
    clusterEndpoint: address,
    baseUrl: address,
    authUrl: address,
    clientId: client_id,
    identity,
    clientSecret: client_secret,
    controlAudience: control_audience,
    orchestrationAudience: orchestration_audience,
    timeoutMs: timeout_ms,
    maxRetries: max_retries,
    longestRetryWaitMs: longest_retry_wait_ms,
    tolerate,
    onAttempt: assertHidden,
    // The wall clock stands still.
    now: () => ({ monotonicMs: Math.floor(performance.now()), unixMs: Date.parse(file.now) }),
  };
}

/** What a call came to, as the file has it. */
async function outcomeOf(client, call) {
  try {
    if (call === "audit_logs") return { json: await client.auditLogs() };
    const ingested = call === "event_ingestion";
    const table = await (ingested
      ? client.eventIngestion(file.query)
      : client.eventDelivery(file.query));
    return { table: JSON.parse(JSON.stringify(table)), verdict: table.reconciliation.verdict };
  } catch (error) {
    if (!TallyfoldError.is(error)) throw error;
    assertHidden(error);
    const { code, kind, status = null, retryAfter = null } = error;
    return { error: { code, kind, status, retry_after: retryAfter } };
  }
}

function assertHidden(value) {
  const shown = [
    inspect(value, { showHidden: true, depth: Infinity, getters: true }),
    JSON.stringify(value) ?? "",
    String(value),
    value.stack ?? "",
  ];
  assert.ok(!shown.join("\n").includes("canary"), "a canary shows");
}

/** All that is printed from now on, but for what the test runner says. */
function listen() {
  const lines = [];
  const { stderr } = process;
  const write = stderr.write.bind(stderr);
  stderr.write = (text, ...rest) => {
    lines.push(String(text));
    return write(text, ...rest);
  };
  for (const level of ["debug", "error", "info", "log", "warn"]) {
    console[level] = (...values) => lines.push(inspect(values));
  }
  return lines;
}

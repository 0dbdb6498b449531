// Every example in the documentation of the source, run as it stands.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { register } from "prom-client";
import * as tallyfold from "tallyfold";
import * as exporting from "tallyfold/export";
import * as health from "tallyfold/health";
import * as node from "tallyfold/node";
import * as server from "tallyfold/server";
import { bytes, response } from "./responses.mjs";
import { clientOf, query, service } from "./world.mjs";

// No variable can have that name.
const { export: _, ...others } = exporting;
const AsyncFunction = (async () => {}).constructor;
const source = new URL("../src/", import.meta.url);
const examples = [];
for (const name of (await readdir(source, { recursive: true })).filter((name) =>
  name.endsWith(".ts"),
)) {
  const text = await readFile(new URL(name, source), "utf8");
  for (const [comment] of text.matchAll(/\/\*\*.*?\*\//gs)) {
    const [, example] = comment.split(/^ *\* @example\n/m);
    const lines = example?.split("\n").slice(0, -1) ?? [];
    if (example) examples.push([name, lines.map((line) => line.replace(/^ *\* ?/, "")).join("\n")]);
  }
}

describe("the example", () => {
  const original = globalThis.fetch;

  before(() => {
    Object.assign(process.env, {
      TALLYFOLD_CLUSTER_ENDPOINT: "http://localhost",
      TALLYFOLD_CLIENT_ID: "id",
      TALLYFOLD_CLIENT_SECRET: "secret",
      TALLYFOLD_CONTROL_AUDIENCE: "https://control.example",
    });
  });
  after(() => {
    globalThis.fetch = original;
  });

  for (const [name, code] of examples) {
    test(`of ${name}: ${code.split("\n")[0]}`, async (t) => {
      // A sandbox of its own, because some examples inject faults.
      const sandbox = service({
        clientId: "id",
        clientSecret: "secret",
        controlAudience: "https://control.example",
      });
      globalThis.fetch = sandbox.fetch;
      const world = await worldOf(sandbox);
      const { nodeListener } = node;
      const pages = { ...server, createServer, nodeListener, handle() {} };
      const known = {
        ...others,
        ...health,
        push: pushed,
        Outbox: Sending,
        path: join(emptied(t), "counts.om"),
        ...tallyfold,
        ...world,
        ...pages,
        serve: served(t),
        checkpointDirectory: directory(t),
        stateFile: (name) => node.stateFile(join(emptied(t), name)),
      };
      // There is no IndexedDB in Node.
      known.indexedDbCheckpoint = known.checkpointDirectory;
      const body = code.replace(/^import .*$/gm, "");
      // A block of its own, so that an example may name its variables as it likes.
      const run = new AsyncFunction(...Object.keys(known), `{ ${body}\n}`);
      await run(...Object.values(known));
    });
  }

  test("is there for every concept", () => assert.ok(examples.length >= 20, examples.length));
});

/** What the examples take for granted. */
async function worldOf(sandbox) {
  const client = clientOf(sandbox);
  const table = await client.eventDelivery(query);
  const machine = new tallyfold.Machine({
    ...sandbox.credentials,
    clusterEndpoint: "https://cluster.example",
  });
  return {
    ...query,
    authorization: "Bearer token",
    ledger: new exporting.Ledger(),
    load: () => undefined,
    register,
    response: { setHeader: () => {}, end: () => {} },
    socket: { write: () => {} },
    store: () => {},
    chart: () => {},
    client,
    console: { log: () => {} },
    drive: (call) => driveWith(call, sandbox),
    eu: await clientOf(sandbox, { identity: "eu" }).eventDelivery(query),
    us: await clientOf(sandbox, { identity: "us" }).eventDelivery(query),
    createReadStream: () => [bytes(response([]))],
    exchange: (request) => {
      const [headers, body] = [request.headers(), request.body()];
      return sandbox.fetch(request.url, { method: request.method, headers, body });
    },
    later: () => {},
    localStorage: { getItem: stored(table), setItem: () => {} },
    machine,
    process: {
      env: { CLIENT_ID: "id", CLIENT_SECRET: "secret", SLACK_URL: "https://chat.example" },
    },
    rules: health.Rules.standard(),
    quarters: [table],
    query,
    sandbox,
    table,
  };
}

/** What a page has stored: a table of yesterday, and no checkpoint. */
function stored(table) {
  return (name) => (name === "yesterday" ? JSON.stringify(table) : null);
}

/** `checkpointDirectory`, in a place that is gone after a test. */
function directory(t) {
  return (name) => node.checkpointDirectory(join(emptied(t), name));
}

/** A place that is gone after a test. */
function emptied(t) {
  const home = mkdtempSync(join(tmpdir(), "tallyfold-docs-"));
  t.after(() => rmSync(home, { recursive: true }));
  return home;
}

/** Drives a call of a machine. */
async function driveWith(call, sandbox) {
  for (let step = call.step(); step.type !== "done"; step = call.step()) {
    const { url, method } = step.request;
    const [headers, body] = [step.request.headers(), step.request.body()];
    const answer = await sandbox.fetch(url, { method, headers, body });
    call.head(answer.status, answer.headers);
    call.chunk(new Uint8Array(await answer.arrayBuffer()));
    call.end();
  }
}

/** A receiver that takes everything. */
const fetch = async () => new Response(null, { status: 204 });

/** An outbox that sends to it. */
class Sending extends exporting.Outbox {
  push(options) {
    return super.push({ ...options, fetch });
  }
}

/** `push`, to the same receiver. */
function pushed(counts, options) {
  return exporting.push(counts, { ...options, fetch });
}

/** `serve`, for as long as a test runs. */
function served(t) {
  return async (sandbox) => {
    const server = await node.serve(sandbox);
    t.after(() => server.close());
    return server;
  };
}

// Collects as jobs of Node: killed and started again, watched on a terminal.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Sandbox } from "tallyfold";
import { checkpointDirectory, serve } from "tallyfold/node";
import { hour, watched } from "./ranges.mjs";
import { clientOf, rejectionOf } from "./world.mjs";

const job = fileURLToPath(new URL("job.mjs", import.meta.url));
const query = { ...hour, end: "2026-01-02T00:00:00Z", dimensions: ["event_name", "integration"] };
const windows = 288;

describe("a job", () => {
  const sandbox = new Sandbox({ seed: 3 });
  let server;
  let home;
  let options;

  before(async () => {
    home = await mkdtemp(join(tmpdir(), "tallyfold-jobs-"));
    server = await serve(sandbox);
    options = { ...sandbox.credentials, clusterEndpoint: server.url };
  });
  after(async () => {
    await server.close();
    await rm(home, { recursive: true });
  });

  /** Runs the job until it ends, or until it has told of so many windows: then it is killed. */
  async function run(directory, killAfter = Number.POSITIVE_INFINITY) {
    const argument = JSON.stringify({ query, options, directory });
    const child = spawn(process.execPath, [job, argument], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let [printed, told] = ["", 0];
    child.stdout.on("data", (chunk) => {
      printed += chunk;
      told += String(chunk).split("\n").length - 1;
      if (told >= killAfter) child.kill("SIGKILL");
    });
    const [, signal] = await new Promise((resolve) => {
      child.once("close", (...how) => resolve(how));
    });
    return { signal, lines: printed.split("\n") };
  }

  async function storedWindows(directory) {
    const names = (await readdir(directory)).filter((name) => name.endsWith(".json"));
    const texts = await Promise.all(names.map((name) => readFile(join(directory, name), "utf8")));
    return texts.flatMap((text) => JSON.parse(text).table.windows.map(({ start }) => start));
  }

  test("that is killed again and again ends with the same table, and reads no stored window again", async () => {
    const identity = `${server.url}, client ${sandbox.credentials.clientId}`;
    const expected = JSON.stringify(await clientOf(sandbox, { identity }).collect(query));
    const directory = join(home, "killed");
    let stored = [];
    for (const killAfter of [1, 20, 37, 3, 61, 40]) {
      const before = sandbox.stats.event_delivery;
      const { signal } = await run(directory, killAfter);
      assert.equal(signal, "SIGKILL");
      const now = await storedWindows(directory);
      assert.ok(stored.every((start) => now.includes(start)));
      // What it read beyond is what was under way, or being written, when it was killed.
      const read = sandbox.stats.event_delivery - before;
      assert.ok(now.length >= stored.length + killAfter, `${now.length} stored`);
      assert.ok(read <= now.length - stored.length + 8, `${read} read`);
      stored = now;
    }
    const before = sandbox.stats.event_delivery;
    const { signal, lines } = await run(directory);
    assert.equal(signal, null);
    assert.equal(lines.at(-1), expected);
    assert.equal(sandbox.stats.event_delivery - before, windows - stored.length);
    assert.deepEqual([...new Set(await storedWindows(directory))].length, windows);
  });

  test("shows a counter on a terminal, and nothing elsewhere or when it is told not to", async () => {
    for (const [progress, isTerminal, isShown] of [
      [undefined, true, true],
      [false, true, false],
      [undefined, false, false],
    ]) {
      // One request fails, and the collect waits for the service.
      sandbox.inject({ kind: "status", status: 503, endpoint: "event_delivery" });
      const once = { ...options, maxRetries: 0 };
      const argument = JSON.stringify({ query: hour, options: once, progress });
      const command = isTerminal
        ? ["python3", ["-c", PTY, process.execPath, job, argument]]
        : [process.execPath, [job, argument]];
      const child = spawn(command[0], command[1], { stdio: ["ignore", "pipe", "pipe"] });
      let shown = "";
      for (const stream of [child.stdout, child.stderr]) {
        stream.on("data", (chunk) => {
          shown += chunk;
        });
      }
      const exit = await new Promise((resolve) => child.once("close", resolve));
      assert.equal(exit, 0, shown);
      if (isShown) {
        assert.match(shown, /\rtallyfold: \d+ of 12 windows, waiting for the service/);
        assert.match(shown, /\rtallyfold: 12 of 12 windows\S+\r?\n$/);
      } else assert.equal(shown, "");
    }
  });

  test("takes a directory as a path or as an address, and removes what was left over", async () => {
    const path = join(home, "deep", "er");
    const { client, asked } = watched(sandbox);
    await client.collect({ ...hour, checkpoint: checkpointDirectory(pathToFileURL(path)) });
    await writeFile(join(path, "segment-00000.json.1.tmp"), "left over");
    const told = asked.length;
    for (const checkpoint of [checkpointDirectory(path), path, pathToFileURL(path)]) {
      await client.collect({ ...hour, checkpoint });
    }
    assert.deepEqual([asked.length, told], [12, 12]);
    assert.deepEqual(await readdir(path), ["segment-00000.json"]);
    const { clientSecret } = sandbox.credentials;
    const text = await readFile(join(path, "segment-00000.json"), "utf8");
    assert.ok(!text.includes(clientSecret) && !text.includes("sandbox.control"));
  });

  test("has no path where there are no files", async (t) => {
    const { getBuiltinModule } = process;
    t.after(() => {
      process.getBuiltinModule = getBuiltinModule;
    });
    process.getBuiltinModule = undefined;
    const checkpoint = join(home, "nowhere");
    const error = await rejectionOf(clientOf(sandbox).collect({ ...hour, checkpoint }));
    assert.deepEqual([error.code, error.argument], ["invalid_argument", "checkpoint"]);
    assert.match(error.message, /checkpointDirectory/);
  });

  test("notices another job in its directory", async () => {
    const directory = join(home, "shared");
    const [one, other] = [0, 1].map(() => checkpointDirectory(directory));
    await one.save("segment-00000.json", "1");
    assert.equal(
      (await rejectionOf(other.save("segment-00000.json", "2"))).code,
      "invalid_checkpoint",
    );
    await one.save("segment-00000.json", "3");
    const both = [0, 1].map(() => {
      const checkpoint = checkpointDirectory(join(home, "both"));
      return clientOf(sandbox).collect({ ...query, checkpoint });
    });
    const ends = await Promise.allSettled(both);
    const refused = ends.filter(({ status }) => status === "rejected");
    assert.ok(refused.length >= 1);
    for (const { reason } of refused) assert.equal(reason.code, "invalid_checkpoint");
  });

  test("that can't write rejects with what the system says", async () => {
    const file = join(home, "a-file");
    await writeFile(file, "");
    const checkpoint = checkpointDirectory(join(file, "inside"));
    const error = await rejectionOf(clientOf(sandbox).collect({ ...hour, checkpoint }));
    assert.equal(error.code, "ENOTDIR");
    if (process.getuid?.() === 0) return;
    const closed = await mkdtemp(join(home, "closed-"));
    await chmod(closed, 0o500);
    const other = checkpointDirectory(closed);
    const refused = await rejectionOf(clientOf(sandbox).collect({ ...hour, checkpoint: other }));
    assert.equal(refused.code, "EACCES");
  });

  test("grows by no more than its table", async () => {
    globalThis.gc?.();
    const client = clientOf(sandbox);
    await client.collect({ ...query, groupBy: [] });
    const begin = process.memoryUsage().rss;
    for (let round = 0; round < 4; round++) await client.collect({ ...query, groupBy: [] });
    const grown = process.memoryUsage().rss - begin;
    assert.ok(grown < 64 * 2 ** 20, `${grown} bytes`);
  });
});

/** Runs a command on a terminal of its own, and copies what it shows there. */
const PTY = `
import os, pty, sys
status = pty.spawn(sys.argv[1:], lambda fd: os.read(fd, 1024))
sys.exit(os.waitstatus_to_exitcode(status))
`;

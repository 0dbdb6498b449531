// Who may use a checkpoint's directory, and what else may lie in it. Node and Python take turns.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import fsPromises, {
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  rename,
  rm,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { Sandbox } from "tallyfold";
import { serve, stateFile } from "tallyfold/node";
import { hour } from "./ranges.mjs";
import { clientOf, rejectionOf } from "./world.mjs";

const posix = { skip: process.platform === "win32" && "speaks of links and signals" };
const job = fileURLToPath(new URL("job.mjs", import.meta.url));
const venv = fileURLToPath(new URL("../../../.venv/bin/python", import.meta.url));
const python = existsSync(venv) ? venv : "python3";
const query = { ...hour, end: "2026-01-02T00:00:00Z", dimensions: ["integration"] };

const PYTHON_JOB = `
import json, sys, tallyfold
url, checkpoint, secret = sys.argv[1:]
with tallyfold.Client(
    cluster_endpoint=url, client_id="sandbox-client", client_secret=secret,
    control_audience="sandbox-control",
) as client:
    table = client.collect(
        "event_delivery", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", ["integration"],
        window="5m", checkpoint=checkpoint, on_progress=lambda now: print(now.done, flush=True),
    )
print(table.to_json())
`;

describe("a directory", posix, () => {
  const sandbox = new Sandbox({ seed: 3 });
  let home;
  let server;

  before(async () => {
    home = await mkdtemp(join(tmpdir(), "tallyfold-locks-"));
    server = await serve(sandbox);
  });
  after(async () => {
    await server.close();
    await rm(home, { recursive: true });
  });

  const collect = (checkpoint, more) => clientOf(sandbox).collect({ ...hour, checkpoint, ...more });

  async function fresh() {
    return await mkdtemp(join(home, "in-"));
  }

  /** The name of this process's lock, as it is while a collect is under way. */
  async function ownLock() {
    const directory = await fresh();
    let names = [];
    const under = collect(directory);
    while (!names.some((name) => name.startsWith("lock-"))) names = await readdir(directory);
    await under;
    return names.find((name) => name.startsWith("lock-"));
  }

  async function refused(directory) {
    const error = await rejectionOf(collect(directory));
    assert.equal(error.code, "invalid_checkpoint");
    assert.match(error.message, /another collect is using this checkpoint/);
  }

  test("is not left by a link", async () => {
    const directory = await fresh();
    await symlink(join(home, "created"), join(directory, "lock"));
    await collect(directory);
    assert.ok(!existsSync(join(home, "created")));
    const segment = join(directory, "segment-00000.json");
    await rename(segment, join(home, "elsewhere"));
    await symlink(join(home, "elsewhere"), segment);
    const error = await rejectionOf(collect(directory));
    assert.equal(error.code, "invalid_checkpoint");
    assert.match(error.message, /isn't a regular file/);
  });

  test("has no pipe that holds a collect", async () => {
    const directory = await fresh();
    execFileSync("mkfifo", [join(directory, "lock"), join(directory, "segment-00000.json.1.tmp")]);
    await collect(directory);
    await rm(join(directory, "segment-00000.json"));
    execFileSync("mkfifo", [join(directory, "segment-00000.json")]);
    assert.match((await rejectionOf(collect(directory))).message, /isn't a regular file/);
  });

  test("has files for their owner only, and none that were left over", async () => {
    const directory = await fresh();
    for (const name of ["segment-00000.json.1.tmp", "segment-00004.json.e5f1-22.tmp"]) {
      await writeFile(join(directory, name), "{");
    }
    await collect(directory);
    assert.deepEqual(await readdir(directory), ["segment-00000.json"]);
    assert.equal((await lstat(join(directory, "segment-00000.json"))).mode & 0o777, 0o600);
  });

  test("has a lock that ends with its process", async () => {
    const [, host, pid, start, random] = (await ownLock()).split("-");
    assert.equal(pid, String(process.pid));
    const directory = await fresh();
    const lock = join(directory, `lock-${host}-${pid}-${start}-${random}`);
    await writeFile(lock, "");
    await refused(directory);
    await rm(lock);
    await writeFile(join(directory, `lock-${host}-${pid}-1-${random}`), "");
    await writeFile(join(directory, `lock-${host}-4194304-${start}-${random}`), "");
    await collect(directory);
    assert.deepEqual(await readdir(directory), ["segment-00000.json"]);
  });

  test("has a lock of another machine until that is silent", async () => {
    const directory = await fresh();
    const lock = join(directory, `lock-${"0".repeat(16)}-1-1-0`);
    await writeFile(lock, "");
    await refused(directory);
    const now = Date.now() / 1000;
    await utimes(lock, now - 40, now - 40);
    await refused(directory);
    await utimes(lock, now - 65, now - 65);
    await collect(directory);
  });

  test("is made with its parents, unless the system refuses", async () => {
    const directory = await fresh();
    await collect(join(directory, "a", "b"));
    await writeFile(join(directory, "file"), "");
    assert.equal((await rejectionOf(collect(join(directory, "file")))).code, "EEXIST");
    assert.equal((await rejectionOf(collect(join(directory, "file", "c")))).code, "ENOTDIR");
    if (existsSync("/proc/self")) {
      assert.equal((await rejectionOf(collect("/proc/self/a"))).code, "ENOENT");
    }
  });

  test("has a lock of a terminated worker thread until that is silent", async () => {
    const directory = await fresh();
    const options = { ...sandbox.credentials, clusterEndpoint: "http://localhost" };
    const worker = new Worker(new URL("hanging_job.mjs", import.meta.url), {
      workerData: { query: hour, options, directory },
    });
    await once(worker, "message");
    await refused(directory);
    await worker.terminate();
    await refused(directory);
    const [name] = (await readdir(directory)).filter((name) => name.startsWith("lock-"));
    const now = Date.now() / 1000;
    await utimes(join(directory, name), now - 65, now - 65);
    await collect(directory);
  });

  test("without its lock is not written to", async () => {
    const directory = await fresh();
    let stored = 0;
    const lose = async () => {
      for (const name of await readdir(directory)) {
        if (name.startsWith("lock-")) await rm(join(directory, name));
      }
      stored = (await readdir(directory)).length;
    };
    const under = collect(directory, { concurrency: 1, onProgress: lose });
    assert.equal((await rejectionOf(under)).code, "invalid_checkpoint");
    assert.ok(stored <= 1);
  });

  test("has a lock that is lost when its file is replaced", async () => {
    const directory = await fresh();
    const other = join(directory, "other");
    await writeFile(other, "");
    const replace = async () => {
      const names = await readdir(directory);
      const lock = names.find((name) => name.startsWith("lock-"));
      if (existsSync(other)) await rename(other, join(directory, lock));
    };
    const under = collect(directory, { concurrency: 1, onProgress: replace });
    assert.equal((await rejectionOf(under)).code, "invalid_checkpoint");
  });

  test("has a lock of a process that can't be inspected until that is silent", async (t) => {
    const [, host] = (await ownLock()).split("-");
    t.mock.method(process, "kill", () => {
      throw Object.assign(new Error("unknown"), { code: "EINVAL" });
    });
    const directory = await fresh();
    const lock = join(directory, `lock-${host}-4194304-1-a`);
    await writeFile(lock, "");
    await refused(directory);
    const now = Date.now() / 1000;
    await utimes(lock, now - 65, now - 65);
    await collect(directory);
    assert.ok(!existsSync(lock));
  });

  test("is free after an end of any kind", async () => {
    const directory = await fresh();
    const stop = new AbortController();
    const under = collect(directory, {
      signal: stop.signal,
      onProgress: () => stop.abort(new Error("enough")),
    });
    assert.equal((await rejectionOf(under)).message, "enough");
    await collect(directory);
    assert.ok((await readdir(directory)).every((name) => name.startsWith("segment-")));
  });

  const hasPython = (() => {
    try {
      execFileSync(python, ["-c", "import tallyfold"], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  })();
  const both = { skip: !hasPython && "the Python package is not installed" };

  /** Starts a job of either language. */
  function start(language, directory) {
    const options = { ...sandbox.credentials, clusterEndpoint: server.url };
    const command = {
      node: [process.execPath, job, JSON.stringify({ query, options, directory })],
      python: [python, "-c", PYTHON_JOB, server.url, directory, options.clientSecret],
    }[language];
    const child = spawn(command[0], command.slice(1), { stdio: ["ignore", "pipe", "pipe"] });
    const run = { child, printed: "", complained: "", told: 0, onTold: () => {} };
    child.stdout.on("data", (chunk) => {
      run.printed += chunk;
      run.told += String(chunk).split("\n").length - 1;
      run.onTold();
    });
    child.stderr.on("data", (chunk) => {
      run.complained += chunk;
    });
    run.end = new Promise((resolve) => child.once("close", (code) => resolve(code)));
    return run;
  }

  test("outlives 30 kills of Node and Python by turns", both, async () => {
    const identity = `${server.url}, client ${sandbox.credentials.clientId}`;
    const expected = JSON.stringify(await clientOf(sandbox, { identity }).collect(query));
    let directory = await fresh();
    let kills = 0;
    for (let round = 0; kills < 30; round++) {
      const run = start(round % 2 ? "python" : "node", directory);
      const enough = [1, 9, 17, 4, 2][round % 5];
      run.onTold = () => run.told >= enough && run.child.kill("SIGKILL");
      const code = await run.end;
      assert.equal(run.complained, "");
      if (code === null) kills += 1;
      else {
        assert.deepEqual(JSON.parse(run.printed.trim().split("\n").at(-1)), JSON.parse(expected));
        directory = await fresh();
      }
    }
    for (const language of ["python", "node"]) {
      const run = start(language, directory);
      assert.equal(await run.end, 0, run.complained);
      assert.equal(run.printed.trim().split("\n").at(-1), expected);
    }
    assert.ok((await readdir(directory)).every((name) => /^segment-\d+\.json$/.test(name)));
  });

  test("is used by one of Node and Python that begin at once", both, async () => {
    for (let round = 0; round < 3; round++) {
      const directory = await fresh();
      const runs = ["node", "python", "node", "python"].map((each) => start(each, directory));
      const codes = await Promise.all(runs.map((run) => run.end));
      for (const [number, run] of runs.entries()) {
        if (codes[number] !== 0) assert.match(run.complained, /another collect is using this/);
      }
      const last = start(round % 2 ? "python" : "node", directory);
      assert.equal(await last.end, 0, last.complained);
    }
  });
});

test("a state's file is written by one process at a time, and only as it was loaded", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "tallyfold-state-"));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, "totals.json");
  const [one, other] = [stateFile(path), stateFile(path)];
  assert.deepEqual([await one.load(), await other.load()], [undefined, undefined]);
  await Promise.all([one.store("first"), one.store("second")]);
  const refused = await rejectionOf(other.store("another"));
  assert.equal(refused.code, "invalid_checkpoint");
  assert.match(refused.message, /since it was loaded/);
  assert.equal(await other.load(), "second");
  // A process of another machine, of any language, is about to write.
  const lease = `${path}.lease`;
  await mkdir(lease);
  const foreign = join(lease, "lock-0123456789abcdef-1-1-00");
  await writeFile(foreign, "");
  assert.equal((await rejectionOf(other.store("third"))).code, "invalid_checkpoint");
  await rm(foreign);
  await other.store("third");
  for (const wrong of [5, undefined, null, {}]) {
    const refused = await rejectionOf(other.store(wrong));
    assert.deepEqual([refused.code, refused.argument], ["invalid_argument", "document"]);
  }
  assert.equal(await one.load(), "third");
  assert.deepEqual(await readdir(directory), ["totals.json"]);
});

test("a state's file is not written without its lock", posix, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "tallyfold-state-"));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, "totals.json");
  const file = stateFile(path);
  await file.store("first");
  const other = join(directory, "other");
  /** Stores while another process takes the lock's name, or removes it, after the lock was taken. */
  const storeWhile = async (lose) => {
    let looks = 0;
    const original = fsPromises.lstat;
    fsPromises.lstat = async (place, options) => {
      if (options?.bigint && ++looks === 2) await lose(place);
      return await original(place, options);
    };
    syncBuiltinESMExports();
    try {
      return await rejectionOf(file.store("second"));
    } finally {
      fsPromises.lstat = original;
      syncBuiltinESMExports();
      assert.equal(looks, 2);
    }
  };
  const replace = async (place) => {
    await writeFile(other, "");
    await rename(other, place);
  };
  for (const lose of [replace, rm]) {
    const error = await storeWhile((place) => lose(place));
    assert.equal(error.code, "invalid_checkpoint");
    assert.match(error.message, /another process is writing .*totals\.json/);
    assert.equal(await file.load(), "first");
  }
  await file.store("third");
  assert.deepEqual(await readdir(directory), ["totals.json"]);
});

test("a state's file is written also if another process removes the lock's directory meanwhile", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "tallyfold-state-"));
  t.after(() => rm(directory, { recursive: true }));
  const file = stateFile(join(directory, "totals.json"));
  const original = fsPromises.mkdir;
  let refusals = 3;
  // The directory is there when it is to be made, and gone when it is looked at.
  fsPromises.mkdir = async (place, mode) => {
    if (refusals > 0) {
      refusals -= 1;
      throw Object.assign(new Error(`EEXIST: file already exists, mkdir '${place}'`), {
        code: "EEXIST",
      });
    }
    return await original(place, mode);
  };
  syncBuiltinESMExports();
  try {
    await file.store("first");
  } finally {
    fsPromises.mkdir = original;
    syncBuiltinESMExports();
  }
  assert.equal(refusals, 0);
  assert.equal(await file.load(), "first");
});

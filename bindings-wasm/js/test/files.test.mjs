// How files are replaced.

import assert from "node:assert/strict";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { runInNewContext } from "node:vm";
import { replace } from "../dist/file.js";
import { Client, Sandbox } from "../dist/index.js";
import { checkpointDirectory, nodeListener, serve, stateFile } from "../dist/node.js";

describe("a file", () => {
  let home;
  let place;

  before(async () => {
    home = await fs.mkdtemp(path.join(tmpdir(), "tallyfold-files-"));
    place = path.join(home, "state.json");
  });
  after(() => fs.rm(home, { recursive: true }));

  test("stays, alone, if its replacement fails", async () => {
    await fs.writeFile(place, "old");
    const torn = function* () {
      yield "new";
      throw new Error("the disk is full");
    };
    await assert.rejects(replace(place, torn(), { fs, path }), /the disk is full/);
    assert.equal(await fs.readFile(place, "utf8"), "old");
    assert.deepEqual(await fs.readdir(home), ["state.json"]);
  });

  test("is named if the disk is full", async () => {
    const full = { code: "ENOSPC", errno: -28, syscall: "write" };
    const message = "ENOSPC: no space left on device, write";
    const open = async (...given) => {
      const file = await fs.open(...given);
      file.writeFile = () => Promise.reject(Object.assign(new Error(message), full));
      return file;
    };
    const replaced = replace(place, ["new"], { fs: { ...fs, open }, path });
    const error = await replaced.catch((rejected) => rejected);
    assert.equal(error.message, `${message} '${error.path}'`);
    assert.ok(error.path.startsWith(place));
    assert.deepEqual(await fs.readdir(home), ["state.json"]);
  });

  test("of a state loses what killed processes left next to it", async () => {
    const uuid = "0a1b2c3d-0000-4000-8000-00000000abcd";
    const kept = [
      "other.json",
      "state.json",
      `state.json.${uuid}`,
      "state.json.tmp",
      `x.${uuid}.tmp`,
    ];
    const lost = [`state.json.${uuid}.tmp`, `state.json.${uuid.replaceAll("0", "f")}.tmp`];
    for (const name of [...kept, ...lost]) await fs.writeFile(path.join(home, name), "x");
    const file = stateFile(place);
    await file.load();
    // Only who holds the lock knows that they are left over.
    assert.deepEqual((await fs.readdir(home)).sort(), [...kept, ...lost].sort());
    await file.store("new");
    assert.deepEqual((await fs.readdir(home)).sort(), kept);
    for (const name of kept.slice(2)) await fs.rm(path.join(home, name));
    await fs.rm(path.join(home, "other.json"));
  });

  for (const [platform, tries] of [
    ["win32", 3],
    ["linux", 1],
  ]) {
    test(`that another program has open is tried ${tries} times on ${platform}`, async () => {
      let tried = 0;
      const rename = async (from, to) => {
        tried += 1;
        if (tried < 3) throw Object.assign(new Error("busy"), { code: "EPERM" });
        await fs.rename(from, to);
      };
      const own = Object.getOwnPropertyDescriptor(process, "platform");
      Object.defineProperty(process, "platform", { value: platform });
      try {
        const replaced = replace(place, [platform], { fs: { ...fs, rename }, path });
        if (platform === "win32") await replaced;
        else await assert.rejects(replaced, /busy/);
      } finally {
        Object.defineProperty(process, "platform", own);
      }
      assert.equal(tried, tries);
      assert.equal(await fs.readFile(place, "utf8"), "win32");
      assert.deepEqual(await fs.readdir(home), ["state.json"]);
    });
  }
});

describe("a path that no file can have", () => {
  const wrong = [5, null, "", "a\0b", "\ud800", {}, [], new URL("https://app.example/a")];
  const sandbox = new Sandbox();
  const { clientId, clientSecret, controlAudience } = sandbox.credentials;
  const client = new Client({
    clusterEndpoint: "https://sandbox.example",
    fetch: sandbox.fetch,
    clientId,
    clientSecret,
    controlAudience,
  });
  const query = {
    metric: "event_delivery",
    start: "2026-01-01T00:00:00Z",
    end: "2026-01-01T00:15:00Z",
    dimensions: ["reason"],
    window: "5m",
  };

  for (const [make, argument] of [
    [checkpointDirectory, "directory"],
    [stateFile, "file"],
  ]) {
    test(`is refused by ${make.name}`, () => {
      for (const path of wrong) {
        assert.throws(() => make(path), { code: "invalid_argument", argument });
      }
    });
  }

  test("is refused by collect", async () => {
    for (const checkpoint of wrong.filter((path) => path !== null)) {
      const refused = { code: "invalid_argument", argument: "checkpoint" };
      await assert.rejects(client.collect({ ...query, checkpoint }), refused);
    }
  });

  test("is none for a URL of another realm", async () => {
    const home = await fs.mkdtemp(path.join(tmpdir(), "tallyfold-realm-"));
    try {
      const make = "(href) => ({ href, get [Symbol.toStringTag]() { return 'URL' } })";
      const foreign = runInNewContext(make)(pathToFileURL(home).href);
      const table = await client.collect({ ...query, checkpoint: foreign });
      assert.equal(table.totals.success, 0n);
      assert.deepEqual(await fs.readdir(home), ["segment-00000.json"]);
    } finally {
      await fs.rm(home, { recursive: true });
    }
  });

  test("is nothing that a server is given", async () => {
    await assert.rejects(serve(sandbox, { host: "" }), { argument: "host" });
    const unknown = { code: "unknown_argument", argument: "hostname" };
    await assert.rejects(serve(sandbox, { hostname: "localhost" }), unknown);
    assert.throws(() => nodeListener(undefined), { code: "invalid_argument", argument: "handle" });
  });
});

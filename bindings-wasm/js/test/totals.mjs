// Follows three hours and pushes the totals, in a process of its own: its argument is JSON.

import { Client } from "tallyfold";
import { Ledger } from "tallyfold/export";
import { stateFile } from "tallyfold/node";

const { options, query, path, url } = JSON.parse(process.argv[2]);
const file = stateFile(path);
const ledger = new Ledger(await file.load());
const push = () => ledger.push({ format: "otlp-json", url }, file.store);
await push();
const revisions = new Client(options).follow({ ...query, state: ledger.state });
for await (const revision of revisions) {
  await ledger.add(revision, revisions.state(), file.store);
  await push();
}

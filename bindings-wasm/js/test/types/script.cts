// The same types, found by `require`.

import tallyfold = require("tallyfold");
import exporting = require("tallyfold/export");
import node = require("tallyfold/node");

const table: tallyfold.CountTable<"reason"> = tallyfold.CountTable.fromJSON<"reason">("{}");
const server: Promise<node.SandboxServer> = node.serve(new tallyfold.Sandbox());
const text: string = exporting.exportCounts(table, { format: "csv" }).text();
module.exports = { table, server, text };

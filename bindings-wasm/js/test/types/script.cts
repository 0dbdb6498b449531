// The same types, found by `require`.

import tallyfold = require("tallyfold");
import exporting = require("tallyfold/export");
import health = require("tallyfold/health");
import node = require("tallyfold/node");

const table: tallyfold.CountTable<"reason"> = tallyfold.CountTable.fromJSON<"reason">("{}");
const server: Promise<node.SandboxServer> = node.serve(new tallyfold.Sandbox());
const text: string = exporting.exportCounts(table, { format: "csv" }).text();
const { sentence }: health.Explanation = health.explain(table, table, "errors");
module.exports = { table, server, text, sentence };

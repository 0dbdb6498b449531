// The same types, found by `require`.

import tallyfold = require("tallyfold");
import node = require("tallyfold/node");

const table: tallyfold.CountTable<"reason"> = tallyfold.CountTable.fromJSON<"reason">("{}");
const server: Promise<node.SandboxServer> = node.serve(new tallyfold.Sandbox());
module.exports = { table, server };

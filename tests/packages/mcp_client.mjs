// A client of `tallyfold mcp` by the TypeScript SDK: what the tools answer, and what follows a cancelled call.
import { once } from "node:events";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [command, question] = process.argv.slice(2);
const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command, args: ["mcp"], env: process.env }));
const { tools } = await client.listTools();
const call = async (name, question, options) =>
  (await client.callTool({ name, arguments: question }, options)).structuredContent;
const delivery = await call("delivery", JSON.parse(question));

// A first check reads weeks of history.
const controller = new AbortController();
const check = call("check", {}, { signal: controller.signal });
setTimeout(() => controller.abort(), 200);
await once(controller.signal, "abort");
const cancelled = await check.then(
  () => false,
  () => true,
);
const clusters = await call("clusters", {});
await client.close();
console.log(
  JSON.stringify({ tools: tools.map((tool) => tool.name), delivery, cancelled, clusters }),
);

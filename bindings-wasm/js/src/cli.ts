#!/usr/bin/env node
// `tallyfold sandbox` serves the sandbox until Ctrl-C.

import { parseArgs } from "node:util";
import { Sandbox, version } from "./index.js";
import { serve } from "./node.js";

const usage = `Usage: tallyfold sandbox [--port N] [--seed S]
       tallyfold --version

sandbox     serves the sandbox, a replica of the service, on 127.0.0.1 until Ctrl-C
  --port N  the port to listen on; 0, the default, takes a free one
  --seed S  makes the traffic: the same seed gives the same counts; 1 by default`;

const options = {
  port: { type: "string", default: "0" },
  seed: { type: "string", default: "1" },
  version: { type: "boolean" },
  help: { type: "boolean" },
} as const;

main().catch((error: Error) => {
  console.error(`tallyfold: ${error.message}`);
  process.exitCode = 1;
});

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  if (values.version) console.log(`tallyfold ${version()}`);
  else if (values.help) console.log(usage);
  else if (positionals.join(" ") === "sandbox") await sandbox(values.port, values.seed);
  else throw new Error(`want a command\n${usage}`);
}

async function sandbox(port: string, seed: string): Promise<void> {
  const replica = new Sandbox({ seed: BigInt(whole("seed", seed)) });
  const server = await serve(replica, { port: portOf(port) });
  const { clientId, clientSecret, controlAudience, orchestrationAudience } = replica.credentials;
  console.log(`tallyfold sandbox on ${server.url}
  client_id              ${clientId}
  client_secret          ${clientSecret}
  control_audience       ${controlAudience}
  orchestration_audience ${orchestrationAudience}
Ctrl-C stops it.`);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => server.close());
}

function portOf(digits: string): number {
  const port = Number(whole("port", digits));
  if (port <= 65_535) return port;
  throw new Error(`--port wants a number up to 65535, not ${digits}`);
}

function whole(name: string, digits: string): string {
  if (/^\d+$/.test(digits)) return digits;
  throw new Error(`--${name} wants a whole number, not ${digits}`);
}

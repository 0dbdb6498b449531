#!/usr/bin/env node
// `tallyfold sandbox` serves the sandbox until Ctrl-C.

import { parseArgs } from "node:util";
import { Sandbox, type SandboxOptions, version } from "./index.js";
import { serve } from "./node.js";

const usage = `Usage: tallyfold sandbox [--port N] [--host H] [--seed S] [--scene NAME] [--fault JSON]...
       tallyfold --version

sandbox         serves the sandbox, a simulated service, until Ctrl-C
  --port N      the port to listen on; any free port by default
  --host H      the address to listen on; 127.0.0.1 by default; 0.0.0.0 accepts connections from other machines
  --seed S      the seed of the traffic: the same seed gives the same counts; 1 by default
  --scene NAME  an incident in the traffic of the last hours: outage, consent_filter, schema_mismatch, silent_source or late_data
  --fault JSON  a fault, such as '{"kind": "status", "status": 503, "endpoint": "event_delivery", "every": 3}';
                may be repeated`;

const options = {
  port: { type: "string", default: "0" },
  seed: { type: "string", default: "1" },
  scene: { type: "string" },
  host: { type: "string", default: "127.0.0.1" },
  fault: { type: "string", multiple: true },
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
  else if (positionals.join(" ") === "sandbox") await sandbox(values);
  else throw new Error(`want a command\n${usage}`);
}

interface Values {
  readonly port: string;
  readonly host: string;
  readonly seed: string;
  readonly scene?: string | undefined;
  readonly fault?: string[] | undefined;
}

async function sandbox({ port, host, seed, scene, fault = [] }: Values): Promise<void> {
  // The sandbox refuses an unknown name, with a list of the known names.
  const known = scene as SandboxOptions["scene"];
  const replica = new Sandbox({ seed: BigInt(whole("seed", seed)), scene: known });
  for (const text of fault) inject(replica, text);
  const server = await serve(replica, { port: portOf(port), host }).catch((error) => {
    if (error.code !== "EADDRINUSE") throw error;
    const hint = "use another --port, or --port 0 for a free one";
    throw new Error(`${host}:${port} is in use by another program; ${hint}`);
  });
  const { clientId, clientSecret, controlAudience, orchestrationAudience } = replica.credentials;
  console.log(`tallyfold sandbox on ${server.url}
  client_id              ${clientId}
  client_secret          ${clientSecret}
  control_audience       ${controlAudience}
  orchestration_audience ${orchestrationAudience}
In another terminal:
  export TALLYFOLD_CLUSTER_ENDPOINT=${server.url}
  export TALLYFOLD_BASE_URL=${server.url}
  export TALLYFOLD_AUTH_URL=${server.url}
  export TALLYFOLD_CLIENT_ID=${clientId}
  export TALLYFOLD_CLIENT_SECRET=${clientSecret}
  export TALLYFOLD_CONTROL_AUDIENCE=${controlAudience}
  export TALLYFOLD_ORCHESTRATION_AUDIENCE=${orchestrationAudience}
Ctrl-C stops it.`);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => server.close());
}

/** Accepts the names of the Python command, such as `retry_after`, and the names of JavaScript. */
function inject(replica: Sandbox, text: string): void {
  try {
    const camel = (name: string): string =>
      name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
    const fields = Object.entries(JSON.parse(text)).map(([name, value]) => [camel(name), value]);
    replica.inject(Object.fromEntries(fields));
  } catch (error) {
    throw new Error(`--fault ${text}: ${(error as Error).message}`);
  }
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

// Every JavaScript program of the README files and the guide runs in Node, against a sandbox on loopback.
//
// A block that begins with an import is a new program; the blocks after it on the same page continue it.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));
const run = promisify(execFile);
const esbuild = createRequire(join(root, "bindings-wasm/js/package.json"))("esbuild");

/** The programs of a page, by the line where each begins. */
function programs(page) {
  const found = new Map();
  let [line, last] = [0, undefined];
  const text = readFileSync(join(root, page), "utf8");
  for (const [part, block] of text.matchAll(/^```js\n(.*?)^```$|^[^\n]*$/gms)) {
    line += 1;
    if (block === undefined) continue;
    // Files that a page shows whole have tests of their own.
    if (!block.startsWith("--8<--")) {
      if (last === undefined || block.startsWith("import ")) last = line;
      found.set(last, (found.get(last) ?? "") + block);
    }
    line += part.split("\n").length - 1;
  }
  return [...found].map(([begin, code]) => [`${page}:${begin}`, code]);
}

const made = ["docs/architecture.md", "docs/changelog.md"];
const pages = readdirSync(join(root, "docs"), { recursive: true })
  .map((name) => `docs/${name}`)
  .filter((name) => name.endsWith(".md") && !made.includes(name) && !name.includes("/reference/"));
const all = ["README.md", "bindings-wasm/js/README.md", ...pages.sort()].flatMap(programs);

/** What the receiver of exports hears from the programs of a page of `docs/guides/exports`. */
const datagram = "a datagram";
const heardFrom = {
  "overview.md": ["/write?db=counts&precision=ns"],
  "prometheus.md": ["/api/v1/write"],
  "victoriametrics.md": ["/api/v1/write"],
  "influxdb.md": ["/api/v2/write?org=events&bucket=counts&precision=ns"],
  "opentelemetry.md": ["/v1/metrics"],
  "datadog.md": ["/api/v2/series", datagram],
  "statsd.md": [datagram],
};

/** Takes whatever is sent to it over HTTP and in datagrams, and knows what has come. */
class Receiver {
  heard = new Set();
  #server = createServer(async (request, response) => {
    for await (const chunk of request) if (chunk.length) this.heard.add(request.url);
    // Each system has its own way to say that it took a message.
    const yes = { "/v1/metrics": 200, "/api/v2/series": 202 };
    response.writeHead(yes[request.url] ?? 204).end();
  });
  #datagrams = createSocket("udp4", () => this.heard.add(datagram));

  /** The addresses that the pages take from the environment. */
  async environment() {
    this.#server.listen(0, "127.0.0.1");
    this.#datagrams.bind(0, "127.0.0.1");
    await Promise.all([once(this.#server, "listening"), once(this.#datagrams, "listening")]);
    const url = `http://127.0.0.1:${this.#server.address().port}`;
    const datagrams = `udp://127.0.0.1:${this.#datagrams.address().port}`;
    return {
      PROMETHEUS_URL: url,
      VICTORIAMETRICS_URL: url,
      INFLUX_URL: url,
      INFLUX_TOKEN: "a-token",
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      DATADOG_API: url,
      DD_API_KEY: "a-key",
      DD_DOGSTATSD_URL: datagrams,
      STATSD_URL: datagrams,
      METRICS_PORT: "0",
    };
  }

  close() {
    this.#server.close();
    this.#datagrams.close();
  }
}

describe("the program at", () => {
  let sandbox;
  const env = { ...process.env };
  const receiver = new Receiver();
  const heard = new Map();

  before(async () => {
    Object.assign(env, await receiver.environment());
    const cli = join(root, "examples/node_modules/tallyfold/dist/cli.js");
    sandbox = spawn(process.execPath, [cli, "sandbox", "--port", "0", "--seed", "7"]);
    for await (const line of createInterface({ input: sandbox.stdout })) {
      const [name, value] = line.trim().split(/ +(?=\S+$)/);
      if (value?.startsWith("http://")) {
        for (const each of ["CLUSTER_ENDPOINT", "BASE_URL", "AUTH_URL"]) env[`TALLYFOLD_${each}`] = value;
      } else if (value) env[`TALLYFOLD_${name.toUpperCase()}`] = value;
      if (name === "orchestration_audience") break;
    }
  });
  after(() => {
    sandbox.kill();
    receiver.close();
  });

  for (const [place, code] of all) {
    test(place, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), "guide-"));
      t.after(() => rmSync(folder, { recursive: true }));
      symlinkSync(join(root, "examples/node_modules"), join(folder, "node_modules"));
      writeFileSync(join(folder, "program.mjs"), code);
      receiver.heard.clear();
      await run(process.execPath, ["program.mjs"], { cwd: folder, env, timeout: 120_000 });
      const page = basename(place).split(":")[0];
      heard.set(page, [...(heard.get(page) ?? []), ...receiver.heard]);
    });
  }

  test("sends its exports", () => {
    const all = [...heard].filter(([, what]) => what.length).map(([page, what]) => [page, what.sort()]);
    assert.deepEqual(Object.fromEntries(all), heardFrom);
  });

  test("docs/guides/workers.md answers with counts", async (t) => {
    const text = readFileSync(join(root, "docs/guides/workers.md"), "utf8");
    const [, block] = /^```ts\n(.*?)^```$/ms.exec(text);
    const { code } = await esbuild.transform(block, { loader: "ts" });
    const folder = mkdtempSync(join(tmpdir(), "guide-"));
    t.after(() => rmSync(folder, { recursive: true }));
    symlinkSync(join(root, "examples/node_modules"), join(folder, "node_modules"));
    writeFileSync(join(folder, "worker.mjs"), code);
    const worker = await import(join(folder, "worker.mjs"));
    const response = await worker.default.fetch(new Request("https://worker.example"), env);
    const rows = await response.json();
    assert.equal(rows.length, 5);
    assert.match(rows[0].errors, /^\d+$/);
  });

  test("is there for each start", () => assert.ok(all.length >= 5, `${all.length}`));
});

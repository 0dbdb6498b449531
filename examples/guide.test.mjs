// Runs every JavaScript program of the README files and the guide in Node, against a sandbox on loopback.
//
// A block that begins with an import is a new program; the blocks after it on the same page continue it.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
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
    if (last === undefined || block.startsWith("import ")) last = line;
    found.set(last, (found.get(last) ?? "") + block);
    line += part.split("\n").length - 1;
  }
  return [...found].map(([begin, code]) => [`${page}:${begin}`, code]);
}

const made = ["docs/architecture.md", "docs/changelog.md", "docs/security.md"];
const pages = readdirSync(join(root, "docs"), { recursive: true })
  .map((name) => `docs/${name}`)
  .filter((name) => name.endsWith(".md") && !made.includes(name) && !name.includes("/reference/"));
const all = ["README.md", "bindings-wasm/js/README.md", ...pages.sort()].flatMap(programs);

/** What the programs of each page in `docs/guides/exports` send to the destination: paths of requests, and datagrams. */
const datagram = "a datagram";
const heardFrom = {
  "overview.md": ["/write?db=counts&precision=ns"],
  "prometheus.md": ["/api/v1/write"],
  "victoriametrics.md": ["/api/v1/write"],
  "influxdb.md": ["/api/v2/write?org=events&bucket=counts&precision=ns"],
  "opentelemetry.md": ["/v1/metrics", "/v1/metrics"],
  "datadog.md": ["/api/v2/series", datagram],
  "statsd.md": [datagram],
};

/** A destination that accepts everything over HTTP and in datagrams, and records what has arrived. */
class Receiver {
  heard = new Set();
  #server = createServer(async (request, response) => {
    for await (const chunk of request) if (chunk.length) this.heard.add(request.url);
    // Each system has its own status for an accepted message.
    const yes = { "/v1/metrics": 200, "/api/v2/series": 202 };
    response.writeHead(yes[request.url] ?? 204).end();
  });
  #datagrams = createSocket("udp4", () => this.heard.add(datagram));

  /** Starts the servers, and returns the environment variables that the programs read. */
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

/** Creates a folder for a program, with the package in it. */
function folderOf(t) {
  const folder = mkdtempSync(join(tmpdir(), "guide-"));
  t.after(() => rmSync(folder, { recursive: true }));
  symlinkSync(join(root, "examples/node_modules"), join(folder, "node_modules"));
  return folder;
}

/** The TypeScript blocks of the page about Workers. */
function workers() {
  const text = readFileSync(join(root, "docs/guides/workers.md"), "utf8");
  return Array.from(text.matchAll(/^```ts\n(.*?)^```$/gms), ([, block]) => block);
}

async function script(typescript) {
  const { code } = await esbuild.transform(typescript, { loader: "ts" });
  return code;
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
      const folder = folderOf(t);
      writeFileSync(join(folder, "program.mjs"), code);
      receiver.heard.clear();
      await run(process.execPath, ["program.mjs"], { cwd: folder, env, timeout: 280_000 });
      const page = basename(place).split(":")[0];
      heard.set(page, [...(heard.get(page) ?? []), ...receiver.heard]);
    });
  }

  test("sends its exports", () => {
    const all = [...heard].filter(([, what]) => what.length).map(([page, what]) => [page, what.sort()]);
    assert.deepEqual(Object.fromEntries(all), heardFrom);
  });

  test("docs/guides/workers.md answers with counts", async (t) => {
    const folder = folderOf(t);
    const [block] = workers();
    writeFileSync(join(folder, "worker.mjs"), await script(block));
    const worker = await import(join(folder, "worker.mjs"));
    const response = await worker.default.fetch(new Request("https://worker.example"), env);
    const rows = await response.json();
    assert.equal(rows.length, 5);
    assert.match(rows[0].errors, /^\d+$/);
  });

  test("is what the file of its title has, which other tests run", () => {
    const shown = pages.flatMap((page) => [
      ...readFileSync(join(root, page), "utf8").matchAll(/^```\w+ title="((?:core|examples)\/.*?)"\n(.*?)^```$/gms),
    ]);
    for (const [, file, block] of shown) assert.equal(block, readFileSync(join(root, file), "utf8"), file);
    assert.equal(shown.length, 5);
  });

  test("is there for each start", () => assert.ok(all.length >= 5, `${all.length}`));
});

test("each link leads to a file and a heading that the repository has", () => {
  /** The anchors of a page, as repository hosts name them. */
  const anchors = (page) =>
    Array.from(readFileSync(page, "utf8").matchAll(/^#+ (.*)$|<a id="(.*?)">/gm), ([, heading, id]) =>
      id ?? heading.toLowerCase().replace(/[^\w\s-]/g, "").replaceAll(" ", "-"),
    );
  const others = ["ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY", "cli/README"].map((name) => `${name}.md`);
  const broken = [];
  for (const page of ["README.md", ...others, ...pages]) {
    const text = readFileSync(join(root, page), "utf8").replace(/^```.*?^```|`[^`\n]*`/gms, "");
    for (const [, ...links] of text.matchAll(/\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"/g)) {
      const link = links.find(Boolean);
      if (/^https?:/.test(link)) continue;
      const [path, anchor] = link.split("#");
      const file = path ? join(root, dirname(page), path) : join(root, page);
      // The reference of JavaScript and Rust is generated, and exists only on the site.
      if (file.includes("/docs/reference/")) continue;
      if (!existsSync(file) || (anchor && !anchors(file).includes(anchor))) broken.push(`${page}: ${link}`);
    }
  }
  assert.deepEqual(broken, []);
});

describe("with events that arrive late, the program of", () => {
  /** Runs a program in virtual time. Returns what it printed, what it sent, and a function that counts the true events. */
  async function late(folder, code, begin, end) {
    writeFileSync(join(folder, "program.mjs"), code);
    const env = {
      ...process.env,
      TALLYFOLD_CLUSTER_ENDPOINT: "http://localhost",
      TALLYFOLD_CLIENT_ID: "id",
      TALLYFOLD_CLIENT_SECRET: "secret",
      TALLYFOLD_CONTROL_AUDIENCE: "https://control.example",
      INFLUX_URL: "http://127.0.0.1",
      INFLUX_TOKEN: "a-token",
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1",
      LATE_RESULT: join(folder, "result.json"),
      LATE_BEGIN: `2026-01-31T${begin}:00Z`,
      LATE_END: `2026-01-31T${end}:00Z`,
    };
    const args = ["--no-warnings", "--import", join(root, "examples/late.mjs"), "program.mjs"];
    const { stdout } = await run(process.execPath, args, { cwd: folder, env, timeout: 280_000 });
    const { taken, events } = JSON.parse(readFileSync(env.LATE_RESULT, "utf8"));
    return { stdout, taken, truth: (start, end) => truthOf(events, start, end) };
  }

  /** Counts the events from one time to another. */
  function truthOf(events, start, end) {
    const counts = { success: 0n, errors: 0n };
    for (const { atMs, outcome, count } of events) {
      if (atMs >= Date.parse(start) && atMs < Date.parse(end)) counts[outcome] += BigInt(count);
    }
    return counts;
  }

  /** The sum of all matches of a pattern that has two groups, a name and digits. */
  function sums(text, pattern) {
    const counts = { success: 0n, errors: 0n };
    for (const [, name, digits] of text.matchAll(pattern)) {
      if (name in counts) counts[name] += BigInt(digits);
    }
    return counts;
  }

  /** The program of a page that calls `client.follow`. */
  const following = (page) =>
    programs(page).find(([, code]) => code.includes("client.follow("))?.[1] ?? "";
  const time = ["08:50", "12:00"];
  const hour = ["2026-01-31T09:00:00Z", "2026-01-31T10:00:00Z"];

  test("docs/guides/following.md prints changes that come to the truth", async (t) => {
    const { stdout, truth } = await late(folderOf(t), following("docs/guides/following.md"), ...time);
    assert.deepEqual(sums(stdout, /(\w+): (-?\d+)n/g), truth(...hour));
    assert.equal(stdout.match(/ true$/gm).length, 4);
  });

  for (const page of ["overview", "influxdb"]) {
    test(`docs/guides/exports/${page}.md sends changes that come to the truth`, async (t) => {
      const code = following(`docs/guides/exports/${page}.md`);
      const { taken, truth } = await late(folderOf(t), code, ...time);
      const lines = new Set(taken.join("").split("\n"));
      assert.deepEqual(sums([...lines].join("\n"), /(\w+)=(-?\d+)i/g), truth(...hour));
    });
  }

  test("docs/guides/exports/opentelemetry.md sends totals that grow to the truth", async (t) => {
    const code = following("docs/guides/exports/opentelemetry.md");
    const { taken, truth } = await late(folderOf(t), code, ...time);
    const newest = { success: 0n, errors: 0n };
    const times = new Set();
    for (const message of taken.map((text) => JSON.parse(text))) {
      for (const { name, sum } of message.resourceMetrics[0].scopeMetrics[0].metrics) {
        const [point, ...others] = sum.dataPoints;
        assert.deepEqual([sum.aggregationTemporality, sum.isMonotonic, others], [2, true, []]);
        times.add(point.timeUnixNano);
        const count = name.split(".").at(-1);
        if (!(count in newest)) continue;
        assert.ok(BigInt(point.asInt) >= newest[count]);
        newest[count] = BigInt(point.asInt);
      }
    }
    assert.deepEqual(newest, truth(...hour));
    assert.equal(times.size, taken.length);
    assert.ok(taken.length >= 4);
  });

  test("docs/guides/workers.md prints on its schedule changes that come to the truth", async (t) => {
    const [head, schedule] = workers();
    const [top] = head.split("export default");
    const folder = folderOf(t);
    const worker = schedule.replace("export default", "const worker =");
    const code = `${await script(`${top}\n${worker}`)}
      const kept = new Map();
      const STATE = { get: async (key) => kept.get(key) ?? null, put: async (...pair) => kept.set(...pair) };
      for (let run = 0; run < 46; run++) {
        await worker.scheduled({}, { ...process.env, STATE });
        await new Promise((resolve) => setTimeout(resolve, 900_000));
      }`;
    const { stdout, truth } = await late(folder, code, "00:05", "13:00");
    const printed = stdout.matchAll(/^(\S+)Z (-?\d+)n$/gm);
    const isBefore = ([, window]) => window < "2026-01-31T10";
    const errors = Array.from(printed).filter(isBefore).map(([, , digits]) => BigInt(digits));
    const { errors: expected } = truth("2026-01-31T00:00:00Z", "2026-01-31T10:00:00Z");
    assert.equal(errors.reduce((sum, one) => sum + one, 0n), expected);
  });

  test("docs/guides/backfill.md reads days again until they are the truth", async (t) => {
    const [[, code]] = programs("docs/guides/backfill.md");
    const folder = folderOf(t);
    const run = async (begin) => {
      const { stdout, truth } = await late(folder, code, begin, begin);
      const days = stdout.matchAll(/^counts\/(\S+)\.parquet (\d+)n$/gm);
      return [new Map(Array.from(days, ([, day, digits]) => [day, BigInt(digits)])), truth];
    };
    const [first, truth] = await run("00:10");
    const [later] = await run("04:00");
    const [last] = await run("04:30");
    const of = (day) => truth(`2026-01-${day}T00:00:00Z`, `2026-01-${day + 1}T00:00:00Z`).success;
    assert.deepEqual([...first.keys()], ["2026-01-28", "2026-01-29", "2026-01-30"]);
    assert.deepEqual([first.get("2026-01-28"), first.get("2026-01-29")], [of(28), of(29)]);
    assert.ok(first.get("2026-01-30") < of(30), "nothing came late");
    assert.deepEqual([...later], [["2026-01-30", of(30)]]);
    assert.deepEqual([...last], []);
  });
});

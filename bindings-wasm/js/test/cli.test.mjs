import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client } from "tallyfold";
import { query } from "./world.mjs";

const cli = fileURLToPath(new URL("../dist/cli.js", import.meta.url));
const run = (...args) => promisify(execFile)(process.execPath, [cli, ...args]);

describe("the command", () => {
  for (const signal of ["SIGINT", "SIGTERM"]) {
    test(`serves a sandbox, says how to get in, and ends well at ${signal}`, async (t) => {
      const command = spawn(process.execPath, [cli, "sandbox", "--seed", "7"]);
      t.after(() => command.kill("SIGKILL"));
      const text = await until(command, "Ctrl-C stops it.");
      const [, url] = /^tallyfold sandbox on (http:\/\/127\.0\.0\.1:\d+)$/m.exec(text);
      const named = (name) => new RegExp(`^ {2}${name} +(\\S+)$`, "m").exec(text)[1];
      const client = new Client({
        clusterEndpoint: url,
        baseUrl: url,
        authUrl: url,
        clientId: named("client_id"),
        clientSecret: named("client_secret"),
        controlAudience: named("control_audience"),
        orchestrationAudience: named("orchestration_audience"),
      });
      assert.ok((await client.eventDelivery(query)).totals.success > 0n);
      await client.auditLogs();
      // The lines that a shell takes are what a client reads.
      const lines = text.match(/^ {2}export TALLYFOLD_\w+=\S+$/gm).join("\n");
      const shell = `${lines}\n"${process.execPath}" -p "JSON.stringify(process.env)"`;
      const { stdout } = await promisify(execFile)("sh", ["-c", shell]);
      assert.ok(
        (await Client.fromEnv({ env: JSON.parse(stdout) }).eventDelivery(query)).totals.success >
          0n,
      );
      const ended = once(command, "exit");
      command.kill(signal);
      assert.deepEqual(await ended, [0, null]);
    });
  }

  test("listens where it is told, and makes the faults that it is told", async () => {
    const fault = { kind: "status", status: 503, retry_after: "0", endpoint: "event_delivery" };
    const faults = ["--fault", JSON.stringify(fault), "--fault", '{"kind": "revoke_token"}'];
    const args = [cli, "sandbox", "--host", "0.0.0.0", ...faults];
    const command = spawn(process.execPath, args);
    const text = await until(command, "Ctrl-C stops it.");
    const [, url] = /^tallyfold sandbox on (http:\/\/127\.0\.0\.1:\d+)$/m.exec(text);
    const named = (name) => new RegExp(`^ {2}${name} +(\\S+)$`, "m").exec(text)[1];
    const statuses = [];
    const client = new Client({
      clusterEndpoint: url.replace("127.0.0.1", "127.0.0.2"),
      dangerouslyAllowHttp: true,
      clientId: named("client_id"),
      clientSecret: named("client_secret"),
      controlAudience: named("control_audience"),
      onAttempt: ({ status }) => statuses.push(status),
    });
    assert.ok((await client.eventDelivery(query)).totals.success > 0n);
    assert.deepEqual(statuses, [200, 503, 401, 200, 200]);
    command.kill("SIGINT");
    await once(command, "exit");
    for (const wrong of ["{", '{"kind": "status"}', '{"kind": "delay", "bites": 1}']) {
      const refused = await run("sandbox", "--fault", wrong).catch((error) => error);
      assert.match(refused.stderr, /^tallyfold: --fault /);
    }
  });

  test("serves on the port that it is told", async (t) => {
    const first = spawn(process.execPath, [cli, "sandbox"]);
    t.after(() => first.kill("SIGKILL"));
    const [, port] = /127\.0\.0\.1:(\d+)/.exec(await until(first, "Ctrl-C"));
    const taken = await run("sandbox", "--port", port).catch((error) => error);
    assert.equal(taken.code, 1);
    assert.equal(
      taken.stderr,
      `tallyfold: 127.0.0.1:${port} is in use by another program; use another --port, or --port 0 for a free one\n`,
    );
    first.kill("SIGINT");
    await once(first, "exit");
    const second = spawn(process.execPath, [cli, "sandbox", "--port", port]);
    assert.match(await until(second, "Ctrl-C"), new RegExp(`127\\.0\\.0\\.1:${port}\\b`));
    second.kill("SIGINT");
    await once(second, "exit");
  });

  test("helps, and tells what it does not understand", async () => {
    assert.match((await run("--help")).stdout, /^Usage: tallyfold sandbox/);
    const wrong = [[], ["serve"], ["sandbox", "--seed", "x"], ["--x"]];
    for (const args of wrong) {
      const failure = await run(...args).catch((error) => error);
      assert.equal(failure.code, 1, args.join(" "));
      assert.match(failure.stderr, /^tallyfold: /);
      assert.doesNotMatch(failure.stderr, / at .*\.js/);
    }
    const port = await run("sandbox", "--port", "99999").catch((error) => error);
    assert.equal(port.code, 1);
    assert.match(port.stderr, /^tallyfold: --port wants a number up to 65535, not 99999$/m);
  });
});

/** What a command printed, once it printed `word`. */
async function until(command, word) {
  let text = "";
  for await (const chunk of command.stdout) {
    text += chunk;
    if (text.includes(word)) return text;
  }
  throw new Error(`it ended after: ${text}`);
}

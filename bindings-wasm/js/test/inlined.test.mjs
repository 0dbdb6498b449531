import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const WASM = new URL("../wasm/", import.meta.url);

test("no function of WebAssembly that makes an object can be inlined", () => {
  const declared = readdirSync(WASM).filter((name) => name.endsWith("_bg.wasm.d.ts"));
  assert.equal(declared.length, 6);
  for (const name of declared) {
    const inlined = readFileSync(new URL(name, WASM), "utf8").match(/^.*=> any;$/gm);
    assert.equal(inlined, null, `${name}: return \`Returned\` of plain.rs instead`);
  }
});

test("a clock that leaps by weeks after many calls ends no process", () => {
  const program = `
    import { Client } from "tallyfold";
    let ahead = -70_000;
    const fetch = async (url, init) => {
      const headers = { "content-type": "application/json", date: new Date(Date.now() + ahead).toUTCString() };
      if (url.endsWith("/oauth/token")) return new Response('{"access_token":"t","expires_in":86400}', { headers });
      const { start, end } = JSON.parse(Buffer.from(init.body).toString());
      return Response.json({ start, end, totalDelivered: "1", totalErrors: "0", totalFiltered: "0",
        counts: [{ success: "1", errors: "0", filtered: "0", dimensions: { integration: "A" } }] }, { headers });
    };
    const client = new Client({ clusterEndpoint: "https://x.example", clientId: "a", clientSecret: "b", controlAudience: "c", fetch });
    const query = { start: "2026-01-31T09:00:00Z", end: "2026-01-31T09:15:00Z", dimensions: ["integration"] };
    for (let call = 0; call < 1100; call++) (await client.eventDelivery(query))[Symbol.dispose]();
    ahead = -3_000_000_000;
    for (let call = 0; call < 20; call++) (await client.eventDelivery(query))[Symbol.dispose]();
    process.stdout.write("done");`;
  const printed = execFileSync(
    process.execPath,
    ["--no-warnings", "--input-type=module", "--eval", program],
    {
      encoding: "utf8",
      cwd: new URL("..", import.meta.url),
      stdio: ["ignore", "pipe", "ignore"],
    },
  );
  assert.equal(printed, "done");
});

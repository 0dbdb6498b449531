// Instants and addresses in the types that a host has for them.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Client, Plan, TallyfoldError } from "tallyfold";
import { Temporal } from "temporal-polyfill";
import { window } from "./responses.mjs";
import { clientOf, query, rejectionOf, service } from "./world.mjs";

const end = window.end;

describe("an instant", () => {
  const starts = {
    "a Date": new Date(window.start),
    "text with an offset": "2026-01-01T05:45:00+05:45",
    "a Temporal.Instant": Temporal.Instant.from(window.start),
    "a Temporal.ZonedDateTime": Temporal.Instant.from(window.start).toZonedDateTimeISO(
      "Asia/Tokyo",
    ),
  };
  for (const [name, start] of Object.entries(starts)) {
    test(`may be ${name}, and is sent with a Z`, async () => {
      const sent = [];
      const sandbox = service();
      const fetch = (url, init) => {
        sent.push(String(init.body && new TextDecoder().decode(init.body)));
        return sandbox.fetch(url, init);
      };
      const table = await clientOf(sandbox, { fetch }).eventDelivery({ ...query, start });
      assert.deepEqual(table.coverage, [window]);
      assert.equal(JSON.parse(sent.at(-1)).start, window.start);
      assert.deepEqual(table.gaps({ start, end }), []);
    });
  }

  test("of Temporal is exact to the nanosecond", () => {
    const start = Temporal.Instant.from("2026-01-01T00:00:00.000000001Z");
    const [first] = new Plan({ start, end, window: "5m" });
    assert.equal(first.start, "2026-01-01T00:00:00.000000001Z");
    const before = Temporal.Instant.from("1969-12-31T23:59:59.999999999Z");
    assert.equal(new Plan({ start: before, end, window: "1d" }).at(0).start, before.toString());
  });

  test("of a Temporal type that names none is refused by name", async () => {
    for (const start of [
      Temporal.PlainDateTime.from("2026-01-01T00:00:00"),
      Temporal.PlainDate.from("2026-01-01"),
      Temporal.Instant.from("+012026-01-01T00:00:00Z"),
      { epochMilliseconds: 5 },
      { epochNanoseconds: 5 },
    ]) {
      const error = await rejectionOf(clientOf(service()).eventDelivery({ ...query, start }));
      assert.deepEqual([error.code, error.argument], ["invalid_argument", "start"]);
      assert.match(error.message, /want a Date, a Temporal\.Instant/);
    }
  });
});

/** Where a client of that address sends its first request. */
async function addressOf(clusterEndpoint, options) {
  const sent = [];
  const fetch = async (url) => {
    sent.push(url);
    throw new TypeError("no network");
  };
  const client = clientOf(service(), { fetch, clusterEndpoint, baseUrl: null, ...options });
  await rejectionOf(client.eventDelivery(query));
  return sent[0];
}

/** Runs something as a page of that origin would. */
async function inPage(origin, run) {
  Object.defineProperty(globalThis, "location", { value: { origin }, configurable: true });
  try {
    return await run();
  } finally {
    delete globalThis.location;
  }
}

describe("an address", () => {
  test("may be a URL", async () => {
    const path = "/v1.1/oauth/token";
    assert.equal(
      await addressOf(new URL("https://cluster.example")),
      `https://cluster.example${path}`,
    );
    assert.equal(
      await addressOf(new URL("https://cluster.example/a/")),
      `https://cluster.example/a${path}`,
    );
  });

  test("that is a URL with a password, a query or another protocol is refused", () => {
    for (const url of [
      "https://me:secret@cluster.example",
      "https://cluster.example?a=1",
      "file:///a",
    ]) {
      assert.throws(
        () => clientOf(service(), { clusterEndpoint: new URL(url) }),
        (error) => error.code === "invalid_base_address" && !error.message.includes("secret"),
      );
    }
  });

  test("may be a path in a page", async () => {
    const sent = await inPage("https://page.example:8443", () => addressOf("/api/tallyfold"));
    assert.equal(sent, "https://page.example:8443/api/tallyfold/v1.1/oauth/token");
  });

  test("that is a path is refused outside of a page, by name", async () => {
    const act = () => new Client({ clusterEndpoint: "/api/tallyfold", accessToken: () => {} });
    for (const run of [act, () => inPage("null", act)]) {
      const error = await rejectionOf(Promise.resolve().then(run));
      assert.ok(TallyfoldError.is(error));
      assert.deepEqual([error.code, error.argument], ["invalid_base_address", "clusterEndpoint"]);
      assert.match(error.message, /only in a page.*https:\/\//);
    }
  });

  test("that begins with two slashes is no path", async () => {
    const act = () => inPage("https://page.example", () => addressOf("//evil.example/api"));
    assert.equal((await rejectionOf(act())).code, "invalid_base_address");
  });
});

// A value of a wrong type is refused by an error that names the argument and says what is right.
//
// Each public function and constructor is called once for each of its arguments and each kind of wrong value, with all
// other arguments right.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import {
  Aggregator,
  Client,
  CountTable,
  compare,
  errorCodes,
  Machine,
  Plan,
  Sandbox,
  segmentName,
  TallyfoldError,
} from "tallyfold";
import { exportCounts, Ledger, push } from "tallyfold/export";
import { explain, Rules } from "tallyfold/health";
import { serve } from "tallyfold/node";
import { window } from "./responses.mjs";
import { clientOf, query, service } from "./world.mjs";

const EVIL = "a text that no message may quote";

/** Values by their kinds. */
const WRONG = {
  null: null,
  undefined: undefined,
  flag: true,
  number: 5,
  negative: -5,
  fraction: 1.5,
  nan: Number.NaN,
  infinite: Number.POSITIVE_INFINITY,
  bigint: 5n,
  huge: 10n ** 30n,
  text: EVIL,
  empty: "",
  bytes: new Uint8Array([1]),
  list: [5],
  texts: [EVIL],
  record: { key: 5 },
  function: () => 5,
  symbol: Symbol(EVIL),
  date: new Date(Number.NaN),
};

const ABSENT = ["null", "undefined"];
/** What has fields, and is told which of them are missing or unknown. */
const RECORD = ["record", "bytes", "date"];
const WHOLE = ["number", "bigint"];
const TEXT = ["text", "empty"];

/** Words that are Python's and not JavaScript's. */
const FOREIGN =
  /\b(None|NoneType|True|False|str|dict|int|ints|list|tuple|Sequence|datetime|timedelta|bytes-like|group_by|(client|control|base|auth|on|max|memory|drop)_(id|secret|audience|url|attempt|progress|failure|retries|limit|old))\b/;

const range = { ...query, metric: "event_delivery" };
const byFunction = { clusterEndpoint: "https://cluster.example", accessToken: () => taken() };
const bySecret = {
  clusterEndpoint: "https://cluster.example",
  baseUrl: "https://api.example",
  authUrl: "https://auth.example",
  clientId: "id",
  clientSecret: "secret",
  controlAudience: "one",
  orchestrationAudience: "other",
};
const switches = {
  dangerouslyAllowHttp: ["flag", ...ABSENT],
  defaultTokenLifetime: [...WHOLE, ...ABSENT],
  limits: [...ABSENT, ...RECORD],
  tolerate: ABSENT,
  maxRetries: [...WHOLE, ...ABSENT],
  longestRetryWaitMs: [...WHOLE, ...ABSENT],
  timeoutMs: [...WHOLE, "infinite", ...ABSENT],
  onAttempt: ["function", ...ABSENT],
  now: ["function", ...ABSENT],
};
const metrics = { start: [], end: [], dimensions: [], groupBy: ABSENT, signal: ABSENT };
const collect = {
  metric: [],
  ...metrics,
  onProgress: ["function", ...ABSENT],
  progress: ["flag", ...ABSENT],
  checkpoint: ["text", ...ABSENT],
  window: ABSENT,
  concurrency: [...WHOLE, ...ABSENT],
  dropOld: ["flag", ...ABSENT],
  keep: ABSENT,
  memoryLimit: [...WHOLE, ...ABSENT],
  part: ABSENT,
  have: ABSENT,
  settleMs: [...WHOLE, ...ABSENT],
  finest: ABSENT,
  probe: ["flag", ...ABSENT],
  patienceMs: [...WHOLE, "infinite", ...ABSENT],
};
const follow = {
  metric: [],
  start: [],
  dimensions: [],
  groupBy: ABSENT,
  signal: ABSENT,
  window: [],
  end: ABSENT,
  delayMs: [...WHOLE, ...ABSENT],
  rereadMs: [...WHOLE, ...ABSENT],
  settleMs: [...WHOLE, ...ABSENT],
  state: [...ABSENT, ...TEXT],
  patienceMs: [...WHOLE, "infinite", ...ABSENT],
  onFailure: ["function", ...ABSENT],
};
const counted = { n: WHOLE, options: [...ABSENT, ...RECORD] };

const exported = {
  counts: [],
  labels: [...ABSENT, "date"],
  name: ABSENT,
  windows: ABSENT,
  exact: ["flag", ...ABSENT],
  maxBytes: [...WHOLE, ...ABSENT],
  onNote: ["function", ...ABSENT],
};

class Taken extends Error {}

function taken() {
  throw new Taken();
}

const sandbox = service();
const table = await clientOf(sandbox).eventDelivery(query);
const client = new Client({ ...byFunction, maxRetries: 0 });
const machine = new Machine({ clusterEndpoint: "https://cluster.example", hostTokens: true });
const event = {
  timestamp: window.start,
  outcome: "errors",
  eventName: "a",
  writeKey: "b",
  integration: "c",
};

/** What takes arguments: of an object with all of them, what is right, and which kinds are right. */
const cases = {
  Client: [
    (all) => new Client(all),
    byFunction,
    { accessToken: ["function", ...ABSENT], ...switches },
  ],
  "Client with a secret": [
    (all) => new Client(all),
    bySecret,
    {
      clusterEndpoint: ABSENT,
      baseUrl: ABSENT,
      authUrl: [],
      clientId: ["text"],
      clientSecret: ["text"],
      controlAudience: ["text"],
      orchestrationAudience: ["text"],
    },
  ],
  "options of a Client": [
    ({ options }) => new Client(options),
    {},
    { options: [...ABSENT, ...RECORD] },
  ],
  Machine: [
    (all) => new Machine(all),
    { ...bySecret, clientSecret: undefined, hostTokens: true },
    { hostTokens: ["flag", ...ABSENT] },
  ],
  eventDelivery: [(all) => client.eventDelivery(all), query, metrics],
  eventIngestion: [
    (all) => client.eventIngestion(all),
    { ...query, dimensions: ["integration"] },
    metrics,
  ],
  "a whole query": [({ query }) => client.eventDelivery(query), {}, { query: RECORD }],
  auditLogs: [
    (all) => clientOf(sandbox).auditLogs(all),
    {},
    { page: [...WHOLE, ...ABSENT], perPage: [...WHOLE, ...ABSENT], signal: ABSENT },
  ],
  collect: [(all) => client.collect(all), range, collect],
  follow: [(all) => client.follow(all), { ...range, window: "5m" }, follow],
  probeAdditivity: [
    (all) => client.probeAdditivity(all),
    { ...range, middle: "2026-01-01T00:05:00Z" },
    { metric: [], start: [], middle: [], end: [], dimensions: [], signal: ABSENT },
  ],
  Aggregator: [
    (all) => new Aggregator(all),
    { dimensions: ["reason"] },
    {
      dimensions: [],
      groupBy: ABSENT,
      metric: ABSENT,
      window: [...ABSENT, ...RECORD],
      limits: [...ABSENT, ...RECORD],
      tolerate: ABSENT,
    },
  ],
  push: [
    ({ chunk }) => new Aggregator({ dimensions: ["reason"] }).push(chunk),
    {},
    { chunk: ["bytes"] },
  ],
  groupBy: [({ groupBy }) => table.groupBy(groupBy), {}, { groupBy: [] }],
  filter: [
    (all) => table.filter(all),
    {},
    { reason: [...TEXT, "texts", ...ABSENT], integration: [...TEXT, "texts", ...ABSENT] },
  ],
  merge: [({ other }) => table.merge(other), {}, { other: [] }],
  "options of merge": [
    ({ options }) => table.merge(table, options),
    {},
    { options: [...ABSENT, ...RECORD] },
  ],
  replace: [({ replace }) => table.merge(table, { replace }), {}, { replace: ["flag", ...ABSENT] }],
  mergeAll: [({ tables }) => CountTable.mergeAll(tables), {}, { tables: [] }],
  gaps: [(all) => table.gaps(all), window, { start: [], end: [] }],
  "range of gaps": [({ range }) => table.gaps(range), {}, { range: [...ABSENT, ...RECORD] }],
  byWindow: [({ step }) => table.byWindow(step), {}, { step: ABSENT }],
  "options of byWindow": [
    ({ options }) => table.byWindow("1d", options),
    {},
    { options: [...ABSENT, ...RECORD] },
  ],
  "zone of byWindow": [({ zone }) => table.byWindow("1d", { zone }), {}, { zone: ABSENT }],
  between: [(all) => table.between(all), window, { start: [], end: [] }],
  "range of between": [({ range }) => table.between(range), {}, { range: RECORD }],
  "between of a series": [(all) => table.byWindow().between(all), window, { start: [], end: [] }],
  fromJSON: [
    ({ json }) => CountTable.fromJSON(json),
    {},
    { json: [...TEXT, ...RECORD, "list", "texts"] },
  ],
  top: [({ n, options }) => table.top(n, options), { n: 1 }, counted],
  "by of top": [({ by }) => table.top(1, { by }), {}, { by: ABSENT }],
  "top of a series": [({ n, options }) => table.byWindow().top(n, options), { n: 1 }, counted],
  compare: [({ before }) => compare(before, table), {}, { before: [] }],
  "compare to": [({ after }) => compare(table, after), {}, { after: [] }],
  Plan: [(all) => new Plan(all), { ...window, window: "5m" }, { start: [], end: [], window: [] }],
  part: [
    ({ index, of }) => new Plan({ ...window, window: "5m" }).part(index, of),
    { index: 0, of: 9 },
    { index: WHOLE, of: WHOLE },
  ],
  segmentName: [({ number }) => segmentName(number), {}, { number: ["number"] }],
  Sandbox: [
    (all) => new Sandbox(all),
    {},
    {
      seed: [...WHOLE, ...ABSENT],
      scene: ["text", ...ABSENT],
      clientId: ["text", ...ABSENT],
      clientSecret: ["text", ...ABSENT],
      tokenLifetime: [...WHOLE, ...ABSENT],
      closedWindows: ["flag", ...ABSENT],
      now: ["function", ...ABSENT],
    },
  ],
  record: [
    (all) => sandbox.record(all),
    event,
    {
      timestamp: [],
      outcome: [],
      eventName: TEXT,
      writeKey: TEXT,
      integration: TEXT,
      reason: [...TEXT, ...ABSENT],
      count: [...WHOLE, ...ABSENT],
    },
  ],
  inject: [
    (all) => sandbox.inject({ kind: "status", status: 500, ...all }),
    {},
    {
      kind: [],
      status: [...WHOLE, ...ABSENT],
      retryAfter: [...TEXT, ...ABSENT],
      endpoint: ABSENT,
      every: [...WHOLE, ...ABSENT],
    },
  ],
  handle: [
    (all) => sandbox.handle(all),
    { method: "GET", target: "/" },
    {
      method: TEXT,
      target: TEXT,
      headers: [...ABSENT, "empty", "bytes"],
      body: ["bytes", ...ABSENT],
      now: ABSENT,
    },
  ],
  serve: [({ sandbox }) => serve(sandbox), {}, { sandbox: [] }],
  "options of serve": [
    ({ options }) => serve(sandbox, options),
    {},
    { options: [...ABSENT, ...RECORD] },
  ],
  "port of serve": [({ port }) => serve(sandbox, { port }), {}, { port: [...ABSENT, "number"] }],
  "Collect.next": [({ now }) => machine.collect(range).next(now), {}, { now: ["undefined"] }],
  "Collect.settle": [({ call }) => machine.collect(range).settle(0, call), {}, { call: [] }],
  "Collect.load": [
    ({ name, json }) => machine.collect(range).load(name, json),
    { name: "a", json: "{}" },
    { name: TEXT, json: [...TEXT, "bytes"] },
  ],
};

const ledger = new Ledger();
Object.assign(cases, {
  exportCounts: [
    ({ counts, ...options }) => exportCounts(counts, options),
    { counts: table, format: "csv" },
    { ...exported, format: [] },
  ],
  "options of exportCounts": [
    ({ options }) => exportCounts(table, options),
    {},
    { options: [...ABSENT, ...RECORD] },
  ],
  "push of an export": [
    ({ counts, ...options }) => push(counts, options),
    {
      counts: table,
      format: "influx",
      url: "http://localhost/",
      fetch: async () => new Response(null, { status: 204 }),
    },
    {
      ...exported,
      format: [],
      url: [],
      headers: [...ABSENT, "date"],
      allowHttp: ["flag", ...ABSENT],
      guarantee: ABSENT,
      patienceMs: [...WHOLE, "infinite", ...ABSENT],
      fetch: ["function", ...ABSENT],
      finished: [...WHOLE, ...ABSENT],
      now: ["function", ...ABSENT],
      onFinished: ["function", ...ABSENT],
      signal: ABSENT,
      timeoutMs: ["number", "fraction", "infinite", ...ABSENT],
    },
  ],
  writeTo: [({ path }) => exportCounts(table, { format: "csv" }).writeTo(path), {}, { path: TEXT }],
  Ledger: [({ saved }) => new Ledger(saved), {}, { saved: [...ABSENT, ...TEXT] }],
  "Ledger.add": [
    ({ revision, state, store }) => ledger.add(revision, state, store),
    { revision: undefined, state: "{}", store: () => {} },
    { revision: [], store: ["function"] },
  ],
  "Ledger.counters": [
    (all) => ledger.counters(all),
    {},
    { labels: [...ABSENT, "date"], name: [...ABSENT, ...TEXT] },
  ],
  "options of Ledger.openmetrics": [
    ({ options }) => ledger.openmetrics(options),
    {},
    { options: [...ABSENT, ...RECORD] },
  ],
  "Ledger.register": [({ registry }) => ledger.register(registry), {}, { registry: [] }],
  explain: [
    ({ before, now, measure, ...options }) => explain(before, now, measure, options),
    { before: table, now: table, measure: "errors" },
    {
      before: [],
      now: [],
      measure: [],
      most: [...WHOLE, ...ABSENT],
      others: [...WHOLE, ...ABSENT],
    },
  ],
  "options of explain": [
    ({ options }) => explain(table, table, "errors", options),
    {},
    { options: [...ABSENT, ...RECORD] },
  ],
  "Rules.parse": [({ text }) => Rules.parse(text), {}, { text: TEXT }],
  "Rules.check": [
    (all) => Rules.standard().check(all),
    {},
    { delivery: ABSENT, ingestion: ABSENT, state: [...ABSENT, ...TEXT], now: [...ABSENT, "date"] },
  ],
  "options of Rules.check": [
    ({ options }) => Rules.standard().check(options),
    {},
    { options: [...ABSENT, ...RECORD] },
  ],
  "Rules.replay": [
    (all) => Rules.standard().replay(all),
    { start: window.start, end: "2027-01-01T00:00:00Z" },
    { delivery: ABSENT, ingestion: ABSENT, start: ["date"], end: ["date"] },
  ],
});

for (const [name, [act, given, all]] of Object.entries(cases)) {
  describe(name, () => {
    for (const [argument, right] of Object.entries(all)) {
      test(`refuses a wrong ${argument}`, async () => {
        const kinds = Object.keys(WRONG).filter((kind) => !right.includes(kind));
        const faults = [];
        for (const kind of kinds) {
          const fault = await faultOf(() => act({ ...given, [argument]: WRONG[kind] }), argument);
          if (fault) faults.push(`${kind}: ${fault}`);
        }
        assert.deepEqual(faults, []);
      });
    }
  });
}

/** What is wrong with the error of a call; nothing, as it should be. */
async function faultOf(act, argument) {
  let error;
  try {
    const result = await act();
    await result?.close?.();
    return "is taken";
  } catch (thrown) {
    error = thrown;
  }
  if (error instanceof Taken || error.cause instanceof Taken) return "is taken";
  if (!TallyfoldError.is(error) || error.kind !== "config") return `throws ${error.stack}`;
  if (error.argument !== argument) return `is about ${error.argument}: ${error.message}`;
  if (!/\b(want|required|needed|empty|is not a)\b/.test(error.message))
    return `says not what is right: ${error.message}`;
  if (FOREIGN.test(error.message)) return `is not in its words: ${error.message}`;
  if (/accessToken|clientSecret/.test(argument) && error.stack.includes(EVIL)) return "quotes it";
  return undefined;
}

test("every error code is explained in the declarations", async () => {
  const declarations = new URL("declared.d.ts", import.meta.resolve("tallyfold"));
  const text = await readFile(declarations, "utf8");
  const unexplained = errorCodes.filter((code) => !text.includes(` * \`${code}\`: `));
  assert.deepEqual(unexplained, []);
});

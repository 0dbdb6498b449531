// What the public types promise and forbid. tsc checks it against dist/, as a user's own code.

import { Registry } from "prom-client";
import {
  type AccessToken,
  type Additivity,
  Aggregator,
  type Api,
  type Attempt,
  type Checkpoint,
  Client,
  type Columns,
  Comparison,
  type ComparisonColumns,
  type ComparisonReport,
  type ComparisonRow,
  type Counts,
  CountTable,
  compare,
  type DeltaColumns,
  type Deltas,
  type Dimension,
  type ErrorCode,
  type ErrorKind,
  type errorCodes,
  type Failure,
  type Json,
  Machine,
  type NumberColumns,
  Plan,
  type Presence,
  type Progress,
  type RateColumns,
  type Rates,
  type Reconciliation,
  type Revision,
  type Row,
  Sandbox,
  type SavedCounts,
  type SavedTable,
  Series,
  type SeriesColumns,
  type SeriesReport,
  type SeriesRow,
  type SeriesWindow,
  type ShareColumns,
  type Shares,
  TallyfoldError,
  type version,
  type Window,
} from "tallyfold";
import {
  type Export,
  exportCounts,
  export as exportToo,
  Ledger,
  type Note,
  Outbox,
  type PushReport,
  push,
} from "tallyfold/export";
import {
  type Cause,
  type Check,
  type Explanation,
  explain,
  type Finding,
  type Incident,
  type Measure,
  type Need,
  type Replay,
  Rules,
} from "tallyfold/health";
import { checkpointDirectory, type SandboxServer, serve } from "tallyfold/node";

/** Fails to compile unless both are the same type, `any` included. */
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_: Same<A, B>): void {}

const client = new Client({
  clusterEndpoint: "https://cluster.example",
  accessToken: async (api) => {
    same<typeof api, Api>(true);
    return { accessToken: "a", expiresIn: 60 } satisfies AccessToken;
  },
  fetch,
  timeoutMs: 5,
  limits: { groups: 5 },
  tolerate: ["repeated_combination"],
});
// A response with as little as old hosts, or their types, have.
interface OldHeaders {
  forEach(each: (value: string, name: string) => void): void;
}
declare const oldFetch: (
  url: string,
) => Promise<{ status: number; headers: OldHeaders; arrayBuffer(): Promise<ArrayBuffer> }>;
new Client({ clusterEndpoint: "https://cluster.example", fetch: oldFetch });
const start = new Date();
const end = "2026-01-01T00:15:00Z";

// Dimensions are literal unions, and what is asked for is what the rows have.
const table = await client.eventDelivery({ start, end, dimensions: ["integration", "reason"] });
same<typeof table, CountTable<"integration" | "reason">>(true);
for (const row of table) {
  same<typeof row.dimensions.reason, string>(true);
  same<typeof row.success, bigint>(true);
  // @ts-expect-error write_key was not asked for
  row.dimensions.write_key;
  // @ts-expect-error a row does not change
  row.success = 5n;
}
const kept = await client.eventDelivery({
  start,
  end,
  dimensions: ["integration", "reason"],
  groupBy: ["reason"],
  signal: AbortSignal.timeout(5),
});
same<typeof kept, CountTable<"reason">>(true);
const total = await client.eventDelivery({ start, end, dimensions: ["reason"], groupBy: [] });
same<typeof total, CountTable<never>>(true);
// @ts-expect-error no such dimension
client.eventDelivery({ start, end, dimensions: ["source"] });
// @ts-expect-error grouped by what was not asked for
client.eventDelivery({ start, end, dimensions: ["integration"], groupBy: ["reason"] });
// @ts-expect-error a window has an end
client.eventDelivery({ start, dimensions: ["integration"] });
// @ts-expect-error numbers are no instants
client.eventDelivery({ start: 5, end, dimensions: ["integration"] });
// @ts-expect-error event_ingestion has no reason
client.eventIngestion({ start, end, dimensions: ["reason"] });

const logs = await client.auditLogs({ page: 1, perPage: 5 });
same<typeof logs, Json>(true);
// @ts-expect-error the listing's shape is not known
logs.records;

// A table.
same<ReturnType<typeof table.groupBy<"reason">>, CountTable<"reason">>(true);
same<typeof table.totals.errors, bigint>(true);
same<typeof table.length, number>(true);
same<typeof table.reconciliation, Reconciliation>(true);
if (table.reconciliation.verdict === "unbalanced") table.reconciliation.success satisfies bigint;
// @ts-expect-error only an unbalanced table has differences
table.reconciliation.success;
table.filter({ integration: "a", reason: ["b", "c"] });
// @ts-expect-error the table has no such dimension
table.filter({ write_key: "a" });
// @ts-expect-error the table has no such dimension
table.groupBy("write_key");
same<ReturnType<typeof table.top>, Row<"integration" | "reason">[]>(true);
table.top(5, { by: "filtered" });
// @ts-expect-error no such count
table.top(5, { by: "sum" });
// @ts-expect-error other dimensions
table.merge(kept);
same<ReturnType<typeof table.groupBy>, CountTable<never>>(false);
const perReason = table.groupBy("reason");
same<typeof perReason, CountTable<"reason">>(true);
const all = table.groupBy();
same<typeof all, CountTable<never>>(true);
const again = table.groupBy(...table.dimensions);
same<typeof again, typeof table>(true);

// Without parameters it is a table of whatever dimensions, and every table is one.
function show(any: CountTable): Row[] {
  same<typeof any.dimensions, Dimension[]>(true);
  any.columns().reason?.ids satisfies Uint32Array | undefined;
  const [first] = any.top(1);
  // @ts-expect-error there may be no such dimension
  first?.dimensions.reason satisfies string;
  same<ReturnType<typeof any.filter>, CountTable>(true);
  const grouped = any.groupBy("reason");
  same<typeof grouped, CountTable<"reason">>(true);
  return [...any];
}
declare const fromEveryDimension: CountTable<Dimension>;
for (const any of [table, kept, total, fromEveryDimension]) show(any);
show(CountTable.fromJSON("{}")) satisfies Row[];
[...table] satisfies Row[];
table.columns() satisfies Columns;
const saved = CountTable.fromJSON("{}");
// @ts-expect-error it may have other dimensions
saved satisfies CountTable<"reason">;
// @ts-expect-error it has other dimensions
kept satisfies CountTable<"integration">;
function generic<D extends Dimension>(any: CountTable<D>, name: D): CountTable<D> {
  show(any.merge(any).filter({}));
  return any.groupBy(name);
}
generic(table, "reason") satisfies typeof table;

const columns: Columns<"integration" | "reason"> = table.columns();
same<typeof columns.reason.ids, Uint32Array<ArrayBuffer>>(true);
same<typeof columns.success, BigUint64Array<ArrayBuffer>>(true);
same<ReturnType<typeof table.toJSON>, SavedTable>(true);
same<ReturnType<typeof CountTable.fromJSON>, CountTable<Dimension | undefined>>(true);
same<ReturnType<typeof CountTable.fromJSON<"reason">>, CountTable<"reason">>(true);
// @ts-expect-error tables come from responses
new CountTable();

// Rates.
same<typeof table.totals, Counts>(true);
same<typeof table.totals.rates, Rates>(true);
same<typeof table.totals.rates.delivery, number | null>(true);
for (const row of table) same<typeof row.rates, Rates>(true);
same<ReturnType<typeof table.rates>, RateColumns>(true);
same<RateColumns["filter"], Float64Array<ArrayBuffer>>(true);
// @ts-expect-error there may be no rate
table.totals.rates.error satisfies number;

// A series.
const series = table.byWindow("15m");
same<typeof series, Series<"integration" | "reason">>(true);
same<ReturnType<typeof perReason.byWindow>, Series<"reason">>(true);
for (const row of series) {
  same<typeof row, SeriesRow<"integration" | "reason">>(true);
  same<typeof row.window, SeriesWindow>(true);
  same<typeof row.window.complete, boolean>(true);
  same<typeof row.window.provisional, boolean>(true);
  same<typeof row.dimensions.reason, string>(true);
  same<typeof row.errors, bigint>(true);
  same<typeof row.rates, Rates>(true);
  // @ts-expect-error write_key was not asked for
  row.dimensions.write_key;
}
for (const step of ["5m", "1h", "1d", "90s"] as const) table.byWindow(step);
// @ts-expect-error no such unit
table.byWindow("1w");
// @ts-expect-error no whole number
table.byWindow("1.5h");
// @ts-expect-error no text
table.byWindow(900);
const seriesColumns: SeriesColumns<"integration" | "reason"> = series.columns();
same<typeof seriesColumns.window.dictionary, SeriesWindow[]>(true);
same<typeof seriesColumns.window.ids, Uint32Array<ArrayBuffer>>(true);
same<typeof seriesColumns.reason.dictionary, string[]>(true);
same<typeof seriesColumns.errors, BigUint64Array<ArrayBuffer>>(true);
same<ReturnType<typeof series.toJSON>, SeriesReport>(true);
same<typeof series.complete, boolean>(true);
same<ReturnType<typeof series.fillZeros>, Series<"integration" | "reason">>(true);
same<ReturnType<typeof series.numbers>, NumberColumns>(true);
same<(typeof series.rows)[number]["window"], SeriesWindow>(true);
// @ts-expect-error series come from tables
new Series();
function showSeries(any: Series): SeriesRow[] {
  return [...any];
}
showSeries(series);
showSeries(CountTable.fromJSON("{}").byWindow());

// A comparison.
const comparison = compare(table, table);
same<typeof comparison, Comparison<"integration" | "reason">>(true);
for (const row of comparison) {
  same<typeof row, ComparisonRow<"integration" | "reason">>(true);
  same<typeof row.before, Counts | null>(true);
  same<typeof row.delta, Deltas>(true);
  same<typeof row.share, Shares>(true);
  same<typeof row.share.errors, number | null>(true);
  same<typeof row.presence, Presence>(true);
}
same<ReturnType<typeof comparison.top>, ComparisonRow<"integration" | "reason">[]>(true);
comparison.top(5, { by: "filtered" });
same<ReturnType<typeof comparison.deltas>, DeltaColumns>(true);
same<ReturnType<typeof comparison.numbers>["delta"], NumberColumns>(true);
same<ReturnType<typeof comparison.equals>, boolean>(true);
same<ReturnType<typeof table.numbers>["success"], number[]>(true);
const [copy] = table.rows;
if (copy) {
  same<typeof copy.dimensions.reason, string>(true);
  same<typeof copy.errors, bigint>(true);
  // @ts-expect-error a copy has values only
  copy.rates;
}
same<ReturnType<typeof table.totals.toJSON>, SavedCounts>(true);
// @ts-expect-error no such count
comparison.top(5, { by: "sum" });
same<typeof comparison.totalDelta, Deltas>(true);
same<typeof comparison.beforeTotals, Counts>(true);
same<ReturnType<typeof comparison.shares>, ShareColumns>(true);
const comparisonColumns: ComparisonColumns<"integration" | "reason"> = comparison.columns();
same<typeof comparisonColumns.before.errors, BigUint64Array<ArrayBuffer>>(true);
same<typeof comparisonColumns.presence.dictionary, Presence[]>(true);
same<ReturnType<typeof comparison.toJSON>, ComparisonReport>(true);
// @ts-expect-error other dimensions
compare(table, kept);
// @ts-expect-error other dimensions
compare(kept, table);
// @ts-expect-error comparisons are made by compare
new Comparison();
[...compare(CountTable.fromJSON("{}"), table)] satisfies ComparisonRow[];
{
  using disposedSeries = series;
  using disposedComparison = comparison;
  disposedSeries.length + disposedComparison.length;
}
{
  using disposed = table;
  disposed.length;
}

const aggregator = new Aggregator({ dimensions: ["write_key"], metric: "event_delivery" });
same<ReturnType<typeof aggregator.finish>, CountTable<"write_key">>(true);
// @ts-expect-error text is no bytes
aggregator.push("text");

// Errors.
same<ErrorKind, "config" | "auth" | "service" | "response">(true);
same<(typeof errorCodes)[number], ErrorCode>(true);
const caught: unknown = undefined;
if (TallyfoldError.is(caught)) {
  same<typeof caught, TallyfoldError>(true);
  same<typeof caught.code, ErrorCode>(true);
  same<typeof caught.status, number | undefined>(true);
  // @ts-expect-error no such code
  caught.code === "unlucky";
}

// The machine.
const machine = new Machine({ clusterEndpoint: "https://cluster.example", hostTokens: true });
const call = machine.eventIngestion({ start, end, dimensions: ["event_name"] });
const step = call.step();
switch (step.type) {
  case "send":
    same<ReturnType<typeof step.request.headers>, [string, string][]>(true);
    same<ReturnType<typeof step.request.body>, Uint8Array<ArrayBuffer> | undefined>(true);
    break;
  case "provideToken":
    same<typeof step.api, Api>(true);
    break;
  case "blocked":
    same<typeof step.epoch, bigint>(true);
    break;
  case "wait":
    same<typeof step.ms, number>(true);
    break;
  default:
    same<typeof step.type, "done">(true);
}
same<ReturnType<typeof call.output>, CountTable<"event_name">>(true);
const attempt = call.attempt();
same<typeof attempt, Attempt | undefined>(true);
same<Attempt["code"], ErrorCode | undefined>(true);
new Client({ clusterEndpoint: "https://cluster.example", onAttempt: ({ target }) => target });
// @ts-expect-error there is no such target
attempt?.target === "logs";

// The sandbox.
const sandbox = new Sandbox({ seed: 1n });
new Client({ ...sandbox.credentials, clusterEndpoint: "http://localhost", fetch: sandbox.fetch });
sandbox.inject({ kind: "status", status: 503, retryAfter: "120", every: 2 });
// @ts-expect-error a status fault has a status
sandbox.inject({ kind: "status" });
const server: SandboxServer = await serve(sandbox, { port: 0 });
same<typeof server.port, number>(true);
same<ReturnType<typeof version>, string>(true);

// Long ranges: dimensions are those of the metric, and a table has the ones that are kept.
const range = { start: "2026-01-01T00:00:00Z", end: new Date(), window: "15m" } as const;
const collected = await client.collect({
  ...range,
  metric: "event_delivery",
  dimensions: ["integration", "reason"],
  groupBy: ["reason"],
  part: [0, 4],
  checkpoint: checkpointDirectory(new URL("file:///tmp/january")) satisfies Checkpoint,
  onProgress: (progress) => same<typeof progress, Progress>(true),
  have: CountTable.fromJSON("{}"),
});
same<typeof collected, CountTable<"reason">>(true);
// @ts-expect-error: ingestion has no reason
void client.collect({ ...range, metric: "event_ingestion", dimensions: ["reason"] });
const one = { ...range, metric: "event_delivery", dimensions: ["reason"] } as const;
// @ts-expect-error: only what was asked for can be kept
void client.collect({ ...one, groupBy: ["integration"] });
void client.collect({ ...one, checkpoint: "path" });
// @ts-expect-error: a checkpoint is a path, or has both functions
void client.collect({ ...one, checkpoint: { load: () => null } });
for await (const revision of client.follow({
  ...range,
  metric: "event_ingestion",
  dimensions: ["write_key"],
})) {
  same<typeof revision, Revision<"write_key">>(true);
  same<typeof revision.changes, Comparison<"write_key">>(true);
  same<typeof revision.number, number>(true);
}
const middle = "2026-01-01T00:15:00Z";
const probed = await client.probeAdditivity({
  ...range,
  middle,
  metric: "event_delivery",
  dimensions: ["reason"],
});
same<typeof probed, Additivity<"reason">>(true);

// Health: of tables, with names that are known.
const explained = explain(collected, collected, "error_rate", { most: 3, others: undefined });
same<typeof explained, Explanation>(true);
same<typeof explained.measure, Measure>(true);
same<typeof explained.causes, readonly Cause[]>(true);
same<typeof explained.change, bigint>(true);
// @ts-expect-error: there is no such measure
explain(collected, collected, "error");
// @ts-expect-error: a series has no totals
explain(collected.byWindow("1h"), collected, "errors");
const rules = Rules.parse("");
same<typeof rules, Rules>(true);
same<ReturnType<typeof rules.needs>, Need[]>(true);
for (const { metric, dimensions, window, backMs } of rules.needs()) {
  const needed = { start: new Date(Date.now() - backMs), end: new Date() };
  void client.collect({ metric, dimensions, window, ...needed });
}
const checked = rules.check({ delivery: collected, state: undefined, now: new Date() });
same<typeof checked, Check>(true);
same<typeof checked.findings, readonly Finding[]>(true);
same<typeof checked.incidents, readonly Incident[]>(true);
same<typeof checked.state, string>(true);
same<Finding["resolved"], string | undefined>(true);
same<ReturnType<typeof rules.replay>, Replay>(true);
// @ts-expect-error: a replay has a range
rules.replay({ delivery: collected });
// @ts-expect-error: there is no such option
rules.check({ dleivery: collected });

// Exports: of tables, series and revisions, into formats that are known.
const written = exportCounts(collected, { format: "openmetrics", labels: { cluster: "a" } });
same<typeof written, Export>(true);
same<typeof written.notes, Note[]>(true);
for (const piece of written) same<typeof piece, Uint8Array<ArrayBuffer>>(true);
for await (const piece of written) same<typeof piece, Uint8Array<ArrayBuffer>>(true);
new Response(written.stream());
same<ReturnType<typeof written.writeTo>, Promise<number>>(true);
exportToo(collected.byWindow("1h"), { format: "csv", onNote: ({ kind }) => kind });
// @ts-expect-error: there is no such format
exportCounts(collected, { format: "xml" });
// @ts-expect-error: a comparison has no windows
exportCounts(compare(collected, collected), { format: "csv" });
const pushed = await push(collected, {
  format: "remote-write",
  url: new URL("https://a.example/"),
});
same<typeof pushed, PushReport>(true);
// @ts-expect-error: it has to be sent somewhere
void push(collected, { format: "influx" });
const ledger = new Ledger(undefined);
ledger.register(new Registry(), { labels: { cluster: "a" } });
same<typeof ledger.state, string | undefined>(true);
for await (const revision of client.follow({ ...one, window: "15m" })) {
  exportCounts(revision, { format: "influx" });
  await ledger.add(revision, "{}", async (document) => document.length);
}
const outbox = new Outbox(null, { format: "influx", store: (document) => document.length });
same<typeof outbox.state, string | undefined>(true);
for await (const revision of client.follow({ ...one, window: "15m", state: outbox.state })) {
  await outbox.put(revision, "{}");
  const sent = await outbox.push({ url: "https://a.example/", labels: { cluster: "a" } });
  same<typeof sent, PushReport | undefined>(true);
}
// @ts-expect-error: the outbox knows its format
void outbox.push({ url: "https://a.example/", format: "otlp" });
for (const window of new Plan(range)) same<typeof window, Window>(true);
same<typeof TallyfoldError.prototype.failures, readonly Failure[]>(true);
same<typeof TallyfoldError.prototype.partial, CountTable | undefined>(true);

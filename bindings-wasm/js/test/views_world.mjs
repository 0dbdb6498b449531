// The counts that the tests of the views show: a sandbox with a fixed seed, and an incident in the evening.

import { Client, CountTable, Sandbox } from "tallyfold";

export const RANGE = { start: "2026-03-10T00:00:00Z", end: "2026-03-11T00:00:00Z" };
export const BEFORE = { start: "2026-03-03T00:00:00Z", end: "2026-03-04T00:00:00Z" };
export const FAILING = "Push Notifications";
/** When it fails. */
export const INCIDENT = { start: "2026-03-10T20:00:00Z", end: "2026-03-10T21:30:00Z" };
export const SILENT = "Tape Archive";
/** Its last event. */
export const SILENT_SINCE = "2026-03-10T13:30:00Z";
export const VANISHED = "Old CRM";
export const HOSTILE = `<img src=x onerror="globalThis.hacked=1"> \u202e javascript:alert(1) ${"long ".repeat(2_000)}`;

/** A client at five past midnight, so that the last hour is provisional. */
export function evening() {
  const now = () => ({ monotonicMs: 0, unixMs: Date.parse("2026-03-11T00:05:00Z") });
  const sandbox = new Sandbox({ seed: 7, now });
  const event = { eventName: "order_placed", writeKey: "web", outcome: "errors" };
  for (let quarter = 0; quarter < 6; quarter++) {
    const timestamp = new Date(Date.parse(INCIDENT.start) + quarter * 900_000);
    sandbox.record({ ...event, timestamp, integration: FAILING, count: 400 });
  }
  sandbox.record({
    ...event,
    timestamp: "2026-03-10T10:05:00Z",
    integration: HOSTILE,
    count: 9_000,
  });
  // One stops in the afternoon, another was there last week only.
  for (const [day, hours] of [
    ["2026-03-03", 24],
    ["2026-03-10", 14],
  ]) {
    for (let hour = 0; hour < hours; hour++) {
      const timestamp = new Date(Date.parse(`${day}T00:20:00Z`) + hour * 3_600_000);
      sandbox.record({ ...event, timestamp, outcome: "success", integration: SILENT, count: 120 });
    }
  }
  const last = { ...event, timestamp: "2026-03-03T08:00:00Z", outcome: "success" };
  sandbox.record({ ...last, integration: VANISHED, count: 77 });
  const client = new Client({
    ...sandbox.credentials,
    clusterEndpoint: "http://localhost",
    fetch: sandbox.fetch,
    now,
  });
  return { sandbox, client };
}

/** Counts of a range by quarters of an hour. */
export function counts(client, range, dimensions = ["integration", "reason"]) {
  return client.collect({ ...range, metric: "event_delivery", dimensions, window: "15m" });
}

/** What arrives after the first reading. */
export function arriveLate(sandbox) {
  const event = { eventName: "order_placed", writeKey: "web" };
  const failed = { ...event, outcome: "errors", integration: FAILING, count: 31 };
  sandbox.record({ ...failed, timestamp: "2026-03-10T23:20:00Z" });
  const delivered = { ...event, outcome: "success", integration: "Chat", count: 5 };
  sandbox.record({ ...delivered, timestamp: "2026-03-10T23:50:00Z" });
}

/** The same counts without two hours of the morning. */
export function withGap(table) {
  return CountTable.mergeAll([
    table.between({ start: RANGE.start, end: "2026-03-10T05:00:00Z" }),
    table.between({ start: "2026-03-10T07:00:00Z", end: RANGE.end }),
  ]);
}

export const NEVER_DELIVERED = "never delivered";

/** Two weeks, of which the later one lacks many values: all were delivered but two. */
export async function gone() {
  const { sandbox, client } = evening();
  const timestamp = "2026-03-03T08:00:00Z";
  const event = { eventName: "order_placed", writeKey: "web", timestamp };
  sandbox.record({ ...event, integration: NEVER_DELIVERED, outcome: "errors", count: 90_000 });
  const filtered = { integration: "only filtered", outcome: "filtered", reason: "r" };
  sandbox.record({ ...event, ...filtered, count: 80_000 });
  for (let value = 0; value < 30; value++) {
    const integration = `delivered ${value}`;
    const count = 70_000 - value;
    sandbox.record({ ...event, integration, outcome: "success", count });
  }
  return { now: await counts(client, RANGE), earlier: await counts(client, BEFORE) };
}

export const HOUR = { start: "2026-03-10T12:00:00Z", end: "2026-03-10T13:00:00Z" };

/** A service with so many integrations. */
export function manyValues(values) {
  const sandbox = new Sandbox();
  const event = { eventName: "order_placed", writeKey: "web", outcome: "errors" };
  for (let value = 0; value < values; value++) {
    const count = 1 + (value % 9);
    const integration = `integration ${value}`;
    sandbox.record({ ...event, timestamp: HOUR.start, integration, count });
  }
  const clusterEndpoint = "http://localhost";
  const client = new Client({ ...sandbox.credentials, clusterEndpoint, fetch: sandbox.fetch });
  return { client, values };
}

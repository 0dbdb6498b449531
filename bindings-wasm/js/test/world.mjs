// A service to call, and clocks to move.

import { Client, Sandbox } from "tallyfold";
import { window } from "./responses.mjs";

export const query = { ...window, dimensions: ["integration", "reason"] };

/** Clocks that stand still until a test moves them. */
export function clocks() {
  const at = { monotonicMs: 0, unixMs: Date.parse(window.end) };
  const now = () => ({ ...at });
  now.pass = (seconds) => {
    at.monotonicMs += seconds * 1000;
    at.unixMs += seconds * 1000;
  };
  return now;
}

/** A sandbox that knows ten events. */
export function service(options) {
  const sandbox = new Sandbox(options);
  const event = { timestamp: window.start, eventName: "order", writeKey: "web", reason: "" };
  sandbox.record({ ...event, outcome: "success", integration: "warehouse", count: 7 });
  sandbox.record({ ...event, outcome: "errors", integration: "email", count: 2n });
  sandbox.record({ ...event, outcome: "filtered", integration: "email", reason: "consent" });
  return sandbox;
}

/** A client of both APIs of a sandbox, without network and retries unless `options` bring them. */
export function clientOf(sandbox, options) {
  const address = "http://localhost";
  return new Client({
    ...sandbox.credentials,
    clusterEndpoint: address,
    baseUrl: address,
    authUrl: address,
    fetch: sandbox.fetch,
    maxRetries: 0,
    ...options,
  });
}

/** The error that a promise rejects with. */
export async function rejectionOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("nothing was rejected");
}

// What a server for web apps needs of a client. It is not part of the client, so that pages don't load it.

import type { Call } from "../calls/call.js";
import { used } from "../loading/handle.js";
import { joined } from "../values/input.js";
import type { Now } from "../values/time.js";
import type {
  AccessToken,
  Api,
  AuditLogsQuery,
  Dimension,
  IngestionDimension,
  Metric,
  MetricsQuery,
} from "../values/types.js";
import type { Client } from "./client.js";

/** Bodies as the service has sent them, once they were found valid. */
export interface BytesOf {
  /** @throws {@link TallyfoldError} with code `missing_argument` if it is not known which client it is. */
  sharedIdentity(): string;
  now(): Now;
  /** How many requests have failed temporarily. Given as `since`, it lets a call end early if the service goes down later. */
  failures(): bigint;
  /** Returns the body, and whether its counts no longer change, by the service's clock and by this client's clock. */
  metrics(
    metric: Metric,
    query: MetricsQuery<Dimension>,
    signal: AbortSignal,
    since: bigint,
  ): Promise<[body: Uint8Array<ArrayBuffer>, isSettled: boolean]>;
  auditLogs(
    query: AuditLogsQuery,
    signal: AbortSignal,
    since: bigint,
  ): Promise<Uint8Array<ArrayBuffer>>;
  token(api: Api, signal: AbortSignal, since: bigint): Promise<AccessToken>;
}

/** Returns the bodies of a client, which may be of another copy of this package. */
export function bytesOf(client: Client): BytesOf {
  const { machine, driver } = client.parts();
  const bytes = async (
    call: Call<unknown>,
    signal: AbortSignal,
    isSettled: () => boolean,
  ): Promise<[Uint8Array<ArrayBuffer>, boolean]> => {
    const pieces: Uint8Array[] = [];
    const settled = await driver.run(call, signal, isSettled, pieces);
    return [joined(pieces), settled];
  };
  return {
    sharedIdentity: () => machine.sharedIdentity(),
    now: driver.now,
    failures: () => machine.failures,
    metrics: (metric, { start, end, dimensions }, signal, since) => {
      const query = { start, end, dimensions };
      const call =
        metric === "event_delivery"
          ? machine.eventDelivery(query)
          : machine.eventIngestion(query as MetricsQuery<IngestionDimension>);
      call.failFast(since);
      const isSettled = () => used(call.output(), ({ provisional }) => provisional.length === 0);
      return bytes(call, signal, isSettled);
    },
    auditLogs: async ({ page, perPage }, signal, since) => {
      const call = machine.auditLogs({ page, perPage });
      call.failFast(since);
      const [body] = await bytes(call, signal, () => false);
      return body;
    },
    token: async (api, signal, since) => {
      const call = machine.token(api);
      call.failFast(since);
      return await driver.run(call, signal, () => call.output());
    },
  };
}

import type { CoreMachine, Glue } from "../../wasm/tallyfold_wasm.js";
import { Call } from "../calls/call.js";
import { turn } from "../loading/compile.js";
import { Handle } from "../loading/handle.js";
import { core, library } from "../loading/library.js";
import { Collect, type CollectQuery, type DimensionOf } from "../ranges/collect.js";
import { Follow, type FollowQuery } from "../ranges/follow.js";
import { Probe, type ProbeQuery } from "../ranges/probe.js";
import { type CountTable, coreOf } from "../tables/table.js";
import type { MachineArguments } from "../values/declared.js";
import { addressOf, fieldsOf, flatHeaders, OPTIONS, own } from "../values/input.js";
import { isBrowser } from "../values/runtime.js";
import type {
  Api,
  AuditLogsQuery,
  Dimension,
  IngestionDimension,
  Json,
  Metric,
  MetricsQuery,
} from "../values/types.js";
import { isUsual } from "./precheck.js";

/** The options of a {@link Machine}. */
export interface MachineOptions extends Omit<MachineArguments, keyof HostOptions> {}

/** What a {@link Machine} must know about the program that drives it. */
export interface HostOptions extends Pick<MachineArguments, "hostTokens" | "inBrowser"> {}

/**
 * A client without I/O and without a clock: it creates the requests, decides when to send them, reads the
 * responses, and keeps the tokens. {@link Client} drives a machine; you can also drive one with any other HTTP
 * stack.
 *
 * @example
 * const call = machine.eventDelivery({ start, end, dimensions: ["integration"] });
 * for (let step = call.step(); step.type !== "done"; step = call.step()) {
 *   if (step.type === "wait") await new Promise((resolve) => setTimeout(resolve, step.ms));
 *   if (step.type !== "send") continue;
 *   const { status, headers, body } = await exchange(step.request);
 *   if (call.head(status, headers)) {
 *     for await (const chunk of body) call.chunk(chunk);
 *     call.end();
 *   }
 * }
 * const table = call.output();
 */
export class Machine {
  readonly #make: (glue: Glue) => CoreMachine;
  #core: Handle<CoreMachine> | undefined;
  /** The glue of the instance that has the core's machine. */
  #glue: Glue | undefined;
  #timeoutMs = Number.POSITIVE_INFINITY;
  /**
   * @internal Set while the WebAssembly compiles off the main thread. A call that doesn't wait for it compiles on the main
   * thread.
   */
  compiling: Promise<void> | undefined;

  /**
   * @param options Addresses, credentials and audiences of the APIs that you use, or `hostTokens` instead of a
   * client secret; and `inBrowser`, if the program runs in a page.
   * @throws {@link TallyfoldError} of kind `config`, with the name of the argument.
   */
  constructor(options: MachineOptions & HostOptions);
  /**
   * @internal
   * @param ofCall The names of the options that the driver reads from every query.
   * @param ofCollect The further names for the query of a collect.
   * @param ofFollow The further names for the query of a follow.
   */
  constructor(
    options: MachineOptions & HostOptions,
    ofCall: string[],
    ofCollect: string[],
    ofFollow: string[],
  );
  constructor(
    options: MachineOptions & HostOptions,
    ofCall: string[] = [],
    ofCollect: string[] = [],
    ofFollow: string[] = [],
  ) {
    const collect = [...ofCall, ...ofCollect, "have"];
    const follow = [...ofCall, ...ofFollow];
    const given = fieldsOf("options", options, OPTIONS);
    const inBrowser = isBrowser() || given.inBrowser;
    const headers = flatHeaders(given.headers);
    const all = { ...given, ...addressesOf(given), headers, inBrowser };
    this.#make = ({ CoreMachine }) => new CoreMachine(all, ofCall, collect, follow);
    // Only a client can wait, and only a page has a main thread that must not be blocked.
    const mayWait = ofCall.length > 0 && isBrowser() && !library.isCompiled;
    if (mayWait && isUsual(all)) this.compiling = this.#compile();
    else void this.#machine;
  }

  async #compile(): Promise<void> {
    try {
      await library.compile();
      // On a slow phone, each of the next two steps blocks the page for long, so other work must run in between.
      await turn();
      core();
      await turn();
      void this.#machine;
      await turn();
    } catch {
      // The first call gets the same error again, and reports it to the caller.
    }
    this.compiling = undefined;
  }

  /** The core's machine. If its instance was replaced, it is made again, and fetches its tokens again. */
  get #machine(): CoreMachine {
    if (this.#core?.released) return this.#core.object;
    const glue = core();
    if (this.#core === undefined || glue !== this.#glue) {
      this.#core = new Handle(this.#make(glue));
      this.#glue = glue;
      this.#timeoutMs = this.#core.object.timeoutMs();
    }
    return this.#core.object;
  }

  /** @internal The beginning of this client's keys in a store that several clients share. */
  sharedIdentity(): string {
    return this.#machine.sharedIdentity();
  }

  /** @internal How many requests of this client have failed temporarily, for `Call.failFast`. */
  get failures(): bigint {
    return this.#machine.failures();
  }

  /** Begins a call of event_delivery (service reference 4.4). */
  eventDelivery<const D extends Dimension, const G extends D = D>(
    query: MetricsQuery<D, G>,
  ): Call<CountTable<G>> {
    return Call.of(this.#machine.call("event_delivery", query));
  }

  /** Begins a call of event_ingestion (service reference 4.5). */
  eventIngestion<const D extends IngestionDimension, const G extends D = D>(
    query: MetricsQuery<D, G>,
  ): Call<CountTable<G>> {
    return Call.of(this.#machine.call("event_ingestion", query));
  }

  /** Begins a listing of audit logs (service reference 4.2). */
  auditLogs(query: AuditLogsQuery = {}): Call<Json> {
    return Call.of(this.#machine.call("audit_logs", query));
  }

  /** Begins a call for an access token: see {@link Client.token}. */
  token(api: Api): Call<{ readonly accessToken: string; readonly expiresIn: number }> {
    return Call.of(this.#machine.token(api));
  }

  /** Begins to collect a long range: see {@link Client.collect}. */
  collect<const M extends Metric, const D extends DimensionOf<M>, const G extends D = D>(
    query: CollectQuery<M, D, G>,
  ): Collect<G> {
    const have = own(query).have ?? undefined;
    const machine = this.#machine;
    const held = have === undefined ? undefined : coreOf("have", have).copy();
    return Collect.of(machine.collect(query, held));
  }

  /** Begins to follow windows as they close: see {@link Client.follow}. */
  follow<const M extends Metric, const D extends DimensionOf<M>, const G extends D = D>(
    query: FollowQuery<M, D, G>,
  ): Follow<G> {
    return Follow.of(this.#machine.follow(query));
  }

  /** Begins to test whether the service's windows are half-open: see {@link Client.probeAdditivity}. */
  probeAdditivity<const M extends Metric, const D extends DimensionOf<M>>(
    query: ProbeQuery<M, D>,
  ): Probe<D> {
    return Probe.of(this.#machine.probeAdditivity(query));
  }

  /** @internal How many milliseconds an exchange of a call may take; infinite if there is no limit. */
  get timeoutMs(): number {
    return this.#timeoutMs;
  }

  /** A number that changes whenever a token fetch has ended. A call with the step `blocked` waits for this change. */
  get tokenEpoch(): bigint {
    return this.#machine.tokenEpoch();
  }

  /** Frees the memory now. You can still drive calls that the machine has begun. */
  [Symbol.dispose](): void {
    // Calls that wait for the compilation count as begun.
    if (this.compiling) this.compiling.then(() => this.#release());
    else this.#release();
  }

  #release(): void {
    // A machine that was never made must also be unusable after this.
    if (this.#core === undefined) void this.#machine;
    this.#core?.release();
  }
}

/** Returns the addresses as texts. */
function addressesOf(options: MachineOptions): object {
  const names = ["clusterEndpoint", "baseUrl", "authUrl"] as const;
  const given = names.filter((name) => options[name] !== undefined);
  return Object.fromEntries(given.map((name) => [name, addressOf(name, options[name])]));
}

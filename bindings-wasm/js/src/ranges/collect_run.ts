import type { DriveStep } from "../calls/call.js";
import type { Driver } from "../calls/driver.js";
import type { Checkpoint } from "../files/checkpoint.js";
import { directoryHere, isDirectory, use } from "../files/directory.js";
import { awaited, onAbort } from "../http/abort.js";
import type { CountTable } from "../tables/table.js";
import type { CollectArguments } from "../values/declared.js";
import { because, invalidArgument, rootOf, TallyfoldError } from "../values/error.js";
import type { Url } from "../values/host.js";
import {
  bytes,
  isUrl,
  optionalFlag,
  optionalFunction,
  optionalSignal,
  own,
} from "../values/input.js";
import type { Abortable, Attempt, Dimension, Progress, Window } from "../values/types.js";
import type { Collect } from "./collect.js";
import { type ProgressLine, progressLine } from "./progress.js";

/** Options for running a collect. */
export interface CollectOptions extends Abortable, Pick<CollectArguments, "concurrency"> {
  /**
   * A function that gets a {@link Progress} after each call for a window, one after the other, and is awaited if it
   * returns a promise. If it throws or rejects, the collect ends and rejects with the same error.
   */
  readonly onProgress?: ((progress: Progress) => unknown) | undefined;
  /**
   * Where the collect stores counts as it reads them. If the job is killed, the same call with the same checkpoint
   * resumes. In Node, this may also be the path or `file:` URL of a directory: see `checkpointDirectory` of
   * `tallyfold/node`.
   */
  readonly checkpoint?: Checkpoint | string | Url | undefined;
  /**
   * Whether to count the windows in a line on standard error. By default `true`; there is a line only if
   * `process.stderr` is a terminal, so not in a browser.
   */
  readonly progress?: boolean | undefined;
}

/** Drives a collect to its end, several calls at a time. */
export class CollectRun<D extends Dimension | undefined> {
  readonly #collect: Collect<D>;
  readonly #driver: Driver;
  readonly #concurrency: number;
  readonly #checkpoint: Checkpoint | undefined;
  readonly #onProgress: CollectOptions["onProgress"];
  readonly #line: ProgressLine | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #beginMs: number;
  /** Ends everything that is under way; the collect rejects with its reason. */
  readonly #stop = new AbortController();
  #underWay = 0;
  /** The function to call when a reading has ended. */
  #ended = (): void => {};
  /** Settles when everything so far has been reported. */
  #reporting: Promise<void> = Promise.resolve();
  /** The cause of the first error with each code. The core does not keep causes. */
  readonly #causes = new Map<string, unknown>();
  /** Settles when everything so far has been stored. */
  #storing: Promise<void> = Promise.resolve();

  constructor(collect: Collect<D>, driver: Driver, given: CollectOptions) {
    const options = own(given);
    this.#collect = collect;
    this.#driver = driver;
    this.#concurrency = collect.concurrency;
    this.#checkpoint = checkpointOf(options.checkpoint);
    this.#onProgress = optionalFunction("onProgress", options.onProgress, "want a function");
    const hasLine = optionalFlag("progress", options.progress) ?? true;
    this.#line = hasLine ? progressLine() : undefined;
    this.#signal = optionalSignal(options.signal);
    this.#beginMs = driver.now().monotonicMs;
  }

  /** Reads all windows, and returns their table. */
  async run(): Promise<CountTable<D>> {
    const signal = this.#signal;
    signal?.throwIfAborted();
    const forget = signal && onAbort(signal, () => this.#stop.abort(signal.reason));
    let leave = async (): Promise<void> => {};
    try {
      leave = await use(this.#checkpoint);
      this.#stop.signal.throwIfAborted();
      await this.#resume();
      await this.#readAll();
      this.#stop.signal.throwIfAborted();
      return this.#collect.finish();
    } catch (error) {
      const cause = TallyfoldError.is(error) && this.#causes.get(error.code);
      throw cause ? because(error, cause) : error;
    } finally {
      forget?.();
      this.#line?.end();
      // After an abort, the checkpoint may still be storing a document.
      await this.#patiently(this.#storing).catch(() => {});
      await leave();
    }
  }

  /** Loads what an earlier job has stored. */
  async #resume(): Promise<void> {
    while (this.#checkpoint) {
      const name = this.#collect.wanted();
      const stored = await this.#patiently(this.#checkpoint.load(name));
      this.#stop.signal.throwIfAborted();
      if (stored === undefined || stored === null) break;
      const want = "want a load that returns a string, a Uint8Array or undefined";
      const json = typeof stored === "string" ? stored : bytes("checkpoint", stored, want);
      this.#collect.load(this.#checkpoint.place?.(name) ?? name, json);
    }
    // With `dropOld`, old segments are emptied even if there is nothing to read.
    await this.#patiently(this.#store());
  }

  /** Starts another reading whenever one ends, until none is left. */
  async #readAll(): Promise<void> {
    for (;;) {
      this.#start();
      if (this.#underWay === 0) return;
      await new Promise<void>((resolve) => {
        this.#ended = resolve;
      });
    }
  }

  #start(): void {
    while (this.#underWay < this.#concurrency && !this.#stop.signal.aborted) {
      const step = this.#next();
      if (step === undefined) return;
      this.#underWay += 1;
      this.#read(step)
        .catch((reason) => this.#stop.abort(rootOf(reason)))
        .then(() => {
          this.#underWay -= 1;
          this.#ended();
        });
    }
  }

  #next(): DriveStep<CountTable<D>> | undefined {
    try {
      const step = this.#collect.next(this.#driver.now());
      return step.type === "drive" ? step : undefined;
    } catch (reason) {
      // The caller's own clock has failed. Other calls may still be under way.
      this.#stop.abort(rootOf(reason));
      return undefined;
    }
  }

  async #read({ task, window, call }: DriveStep<CountTable<D>>): Promise<void> {
    let thrown: { readonly reason: unknown } | undefined;
    try {
      await this.#driver.drive(call, this.#stop.signal, this.#tell);
    } catch (error) {
      thrown = { reason: error };
      this.#remember(error);
    }
    try {
      const settled = this.#collect.settle(task, call, this.#driver.now());
      // The core handles the call's own errors. If it keeps the window or gives it back, the call had no error, so the
      // error comes from the caller's code or from the signal.
      const isForeign = settled.type === "givenBack" || settled.type === "kept";
      if (thrown !== undefined && isForeign) this.#stop.abort(thrown.reason);
    } finally {
      this.#driver.close(call);
    }
    const progress = this.#progressAt(window);
    await this.#patiently(this.#store());
    await this.#report(progress);
  }

  #remember(error: unknown): void {
    if (TallyfoldError.is(error) && error.cause !== undefined && !this.#causes.has(error.code)) {
      this.#causes.set(error.code, error.cause);
    }
  }

  /** Reports an attempt. If the caller's function throws, all calls end, whatever the result of this call. */
  readonly #tell = async (attempt: Attempt): Promise<void> => {
    try {
      await awaited(this.#driver.onAttempt(attempt), this.#stop.signal);
    } catch (reason) {
      this.#stop.abort(reason);
    }
  };

  /**
   * Stores what was read since the last time. Waits for earlier saves, because the last document is rewritten as it
   * grows.
   */
  #store(): Promise<void> {
    const checkpoint = this.#checkpoint;
    if (checkpoint === undefined) return this.#storing;
    this.#storing = this.#storing.then(async () => {
      for (;;) {
        const segment = this.#collect.unsaved();
        if (segment === undefined) return;
        await checkpoint.save(segment.name, segment.json);
      }
    });
    return this.#storing;
  }

  /** Waits for the checkpoint. If the caller's signal aborts, stops waiting for a checkpoint of the caller's own. */
  #patiently<T>(work: T | Promise<T>): Promise<T> {
    return awaited(work, isDirectory(this.#checkpoint) ? undefined : this.#signal);
  }

  #progressAt(window: Window): Progress {
    const elapsedMs = this.#driver.now().monotonicMs - this.#beginMs;
    return Object.freeze({ ...this.#collect.progress, window, elapsedMs });
  }

  /** Reports progress, after all earlier progress has been reported. */
  #report(progress: Progress): Promise<void> {
    this.#reporting = this.#reporting.then(async () => {
      if (this.#stop.signal.aborted) return;
      this.#line?.show(progress);
      await awaited(this.#onProgress?.(progress), this.#stop.signal);
    });
    return this.#reporting;
  }
}

function checkpointOf(value: CollectOptions["checkpoint"]): Checkpoint | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string" || isUrl(value)) return directoryHere(value);
  if (typeof value.load === "function" && typeof value.save === "function") return value;
  const message = "want the path of a directory, or an object with functions load and save";
  throw invalidArgument("checkpoint", message);
}

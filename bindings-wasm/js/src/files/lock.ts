/// <reference types="node" preserve="true" />
// The lease of a directory: carries out the steps of `core/src/keeper/lease.rs` on this system.

import type { CoreLease } from "../../wasm/tallyfold_wasm.js";
import { core } from "../loading/library.js";
import { invalidCheckpoint, type TallyfoldError } from "../values/error.js";
import { create, type Files, unlessMissing } from "./file.js";

/** The lock of a directory. No other job uses the directory while the lock is held. */
export class Lock {
  readonly #path: string;
  readonly #files: Files;
  /** Distinguishes its file from any later file with the same name. */
  readonly #identity: string | undefined;
  readonly #life: ReturnType<typeof setInterval>;

  private constructor(path: string, files: Files, identity: string | undefined) {
    this.#path = path;
    this.#files = files;
    this.#identity = identity;
    this.#life = setInterval(() => this.#showLife(), core().CoreLease.signOfLifeMs());
    this.#life.unref();
  }

  /**
   * Takes the lock, and removes the files that killed jobs have left.
   *
   * @throws {@link TallyfoldError} with code `invalid_checkpoint` if another job has it.
   */
  static async take(directory: string, files: Files): Promise<Lock> {
    const { fs, path } = files;
    const [host, stat] = [await hostName(files), await statOf("self", files)];
    const lease = new (core().CoreLease)(host, process.pid, stat, endableThread(files));
    try {
      await take(lease, directory, files);
      const own = path.join(directory, lease.name());
      return new Lock(own, files, await identity(own, files));
    } catch (error) {
      await fs.rm(path.join(directory, lease.name()), { force: true });
      throw error;
    } finally {
      lease.free();
    }
  }

  /** @throws {@link TallyfoldError} with code `invalid_checkpoint` if the lock's file was removed or replaced. */
  async check(): Promise<void> {
    const found = await identity(this.#path, this.#files);
    if (found !== undefined && found === this.#identity) return;
    throw inUse(this.#files.path.dirname(this.#path), core().CoreLease.lost());
  }

  /** Lets others in. */
  async release(): Promise<void> {
    clearInterval(this.#life);
    await this.#files.fs.rm(this.#path, { force: true });
  }

  /** Writes to the file, because only a write sets its time by the clock of the machine that stores it. */
  async #showLife(): Promise<void> {
    const file = await this.#files.fs.open(this.#path, "r+").catch(() => undefined);
    await file?.write(core().CoreLease.text(), 0).catch(() => {});
    await file?.close().catch(() => {});
  }
}

async function take(lease: CoreLease, directory: string, files: Files): Promise<void> {
  const { fs, path } = files;
  for (;;) {
    const [step, argument = ""] = lease.step();
    const place = path.join(directory, argument);
    switch (step) {
      case "create":
        await create(place, [core().CoreLease.text()], fs, 0o600);
        lease.done();
        break;
      case "list":
        lease.listed(await fs.readdir(directory));
        break;
      case "modified":
        lease.modified((await unlessMissing(fs.lstat(place)))?.mtimeMs);
        break;
      case "process":
        lease.process(exists(Number(argument)), await statOf(argument, files));
        break;
      case "remove":
        await fs.rm(place, { force: true });
        lease.done();
        break;
      case "wait":
        await new Promise((resolve) => setTimeout(resolve, Number(argument)));
        lease.done();
        break;
      case "refused":
        throw inUse(directory, argument);
      default:
        return;
    }
  }
}

/** Identifies the processes that can see each other, as described for `Holder::host` of the core. */
async function hostName({ crypto, fs, os }: Files): Promise<string> {
  const known = [os.hostname()];
  try {
    known.push((await fs.readFile("/proc/sys/kernel/random/boot_id", "ascii")).trim());
    known.push(await fs.readlink("/proc/self/ns/pid"));
  } catch {
    // Not every system has these files.
  }
  return crypto.createHash("sha256").update(known.join("\n")).digest("hex").slice(0, 16);
}

async function statOf(process: string, { fs }: Files): Promise<string | undefined> {
  return await fs.readFile(`/proc/${process}/stat`, "latin1").catch(() => undefined);
}

/** This thread's number, if the thread can be ended without releasing its lock while the process continues. */
function endableThread({ threads }: Files): number | undefined {
  return threads.isMainThread ? undefined : threads.threadId;
}

/** Whether there is a process with this ID; `undefined` if the system does not show that. */
function exists(pid: number): boolean | undefined {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return { EPERM: true, ESRCH: false }[(error as NodeJS.ErrnoException).code as string];
  }
}

async function identity(path: string, { fs }: Files): Promise<string | undefined> {
  const found = await unlessMissing(fs.lstat(path, { bigint: true }));
  return found && `${found.dev} ${found.ino}`;
}

function inUse(directory: string, message: string): TallyfoldError {
  return invalidCheckpoint(`${message}: ${directory}`);
}

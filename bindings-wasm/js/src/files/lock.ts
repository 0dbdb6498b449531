/// <reference types="node" preserve="true" />
// The lease of a checkpoint's directory, by the rules of `core/src/keeper/lease.rs`, which Python and the command use.
// They stand here once more, because the core's machine would take 3 kB of the WebAssembly that pages load.

import { invalidCheckpoint, type TallyfoldError } from "../values/error.js";
import { create, type Files, unlessMissing } from "./file.js";

/** How often a job tries again, because two that begin at once may both give up. */
const TRIES = 4;

/** How often a job touches its file, for those who can't see its process. */
const SIGN_OF_LIFE_MS = 15_000;

/** After so long without such a sign, a job of another machine is taken for ended. */
const LONGEST_SILENCE_MS = 60_000n;

const NAME = /^lock-([0-9a-f]{16})-([0-9]+)-([0-9]+)-[0-9a-f]+$/;

const TEXT = "A job is using this checkpoint.\n";

/** A directory that no other job uses while this is held. */
export class Lock {
  readonly #path: string;
  readonly #files: Files;
  readonly #life: ReturnType<typeof setInterval>;

  private constructor(path: string, files: Files) {
    this.#path = path;
    this.#files = files;
    this.#life = setInterval(() => this.#showLife(), SIGN_OF_LIFE_MS);
    this.#life.unref();
  }

  /** @throws {@link TallyfoldError} with code `invalid_checkpoint` if another job has it. */
  static async take(directory: string, files: Files): Promise<Lock> {
    const { crypto, fs, path } = files;
    const host = await hostName(files);
    const start = (await startOf("self", files)) || "0";
    for (let tried = 1; ; tried++) {
      const random = crypto.randomBytes(8).toString("hex");
      const own = path.join(directory, `lock-${host}-${process.pid}-${start}-${random}`);
      let holder: string | undefined;
      try {
        await create(own, [TEXT], fs, 0o600);
        holder = await holderBeside(own, host, files);
      } catch (error) {
        await fs.rm(own, { force: true });
        throw error;
      }
      if (holder === undefined) return new Lock(own, files);
      await fs.rm(own, { force: true });
      if (tried === TRIES) throw inUse(directory, `, as ${holder} in it says`);
      await new Promise((resolve) => setTimeout(resolve, 5 + crypto.randomInt(15)));
    }
  }

  /** @throws {@link TallyfoldError} with code `invalid_checkpoint` if somebody has removed the lock's file. */
  async check(): Promise<void> {
    const { fs, path } = this.#files;
    if ((await unlessMissing(fs.lstat(this.#path))) !== undefined) return;
    throw inUse(path.dirname(this.#path), "");
  }

  /** Lets others in. */
  async release(): Promise<void> {
    clearInterval(this.#life);
    await this.#files.fs.rm(this.#path, { force: true });
  }

  /** By writing, because only that takes the time from the file's own machine. */
  async #showLife(): Promise<void> {
    const file = await this.#files.fs.open(this.#path, "r+").catch(() => undefined);
    await file?.write(TEXT, 0).catch(() => {});
    await file?.close().catch(() => {});
  }
}

/** The file of another job that may still run. Those of others are removed. */
async function holderBeside(own: string, host: string, files: Files): Promise<string | undefined> {
  const { fs, path } = files;
  const directory = path.dirname(own);
  const now = (await fs.stat(own, { bigint: true })).mtimeMs;
  let holder: string | undefined;
  for (const name of await fs.readdir(directory)) {
    const [, itsHost, pid, start] = NAME.exec(name) ?? [];
    if (name === path.basename(own) || start === undefined) continue;
    const place = path.join(directory, name);
    const found = await unlessMissing(fs.lstat(place, { bigint: true }));
    if (found === undefined) continue;
    const isOver =
      itsHost === host
        ? await hasEnded(Number(pid), start, files)
        : now - found.mtimeMs > LONGEST_SILENCE_MS;
    if (isOver) await fs.rm(place, { force: true });
    else holder = name;
  }
  return holder;
}

/** Those who share it see each other's processes. */
async function hostName({ crypto, fs, os }: Files): Promise<string> {
  const known = [os.hostname()];
  try {
    known.push((await fs.readFile("/proc/sys/kernel/random/boot_id", "ascii")).trim());
    known.push(await fs.readlink("/proc/self/ns/pid"));
  } catch {
    // Not every system has them.
  }
  return crypto.createHash("sha256").update(known.join("\n")).digest("hex").slice(0, 16);
}

/** When a process has begun, where the system says so; `""` for one that is dead already. */
async function startOf(process: string, { fs }: Files): Promise<string | undefined> {
  const status = await fs.readFile(`/proc/${process}/stat`, "latin1").catch(() => undefined);
  if (status === undefined) return undefined;
  // The name before it is in brackets, and may hold anything.
  const fields = status
    .slice(status.lastIndexOf(")") + 1)
    .trim()
    .split(/\s+/);
  return fields[0] === "Z" || fields[0] === "X" ? "" : fields[19];
}

/** Whether there is no such process any more. */
async function hasEnded(pid: number, start: string, files: Files): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return true;
  }
  const now = await startOf(String(pid), files);
  // Its number may have been given to another one.
  return now !== undefined && now !== start;
}

function inUse(directory: string, hint: string): TallyfoldError {
  return invalidCheckpoint(`another collect is using this checkpoint${hint}: ${directory}`);
}

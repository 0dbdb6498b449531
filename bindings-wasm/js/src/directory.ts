import { randomUUID } from "node:crypto";
import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Checkpoint } from "./collecting.js";
import { TallyfoldError } from "./error.js";

/**
 * A checkpoint in a directory, which is made when something is first stored. Each document is one file, which is
 * written beside its place, brought to the disk, and put there as a whole: a job that is killed leaves the old
 * one or the new one, and at worst a file named `*.tmp` that nobody reads.
 *
 * It is for one job at a time. Where another job has written the same file in the meantime, `save` rejects
 * with `invalid_checkpoint` and leaves the file to the other one.
 *
 * @param path The directory.
 * @example
 * const checkpoint = checkpointDirectory("january");
 * const table = await client.collect({ ...query, metric: "event_delivery", checkpoint });
 */
export function checkpointDirectory(path: string | URL): Checkpoint {
  return new Directory(typeof path === "string" ? path : fileURLToPath(path));
}

class Directory implements Checkpoint {
  readonly #path: string;
  /** What tells each file that was written here from any other. */
  readonly #written = new Map<string, string>();

  constructor(path: string) {
    this.#path = path;
  }

  async load(name: string): Promise<Uint8Array | undefined> {
    return unlessMissing(readFile(join(this.#path, name)));
  }

  async save(name: string, json: string): Promise<void> {
    await mkdir(this.#path, { recursive: true });
    const path = join(this.#path, name);
    if ((await fingerprint(path)) !== this.#written.get(name)) throw taken(path);
    const beside = `${path}.${randomUUID()}.tmp`;
    try {
      await write(beside, json);
      this.#written.set(name, (await fingerprint(beside)) as string);
      await rename(beside, path);
    } catch (error) {
      await rm(beside, { force: true });
      throw error;
    }
    await flush(this.#path);
  }
}

/** Writes a file for its owner only, and does not come back before it is on the disk. */
async function write(path: string, text: string): Promise<void> {
  const file = await open(path, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Brings to the disk which files a directory has, where the system lets a program do that. */
async function flush(directory: string): Promise<void> {
  const file = await open(directory, "r").catch(() => undefined);
  await file?.sync().catch(() => {});
  await file?.close();
}

/** Renaming keeps it. */
async function fingerprint(path: string): Promise<string | undefined> {
  const found = await unlessMissing(stat(path, { bigint: true }));
  return found && `${found.ino} ${found.mtimeNs} ${found.size}`;
}

async function unlessMissing<T>(file: Promise<T>): Promise<T | undefined> {
  try {
    return await file;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function taken(path: string): TallyfoldError {
  const message = `invalid_checkpoint: another job has written ${path}: give each its own directory`;
  return TallyfoldError.of({ code: "invalid_checkpoint", kind: "config", message });
}

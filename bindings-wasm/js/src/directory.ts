/// <reference types="node" preserve="true" />
import type { Checkpoint } from "./collecting.js";
import { invalidArgument, TallyfoldError } from "./error.js";

/** What of Node a directory takes. A page has none of it, and so nothing here is imported. */
export interface Files {
  readonly crypto: typeof import("node:crypto");
  readonly fs: typeof import("node:fs/promises");
  readonly path: typeof import("node:path");
  readonly url: typeof import("node:url");
}

/** The checkpoint in a directory, by what the host has of Node. */
export function directoryHere(path: string | URL): Checkpoint {
  const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => unknown } };
  const module = process?.getBuiltinModule;
  if (module === undefined) {
    throw invalidArgument(
      "checkpoint",
      "a path needs Node 20.16 or later, or checkpointDirectory of tallyfold/node; " +
        "elsewhere, want an object with functions load and save",
    );
  }
  const files = {
    crypto: module("node:crypto"),
    fs: module("node:fs/promises"),
    path: module("node:path"),
    url: module("node:url"),
  };
  return new Directory(path, files as Files);
}

/** The checkpoint that `checkpointDirectory` describes. */
export class Directory implements Checkpoint {
  readonly #path: string;
  readonly #files: Files;
  /** What tells each file that was written here from any other. */
  readonly #written = new Map<string, string>();

  constructor(path: string | URL, files: Files) {
    this.#path = typeof path === "string" ? path : files.url.fileURLToPath(path);
    this.#files = files;
  }

  async load(name: string): Promise<Uint8Array | undefined> {
    const { fs, path } = this.#files;
    return unlessMissing(fs.readFile(path.join(this.#path, name)));
  }

  async save(name: string, json: string): Promise<void> {
    const { crypto, fs, path } = this.#files;
    await fs.mkdir(this.#path, { recursive: true });
    const place = path.join(this.#path, name);
    if ((await this.#fingerprint(place)) !== this.#written.get(name)) throw taken(place);
    const beside = `${place}.${crypto.randomUUID()}.tmp`;
    try {
      await this.#write(beside, json);
      this.#written.set(name, (await this.#fingerprint(beside)) as string);
      await fs.rename(beside, place);
    } catch (error) {
      await fs.rm(beside, { force: true });
      throw error;
    }
    await this.#flush();
  }

  /** Writes a file for its owner only, and does not come back before it is on the disk. */
  async #write(path: string, text: string): Promise<void> {
    const file = await this.#files.fs.open(path, "w", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  /** Brings to the disk which files there are, where the system lets a program do that. */
  async #flush(): Promise<void> {
    const file = await this.#files.fs.open(this.#path, "r").catch(() => undefined);
    await file?.sync().catch(() => {});
    await file?.close();
  }

  /** Renaming keeps it. */
  async #fingerprint(path: string): Promise<string | undefined> {
    const found = await unlessMissing(this.#files.fs.stat(path, { bigint: true }));
    return found && `${found.ino} ${found.mtimeNs} ${found.size}`;
  }
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

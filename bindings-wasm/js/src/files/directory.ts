/// <reference types="node" preserve="true" />

import { invalidArgument, invalidCheckpoint, type TallyfoldError } from "../values/error.js";
import type { Checkpoint } from "./checkpoint.js";
import { type Files, makeDirectory, placeOf, replace, unlessMissing } from "./file.js";
import { Lock } from "./lock.js";

/**
 * The method that reserves a checkpoint for one collect. It returns a function that ends the reservation. `tallyfold`
 * and `tallyfold/node` each have a copy of this module, so this is a global symbol.
 */
export const USE = Symbol.for("tallyfold.checkpoint.use");

/** Returns the checkpoint in a directory, with the Node modules of the host. Throws if the host doesn't have them. */
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
    os: module("node:os"),
    path: module("node:path"),
    threads: module("node:worker_threads"),
    url: module("node:url"),
  };
  return new Directory("checkpoint", path, files as Files);
}

/** Keeps other collects out of a checkpoint, if the checkpoint supports that, until the returned function is called. */
export async function use(checkpoint: Checkpoint | undefined): Promise<() => Promise<void>> {
  const exclusive = checkpoint as { [USE]?: () => Promise<() => Promise<void>> } | undefined;
  return (await exclusive?.[USE]?.()) ?? (async () => {});
}

/** Whether a checkpoint is a directory, or in IndexedDB. Its work always ends, and must not be left in the middle. */
export function isDirectory(checkpoint: Checkpoint | undefined): boolean {
  return checkpoint !== undefined && USE in checkpoint;
}

/** The checkpoint that `checkpointDirectory` describes. */
export class Directory implements Checkpoint {
  readonly #path: string;
  readonly #files: Files;
  /** The fingerprint of each file that this object has written. */
  readonly #written = new Map<string, string>();
  #lock: Lock | undefined;

  constructor(argument: string, path: string | URL, files: Files) {
    this.#path = placeOf(argument, path, files.url);
    this.#files = files;
  }

  /** Keeps other collects out, also other collects of this process, until the returned function is called. */
  async [USE](): Promise<() => Promise<void>> {
    await makeDirectory(this.#path, this.#files);
    const lock = await Lock.take(this.#path, this.#files);
    this.#written.clear();
    this.#lock = lock;
    return async () => {
      this.#lock = undefined;
      await lock.release();
    };
  }

  place(name: string): string {
    return this.#files.path.join(this.#path, name);
  }

  async load(name: string): Promise<Uint8Array | undefined> {
    const { fs } = this.#files;
    const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants;
    const place = this.place(name);
    // Anything but a regular file may have no end, like a pipe, or lead out of the directory, like a link.
    const opened = fs.open(place, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch((error) => {
      throw error.code === "ELOOP" ? noFile(place) : error;
    });
    const file = await unlessMissing(opened);
    try {
      if (file && !(await file.stat()).isFile()) throw noFile(place);
      return await file?.readFile();
    } finally {
      await file?.close();
    }
  }

  async save(name: string, json: string): Promise<void> {
    await makeDirectory(this.#path, this.#files);
    await this.#lock?.check();
    const place = this.place(name);
    const before = await this.#fingerprint(place);
    if (this.#lock === undefined && before !== this.#written.get(name)) throw taken(place);
    const ready = async (beside: string): Promise<void> => {
      this.#written.set(name, (await this.#fingerprint(beside)) as string);
    };
    await replace(place, [json], this.#files, { mode: 0o600, ready });
  }

  /** Identifies a version of a file. Renaming the file does not change this. */
  async #fingerprint(path: string): Promise<string | undefined> {
    const found = await unlessMissing(this.#files.fs.lstat(path, { bigint: true }));
    return found && `${found.ino} ${found.mtimeNs} ${found.size}`;
  }
}

function noFile(path: string): TallyfoldError {
  return invalidCheckpoint(`${path} isn't a regular file`);
}

function taken(path: string): TallyfoldError {
  return invalidCheckpoint(`another job has written ${path}: give each its own directory`);
}

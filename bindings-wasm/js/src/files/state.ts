/// <reference types="node" preserve="true" />

import { because, invalidArgument, invalidCheckpoint, TallyfoldError } from "../values/error.js";
import { type Files, makeDirectory, overwrite, placeOf, unlessMissing } from "./file.js";
import { Lock } from "./lock.js";
import { note } from "./origins.js";

/** The file of a ledger, an outbox or a follow's state: {@link StateFile.store} replaces it as a whole. */
export interface StateFile {
  /** Returns the document that was stored last; `undefined` if there is no file. */
  load(): Promise<string | undefined>;
  /**
   * Replaces the document. When the promise resolves, the new document is on the disk.
   *
   * @param before The document that the new one was made from, which a ledger or an outbox passes; `null` if there
   * was none.
   * @throws {@link TallyfoldError} with code `invalid_checkpoint` if another process is writing the file, if the
   * file was written since it was loaded, or if `before` is given, but is not the document that this object has
   * loaded or stored last. The file is unchanged then.
   */
  store(document: string, before?: string | null): Promise<void>;
}

/** The end that {@link overwrite} adds to a file's name for its temporary file. */
const TEMPORARY = /^\.[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\.tmp$/;

/** @internal While the file is written, the lock of checkpoints, in the directory `NAME.lease`, keeps other processes out. */
export class LockedFile implements StateFile {
  readonly #path: string;
  readonly #files: Files;
  /** Identifies the version of the file that was loaded or stored last; `undefined` if there was no file. */
  #seen: string | undefined;
  /** The document that was loaded or stored last. */
  #document: string | null = null;
  /** Whether the temporary files of killed processes were removed. */
  #isTidy = false;
  /** Resolves when the last attempt to store has ended. */
  #stored: Promise<unknown> = Promise.resolve();

  constructor(path: string | URL, files: Files) {
    this.#path = placeOf("file", path, files.url);
    this.#files = files;
    this.store = this.store.bind(this);
  }

  async load(): Promise<string | undefined> {
    this.#seen = await this.#mark();
    const document = await unlessMissing(this.#files.fs.readFile(this.#path, "utf8"));
    this.#document = document ?? null;
    note(this);
    return document;
  }

  /** The path. */
  get place(): string {
    return this.#path;
  }

  /** The document that was loaded or stored last. */
  get document(): string | null {
    return this.#document;
  }

  store(document: string, before?: string | null): Promise<void> {
    if (typeof document !== "string") {
      return Promise.reject(invalidArgument("document", "want a string"));
    }
    const stored = this.#stored.then(() => this.#store(document, before));
    this.#stored = stored.catch(() => {});
    return stored;
  }

  async #store(document: string, before?: string | null): Promise<void> {
    const { fs } = this.#files;
    const place = (await unlessMissing(fs.realpath(this.#path))) ?? this.#path;
    const directory = `${place}.lease`;
    const lock = await this.#alone(() => this.#locked(directory));
    try {
      await this.#alone(() => lock.check());
      const found = await this.#mark();
      // If the file is gone, no other process can have continued from it.
      const isOurs = found === this.#seen && (before === undefined || before === this.#document);
      if (found !== undefined && !isOurs) {
        throw invalidCheckpoint(
          `${this.#path} was written or replaced since it was loaded: load it again`,
        );
      }
      await this.#tidy(place);
      await overwrite(place, [document], this.#files, 0o600);
      this.#seen = await this.#mark();
      this.#document = document;
    } finally {
      await lock.release();
      // This fails if the directory contains locks of other processes.
      await fs.rmdir(directory).catch(() => {});
    }
  }

  /** Removes the temporary files of killed processes. Nobody else makes any while the lock is held. */
  async #tidy(place: string): Promise<void> {
    if (this.#isTidy) return;
    const { fs, path } = this.#files;
    const directory = path.dirname(place);
    const begin = path.basename(place);
    // A directory that can't be listed can still be written to.
    const names = await fs.readdir(directory).catch(() => []);
    const leftOver = names.filter(
      (name) => name.startsWith(begin) && TEMPORARY.test(name.slice(begin.length)),
    );
    for (const name of leftOver) {
      await fs.rm(path.join(directory, name), { force: true }).catch(() => {});
    }
    this.#isTidy = true;
  }

  /** Runs an action of the lock. If it refuses, the error names the file instead of the lock. */
  async #alone<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (error) {
      if (!TallyfoldError.is(error)) throw error;
      throw because(invalidCheckpoint(`another process is writing ${this.#path}`), error);
    }
  }

  async #locked(directory: string): Promise<Lock> {
    for (let tries = 100; ; tries--) {
      try {
        await makeDirectory(directory, this.#files, 0o700);
        return await Lock.take(directory, this.#files);
      } catch (error) {
        // A process that releases its lock also removes the directory, if it is empty then.
        const { code = "" } = error as NodeJS.ErrnoException;
        if (!["EEXIST", "ENOENT"].includes(code) || tries === 0) throw error;
      }
    }
  }

  async #mark(): Promise<string | undefined> {
    const found = await unlessMissing(this.#files.fs.stat(this.#path, { bigint: true }));
    if (found && !found.isFile()) {
      throw invalidArgument("file", `${this.#path} is not a regular file, so it can't be replaced`);
    }
    return found && `${found.ino} ${found.mtimeNs} ${found.size}`;
  }
}

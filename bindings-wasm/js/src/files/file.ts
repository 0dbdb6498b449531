/// <reference types="node" preserve="true" />

import { invalidArgument } from "../values/error.js";
import { isUrl } from "../values/input.js";
import { builtIn } from "../values/runtime.js";

/**
 * The modules of Node that a checkpoint directory needs. They are passed as an argument, not imported, so that a page can
 * load this file.
 */
export interface Files {
  readonly crypto: typeof import("node:crypto");
  readonly fs: typeof import("node:fs/promises");
  readonly os: typeof import("node:os");
  readonly path: typeof import("node:path");
  readonly threads: typeof import("node:worker_threads");
  readonly url: typeof import("node:url");
}

/**
 * Replaces a file, as {@link overwrite} does.
 *
 * @returns The number of bytes.
 * @throws {@link TallyfoldError} with code `invalid_argument` for anything that isn't a path, and in a host without
 * files.
 */
export async function writeWhole(
  path: string | URL,
  pieces: Iterable<Uint8Array>,
): Promise<number> {
  const fs = builtIn<typeof import("node:fs/promises")>("node:fs/promises");
  const url = builtIn<typeof import("node:url")>("node:url");
  const paths = builtIn<typeof import("node:path")>("node:path");
  if (!fs || !url || !paths) {
    throw invalidArgument("path", "files need Node 20.16 or later, Deno or Bun; use stream()");
  }
  const place = placeOf("path", path, url);
  let written = 0;
  const counted = function* () {
    for (const piece of pieces) {
      yield piece;
      written += piece.length;
    }
  };
  await overwrite(place, counted(), { fs, path: paths });
  return written;
}

/** Returns the caller's path, or the path of a `file:` URL of any realm. Throws if no file can have this path. */
export function placeOf(argument: string, path: unknown, url: Files["url"]): string {
  const wanted = "want a path or a file: URL";
  let place: unknown = path;
  try {
    if (isUrl(path)) place = url.fileURLToPath(path.href);
  } catch {
    throw invalidArgument(argument, wanted);
  }
  if (typeof place !== "string") throw invalidArgument(argument, wanted);
  if (place === "") {
    throw invalidArgument(argument, "this is empty; is an environment variable unset?");
  }
  if (/[\0\p{Surrogate}]/u.test(place)) {
    const message = "a path can't contain NUL or half of a surrogate pair";
    throw invalidArgument(argument, message);
  }
  return place;
}

/** The owner of a file. */
interface Owned {
  readonly uid: number;
  readonly gid: number;
}

/** The modules that {@link replace} needs. */
type Replacing = Pick<Files, "fs" | "path">;

/** How {@link replace} makes the new file. */
interface Replacement {
  /** The permissions of the new file: less the umask, unless there is an `old` file. */
  readonly mode?: number | undefined;
  /** Called with the path of the temporary file before it is renamed. */
  readonly ready?: (beside: string) => Promise<void>;
  /** The file whose owner, for root, the new file gets. */
  readonly old?: Owned;
}

/**
 * Creates a directory and its missing parents. Node's option `recursive` is not used: it retries forever where the system
 * refuses a directory with `ENOENT`, such as in `/proc`, and it reports a read-only file system as `ENOENT`.
 */
export async function makeDirectory(place: string, files: Replacing, mode = 0o777): Promise<void> {
  const { fs, path } = files;
  const make = (): Promise<unknown> =>
    fs.mkdir(place, mode).catch(async (error) => {
      const found = await fs.stat(place).catch(() => undefined);
      if (!found?.isDirectory()) throw error;
    });
  try {
    await make();
  } catch (error) {
    const parent = path.dirname(place);
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || parent === place) throw error;
    await makeDirectory(parent, files, mode);
    await make();
  }
}

/**
 * Replaces a file atomically: writes a temporary file next to it, syncs it to the disk and renames it. Readers see the
 * old file or the whole new one. If anything fails, the old file stays and the temporary file is removed.
 */
export async function replace(
  place: string,
  pieces: Iterable<string | Uint8Array>,
  { fs, path }: Replacing,
  { mode = 0o666, ready, old }: Replacement = {},
): Promise<void> {
  const beside = `${place}.${globalThis.crypto.randomUUID()}.tmp`;
  await create(beside, pieces, fs, mode, old);
  try {
    await ready?.(beside);
    await renamed(beside, place, fs);
  } catch (error) {
    await fs.rm(beside, { force: true });
    throw error;
  }
  await syncNames(path.dirname(place), fs);
}

/**
 * Replaces a file atomically, as {@link replace} does. The new file gets the permissions of the old one and, for root, its
 * owner. If the path is a link, its target is replaced. Anything but a file, such as a pipe or `/dev/stdout`, can't be
 * replaced, so this writes to it directly.
 *
 * @param mode The permissions if there is no old file, less the umask.
 */
export async function overwrite(
  place: string,
  pieces: Iterable<string | Uint8Array>,
  files: Replacing,
  mode?: number,
): Promise<void> {
  const { fs, path } = files;
  const old = await unlessMissing(fs.stat(place));
  if (old && !old.isFile() && !old.isDirectory()) {
    const opened = await fs.open(place, "w");
    try {
      for (const piece of pieces) await opened.writeFile(piece);
    } finally {
      await opened.close();
    }
    return;
  }
  if (old) {
    await replace(await fs.realpath(place), pieces, files, { mode: old.mode & 0o777, old });
    return;
  }
  let target = place;
  const link = (): Promise<string | undefined> => fs.readlink(target).catch(() => undefined);
  for (let to = await link(); to !== undefined; to = await link()) {
    // The directory may itself be a link, so `..` must not be resolved in the text.
    target = path.isAbsolute(to)
      ? to
      : `${await fs.realpath(path.dirname(target))}${path.sep}${to}`;
  }
  await replace(target, pieces, files, { mode });
}

/**
 * Creates a file, and syncs it to the disk. The path must not exist, not even as a link. If writing fails, the file is
 * removed.
 */
export async function create(
  place: string,
  pieces: Iterable<string | Uint8Array>,
  fs: Files["fs"],
  mode: number,
  old?: Owned,
): Promise<void> {
  const file = await fs.open(place, "wx", mode);
  try {
    try {
      if (old) {
        // Only root can give a file to another user.
        await file.chown(old.uid, old.gid).catch(() => {});
        await file.chmod(mode);
      }
      for (const piece of pieces) await file.writeFile(piece);
      await file.sync();
    } finally {
      await file.close();
    }
  } catch (error) {
    await fs.rm(place, { force: true });
    throw named(error, place);
  }
}

/** Adds the path to an error that doesn't contain it, such as the error of a write to a full disk. */
function named(error: unknown, place: string): unknown {
  const { syscall, path } = (error ?? {}) as NodeJS.ErrnoException;
  if (!(error instanceof Error) || syscall === undefined || path !== undefined) return error;
  error.message += ` '${place}'`;
  return Object.assign(error, { path: place });
}

/** The waits between attempts to replace a file on Windows, where another program may have it open, in milliseconds. */
const RETRY_WAITS_MS = [10, 20, 40, 80, 160, 320, 640, 1280];

async function renamed(from: string, to: string, fs: Files["fs"]): Promise<void> {
  for (const ms of RETRY_WAITS_MS) {
    try {
      return await fs.rename(from, to);
    } catch (error) {
      const { code = "" } = error as NodeJS.ErrnoException;
      const isBusy = ["EACCES", "EBUSY", "EPERM"].includes(code);
      if (!isBusy || globalThis.process?.platform !== "win32") throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
  await fs.rename(from, to);
}

/** Syncs a directory, so that its file names survive a power failure. Does nothing if the system does not allow this. */
async function syncNames(directory: string, fs: Files["fs"]): Promise<void> {
  const opened = await fs.open(directory, "r").catch(() => undefined);
  await opened?.sync().catch(() => {});
  await opened?.close();
}

/** Returns `undefined` instead of an error if the file does not exist. */
export async function unlessMissing<T>(file: Promise<T>): Promise<T | undefined> {
  try {
    return await file;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

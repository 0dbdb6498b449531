/// <reference types="node" preserve="true" />

import { builtIn } from "../loading/runtime.js";
import { invalidArgument } from "../values/error.js";

/**
 * Writes a file that is there as a whole or not at all: beside its place, to the disk, and then into its place.
 *
 * @returns The number of bytes.
 * @throws {@link TallyfoldError} with code `invalid_argument` for what is no path, and where there are no files.
 */
export async function writeWhole(
  path: string | URL,
  pieces: Iterable<Uint8Array>,
): Promise<number> {
  const fs = builtIn<typeof import("node:fs/promises")>("node:fs/promises");
  const url = builtIn<typeof import("node:url")>("node:url");
  const { dirname } = builtIn<typeof import("node:path")>("node:path") ?? {};
  if (!fs || !url || !dirname) {
    throw invalidArgument("path", "files need Node 20.16 or later, Deno or Bun; use stream()");
  }
  if (typeof path !== "string" && !(path instanceof URL)) {
    throw invalidArgument("path", "want a path or a file: URL");
  }
  const place = typeof path === "string" ? path : url.fileURLToPath(path);
  const beside = `${place}.${crypto.randomUUID()}.tmp`;
  const file = await fs.open(beside, "wx");
  let written = 0;
  try {
    try {
      for (const piece of pieces) {
        await file.writeFile(piece);
        written += piece.length;
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await fs.rename(beside, place);
  } catch (error) {
    await fs.rm(beside, { force: true });
    throw error;
  }
  await flush(dirname(place), fs);
  return written;
}

/** Brings to the disk which files there are, where the system lets a program do that. */
async function flush(directory: string, fs: typeof import("node:fs/promises")): Promise<void> {
  const opened = await fs.open(directory, "r").catch(() => undefined);
  await opened?.sync().catch(() => {});
  await opened?.close();
}

import { because, invalidCheckpoint, TallyfoldError } from "../values/error.js";

/** A file whose document is in use. */
interface Origin {
  /** The path. */
  readonly place: string;
  /** The document that was loaded or stored last. */
  readonly document: string | null;
}

/** The files that were loaded and that the program still uses. */
let origins: WeakRef<Origin>[] = [];

/** @internal Notes a file that was loaded, so that an error about its document can name it. */
export function note(origin: Origin): void {
  const others = origins.filter((known) => ![undefined, origin].includes(known.deref()));
  origins = [...others, new WeakRef(origin)];
}

/** @internal Reads a document. If it is incomplete or was changed, the error names the file that it was loaded from. */
export function reading<T>(document: unknown, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!TallyfoldError.is(error) || error.code !== "invalid_checkpoint") throw error;
    const files = origins.flatMap((known) => known.deref() ?? []);
    // Several files may have the same content.
    const places = files.filter((file) => file.document === document).map((file) => file.place);
    if (places.length === 0) throw error;
    const text = error.message.replace(/^invalid_checkpoint: /, "");
    const place = [...new Set(places)].join(" or ");
    throw because(invalidCheckpoint(`${place}: ${text}`), error);
  }
}

import { type CoreExport, type CorePieces, type Glue, glue } from "../../wasm/tallyfold_export.js";
import source from "../../wasm/tallyfold_export_bg.wasm";
import { writeWhole } from "../files/file.js";
import { Handle } from "../loading/handle.js";
import { Module } from "../loading/start.js";
import type { ExportArguments, Note } from "../values/declared.js";
import { TallyfoldError } from "../values/error.js";
import type { ByteStream, Url } from "../values/host.js";
import { fieldsOf, flatHeaders, OPTIONS, optionalFunction } from "../values/input.js";
import { warning } from "../values/runtime.js";
import { type Exportable, handedOver } from "./transfer.js";

const module = new Module(glue, source, "coreexport_new");

/** @internal The WebAssembly of exports, which the first call compiles. */
export function exportCore(): Glue {
  return module.glue;
}

/**
 * Compiles the WebAssembly of exports off the main thread. Without this call, the first export compiles it on the
 * main thread, which can block a page on a slow phone.
 *
 * @example
 * await init();
 * const text = exportCounts(table, { format: "openmetrics" }).text();
 */
export function init(): Promise<void> {
  return module.compile();
}

/** The options of {@link exportCounts}. */
export interface ExportOptions extends ExportArguments {
  /**
   * A function that gets each {@link Note}, instead of a warning. By default, Node issues a warning with the name
   * `InexactCountWarning`, `LabelLimitWarning`, `LongValueWarning` or `WindowsLeftOutWarning`, and other hosts
   * print a warning to the console.
   */
  readonly onNote?: ((note: Note) => unknown) | undefined;
}

/**
 * Exports counts in the format of another system: a table, which has samples for the window of each response; a
 * series; or the signed changes of a revision of {@link Client.follow}. If any count can't be exported, the
 * function throws, before anything is written.
 *
 * It is also exported under the name `export`.
 *
 * @throws {@link TallyfoldError} of kind `config` for arguments that can't be used; `count_overflow` for a count
 * above 2^63 - 1, if the format stores signed integers; with `exact`, `inexact_count` for a count that the system
 * that reads it would round; `unsupported_by_format` for counts that the format can't represent.
 * @example
 * import { exportCounts } from "tallyfold/export";
 *
 * const labels = { cluster: "production" };
 * await exportCounts(table, { format: "openmetrics", labels }).writeTo(path);
 */
export function exportCounts(counts: Exportable, options: ExportOptions): Export {
  return exported(counts, options, []);
}

/** @internal @param others The names of options that something else reads. */
export function exported(
  counts: Exportable,
  options: ExportOptions,
  others: readonly string[],
): Export {
  const glue = exportCore();
  const { rows, revision } = handedOver(glue, counts);
  const make = (...given: Given) => new glue.CoreExport(rows, revision, ...given);
  return withOptions(options, others, make);
}

/** The core's arguments: the options, the names of options that the core does not read, and the time. */
type Given = [options: object, others: string[], unixMs: number];

/** @internal Makes an export with the core's arguments for these options, and reports its notes. */
export function withOptions<T extends CoreExport | undefined>(
  options: ExportOptions,
  others: readonly string[],
  make: (...given: Given) => T,
): Export | (undefined extends T ? undefined : never) {
  const all = fieldsOf("options", options, OPTIONS);
  const { labels, ...given } = all;
  const warn = optionalFunction("onNote", all.onNote, "want a function") ?? warned;
  const core = make({ ...given, labels: flatHeaders(labels) }, ["onNote", ...others], Date.now());
  if (core === undefined) return undefined as undefined extends T ? undefined : never;
  const made = Export.of(core);
  for (const note of made.notes) warn(note);
  return made;
}

/** The names of warnings, the same as Python's classes. */
const WARNINGS: { readonly [K in Note["kind"]]: string } = {
  inexact_count: "InexactCountWarning",
  windows_left_out: "WindowsLeftOutWarning",
  long_value: "LongValueWarning",
  label_limit: "LabelLimitWarning",
};

function warned({ kind, message }: Note): void {
  warning(WARNINGS[kind], message);
}

/**
 * Counts in the format of another system, as pieces of bytes. Each piece is created when you request it, so memory
 * does not grow with the number of rows. You may keep and change the pieces. You can iterate over an export any
 * number of times; it always yields the same bytes.
 *
 * In most formats, all pieces together are one text. In formats that are sent in messages, such as `remote-write`,
 * each piece is a message of its own.
 *
 * Its memory is freed by the garbage collector, or at the end of a `using` block.
 *
 * @example
 * for (const piece of exportCounts(table, { format: "openmetrics" })) socket.write(piece);
 */
export class Export implements Iterable<Uint8Array<ArrayBuffer>> {
  readonly #core: Handle<CoreExport>;

  private constructor(core: CoreExport) {
    this.#core = new Handle(core);
  }

  /** @internal */
  static of(core: CoreExport): Export {
    // Bundlers rename a class that refers to itself by name.
    return new this(core);
  }

  /** @internal */
  static coreOf(it: Export): CoreExport {
    return it.#core.object;
  }

  /** The media type of the export, for `Content-Type`. */
  get mediaType(): string {
    return this.#core.object.mediaType();
  }

  /** Whether each piece is a message of its own, to be sent separately. Otherwise, all pieces together are one text. */
  get isMessages(): boolean {
    return this.#core.object.isMessages();
  }

  /** Notes about the export, such as that the system that reads it rounds counts, or that windows were left out. */
  get notes(): Note[] {
    return this.#core.object.notes();
  }

  /** All pieces, from the first one on. `for await` iterates over them, too. */
  [Symbol.iterator](): IterableIterator<Uint8Array<ArrayBuffer>> {
    return piecesOf(this.#core.object.pieces());
  }

  /**
   * The whole export as one text.
   *
   * @throws {@link TallyfoldError} with code `unsupported_by_format` for a format that isn't text, and for counts
   * that need more than one message.
   * @example
   * response.end(exportCounts(table, { format: "openmetrics" }).text());
   */
  text(): string {
    if (this.mediaType.includes("protobuf")) {
      throw unsupported("this format isn't text: iterate over its pieces");
    }
    const decoder = new TextDecoder();
    let text = "";
    for (const piece of this.#whole()) text += decoder.decode(piece, { stream: true });
    return text + decoder.decode();
  }

  /**
   * The pieces as a `ReadableStream`, for example for the body of a `Response`. The stream stays valid when the
   * export is disposed of.
   *
   * @example
   * const counts = exportCounts(table, { format: "csv" });
   * return new Response(counts.stream(), { headers: { "content-type": counts.mediaType } });
   */
  stream(): ByteStream {
    // The stream may be read after the export was disposed of.
    const pieces = new Handle(this.#core.object.pieces());
    const source: UnderlyingDefaultSource<Uint8Array<ArrayBuffer>> = {
      pull(controller) {
        const piece = pieces.object.nextPiece();
        if (piece !== undefined) {
          controller.enqueue(piece as Uint8Array<ArrayBuffer>);
          return;
        }
        pieces.release();
        controller.close();
      },
      cancel: () => pieces.release(),
    };
    return new ReadableStream(source, { highWaterMark: 0 });
  }

  /**
   * Writes the whole export to a file, in Node 20.16 or later, Deno or Bun. The file is replaced atomically, once
   * everything is written and synced to the disk: a program that reads it never sees an incomplete file. The new file
   * gets the permissions of the old one, and the target of a link is replaced. A pipe or a device is written to. You may
   * dispose of the export before the promise resolves.
   *
   * @param path The path, or a `file:` URL.
   * @returns The number of bytes.
   * @throws {@link TallyfoldError} with code `unsupported_by_format` for counts that need more than one message of
   * the format, and the host's error if it can't write the file.
   */
  async writeTo(path: string | Url): Promise<number> {
    return writeWhole(path, this.#whole());
  }

  /** Frees the memory now. */
  [Symbol.dispose](): void {
    this.#core.release();
  }

  /** All pieces. Throws an error if they are several messages, which can't be joined. */
  #whole(): IterableIterator<Uint8Array<ArrayBuffer>> {
    return joinable(this[Symbol.iterator](), this.isMessages);
  }
}

/** Generators begin with their first piece, when the export may already be disposed of. So this gets the core's pieces. */
function* piecesOf(core: CorePieces): IterableIterator<Uint8Array<ArrayBuffer>> {
  try {
    for (;;) {
      const piece = core.nextPiece();
      if (piece === undefined) return;
      yield piece as Uint8Array<ArrayBuffer>;
    }
  } finally {
    core.free();
  }
}

function* joinable<T>(pieces: Iterable<T>, isMessages: boolean): IterableIterator<T> {
  let isFirst = true;
  for (const piece of pieces) {
    if (isMessages && !isFirst) {
      throw unsupported(
        "the counts take more than one message of this format, and messages can't be joined: iterate over the " +
          "pieces, or set a larger maxBytes",
      );
    }
    yield piece;
    isFirst = false;
  }
}

function unsupported(text: string): TallyfoldError {
  const message = `unsupported_by_format: ${text}`;
  return TallyfoldError.of({ code: "unsupported_by_format", kind: "config", message });
}

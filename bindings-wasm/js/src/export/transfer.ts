// Copies counts as columns from the memory of the library to the memory of exports or of health. It imports only types of
// the library, and accepts objects of any copy of the library, because ES modules and CommonJS have different classes.

import type { CoreRows, Glue as ExportGlue } from "../../wasm/tallyfold_export.js";
import type { Revision } from "../ranges/follow.js";
import type { CountColumns, DictionaryColumn } from "../tables/columns.js";
import type { Comparison } from "../tables/comparison.js";
import type { Series } from "../tables/series.js";
import type { CountTable } from "../tables/table.js";
import { invalidArgument } from "../values/error.js";
import type { Dimension, Window } from "../values/types.js";

/** The part of a module that receives the rows. It is the same in all modules. */
type Glue = Pick<ExportGlue, "CoreRows">;

/** Counts that can be exported. */
export type Exportable = CountTable | Series | Revision;

/** @internal Rows in the memory of exports, and the number of the revision if they are its changes. */
export interface HandedOver {
  readonly rows: CoreRows;
  readonly revision: number | undefined;
}

/** @internal Copies counts. Throws a {@link TallyfoldError} with code `invalid_argument` for anything else. */
export function handedOver(glue: Glue, counts: Exportable): HandedOver {
  if (isTable(counts)) return { rows: ofTable(glue, counts), revision: undefined };
  if (isSeries(counts)) return { rows: ofSeries(glue, counts), revision: undefined };
  if (isRevision(counts)) return { rows: ofChanges(glue, counts), revision: counts.number };
  throw invalidArgument("counts", "want a CountTable, a Series or a Revision of a follow");
}

/**
 * @internal The rows of a revision's table.
 *
 * @throws {@link TallyfoldError} with code `invalid_argument` for anything else.
 */
export function revised(glue: Glue, revision: Revision): CoreRows {
  if (isRevision(revision)) return ofTable(glue, revision.table);
  throw invalidArgument("revision", "want a Revision of a follow");
}

/**
 * @internal The changes of a revision.
 *
 * @throws {@link TallyfoldError} with code `invalid_argument` for anything else.
 */
export function changed(glue: Glue, revision: Revision): HandedOver {
  if (isRevision(revision)) return { rows: ofChanges(glue, revision), revision: revision.number };
  throw invalidArgument("revision", "want a Revision of a follow");
}

/** Every frame has this property, in every copy of the library: see frame.ts. */
const content = Symbol.for("tallyfold.content");

function isFrame(value: unknown, method: string): boolean {
  return typeof value === "object" && value !== null && content in value && method in value;
}

/** @internal */
export function isTable(value: unknown): value is CountTable {
  return isFrame(value, "byWindow");
}

function isSeries(value: unknown): value is Series {
  return isFrame(value, "fillZeros");
}

function isRevision(value: unknown): value is Revision {
  const { changes, table } = (value ?? {}) as Partial<Revision>;
  return isFrame(changes, "deltas") && isTable(table);
}

/** @internal Copies a table by window, because the table itself has only one row for each group, not one for each response. */
export function ofTable(glue: Glue, table: CountTable): CoreRows {
  const series = table.byWindow();
  try {
    return ofSeries(glue, series, table.identity);
  } finally {
    series[Symbol.dispose]();
  }
}

function ofSeries(glue: Glue, series: Series, identity?: string): CoreRows {
  const columns = series.columns();
  const { dictionary, ids } = columns.window;
  // 1 if the counts of a window are complete and no longer change, 0 otherwise.
  const settled = Uint8Array.from(dictionary, ({ complete, provisional }) =>
    complete && !provisional ? 1 : 0,
  );
  return filled(glue, series, columns, [dictionary, settled, ids, identity]);
}

function ofChanges(glue: Glue, { window, changes, settled, table }: Revision): CoreRows {
  const { before, after, ...columns } = changes.columns();
  const windowIds = new Uint32Array(after.success.length);
  const all = { ...columns, ...after };
  const windows = [window];
  const isSettled = Uint8Array.of(settled ? 1 : 0);
  const rows = filled(glue, changes, all, [windows, isSettled, windowIds, table.identity]);
  rows.before(before.success, before.errors, before.filtered);
  return rows;
}

function filled(
  glue: Glue,
  { metric, dimensions }: Series | Comparison,
  columns: CountColumns & { readonly [N in Dimension]?: DictionaryColumn },
  [windows, settled, windowIds, identity]: [
    windows: readonly Window[],
    settled: Uint8Array,
    windowIds: Uint32Array,
    identity: string | undefined,
  ],
): CoreRows {
  const edges = windows.flatMap(({ start, end }) => [start, end]);
  const rows = new glue.CoreRows(metric, edges, settled, windowIds, identity);
  for (const name of dimensions) {
    const { dictionary, ids } = columns[name] as DictionaryColumn;
    rows.dimension(name, dictionary, ids);
  }
  rows.counts(columns.success, columns.errors, columns.filtered);
  return rows;
}

// The counts in the slots of a view. The library adds them up.

import type { DictionaryColumn } from "../src/tables/columns.js";
import { countsOf } from "../src/tables/counts.js";
import type { Series } from "../src/tables/series.js";
import type { CountTable } from "../src/tables/table.js";
import { TallyfoldError } from "../src/values/error.js";
import type { TimeStep } from "../src/values/time.js";
import type { Dimension, Rates } from "../src/values/types.js";
import type { Slot } from "./slots.js";

/** The counts of a slot, and their rates. */
export interface Cell {
  readonly success: bigint;
  readonly errors: bigint;
  readonly filtered: bigint;
  readonly rates: Rates;
}

/** One cell per slot; `undefined` if nothing is known of the slot. */
export type Cells = readonly (Cell | undefined)[];

/** The counts by step, with 0 where a window has no event; `undefined` if its windows cross the edge of a step. */
export function seriesOf(table: CountTable | undefined, step: TimeStep): Series | undefined {
  try {
    return table?.byWindow(step).fillZeros();
  } catch (error) {
    if (TallyfoldError.is(error) && error.code === "unaligned_window") return undefined;
    throw error;
  }
}

/** The cells of a series without dimensions, in slots that start `shift` milliseconds later than its windows. */
export function sumsOf(series: Series | undefined, slots: readonly Slot[], shift: number): Cells {
  return series ? (placed(series, [0], undefined, slots, shift)[0] ?? []) : [];
}

/** The same for some values of the dimension `by`: one list of cells for each value. */
export function cellsOf(
  series: Series | undefined,
  by: Dimension,
  values: readonly string[],
  slots: readonly Slot[],
  shift: number,
): Cells[] {
  if (!series) return values.map(() => []);
  const { [by]: names } = series.columns() as { [N in Dimension]?: DictionaryColumn };
  const lineAt = new Map(values.map((value, line) => [value, line]));
  const lines = names?.dictionary.map((value) => lineAt.get(value)) ?? [];
  return placed(series, lines, names?.ids, slots, shift, values.length);
}

/** @param lines For each value of the dictionary, the index of its line; `undefined` for a value without a line. */
function placed(
  series: Series,
  lines: readonly (number | undefined)[],
  ids: Uint32Array | undefined,
  slots: readonly Slot[],
  shift: number,
  count = 1,
): Cells[] {
  const { window, success, errors, filtered } = series.columns();
  const rates = series.rates();
  const slotAt = new Map(slots.map(({ step }, place) => [step.start, place]));
  const slotOf = window.dictionary.map(({ start }) => slotAt.get(Date.parse(start) + shift));
  const cells = Array.from({ length: count }, () => new Array<Cell | undefined>(slots.length));
  for (let row = 0; row < success.length; row++) {
    const slot = slotOf[window.ids[row] as number];
    const own = cells[lines[ids?.[row] ?? 0] ?? -1];
    if (slot === undefined || own === undefined) continue;
    own[slot] = {
      success: success[row] as bigint,
      errors: errors[row] as bigint,
      filtered: filtered[row] as bigint,
      rates: {
        delivery: orNull(rates.delivery[row]),
        error: orNull(rates.error[row]),
        filter: orNull(rates.filter[row]),
      },
    };
  }
  return cells;
}

/**
 * The rates of `part`, relative to the events of `whole`. A row with a reason has events of one kind only, so shares within the
 * row mean nothing.
 */
export function ratesIn(part: Omit<Cell, "rates">, whole: Omit<Cell, "rates">): Rates {
  const toSend = whole.success + whole.errors;
  const { success, errors, filtered } = part;
  const ratesOf = (own: Partial<Omit<Cell, "rates">>) =>
    countsOf({ success: 0n, errors: 0n, filtered: 0n, ...own }).rates;
  return {
    delivery: ratesOf({ success, errors: toSend - success }).delivery,
    error: ratesOf({ success: toSend - errors, errors }).error,
    filter: ratesOf({ success: toSend + whole.filtered - filtered, filtered }).filter,
  };
}

/** Computes the rates of each cell relative to the same slot of `whole`. Without `whole`, the cells keep their own rates. */
export function cellsIn(cells: Cells, whole: Cells | undefined): Cells {
  if (!whole) return cells;
  return cells.map((cell, slot) => {
    const all = whole[slot];
    return cell && all && { ...cell, rates: ratesIn(cell, all) };
  });
}

/** The cells of slots whose time, `shift` milliseconds earlier, the table covers completely. The others are left out. */
export function coveredIn(
  cells: Cells,
  slots: readonly Slot[],
  { coverage }: CountTable,
  shift: number,
): Cells {
  const spans = coverage.map(({ start, end }) => [Date.parse(start), Date.parse(end)] as const);
  return cells.map((cell, place) => {
    const { start, end } = slots[place] as Slot;
    const isCovered = spans.some(([from, to]) => from <= start - shift && end - shift <= to);
    return isCovered ? cell : undefined;
  });
}

function orNull(rate: number | undefined): number | null {
  return rate === undefined || Number.isNaN(rate) ? null : rate;
}

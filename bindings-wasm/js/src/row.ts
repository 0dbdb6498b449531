import type { CountColumns, PerDimension } from "./columns.js";
import { ratesOf } from "./counts.js";
import type { CountName, Dimension, Rates } from "./types.js";

/** One combination of dimension values and its counts. */
export class Row<D extends Dimension | undefined = Dimension | undefined> {
  /** The value of each dimension of the table. */
  readonly dimensions: PerDimension<D, string>;
  /** Events delivered. */
  readonly success: bigint;
  /** Events not sent due to an error. */
  readonly errors: bigint;
  /** Events filtered from the stream due to playbook, pipeline or compliance filters. */
  readonly filtered: bigint;

  /** @internal */
  constructor(
    dimensions: PerDimension<D, string>,
    { success, errors, filtered }: CountColumns,
    row: number,
  ) {
    this.dimensions = dimensions;
    this.success = success[row] as bigint;
    this.errors = errors[row] as bigint;
    this.filtered = filtered[row] as bigint;
  }

  /** The rates of these counts. A getter: a copy of the properties has none. */
  get rates(): Rates {
    return ratesOf(this);
  }
}

/** Counts in JSON: strings of digits, as no JSON number holds them exactly. */
export type SavedCounts = { [N in CountName]: string };

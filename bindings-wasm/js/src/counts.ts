import type { Rates } from "./types.js";
import { core } from "./wasm.js";

/** The three counts, each a number of events, exact to 2^64 - 1. */
export class Counts {
  /** Events delivered. */
  readonly success: bigint;
  /** Events not sent due to an error. */
  readonly errors: bigint;
  /** Events filtered from the stream due to playbook, pipeline or compliance filters. */
  readonly filtered: bigint;

  /** @internal */
  constructor(success: bigint, errors: bigint, filtered: bigint) {
    this.success = success;
    this.errors = errors;
    this.filtered = filtered;
  }

  /** The rates of these counts. A getter: a copy of the properties has none. */
  get rates(): Rates {
    return ratesOf(this);
  }
}

/** @internal */
export function countsOf({ success, errors, filtered }: Omit<Counts, "rates">): Counts {
  return new Counts(success, errors, filtered);
}

/** @internal Only the core divides. */
export function ratesOf({ success, errors, filtered }: Omit<Counts, "rates">): Rates {
  const [delivery, error, filter] = core().rates(success, errors, filtered);
  return { delivery: orNull(delivery), error: orNull(error), filter: orNull(filter) };
}

/** @internal Typed arrays say with NaN that there is none. */
export function orNull(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}

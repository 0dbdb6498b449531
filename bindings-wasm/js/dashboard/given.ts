// Mistakes in what a page gives to the elements: in their attributes, or in the address of a rules file.

import { isZone } from "./formats.js";
import { rangeOf } from "./range.js";

/** An error that the author of the page can fix. */
export class PageError extends Error {
  readonly title: string;

  constructor(title: string, message: string) {
    super(message);
    this.title = title;
  }
}

/** A mistake in an attribute, or in the property of the same name. */
export function invalid(attribute: string, message: string): PageError {
  return new PageError(`The attribute ${attribute} is invalid`, message);
}

export function mistakeInPeriod(period: string): PageError | undefined {
  if (rangeOf(String(period), Date.now())) return undefined;
  return invalid("period", `“${period}” is not a range of at most 90 days: want 24h, or start/end`);
}

export function mistakeInZone(zone: string): PageError | undefined {
  if (!zone || isZone(zone)) return undefined;
  return invalid(
    "zone",
    `“${zone}” is not a time zone: want UTC, local, or a name such as Europe/Berlin`,
  );
}

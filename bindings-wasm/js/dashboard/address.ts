// Converts the state of the dashboard to and from text after the `#` or the `?` of the address, so that a link shows the same
// dashboard to another person.

import type { Dimension, Window } from "../src/values/types.js";
import type { Unit, Where } from "./elements.js";
import { isZone } from "./formats.js";
import { VIEWS } from "./lazy.js";
import { rangeOf } from "./range.js";
import { isOther, NAMES } from "./view.js";

/** The state in a link. Omitted fields have their defaults. */
export interface Place {
  readonly cluster?: string;
  readonly period?: string;
  readonly by?: Dimension;
  readonly unit?: Unit;
  readonly zone?: string;
  readonly view?: string;
  readonly where?: Where;
  /** `undefined` if nothing is marked, although the default is a mark. */
  readonly marked?: Window | undefined;
  /** The states of the views, by names such as `destinations.sort`. */
  readonly views: Readonly<Record<string, string>>;
}

/** The names of the parameters with the states of the views, such as `destinations.sort`. */
const VIEW_STATE = new RegExp(`^(${VIEWS.join("|").replaceAll("tallyfold-", "")})\\.\\w+$`);

/** Parses the state from the text of a link. Leaves out a range, dimension, unit, zone or mark that isn't valid. */
export function placeIn(text: string): Place {
  const all = new URLSearchParams(text);
  const where: { [N in Dimension]?: string[] } = {};
  for (const name of NAMES) if (all.has(name)) where[name] = all.getAll(name);
  const views = Object.fromEntries([...all].filter(([name]) => VIEW_STATE.test(name)));
  const one = (name: string) => all.get(name) ?? undefined;
  const by = NAMES.find((name) => name === one("by"));
  const unit = (["counts", "percent"] as const).find((name) => name === one("unit"));
  const [start, end] = one("mark")?.split("/") ?? [];
  const isMarked = Date.parse(start ?? "") < Date.parse(end ?? "");
  const isFiltered = all.has("where") || Object.keys(where).length > 0;
  const cluster = one("cluster");
  const period = one("range");
  const zone = one("zone");
  const view = one("view");
  return {
    views,
    ...(isFiltered && { where }),
    ...(cluster && { cluster }),
    ...(period && rangeOf(period, Date.now()) && { period }),
    ...(by && { by }),
    ...(unit && { unit }),
    ...(zone && isZone(zone) && { zone }),
    ...(view && { view }),
    ...(isMarked && start && end && { marked: { start, end } }),
    ...(one("mark") === "" && { marked: undefined }),
  };
}

/** Whether a parameter of an address belongs to the dashboard. */
export function isOwn(name: string): boolean {
  const others = ["view", "cluster", "by", "unit", "zone", "range", "where", "mark"];
  return others.includes(name) || NAMES.some((it) => it === name) || VIEW_STATE.test(name);
}

/**
 * An empty `where` or `mark` stands for all rows or for no mark, if these are not the defaults.
 *
 * @param defaults The values that the text leaves out.
 */
export function textOf(place: Place, defaults: Omit<Place, "views">): string {
  const all = new URLSearchParams();
  for (const name of ["view", "cluster", "by", "unit", "zone"] as const) {
    const value = place[name];
    if (value !== undefined && value !== defaults[name]) all.set(name, value);
  }
  if (place.period !== defaults.period) all.set("range", place.period ?? "");
  const { where = {}, marked } = place;
  if (isOther(where, defaults.where ?? {})) {
    if (Object.keys(where).length === 0) all.set("where", "");
    for (const name of NAMES) for (const value of where[name] ?? []) all.append(name, value);
  }
  if (isOther(marked, defaults.marked))
    all.set("mark", marked ? `${marked.start}/${marked.end}` : "");
  for (const [name, value] of Object.entries(place.views)) all.set(name, value);
  // An address may contain `:` and `/` without escapes, which keeps it readable.
  return all.toString().replace(/%3A/g, ":").replace(/%2F/g, "/");
}

// The two menus of a view: what can be exported, and commands that give the same numbers.

import { html, type TemplateResult } from "lit";
import type { CountTable } from "../src/tables/table.js";
import type { DashboardQuery, Where } from "./elements.js";

/** Something that a view can be saved as. */
export interface ExportItem {
  /** Such as `PNG`. */
  readonly label: string;
  /** The ending of the file's name. */
  readonly extension: string;
  /** Makes the file. */
  make(): Blob | Promise<Blob>;
}

/** What the menus need of a view. */
interface Menued extends HTMLElement {
  readonly query: DashboardQuery | undefined;
  readonly where: Where;
  readonly by: string;
  exported(): CountTable | undefined;
}

export function menus(view: Menued, items: ExportItem[]): TemplateResult {
  return html`${view.query ? "" : ""}${items.length ? "" : ""}`;
}

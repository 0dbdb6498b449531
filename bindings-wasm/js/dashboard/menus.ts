// The two menus of a view: the formats to export it in, and commands that print the same numbers.

import { html, type LitElement, nothing, type TemplateResult } from "lit";
import type { CountTable } from "../src/tables/table.js";
import type { DashboardQuery, Where } from "./elements.js";

/** A format that a view can be exported in. */
export interface ExportItem {
  /** The text of the menu item, such as `PNG`. */
  readonly label: string;
  /** The extension of the file name, without a dot. */
  readonly extension: string;
  /** Makes the file. */
  make(): Blob | Promise<Blob>;
}

/** The properties of a view that the menus use. */
export interface Menued extends LitElement {
  /** The query of the counts that the files and commands give. */
  readonly exportedQuery: DashboardQuery | undefined;
  readonly cluster: string | undefined;
  readonly where: Where;
  readonly by: string;
  /** The table that CSV and JSON are made from. */
  exported(): CountTable | undefined;
}

/** A command in one of the languages. */
interface Command {
  readonly label: string;
  readonly text: string;
}

export function menus(view: Menued, pictures: readonly ExportItem[]): TemplateResult {
  const items = () => [...tables(view), ...pictures, svg(view)];
  const { exportedQuery: query } = view;
  return html`${disclosure(
    view,
    "Export",
    DOWNLOAD,
    () =>
      html`${items().map(
        (item) =>
          html`<button type="button" class="item" @click=${save(view, item)}>${item.label}</button>`,
      )}<span class="sr" role="status"></span>`,
  )}${query ? disclosure(view, "Command", PROMPT, () => commandList(commandsOf(view, query))) : nothing}`;
}

/** A button that opens a box below it. The box closes when a click or the focus goes elsewhere, and on Escape. */
function disclosure(
  view: Menued,
  label: string,
  icon: unknown,
  content: () => unknown,
): TemplateResult {
  const menu = view.renderRoot?.querySelector<HTMLDetailsElement>(`[data-menu=${label}]`);
  return html`<details
    class="menu"
    data-menu=${label}
    @toggle=${(event: Event) => toggled(event, view)}
    @keydown=${closeByKey}
    @focusout=${closeByFocus}
  >
    <summary class="plain" aria-label=${label}>${icon}<span class="label">${label}</span></summary>
    <div class="pop">${menu?.open ? content() : nothing}</div>
  </details>`;
}

function toggled({ currentTarget }: Event, view: Menued): void {
  const menu = currentTarget as HTMLDetailsElement;
  // The box has content only while it is open.
  view.requestUpdate();
  if (!menu.open) return;
  const close = (event: Event) => {
    if (event.composedPath().includes(menu)) return;
    menu.open = false;
  };
  document.addEventListener("pointerdown", close, { capture: true });
  const over = () => document.removeEventListener("pointerdown", close, { capture: true });
  menu.addEventListener("toggle", over, { once: true });
}

function closeByKey(event: KeyboardEvent): void {
  const menu = event.currentTarget as HTMLDetailsElement;
  if (event.key !== "Escape" || !menu.open) return;
  event.stopPropagation();
  menu.open = false;
  menu.querySelector("summary")?.focus();
}

function closeByFocus(event: FocusEvent): void {
  const menu = event.currentTarget as HTMLDetailsElement;
  const next = event.relatedTarget as Node | null;
  if (next && !menu.contains(next)) menu.open = false;
}

/** CSV and JSON, both written by the library. */
function tables(view: Menued): ExportItem[] {
  if (view.exported() === undefined) return [];
  const table = () => view.exported() as CountTable;
  return [
    {
      label: "CSV",
      extension: "csv",
      make: async () => {
        const { exportCounts, init } = await import("../src/export.js");
        await init();
        // The file has one row per group, with the sums of all windows, like the view.
        const csv = exportCounts(table(), { format: "csv", onNote: () => {} });
        return new Blob([...csv], { type: "text/csv" });
      },
    },
    {
      label: "JSON",
      extension: "json",
      make: () => new Blob([JSON.stringify(table(), null, 1)], { type: "application/json" }),
    },
  ];
}

/** The view as it is on the screen. */
function svg(view: Menued): ExportItem {
  return {
    label: "SVG",
    extension: "svg",
    make: async () => {
      const { pictureOf } = await import("./picture.js");
      const card = view.renderRoot.querySelector("[part=view]") as Element;
      return new Blob([pictureOf(card)], { type: "image/svg+xml" });
    },
  };
}

function save(view: Menued, item: ExportItem): (event: Event) => Promise<void> {
  return async ({ currentTarget }) => {
    const button = currentTarget as HTMLElement;
    const menu = button.closest("details") as HTMLDetailsElement;
    const status = menu.querySelector("[role=status]") as HTMLElement;
    try {
      const url = URL.createObjectURL(await item.make());
      const link = document.createElement("a");
      link.href = url;
      link.download = fileName(view, item.extension);
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
      menu.open = false;
    } catch (error) {
      status.className = "";
      status.textContent = error instanceof Error ? error.message : String(error);
    }
  };
}

function fileName({ localName, exportedQuery: query }: Menued, extension: string): string {
  const what = localName.replace("tallyfold-", "");
  const when = query ? `-${query.start.slice(0, 16)}-${query.end.slice(0, 16)}` : "";
  return `${what}${when}`.replace(/[^\w-]/g, "") + `.${extension}`;
}

function commandList(commands: readonly Command[]): TemplateResult {
  return html`<div class="commands">
    ${commands.map(
      ({ label, text }) => html`<div class="command">
        <div class="command-head">
          <strong>${label}</strong
          ><button type="button" class="plain" aria-label=${`Copy: ${label}`} @click=${copy(text)}>Copy</button>
        </div>
        <pre tabindex="0" role="group" aria-label=${label}>${text}</pre>
      </div>`,
    )}
  </div>`;
}

function copy(text: string): (event: Event) => Promise<void> {
  return async ({ currentTarget }) => {
    const button = currentTarget as HTMLElement;
    const was = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Without permission to use the clipboard, the text is selected, and the viewer can copy it.
      const pre = button.closest(".command")?.querySelector("pre");
      if (pre) getSelection()?.selectAllChildren(pre);
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => {
      button.textContent = was;
    }, 2_000);
  };
}

/** Commands that print the numbers of a view. */
export function commandsOf(
  { by, where, cluster }: Pick<Menued, "by" | "where" | "cluster">,
  { metric, start, end, window, dimensions }: DashboardQuery,
): Command[] {
  const filters = Object.entries(where).flatMap(([name, values]) =>
    (values ?? []).map((value): [string, string] => [name, value]),
  );
  const noun = metric === "event_delivery" ? "delivery" : "ingestion";
  const flags = filters.map(([name, value]) => ` \\\n  --where ${shellQuoted(`${name}=${value}`)}`);
  const source = cluster === undefined ? "" : ` --cluster ${shellQuoted(cluster)}`;
  const shell =
    `tallyfold ${noun}${source} --from ${start} --to ${end} \\\n  --window ${window} --by ${by}` +
    flags.join("");

  const listOf = (values: readonly string[], language: "Python" | "JavaScript") =>
    `[${values.map((value) => literal(value, language)).join(", ")}]`;
  const kept = Object.entries(where);
  const list = JSON.stringify(dimensions).replaceAll(",", ", ");
  const pythonKept = kept
    .map(([name, values = []]) => `${name}=${listOf(values, "Python")}`)
    .join(", ");
  const name = literal(cluster ?? "", "Python");
  const needed = cluster === undefined ? "" : ` The environment has the cluster ${name}.\n`;
  const python = `import tallyfold

${needed && `#${needed}`}with tallyfold.Client.from_env() as client:
    table = client.collect(
        "${metric}", "${start}", "${end}",
        ${list}, window="${window}",
    )
for row in table${kept.length ? `.filter(${pythonKept})` : ""}.group_by("${by}"):
    print(row.dimensions["${by}"], row.success, row.errors, row.filtered)`;

  const jsKept = kept
    .map(([name, values = []]) => `${name}: ${listOf(values, "JavaScript")}`)
    .join(", ");
  const javascript = `import { Client } from "tallyfold";

${needed && `//${needed}`}const table = await Client.fromEnv().collect({
  metric: "${metric}",
  start: "${start}",
  end: "${end}",
  dimensions: ${list},
  window: "${window}",
});
console.table(table${kept.length ? `.filter({ ${jsKept} })` : ""}.groupBy("${by}").rows);`;
  return [
    { label: "Shell", text: shell },
    { label: "Python", text: python },
    { label: "JavaScript", text: javascript },
  ];
}

/** Characters that are invisible, or change the direction of text. The core's `text::is_unseen` has the same set. */
export const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u2065\u{e0001}-\u{e007f}]/gu;

/** A string literal. Python and JavaScript differ in the escapes of characters with long codes. */
function literal(value: string, language: "Python" | "JavaScript"): string {
  return JSON.stringify(value).replace(HIDDEN, (found) => {
    const code = found.codePointAt(0) as number;
    const hex = code.toString(16);
    if (code <= 0xffff) return `\\u${hex.padStart(4, "0")}`;
    return language === "Python" ? `\\U${hex.padStart(8, "0")}` : `\\u{${hex}}`;
  });
}

/** Quotes an argument for a POSIX shell. For invisible characters, it uses `$'…'`, which bash and zsh support. */
function shellQuoted(value: string): string {
  if (value.search(HIDDEN) < 0) {
    return /^[\w=.,:/@%+-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
  }
  const text = value.replace(/[\\']/g, "\\$&").replace(HIDDEN, (found) => {
    const code = found.codePointAt(0) as number;
    return `\\U${code.toString(16).padStart(8, "0")}`;
  });
  return `$'${text}'`;
}

const DOWNLOAD = html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
  <path d="M8 2v7.5m-3-3 3 3 3-3M3 13h10" />
</svg>`;
const PROMPT = html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
  <path d="m3 4.5 3.5 3.5L3 11.5M8 12h5" />
</svg>`;

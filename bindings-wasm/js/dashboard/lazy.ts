// The views: those that load with the page, and those that are loaded when they are first used.

import { render } from "lit";
import { Destinations } from "./destinations.js";
import { PageError } from "./given.js";
import { Pipeline } from "./pipeline.js";
import { Reasons } from "./reasons.js";
import { failureState, skeleton } from "./view.js";

/** The views that load with the page. */
export const FIRST: Readonly<Record<string, CustomElementConstructor>> = {
  "tallyfold-destinations": Destinations,
  "tallyfold-reasons": Reasons,
  "tallyfold-pipeline": Pipeline,
};

const LOADERS: Readonly<Record<string, () => Promise<CustomElementConstructor>>> = {
  "tallyfold-heatmap": async () => (await import("./heatmap.js")).Heatmap,
  "tallyfold-trend": async () => (await import("./trend.js")).Trend,
  "tallyfold-cause": async () => (await import("./cause.js")).Cause,
  "tallyfold-values": async () => (await import("./values.js")).Values,
  "tallyfold-silent": async () => (await import("./silent.js")).Silent,
  "tallyfold-corrections": async () => (await import("./corrections.js")).Corrections,
  "tallyfold-budget": async () => (await import("./budget.js")).Budget,
  "tallyfold-timeline": async () => (await import("./timeline.js")).Timeline,
};

/** The names of all elements that are views. */
export const VIEWS: readonly string[] = [...Object.keys(FIRST), ...Object.keys(LOADERS)];

const begun = new Map<string, Promise<void>>();

/** Defines an element, unless the page has it already. Does nothing on a server that renders pages. */
export function define(name: string, element: CustomElementConstructor): void {
  const elements = globalThis.customElements;
  if (elements && !elements.get(name)) elements.define(name, element);
}

const NOT_LOADED = new PageError(
  "This part of the page could not be loaded",
  "The server can't be reached, or has a newer version of this page. If a new try does not help, reload the page.",
);

/**
 * Loads the elements with this name, which `root` contains or is about to contain. If that fails, each of them shows this and a
 * button to try again. Returns whether they are loaded.
 */
export async function need(root: ParentNode, name: string): Promise<boolean> {
  try {
    await loaded(name);
    return true;
  } catch {
    // An element that is not defined has no shadow root, so its children are shown.
    const show = (content: unknown) => {
      for (const it of root.querySelectorAll<HTMLElement>(name)) render(content, it);
    };
    const again = async () => {
      show(skeleton());
      if (await need(root, name)) show(undefined);
    };
    show(failureState(NOT_LOADED, () => void again()));
    return false;
  }
}

/** Loads and defines an element, unless this has begun. After a failure, the next call tries again. */
function loaded(name: string): Promise<void> | undefined {
  const load = LOADERS[name];
  if (load === undefined || begun.has(name)) return begun.get(name);
  const loading = load().then((element) => define(name, element));
  begun.set(name, loading);
  loading.catch(() => begun.delete(name));
  return loading;
}

/** Loads the elements that the page contains, and the elements that are added to it later. */
export function watch(): void {
  const all = Object.keys(LOADERS).join();
  const look = (root: ParentNode) => {
    for (const { localName } of root.querySelectorAll(all)) void need(document, localName);
  };
  if (!globalThis.MutationObserver || !document.documentElement) return;
  look(document);
  const observer = new MutationObserver((changes) => {
    for (const { addedNodes } of changes) {
      for (const node of addedNodes) {
        if (!(node instanceof Element)) continue;
        void need(document, node.localName);
        look(node);
      }
    }
    if (begun.size === Object.keys(LOADERS).length) observer.disconnect();
  });
  observer.observe(document.documentElement, { childList: true, subtree: true });
}

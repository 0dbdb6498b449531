// The elements that are loaded when they are first used.

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

const begun = new Set<string>();

/** Defines an element, unless the page has it already. Does nothing on a server that renders pages. */
export function define(name: string, element: CustomElementConstructor): void {
  const elements = globalThis.customElements;
  if (elements && !elements.get(name)) elements.define(name, element);
}

/** Loads elements that are about to be used. */
export function need(...names: string[]): void {
  for (const name of names) {
    const load = LOADERS[name];
    if (load === undefined || begun.has(name)) continue;
    begun.add(name);
    load().then(
      (element) => define(name, element),
      () => begun.delete(name),
    );
  }
}

/** Loads the elements that the page contains, and the elements that are added to it later. */
export function watch(): void {
  const all = Object.keys(LOADERS).join();
  const look = (root: ParentNode) => {
    for (const { localName } of root.querySelectorAll(all)) need(localName);
  };
  if (!globalThis.MutationObserver || !document.documentElement) return;
  look(document);
  const observer = new MutationObserver((changes) => {
    for (const { addedNodes } of changes) {
      for (const node of addedNodes) {
        if (!(node instanceof Element)) continue;
        need(node.localName);
        look(node);
      }
    }
    if (begun.size === Object.keys(LOADERS).length) observer.disconnect();
  });
  observer.observe(document.documentElement, { childList: true, subtree: true });
}

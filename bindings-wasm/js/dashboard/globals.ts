// Globals of the browser, or substitutes that let a server that renders pages import this module. The module defines no elements
// there.

export const ElementHere: typeof HTMLElement =
  globalThis.HTMLElement ?? (class {} as unknown as typeof HTMLElement);

export const documentHere: Document =
  globalThis.document ?? ({ createTreeWalker: () => ({}) } as unknown as Document);

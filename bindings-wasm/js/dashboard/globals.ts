// Globals of the browser, or substitutes on a server that renders pages. With the substitutes, the server can import the
// dashboard, which defines no elements there.

export const ElementHere: typeof HTMLElement =
  globalThis.HTMLElement ?? (class {} as unknown as typeof HTMLElement);

export const documentHere: Document =
  globalThis.document ?? ({ createTreeWalker: () => ({}) } as unknown as Document);

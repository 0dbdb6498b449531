// What the browser has, or enough in its place for this module to be imported by a server that renders pages: it defines
// no elements there.

export const ElementHere: typeof HTMLElement =
  globalThis.HTMLElement ?? (class {} as unknown as typeof HTMLElement);

export const documentHere: Document =
  globalThis.document ?? ({ createTreeWalker: () => ({}) } as unknown as Document);

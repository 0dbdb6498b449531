// What `Symbol.dispose` means in this package: the host's own, or the one that transpilers of
// `using` look for where the host has none. build.mjs puts these in the place of the originals.

const symbols: { dispose?: symbol; asyncDispose?: symbol } = Symbol;

export const disposeSymbol: symbol = symbols.dispose ?? Symbol.for("Symbol.dispose");
export const asyncDisposeSymbol: symbol = symbols.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

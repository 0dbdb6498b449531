/** Under this name Node's `util.inspect` and `console.log` look for an object's own description. */
export const inspectSymbol = Symbol.for("nodejs.util.inspect.custom");

/** `util.inspect`, which Node hands over, so that no browser has to have it. */
export type Inspect = (value: object, options: object) => string;

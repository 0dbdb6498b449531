/** Under this name Node's `util.inspect` and `console.log` look for an object's own description. */
export const inspectSymbol = Symbol.for("nodejs.util.inspect.custom");

/** `util.inspect`, which Node hands over, so that no browser has to have it. */
export type Inspect = (value: object, options: object) => string;

/** What an inspector shows of an object, also when it can't be asked any more. */
export function shown(name: string, isReleased: boolean, show: () => string): string {
  if (isReleased) return `${name} (disposed of)`;
  try {
    return `${name} ${show()}`;
  } catch {
    return `${name} (ended)`;
  }
}

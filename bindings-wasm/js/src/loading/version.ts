import { core } from "./library.js";

/** The version of this package. */
export function version(): string {
  return core().version();
}

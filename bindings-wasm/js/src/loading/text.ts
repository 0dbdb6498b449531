// What the glue takes for `TextDecoder` and `TextEncoder`: build.mjs puts these in their place, because
// jsdom has neither.

import { builtIn } from "./runtime.js";

type Text = Pick<typeof globalThis, "TextDecoder" | "TextEncoder">;

export const Decoder: Text["TextDecoder"] = found("TextDecoder");
export const Encoder: Text["TextEncoder"] = found("TextEncoder");

/** The host's own, or that of Node, if it is there. */
function found<N extends keyof Text>(name: N): Text[N] {
  const own = globalThis[name] ?? builtIn<Text>("node:util")?.[name];
  return own ?? (missing(name) as unknown as Text[N]);
}

function missing(name: string): () => never {
  return function missing() {
    throw new TypeError(
      `this host has no ${name}: set globalThis.${name} before the first use of tallyfold, in Node to ` +
        `require("node:util").${name}`,
    );
  };
}

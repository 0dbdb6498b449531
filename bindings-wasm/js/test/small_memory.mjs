// WebAssembly memories that are full early, so that a real lack of memory can be met in a test. Import this
// before anything of tallyfold is used.

/** How many instances there have been, and what a test does to the next ones. */
export const instances = { made: 0, wrap: (exports) => exports };

const PAGE = 64 * 1024;
const most = { pages: undefined };

/** The memory of modules that are compiled from now on has no room for more bytes. */
export function limitMemory(bytes) {
  most.pages = bytes === undefined ? undefined : bytes / PAGE;
}

const { Module, Instance } = WebAssembly;

WebAssembly.Module = class extends Module {
  constructor(bytes) {
    super(most.pages === undefined ? bytes : withMost(new Uint8Array(bytes), most.pages));
  }
};

WebAssembly.Instance = class extends Instance {
  constructor(module, imports) {
    super(module, imports);
    instances.made += 1;
    Object.defineProperty(this, "exports", { value: instances.wrap(super.exports) });
  }
};

/** The module with a maximum in its memory section, whose only memory has none. */
function withMost(bytes, pages) {
  for (let at = 8; at < bytes.length; ) {
    const [length, start] = leb(bytes, at + 1);
    if (bytes[at] === 5) {
      const [least] = leb(bytes, start + 2);
      const section = [1, 1, ...toLeb(least), ...toLeb(pages)];
      return Uint8Array.from([
        ...bytes.subarray(0, at),
        5,
        ...toLeb(section.length),
        ...section,
        ...bytes.subarray(start + length),
      ]);
    }
    at = start + length;
  }
  throw new Error("a module without a memory");
}

/** A number, and where the next one begins. */
function leb(bytes, from) {
  let [value, at, shift] = [0, from, 0];
  for (;;) {
    const byte = bytes[at++];
    value += (byte & 127) * 2 ** shift;
    if (byte < 128) return [value, at];
    shift += 7;
  }
}

function toLeb(number) {
  return number < 128 ? [number] : [(number & 127) | 128, ...toLeb(Math.floor(number / 128))];
}

// The entry `tallyfold/dashboard`: defines the elements.

import { View } from "./view.js";

export type * from "./elements.js";

/** Defines an element, unless the page has it already, or is rendered by a server. */
function define(name: string, element: CustomElementConstructor): void {
  const elements = globalThis.customElements;
  if (elements && !elements.get(name)) elements.define(name, element);
}
void View;
void define;

// `<tallyfold-reasons>`: why events were lost.

import type { PropertyDeclarations } from "lit";
import type { Dimension } from "../src/values/types.js";
import { Groups } from "./groups.js";
import { DIMENSIONS } from "./view.js";

export class Reasons extends Groups {
  static override properties: PropertyDeclarations = {
    ...Groups.properties,
    of: { attribute: false },
  };

  /** What stands in the rows. While the dashboard compares reasons, it shows destinations here: the element stays, which is fast. */
  declare of: Dimension;

  constructor() {
    super();
    this.of = "reason";
  }

  protected override get dimension(): Dimension {
    return this.of;
  }

  protected override get heading(): string {
    return DIMENSIONS[this.of].many;
  }

  protected override get isCompact(): boolean {
    return true;
  }

  /** The order of destinations isn't in the address, where it would be the order of reasons. */
  protected override tell(state: { readonly [name: string]: string | undefined }): void {
    if (this.of === "reason") super.tell(state);
    else this.state = { ...this.state, ...state };
  }
}

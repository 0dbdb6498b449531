// `<tallyfold-reasons>`: why events were lost.

import type { PropertyDeclarations } from "lit";
import type { Dimension } from "../src/values/types.js";
import { DIMENSIONS } from "./base.js";
import { Groups } from "./groups.js";

export class Reasons extends Groups {
  static override properties: PropertyDeclarations = {
    ...Groups.properties,
    of: { attribute: false },
  };

  /**
   * The dimension of the rows. While the dashboard groups by reason, this element shows destinations. Reusing the element is
   * fast.
   */
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

  /** While the rows are destinations, their order and search stay out of the address, where they would apply to reasons. */
  protected override tell(state: { readonly [name: string]: string | undefined }): void {
    if (this.of === "reason") super.tell(state);
    else this.state = { ...this.state, ...state };
  }
}

// `<tallyfold-destinations>`: which destinations lose most events; or sources, events or reasons, as `by` says.

import type { Dimension } from "../src/values/types.js";
import { Groups } from "./groups.js";
import { DIMENSIONS } from "./view.js";

export class Destinations extends Groups {
  static override properties = {
    ...Groups.properties,
    isAside: { attribute: false },
  };

  /** Whether it stands next to another table. Its order is its own then, and not in the address. */
  declare isAside: boolean | undefined;

  protected override get dimension(): Dimension {
    return this.by;
  }

  protected override get heading(): string {
    return DIMENSIONS[this.by].many;
  }

  protected override get isCompact(): boolean {
    return this.isAside === true;
  }

  protected override tell(state: { readonly [name: string]: string | undefined }): void {
    if (this.isAside) this.state = { ...this.state, ...state };
    else super.tell(state);
  }
}

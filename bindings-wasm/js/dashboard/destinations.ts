// `<tallyfold-destinations>`: the destinations that lose most events; or the sources, events or reasons, depending on `by`.

import type { Dimension } from "../src/values/types.js";
import { DIMENSIONS } from "./base.js";
import { Groups } from "./groups.js";

export class Destinations extends Groups {
  protected override get dimension(): Dimension {
    return this.by;
  }

  protected override get heading(): string {
    return DIMENSIONS[this.by].many;
  }
}

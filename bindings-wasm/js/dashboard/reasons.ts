// `<tallyfold-reasons>`: why events were lost.

import type { Dimension } from "../src/values/types.js";
import { Groups } from "./groups.js";

export class Reasons extends Groups {
  protected override get dimension(): Dimension {
    return "reason";
  }

  protected override get heading(): string {
    return "Reasons";
  }

  protected override get isCompact(): boolean {
    return true;
  }
}

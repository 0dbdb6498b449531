// `<tallyfold-reasons>`: why events were lost.

import type { Dimension } from "../src/values/types.js";
import { Groups } from "./groups.js";

export class Reasons extends Groups {
  protected override readonly dimension: Dimension = "reason";
  protected override readonly heading = "Reasons";
  protected override readonly isCompact = true;
  protected override readonly drawn = "filtered" as const;
}

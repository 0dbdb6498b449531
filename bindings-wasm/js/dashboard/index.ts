/**
 * The elements of the dashboard, which this entry defines.
 * @module tallyfold/dashboard
 */

import { Dashboard } from "./dashboard.js";
import { Destinations } from "./destinations.js";
import { define, watch } from "./lazy.js";
import { Pipeline } from "./pipeline.js";
import { Reasons } from "./reasons.js";

export type * from "./elements.js";

define("tallyfold-destinations", Destinations);
define("tallyfold-reasons", Reasons);
define("tallyfold-pipeline", Pipeline);
define("tallyfold-dashboard", Dashboard);
watch();

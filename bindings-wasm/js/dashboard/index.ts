/**
 * The elements of the dashboard, which this entry defines.
 * @module tallyfold/dashboard
 */

import { Dashboard } from "./dashboard.js";
import { define, FIRST, watch } from "./lazy.js";

export type * from "./elements.js";

for (const [name, view] of Object.entries(FIRST)) define(name, view);
define("tallyfold-dashboard", Dashboard);
watch();

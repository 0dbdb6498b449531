import { exportCounts } from "tallyfold/export";
globalThis.shown = exportCounts;

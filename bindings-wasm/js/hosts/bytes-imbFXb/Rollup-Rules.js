import { Rules } from "tallyfold/health";
globalThis.shown = Rules;

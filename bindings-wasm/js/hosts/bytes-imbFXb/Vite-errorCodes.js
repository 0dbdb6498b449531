import { errorCodes } from "tallyfold";
globalThis.shown = errorCodes;

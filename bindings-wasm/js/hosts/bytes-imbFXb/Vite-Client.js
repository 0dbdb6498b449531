import { Client } from "tallyfold";
globalThis.shown = Client;

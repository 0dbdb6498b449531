#!/usr/bin/env node
import { version } from "./index.js";

console.log(`tallyfold ${version()}`);

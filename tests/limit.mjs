// Limits the time of each test of `node --test`, which is run with `--import` of this file. Node's own --test-timeout also counts for
// a whole file, and then names the file only.

import { afterEach, beforeEach } from "node:test";

const SECONDS = Number(process.env.TEST_LIMIT ?? 300);
const timers = new Map();
const nameOf = (context) => context.fullName ?? context.name;

beforeEach((context) => {
  const stop = () => {
    process.stderr.write(`${nameOf(context)} took more than ${SECONDS} s\n`);
    process.exit(1);
  };
  timers.set(nameOf(context), setTimeout(stop, SECONDS * 1000).unref());
});

afterEach((context) => clearTimeout(timers.get(nameOf(context))));

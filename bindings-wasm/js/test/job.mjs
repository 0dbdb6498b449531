// A job that collects a day into a directory, in a process of its own: its arguments are JSON.

import { writeSync } from "node:fs";
import { Client } from "tallyfold";
import { checkpointDirectory } from "tallyfold/node";

const { query, options, directory, progress } = JSON.parse(process.argv[2]);
const checkpoint = directory && checkpointDirectory(directory);
const onProgress = ({ done }) => writeSync(1, `${done}\n`);
const table = await new Client(options).collect({
  ...query,
  checkpoint,
  progress,
  ...(directory && { onProgress }),
});
if (directory) writeSync(1, JSON.stringify(table));

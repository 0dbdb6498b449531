// A collect in a worker thread whose requests are never answered.

import { parentPort, workerData } from "node:worker_threads";
import { Client } from "tallyfold";

const { query, options, directory } = workerData;
const fetch = () => {
  parentPort.postMessage("reading");
  return new Promise((resolve) => setTimeout(resolve, 2 ** 30));
};
await new Client({ ...options, fetch }).collect({ ...query, checkpoint: directory });

// A worker that tells the code with which it is refused a client secret.

import { Client } from "./index.js";

try {
  new Client({ clusterEndpoint: "https://cluster.example", clientSecret: "a secret" });
} catch (error) {
  postMessage(error.code);
}

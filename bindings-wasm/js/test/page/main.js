// A page that shows a table of a served sandbox, and which codes it is refused with.

import { Client, version } from "tallyfold";

const { clusterEndpoint, accessToken, query } = globalThis.given;
const options = { clusterEndpoint, accessToken: async () => ({ accessToken, expiresIn: 600 }) };

const table = await new Client(options).eventDelivery(query);
const rows = Array.from(table, ({ errors }) => String(errors));

const codes = [
  await codeOf(async () => new Client({ clusterEndpoint, clientSecret: "a secret" })),
  await codeOf(() => elsewhere("/redirect")),
  await codeOf(() => elsewhere("/broken")),
  await codeOf(() => elsewhere("/silent")),
];

document.querySelector("pre").textContent = JSON.stringify({ table, rows, codes });
document.title = version();

function elsewhere(path) {
  const clusterEndpoint = location.origin + path;
  return new Client({ ...options, clusterEndpoint, timeoutMs: 200 }).eventDelivery(query);
}

async function codeOf(act) {
  try {
    await act();
    return "none";
  } catch (error) {
    return error.code;
  }
}

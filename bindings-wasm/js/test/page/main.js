// A page that shows a table of a served sandbox, and which codes it is refused with.

import { Client, version } from "tallyfold";

const { clusterEndpoint, accessToken, query } = globalThis.given;
const options = { clusterEndpoint, accessToken: async () => ({ accessToken, expiresIn: 600 }) };

const table = await new Client(options).eventDelivery(query);
const rows = Array.from(table, ({ errors }) => String(errors));

const day = { ...query, metric: "event_delivery", window: "15m" };
const checkpoint = {
  load: (name) => localStorage.getItem(`checkpoint/${name}`),
  save: (name, json) => localStorage.setItem(`checkpoint/${name}`, json),
};
const collected = await new Client(options).collect({ ...day, checkpoint });
// All of it is stored, so that nothing has to be asked for.
const offline = { ...options, fetch: () => Promise.reject(new TypeError("offline")) };
const resumed = await new Client(offline).collect({ ...day, checkpoint });
const stored = localStorage.getItem("checkpoint/segment-00000.json");

const codes = [
  await codeOf(async () => new Client({ clusterEndpoint, clientSecret: "a secret" })),
  await codeOf(() => elsewhere("/redirect")),
  await codeOf(() => elsewhere("/broken")),
  await codeOf(() => elsewhere("/silent")),
];

document.querySelector("pre").textContent = JSON.stringify({
  table,
  rows,
  codes,
  collected,
  resumed,
  hasToken: stored.includes(accessToken),
});
document.title = version();

function elsewhere(path) {
  const clusterEndpoint = location.origin + path;
  // Only the answer that never comes may take too long.
  const timeoutMs = path === "/silent" ? 200 : 60_000;
  return new Client({ ...options, clusterEndpoint, timeoutMs }).eventDelivery(query);
}

async function codeOf(act) {
  try {
    await act();
    return "none";
  } catch (error) {
    return error.code;
  }
}

// A page that shows the counts of an hour. It holds no secret and no token: its server queries the service.
import { Client } from "/modules/index.js";

const client = new Client({ clusterEndpoint: "/tallyfold", tokenless: true });

function row(name, { success, errors, filtered }) {
  const whole = success + errors + filtered;
  const tenths = whole === 0n ? 0n : (success * 1000n) / whole;
  const cells = [name, success, errors, filtered, `${tenths / 10n}.${tenths % 10n}%`];
  const element = document.createElement("tr");
  for (const cell of cells) element.insertCell().textContent = cell.toLocaleString("en");
  return element;
}

try {
  const { end } = await (await fetch("/config")).json();
  const start = new Date(Date.parse(end) - 3_600_000);
  const dimensions = ["integration", "reason"];
  const table = await client.eventDelivery({ start, end, dimensions });
  const [window] = table.coverage;
  document.querySelector("#window").textContent = `${window.start} to ${window.end}`;
  for (const each of table.groupBy("integration").top(10, { by: "success" })) {
    document.querySelector("tbody").append(row(each.dimensions.integration, each));
  }
  document.querySelector("tfoot").append(row("total", table.totals));
  document.querySelector("#verdict").textContent =
    `Reported totals: ${table.reconciliation.verdict}.`;
  globalThis.saved = JSON.stringify(table);
} catch (error) {
  document.querySelector("#window").textContent = error.message;
}
document.body.dataset.ready = "";

// Counts of the last hour by integration and by reason, and the newest audit logs: report.py in
// JavaScript, with the same environment, argument and output.
import { writeFileSync } from "node:fs";
import { Client } from "tallyfold";
import { exportCounts } from "tallyfold/export";

/** A share in percent with one decimal, rounded down; exact for any counts. */
function rate(part, whole) {
  if (whole === 0n) return "-";
  const tenths = (part * 1000n) / whole;
  return `${tenths / 10n}.${tenths % 10n}%`;
}

/** One line of a table: a name, its counts and the share that was delivered. */
function line(name, { success, errors, filtered }) {
  const numbers = [success, errors, filtered].map((count) => String(count).padStart(12)).join("");
  const share = rate(success, success + errors + filtered);
  return `  ${name.padEnd(32)}${numbers}${share.padStart(10)}`;
}

/** Prints a table by each of its dimensions, and its totals. */
function report(title, table) {
  const [window] = table.coverage;
  console.log(`${title}, ${window.start} to ${window.end}`);
  for (const dimension of table.dimensions) {
    const names = ["delivered", "errors", "filtered"].map((name) => name.padStart(12)).join("");
    console.log(`  ${`by ${dimension}`.padEnd(32)}${names}${"rate".padStart(10)}`);
    for (const row of table.groupBy(dimension).top(8, { by: "success" })) {
      console.log(line(row.dimensions[dimension] || "(none)", row));
    }
  }
  console.log(line("total", table.totals));
  console.log(`  reported totals: ${table.reconciliation.verdict}\n`);
}

const minute = 60_000;
const now = process.argv[2] ? Date.parse(process.argv[2]) : Date.now();
const end = new Date(Math.floor(now / minute) * minute);
const start = new Date(end.getTime() - 60 * minute);
const client = Client.fromEnv();
const [delivery, ingestion, logs] = await Promise.all([
  client.eventDelivery({ start, end, dimensions: ["integration", "reason"] }),
  client.eventIngestion({ start, end, dimensions: ["integration"] }),
  client.auditLogs({ page: 1, perPage: 3 }),
]);
report("event delivery", delivery);
report("event ingestion", ingestion);
console.log("audit logs");
// The reference does not show the shape of a record; this is the sandbox's.
for (const record of logs.auditLogs) {
  console.log(`  ${record.timestamp}  ${record.actor}  ${record.action}`);
}
if (process.env.TALLYFOLD_SAVE) {
  writeFileSync(process.env.TALLYFOLD_SAVE, JSON.stringify(delivery));
}
if (process.env.TALLYFOLD_CSV) {
  const csv = exportCounts(delivery.groupBy("integration"), { format: "csv" });
  writeFileSync(process.env.TALLYFOLD_CSV, csv.text());
}

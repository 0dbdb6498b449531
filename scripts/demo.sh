#!/usr/bin/env bash
# The main job from end to end: the command, Python, Node and a page in Chromium read the same hour of
# counts from a sandbox on loopback. Fails unless all have exactly the same counts.
set -euo pipefail
cd "$(dirname "$0")/.."

tallyfold=target/debug/tallyfold
source scripts/serve-sandbox.sh
start_sandbox $tallyfold sandbox
end=$(date -u +%Y-%m-%dT%H:%M:00Z)
start=$(date -u -d "$end - 1 hour" +%Y-%m-%dT%H:%M:00Z)

echo "== sandbox on $TALLYFOLD_CLUSTER_ENDPOINT; the hour before $end, read by the command: tallyfold delivery"
$tallyfold delivery --from "$start" --to "$end" --by integration
$tallyfold delivery --from "$start" --to "$end" --by integration --format csv >"$out/command.csv"

echo
echo "== the same, read by Python (examples/report.py)"
TALLYFOLD_SAVE=$out/python.json TALLYFOLD_CSV=$out/python.csv .venv/bin/python examples/report.py "$end" | tee "$out/python.txt"
cmp "$out/command.csv" "$out/python.csv"

echo
echo "== the same, read by Node (examples/report.mjs)"
TALLYFOLD_SAVE=$out/node.json TALLYFOLD_CSV=$out/node.csv node examples/report.mjs "$end" >"$out/node.txt"
cmp "$out/python.txt" "$out/node.txt"
cmp "$out/python.json" "$out/node.json"
cmp "$out/command.csv" "$out/node.csv"
echo "$(wc -l <"$out/node.csv") lines of CSV, the same from the command, Python and Node, byte for byte"
echo "$(wc -l <"$out/node.txt") lines and a table of $(wc -c <"$out/node.json") bytes, the same as Python's, byte for byte"

echo
echo "== what is wrong by examples/rules.toml, found by Python (examples/health.py) and by Node (examples/health.mjs)"
# At the end of each quarter of an hour, an earlier window is settled. Python and Node must both read before that, or both after it.
until [[ ${quarter:-} == $((EPOCHSECONDS / 900)) ]]; do
  quarter=$((EPOCHSECONDS / 900))
  rm -f "$out"/*.state
  for check in first second; do
    TALLYFOLD_STATE=$out/python.state .venv/bin/python examples/health.py "$end" >"$out/python.$check"
    TALLYFOLD_STATE=$out/node.state node examples/health.mjs "$end" >"$out/node.$check"
    cp "$out/python.state" "$out/python.$check.state"
    cp "$out/node.state" "$out/node.$check.state"
  done
done
for check in first second; do
  cmp "$out/python.$check" "$out/node.$check"
  cmp "$out/python.$check.state" "$out/node.$check.state"
  echo "the $check check:"
  cat "$out/node.$check"
done
echo "findings and a state of $(wc -c <"$out/node.state") bytes, the same from Python and Node, byte for byte"

echo
echo "== the same, on a page in Chromium (examples/dashboard)"
start "$out/page" node examples/dashboard/server.mjs "$end"
node scripts/demo-page.mjs "$(cat "$out/page")" "$out/page.json" .cache/page.png
# The counts of the page come from another client, which runs in the page's server.
.venv/bin/python -c 'import sys, tallyfold
python, page = (tallyfold.CountTable.from_json(open(path).read()) for path in sys.argv[1:])
sys.exit(python != page)' "$out/python.json" "$out/page.json"
echo "the page's table has the same counts as Python's; a picture of it: .cache/page.png"

echo
echo "== the last day in the dashboard: tallyfold dashboard"
day="$(date -u -d "$end - 1 day" +%Y-%m-%dT%H:00:00Z)/$(date -u -d "$end" +%Y-%m-%dT%H:00:00Z)"
start "$out/dashboard" $tallyfold dashboard --no-open --listen 127.0.0.1:0 --history "$out/history"
$tallyfold delivery --from "${day%/*}" --to "${day#*/}" --by integration --format json >"$out/day.json"
address=$(grep -o 'http://[^ ]*' "$out/dashboard")
node scripts/demo-dashboard.mjs "$address#range=$day" "$out/day.json" .cache/dashboard.png
echo "the dashboard has the same counts as the command; a picture of it: .cache/dashboard.png"
echo
echo "The command, Python, Node and the browser agree. Open the dashboard yourself, on made-up traffic with an outage:"
echo "  $tallyfold sandbox --scene outage -- $tallyfold dashboard"

#!/usr/bin/env bash
# The main job from end to end: a sandbox on loopback, and the same hour of counts read from it by
# Python, by Node and by a page in Chromium. Says whether all three agree to the last byte.
set -euo pipefail
cd "$(dirname "$0")/.."

source scripts/serve-sandbox.sh
start_sandbox .venv/bin/python
end=$(date -u +%Y-%m-%dT%H:%M:00Z)

echo "== sandbox on $TALLYFOLD_CLUSTER_ENDPOINT; the hour before $end, read by Python (examples/report.py)"
TALLYFOLD_SAVE=$out/python.json .venv/bin/python examples/report.py "$end" | tee "$out/python.txt"

echo
echo "== the same, read by Node (examples/report.mjs)"
TALLYFOLD_SAVE=$out/node.json node examples/report.mjs "$end" >"$out/node.txt"
cmp "$out/python.txt" "$out/node.txt"
cmp "$out/python.json" "$out/node.json"
echo "$(wc -l <"$out/node.txt") lines and a table of $(wc -c <"$out/node.json") bytes, the same as Python's, byte for byte"

echo
echo "== the same, on a page in Chromium (examples/dashboard)"
start "$out/page" node examples/dashboard/server.mjs "$end"
node scripts/demo-page.mjs "$(cat "$out/page")" "$out/page.json" .cache/dashboard.png
cmp "$out/python.json" "$out/page.json"
echo "the page's table is the same as Python's, byte for byte; a picture of it: .cache/dashboard.png"
echo
echo "Python, Node and the browser agree."

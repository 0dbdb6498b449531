#!/usr/bin/env bash
# Runs the guide's Rust program on a sandbox. Python must print the same counts for the same hour.
set -euo pipefail
cd "$(dirname "$0")/.."

source scripts/serve-sandbox.sh
start_sandbox .venv/bin/python -u -m tallyfold sandbox

target/debug/examples/delivery | tee "$out/rust" | tail -n 1
.venv/bin/python - >"$out/python" <<'END'
import tallyfold

with tallyfold.Client.from_env() as client:
    table = client.event_delivery("2026-01-31T09:00:00Z", "2026-01-31T10:00:00Z", ["integration"])
for row in table:
    print(row.dimensions["integration"], row.success, row.errors)
print("total", table.totals.success)
END
cmp "$out/rust" "$out/python"
echo "1 passed, 0 failed"

#!/usr/bin/env bash
# Builds a wheel from the sdist, outside the project and without a network, and reads counts with it.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
# The builder must find maturin here, because it can't download it.
export PATH=$root/.venv/bin:$PATH CARGO_TARGET_DIR=$root/target/sdist
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
tar -xzf dist/tallyfold-*.tar.gz -C "$home"
cd "$home"/tallyfold-*
for name in LICENSE LICENSE-MIT LICENSE-APACHE README.md PKG-INFO; do test -s "$name" || test -s "bindings-python/$name"; done
CARGO_NET_OFFLINE=true "$root/.venv/bin/pip" wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir "$home/wheels" .
"$root/.venv/bin/python" -m pip install --quiet --no-deps --no-index --target "$home/installed" "$home"/wheels/*.whl
cd "$home"
PYTHONPATH=$home/installed "$root/.venv/bin/python" - <<'PROGRAM'
import tallyfold

assert "/installed/" in tallyfold.__file__, tallyfold.__file__
sandbox = tallyfold.Sandbox(seed=1)
with tallyfold.Client(
    cluster_endpoint="https://sandbox.example", transport=sandbox.transport(), **sandbox.credentials
) as client:
    table = client.event_delivery("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", ["integration"])
assert table.totals.success > 0
print("1 passed, 0 failed")
PROGRAM

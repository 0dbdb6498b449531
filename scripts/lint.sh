#!/usr/bin/env bash
# Runs every formatter, linter and type checker, each on all files that it supports. The Rust checks run at the same time as the others.
set -euo pipefail
cd "$(dirname "$0")/.."

rust() {
  set -x
  python3 tests/make_vectors.py --check
  python3 tests/make_faults.py --check
  cargo run --quiet --package tallyfold-export --example vectors -- --check
  cargo run --quiet --package tallyfold-health --example vectors -- --check
  python3 scripts/declare.py --check
  cargo fmt --all --check
  cargo clippy --quiet --workspace --all-targets -- -D warnings
  scripts/deny.sh
  cargo fmt --manifest-path fuzz/Cargo.toml --check
  cargo clippy --quiet --manifest-path fuzz/Cargo.toml --no-default-features --locked -- -D warnings
}

others() {
  set -x
  bin=$PWD/.venv/bin
  "$bin/python" scripts/unasync.py --check
  cd bindings-python
  ../scripts/lint_words.py
  "$bin/ruff" check . ../scripts ../tests ../examples ../bench ../grades ../health/tests/golden
  "$bin/ruff" format --check . ../scripts ../tests ../examples ../bench ../grades ../health/tests/golden
  "$bin/mypy"
  "$bin/mypy" --strict ../bench/python
  "$bin/mypy" --strict ../tests/observability
  "$bin/mypy" --strict ../tests/packages
  "$bin/stubtest" tallyfold --mypy-config-file pyproject.toml --allowlist stubtest-allowlist.txt

  cd ../bindings-wasm/js
  npm run --silent check
  npm run --silent check:package
  cd ../../bench
  ../bindings-wasm/js/node_modules/.bin/biome ci --error-on-warnings
  cd ../cli/npm
  ../../bindings-wasm/js/node_modules/.bin/biome ci --error-on-warnings tallyfold.cjs pack.mjs ../../tests/packages/{actionlint,mcp_client}.mjs ../../tests/limit.mjs
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
others >"$log" 2>&1 &
others=$!
rust &
failed=0
wait $! || failed=1
wait $others || failed=1
cat "$log"
exit $failed

#!/usr/bin/env bash
# Runs all benchmarks, in Rust, Python and Node, even if one of them fails. Prints a table, and fails
# unless every target was met.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --quiet --release --package tallyfold-bench
scripts/build-cli.sh >&2
bench=target/release/tallyfold-bench
# The release build of the library comes before the build that the tests use.
export PYTHONPATH=$PWD/.cache/bench/python
bodies=.cache/bench
mkdir -p $bodies
$bench bodies $bodies

measure() {
  local failed=0
  $bench speed || failed=1
  $bench linear || failed=1
  $bench memory $bodies/plain-100000.json || failed=1
  $bench health || failed=1
  .venv/bin/python bench/python/main.py $bodies || failed=1
  .venv/bin/python bench/python/exporting.py $bodies || failed=1
  .venv/bin/python bench/python/executors.py || failed=1
  .venv/bin/python bench/python/command.py "dist/cli/$(scripts/build-cli.sh --which)/tallyfold" || failed=1
  .venv/bin/python bench/python/checking.py "dist/cli/$(scripts/build-cli.sh --which)/tallyfold" || failed=1
  node --expose-gc bench/js/main.mjs $bodies || failed=1
  node bench/js/dashboard.mjs || failed=1
  return $failed
}
measure | $bench report

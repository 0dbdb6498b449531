#!/usr/bin/env bash
# Measures the fold against what people would write instead: in Rust, Python and Node. Prints each
# ratio beside its target, and judges none yet.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --quiet --release --package tallyfold-bench
bench=target/release/tallyfold-bench
body=.cache/bench-body.json
$bench body plain 100000 >$body
$bench
.venv/bin/python bench/bench.py $body
node bench/bench.mjs $body

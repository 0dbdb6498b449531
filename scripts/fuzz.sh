#!/usr/bin/env bash
# scripts/fuzz.sh [seconds] [target…]: fuzzes each target, or only the named ones, for this many seconds each (default: 60).
#
# It needs only cargo and a C++ compiler, and does what `cargo fuzz` does. The flags for libFuzzer's counters and
# AddressSanitizer are unstable; the pinned compiler accepts them with RUSTC_BOOTSTRAP.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"

seconds=${1:-60}
targets=("${@:2}")
((${#targets[@]})) || mapfile -t targets < <(basename --suffix .rs fuzz_targets/*.rs)
host=$(rustc -vV | sed -n 's/^host: //p')
target_dir=${CARGO_TARGET_DIR:-target}
passes="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
for feature in inline-8bit-counters pc-table trace-compares; do
  passes+=" -Cllvm-args=-sanitizer-coverage-$feature"
done
RUSTC_BOOTSTRAP=1 RUSTFLAGS="$passes -Zsanitizer=address -Ccodegen-units=1 --cfg fuzzing" \
  cargo build --quiet --release --locked --target "$host"

for target in "${targets[@]}"; do
  case $target in
    digits | text | timestamps) length=128 ;;
    *) length=4096 ;;
  esac
  mkdir -p "corpus/$target" "artifacts/$target"
  echo "== $target"
  "$target_dir/$host/release/$target" "corpus/$target" "seeds/$target" -dict=json.dict \
    -artifact_prefix="artifacts/$target/" -max_total_time="$seconds" -max_len=$length -timeout=10 -print_final_stats=1
done

#!/usr/bin/env bash
# suite.sh NAME: runs a suite whose prerequisites are built. Writes its log and its exit code to .cache/results, and prints the whole
# log when the suite has ended. Always succeeds, so that a suite that fails does not stop the others.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
results=.cache/results started=$SECONDS

env --unset=MAKEFLAGS --unset=JOBS make --no-print-directory "test-$1" >"$results/$1.log" 2>&1
echo $? >"$results/$1.status"
{
  flock 9
  printf '\n== %s, %d s\n' "$1" $((SECONDS - started))
  cat "$results/$1.log"
} 9>"$results/printing"

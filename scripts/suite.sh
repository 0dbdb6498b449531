#!/usr/bin/env bash
# suite.sh NAME: runs a suite whose needs are built. Its log and its exit code go to .cache/results, and the log is printed as a
# whole when the suite has ended. A suite that fails holds up no other, so this succeeds.
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

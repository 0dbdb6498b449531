#!/usr/bin/env bash
# Runs every suite, also after one has failed, and closes with the sum over all of them.
set -uo pipefail
cd "$(dirname "$0")/.."

results=.cache/results
rm -rf $results
mkdir -p $results
passed=0 failed=0
for suite in rust python js cli examples observability docs packages; do
  log=$results/$suite.log
  "${MAKE:-make}" --no-print-directory "test-$suite" 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  read -r suite_passed suite_failed < <(scripts/count-tests.sh "$log")
  # A suite that ran nothing, or stopped before it could count its failure, has failed once.
  if ((suite_passed + suite_failed == 0)) || ((status != 0 && suite_failed == 0)); then
    suite_failed=1
  fi
  summary+="$suite: $suite_passed passed, $suite_failed failed"$'\n'
  ((passed += suite_passed, failed += suite_failed))
done
printf '\n%s' "$summary"
echo "$passed passed, $failed failed" | tee $results/total
((failed == 0))

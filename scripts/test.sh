#!/usr/bin/env bash
# Runs every suite, also after another has failed, and closes with the sum over all of them. Two things happen at a time, of what is to be
# built and of the suites that have all that they need. The suite of JavaScript runs alone at the end, because its tests limit the time
# of hundreds of simultaneous calls.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

# The longest come first.
suites=(observability python rust docs packages examples)
results=.cache/results
rm -rf $results
mkdir -p $results
make=(env --unset=MAKEFLAGS "${MAKE:-make}" --no-print-directory --keep-going)

"${make[@]}" JOBS="${JOBS:-2}" "${suites[@]/#/suite-}"
"${make[@]}" suite-js
suites+=(js)

# status SUITE: its exit code. Without what it needs, a suite has not run.
status() {
  cat "$results/$1.status" 2>/dev/null || echo 1
}

# names SUITE LABEL: the tests of a suite that failed.
names() {
  grep -hE '^(FAILED|ERROR) |^test .* \.\.\. FAILED$|^ *✖ .* \(' "$results/$1.log" 2>/dev/null | sort -u | sed "s/^ */$2: /"
}

# A suite that failed runs again, alone, and this run counts. What fails only beside other suites is a defect of the test: it is
# listed as flaky.
flaky=
for suite in "${suites[@]}"; do
  (($(status "$suite") != 0)) || continue
  failed_first=$(names "$suite" "flaky in $suite")
  rm -f "$results/$suite".{log,status}
  "${make[@]}" "suite-$suite"
  if (($(status "$suite") == 0)); then
    flaky+=${failed_first:-"flaky in $suite: stopped early"}$'\n'
  fi
done

# The names stand beside the totals, for a reader who has only the last lines.
printf '%s' "$flaky"
for suite in "${suites[@]}"; do
  names "$suite" "$suite"
done

passed=0 failed=0 summary=
for suite in "${suites[@]}"; do
  touch "$results/$suite.log"
  read -r suite_passed suite_failed < <(scripts/count-tests.sh "$results/$suite.log")
  # A suite that ran nothing, or stopped before it could count its failure, has failed once.
  if ((suite_passed + suite_failed == 0)) || (($(status "$suite") != 0 && suite_failed == 0)); then
    suite_failed=1
  fi
  summary+="$suite: $suite_passed passed, $suite_failed failed"$'\n'
  ((passed += suite_passed, failed += suite_failed))
done
printf '\n%s' "$summary"
echo "$passed passed, $failed failed" | tee $results/total
((failed == 0))

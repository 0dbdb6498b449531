#!/usr/bin/env bash
# Runs every suite, even if another has failed, and prints the totals at the end. By default, two jobs run at a time. A job is a build, or a
# suite whose prerequisites are built. The JavaScript suite runs alone at the end, because its tests limit the time of hundreds of
# simultaneous calls.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

# The longest suites come first.
suites=(observability python rust docs packages examples)
results=.cache/results
rm -rf $results
mkdir -p $results
make=(env --unset=MAKEFLAGS "${MAKE:-make}" --no-print-directory --keep-going)

"${make[@]}" JOBS="${JOBS:-2}" "${suites[@]/#/suite-}"
"${make[@]}" suite-js
suites+=(js)

# status SUITE: prints its exit code; 1 for a suite that has not run, because a prerequisite could not be built.
status() {
  cat "$results/$1.status" 2>/dev/null || echo 1
}

# names SUITE LABEL: prints the tests of a suite that failed, each after LABEL.
names() {
  grep -hE '^(FAILED|ERROR) |^test .* \.\.\. FAILED$|^ *✖ .* \(' "$results/$1.log" 2>/dev/null | sort -u | sed "s/^ */$2: /"
}

# A suite that failed runs again, alone, and the second run counts. A test that fails only while other suites run has a defect, and is
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

# The names are printed next to the totals, for readers who have only the last lines.
printf '%s' "$flaky"
for suite in "${suites[@]}"; do
  names "$suite" "$suite"
done

passed=0 failed=0 summary=
for suite in "${suites[@]}"; do
  touch "$results/$suite.log"
  read -r suite_passed suite_failed < <(scripts/count-tests.sh "$results/$suite.log")
  # A suite that ran nothing, or stopped before it could count its failure, counts as one failure.
  if ((suite_passed + suite_failed == 0)) || (($(status "$suite") != 0 && suite_failed == 0)); then
    suite_failed=1
  fi
  summary+="$suite: $suite_passed passed, $suite_failed failed"$'\n'
  ((passed += suite_passed, failed += suite_failed))
done
printf '\n%s' "$summary"
echo "$passed passed, $failed failed" | tee $results/total
((failed == 0))

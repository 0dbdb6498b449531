#!/usr/bin/env bash
# Runs every suite, also after one has failed, and closes with the sum over all of them. Everything is built first;
# then SUITES_AT_ONCE suites run at the same time (2), and each prints its log when it has ended. The suite of JavaScript runs alone,
# because its tests limit the time of hundreds of simultaneous calls.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

# The longest come first, and the one that runs alone comes last.
suites=(observability python rust docs packages examples js)
results=.cache/results
rm -rf $results
mkdir -p $results
make=(env --unset=MAKEFLAGS "${MAKE:-make}" --no-print-directory)

started=$SECONDS
# What can't be built fails again in the suite that needs it, and is counted there.
"${make[@]}" --keep-going prepare-tests 2>&1 | tee $results/prepare.log
echo "prepared after $((SECONDS - started)) s"

run_suite() {
  local log=$results/$1.log started=$SECONDS
  "${make[@]}" "test-$1" >"$log" 2>&1
  echo $? >"$results/$1.status"
  {
    flock 9
    printf '\n== %s, %d s\n' "$1" $((SECONDS - started))
    cat "$log"
  } 9>$results/printing
}

# Bash starts programs in the background so that they ignore Ctrl-C.
trap 'trap - INT; kill 0' INT
for suite in "${suites[@]}"; do
  at_once=${SUITES_AT_ONCE:-2}
  [[ $suite != js ]] || at_once=1
  while (($(jobs -rp | wc -l) >= at_once)); do wait -n; done
  run_suite "$suite" &
done
wait

# The names of what failed stand beside the totals, for a reader who has only the last lines.
for suite in "${suites[@]}"; do
  grep -hE '^(FAILED|ERROR) |^test .* \.\.\. FAILED$|^ *✖ .* \(' "$results/$suite.log" | sort -u | sed "s/^ */$suite: /"
done

passed=0 failed=0 summary=
for suite in "${suites[@]}"; do
  status=$(<"$results/$suite.status")
  read -r suite_passed suite_failed < <(scripts/count-tests.sh "$results/$suite.log")
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

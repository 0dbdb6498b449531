#!/usr/bin/env bash
# count-tests.sh LOG: prints "PASSED FAILED": the sums over the summary lines of cargo test, pytest
# and node --test in LOG, and over lines such as "3 passed, 0 failed".
set -euo pipefail

awk '
  /^test result: / { passed += $4; failed += $6 }
  /^[0-9]+ [a-z]+(, [0-9]+ [a-z]+)* in [0-9.]+s/ {
    for (i = 1; $i != "in"; i += 2) {
      if ($(i + 1) ~ /^passed/) passed += $i
      if ($(i + 1) ~ /^(failed|errors?)/) failed += $i
    }
  }
  /^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3 }
  /^ℹ pass / { passed += $3 }
  /^ℹ (fail|cancelled) / { failed += $3 }
  END { print passed + 0, failed + 0 }
' "$1"

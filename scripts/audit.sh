#!/usr/bin/env bash
# Looks up known vulnerabilities of every dependency: crates, Python packages (pip-audit must be in PATH) and npm packages. Unlike `make lint`,
# it fails if a database can't be reached.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=0
REQUIRE_ADVISORIES=1 scripts/deny.sh || failed=1
while read -r file; do
  echo "== $file"
  pip-audit --require-hashes --disable-pip --requirement "$file" || failed=1
done < <(git ls-files '*requirements*.txt')
while read -r file; do
  echo "== $file"
  npm audit --package-lock-only --prefix "$(dirname "$file")" || failed=1
done < <(git ls-files '*package-lock.json')
exit $failed

#!/usr/bin/env bash
# Writes each requirements*.txt from its requirements*.in: every package that pip installs, with its version and hashes, for all platforms and
# every Python from 3.11. Run it after a change of an .in file; uv must be in PATH. With --upgrade, it uses the newest versions of packages that
# the .in files do not pin.
set -euo pipefail
cd "$(dirname "$0")/.."

git ls-files '*requirements*.in' | while read -r source; do
  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-strip-markers \
    --custom-compile-command 'scripts/lock-python.sh' "$@" --output-file "${source%.in}.txt" "$source"
done

#!/usr/bin/env bash
# Runs RiskLoc's published code: `riskloc.sh <copy of github.com/shaido987/riskloc> [seed] [folder]`. Without a folder of
# files, this writes the first 20 files of the seed, and also runs our code on them. RiskLoc's code is not changed or
# moved.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
riskloc=${1:?want the folder of a copy of github.com/shaido987/riskloc}
seed=${2:-}
files=${3:-}
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

python=$here/.cache/riskloc/bin/python
if [ ! -e "$here/.cache/riskloc/.ready" ]; then
  "${PYTHON:-python3}" -m venv "$here/.cache/riskloc"
  "$here/.cache/riskloc/bin/pip" install --quiet --requirement "$here/grades/requirements-riskloc.txt"
  touch "$here/.cache/riskloc/.ready"
fi
if [ -z "$files" ]; then
  files=$temporary/files
  "$here/target/release/tallyfold-grade" risk --write "$files" --files 20 --seed "$seed"
  "$here/target/release/tallyfold-grade" risk --data "$files"
fi
PYTHONPATH="$riskloc" PYTHONDONTWRITEBYTECODE=1 "$python" "$here/grades/riskloc.py" "$files"

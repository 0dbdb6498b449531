#!/usr/bin/env bash
# Tests the packages that contain the command (the static binary, the wheel, the npm packages and the crates), the
# deployment examples and the workflows. The tests run offline, with what `make` has built and installed.
set -euo pipefail
cd "$(dirname "$0")/.."

# The programs of the system that the tests use.
missing=()
for tool in openssl:openssl systemd-analyze:systemd cc:gcc; do
  command -v "${tool%:*}" >/dev/null || missing+=("${tool#*:}")
done
[[ ${#missing[@]} -eq 0 ]] || scripts/apt-install.sh "${missing[@]}"

exec .cache/packages/bin/pytest -c tests/packages/pytest.ini tests/packages --target "$(scripts/build-cli.sh --which)" "$@"

#!/usr/bin/env bash
# Tests of the packages that bring the command: the static binary, the wheel, npm's, the crates; of the examples of
# deployment, and of the workflows. They run offline, with what `make` has built and installed.
set -euo pipefail
cd "$(dirname "$0")/.."

# What the tests use of the system.
missing=()
for tool in openssl:openssl systemd-analyze:systemd cc:gcc; do
  command -v "${tool%:*}" >/dev/null || missing+=("${tool#*:}")
done
[[ ${#missing[@]} -eq 0 ]] || scripts/apt-install.sh "${missing[@]}"

exec .cache/packages/bin/pytest -c tests/packages/pytest.ini tests/packages --target "$(scripts/build-cli.sh --which)" "$@"

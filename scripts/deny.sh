#!/usr/bin/env bash
# Checks the dependencies of all crates: licences, sources, versions, and known vulnerabilities if their database
# can be reached. With REQUIRE_ADVISORIES=1, it fails if the database can't be reached. cargo-deny is compiled only
# once, without optimization: that takes half as long, and cargo-deny has little to do.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.20.2
export PATH=$PWD/.cache/tools/bin:$PATH
if [[ $(cargo deny --version 2>/dev/null) != "cargo-deny $version" ]]; then
  cargo install --quiet --debug --locked --root .cache/tools cargo-deny --version $version
fi
cargo deny --log-level error check bans licenses sources
if [[ ${REQUIRE_ADVISORIES-} ]] || cargo deny --log-level off fetch db; then
  cargo deny --log-level error check advisories
else
  echo "Known vulnerabilities were not checked: their database can't be reached." >&2
fi

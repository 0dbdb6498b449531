#!/usr/bin/env bash
# Builds the documentation site into site/. Pages that are made of other files are put into docs/ first.
set -euo pipefail
cd "$(dirname "$0")/.."

for page in architecture changelog security; do
  # The search ranks the pages for users before these. Their links begin in the folder of the repository.
  { printf -- '---\nsearch:\n  boost: 0.4\n---\n\n' && sed 's#](docs/#](#g' "${page^^}.md"; } >"docs/$page.md"
done
scripts/docs/ratios.py
rm -rf target/doc docs/reference/rust
RUSTDOCFLAGS="--deny warnings" cargo doc --quiet --no-deps -p tallyfold -p tallyfold-export -p tallyfold-health -p tallyfold-sandbox
cp -r target/doc docs/reference/rust
scripts/docs/node_modules/.bin/typedoc --logLevel Error --options scripts/docs/typedoc.json
# The text about other generators is not about this site.
NO_MKDOCS_2_WARNING=1 .cache/docs/bin/mkdocs build --strict
echo "site/index.html: $(find site -name '*.html' | wc -l) pages"

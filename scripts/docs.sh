#!/usr/bin/env bash
# Builds the documentation site into site/. First writes the pages that are made from other files into docs/.
set -euo pipefail
cd "$(dirname "$0")/.."

for page in architecture changelog security; do
  # The search ranks pages for users above these pages. The links in these files start from the root of the repository.
  { printf -- '---\nsearch:\n  boost: 0.4\n---\n\n' && sed 's#](docs/#](#g' "${page^^}.md"; } >"docs/$page.md"
done
scripts/docs/ratios.py
rm -rf target/doc docs/reference/rust
RUSTDOCFLAGS="--deny warnings" cargo doc --quiet --no-deps -p tallyfold -p tallyfold-export -p tallyfold-health -p tallyfold-sandbox
cp -r target/doc docs/reference/rust
scripts/docs/node_modules/.bin/typedoc --logLevel Error --options scripts/docs/typedoc.json
# Turns off a notice about other site generators.
NO_MKDOCS_2_WARNING=1 .cache/docs/bin/mkdocs build --strict
echo "site/index.html: $(find site -name '*.html' | wc -l) pages"

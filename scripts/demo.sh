#!/usr/bin/env bash
# Shows the built packages at work.
set -euo pipefail
cd "$(dirname "$0")/.."

.venv/bin/python -c 'import tallyfold; print("Python:", tallyfold.__version__)'
node bindings-wasm/js/dist/cli.js --version

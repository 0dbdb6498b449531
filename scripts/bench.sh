#!/usr/bin/env bash
# Measures throughput, natively and through each binding.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "nothing is measured yet"

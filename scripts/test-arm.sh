#!/usr/bin/env bash
# Compiles the command for ARM Linux as for a release, and runs its tests in an emulator.
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
scripts/apt-install.sh qemu-user
scripts/build-cli.sh $target
qemu-aarch64 dist/cli/$target/tallyfold --version
scripts/build-cli.sh --test $target "$@"

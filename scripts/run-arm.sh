#!/usr/bin/env bash
# run-arm.sh PROGRAM [ARGUMENT...]: runs a program for ARM on a machine with another processor. Cargo runs each test
# executable with it.
#
# Tests start the command themselves, but the system can't run it. So this replaces the command by a script of the same
# name, which runs the command in the emulator. `exec` keeps the process id, so signals reach the emulator.
set -euo pipefail

directory=$(dirname "$1")/..
command=$directory/tallyfold
if [[ -f $command && $(head -c 2 "$command") != '#!' ]]; then
  mv "$command" "$command.arm"
  printf '#!/bin/sh\nexec qemu-aarch64 -0 "$0" "%s" "$@"\n' "$(realpath "$command.arm")" >"$command.new"
  chmod +x "$command.new"
  mv "$command.new" "$command"
fi
exec qemu-aarch64 "$@"

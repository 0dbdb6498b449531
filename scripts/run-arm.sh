#!/usr/bin/env bash
# run-arm.sh PROGRAM [ARGUMENT...]: runs a program for ARM on a machine with another processor. Cargo runs each test
# executable with it.
#
# Tests start the command themselves, which the system can't run. So a script with its name, which runs it in the
# emulator, takes its place; `exec` keeps the process id, and thereby signals.
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

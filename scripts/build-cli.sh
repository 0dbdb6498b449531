#!/usr/bin/env bash
# build-cli.sh [TARGET]: compiles the command into dist/cli/TARGET/tallyfold as for a release: with the profile
# `command`, and linked statically, so that it runs on a machine where nothing else is installed. The default TARGET
# is this machine: with musl if Rust has that target and musl-gcc is installed, otherwise Rust's own target.
#
# build-cli.sh --wheel [TARGET] also packs the binary into a wheel, in dist/cli/wheels/TARGET.
# build-cli.sh --which prints the TARGET of this machine.
# build-cli.sh --test TARGET [ARGUMENT...] runs the command's tests, compiled for TARGET in the same way.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
has_target() { [[ -d $(rustc --print target-libdir --target "$1" 2>/dev/null) ]]; }

# A dependency (ring) has C code, which needs a compiler for musl.
default_target() {
  local musl=${host/%-gnu/-musl}
  if [[ $musl != "$host" ]] && has_target "$musl" && command -v musl-gcc >/dev/null; then
    echo "$musl"
  else
    echo "$host"
  fi
}

action=build
case ${1-} in
--which)
  default_target
  exit
  ;;
--wheel | --test)
  action=${1#--}
  shift
  ;;
esac
target=${1-$(default_target)}
shift $(($# > 0))

read -ra flags <<<"${RUSTFLAGS-}"
# Panics contain the path of their file. These paths must not depend on the machine that compiles.
flags+=("--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}/registry/src=registry" "--remap-path-prefix=$PWD=.")
settings=()

# Settings for another processor: the compiler that links, and the program that runs tests.
cross() {
  local name=${target//-/_}
  local cargos
  cargos=CARGO_TARGET_$(tr '[:lower:]' '[:upper:]' <<<"$name")
  settings+=("CC_$name=$1" "${cargos}_LINKER=$1" "${cargos}_RUNNER=$PWD/scripts/run-arm.sh")
}

# Links an object that keeps glibc from loading libraries of the machine where the command runs.
link_lookup() {
  local object=$PWD/target/cli-lookup/$target.o
  mkdir -p target/cli-lookup
  "$1" -O2 -Wall -Werror -c scripts/static-lookup.c -o "$object"
  # The libraries come before this object, so they would not be searched for a symbol that only this object needs.
  flags+=(-C "link-arg=$object" -C "link-arg=-Wl,-u,__nss_configure_lookup")
}

case $target in
"$host" | *-musl | *-darwin | *-windows-msvc) cc=cc ;;
aarch64-unknown-linux-gnu)
  cc=aarch64-linux-gnu-gcc
  command -v $cc >/dev/null || scripts/apt-install.sh gcc-aarch64-linux-gnu libc6-dev-arm64-cross
  cross $cc
  ;;
*)
  echo "nothing here links for $target: see CONTRIBUTING.md for the targets that are known" >&2
  exit 2
  ;;
esac
case $target in
*-linux-gnu)
  flags+=(-C target-feature=+crt-static)
  link_lookup $cc
  ;;
*-windows-msvc) flags+=(-C target-feature=+crt-static) ;;
esac
# The encoding in which cargo accepts flags that may contain spaces.
settings+=("CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && echo "${flags[*]}")")

# `--target` is necessary even for this machine. Without it, the flags would apply to macros, too, which can't be static.
arguments=(--locked --target "$target")
if has_target "$target"; then
  directory=target
  environment=(env "${settings[@]}")
else
  # Debian has the source of the standard library, so cargo compiles the library, too. A stable compiler does that only
  # with RUSTC_BOOTSTRAP. The clean environment keeps cargo under /usr from calling another toolchain's compiler.
  scripts/apt-install.sh rustc-web cargo-web rust-web-src
  directory=target/debian
  environment=(env -i "HOME=$HOME" PATH=/usr/bin:/bin ${CARGO_HOME:+"CARGO_HOME=$CARGO_HOME"} RUSTC_BOOTSTRAP=1
    "${settings[@]}")
  arguments+=(-Z "build-std=std,panic_abort,panic_unwind,test")
fi
arguments+=(--target-dir "$directory")
# Copies the compiled command into dist/cli/TARGET.
place() {
  local name=tallyfold
  [[ $target != *-windows-* ]] || name+=.exe
  mkdir -p "dist/cli/$target"
  cp "$directory/$target/command/$name" "dist/cli/$target/"
  echo "dist/cli/$target/$name: $(wc -c <"dist/cli/$target/$name") bytes"
}

case $action in
test)
  "${environment[@]}" cargo test --package tallyfold-cli "${arguments[@]}" "$@"
  ;;
wheel)
  # The tools of cli/requirements-build.txt are in the folder where `make` installs them, or in the PATH.
  PATH=$PWD/.cache/packages/bin:$PATH
  out=dist/cli/wheels/$target
  rm -rf "$out"
  case $target in
  *-linux-*)
    "${environment[@]}" "$(command -v maturin)" build --quiet --profile command --manifest-path cli/Cargo.toml --out "$out" \
      --compatibility manylinux2014 "${arguments[@]}"
    # A static binary runs with musl as well as with glibc, but maturin tags the wheel for only one of them.
    wheel tags --remove --platform-tag "+musllinux_1_1_${target%%-*}" "$out"/*.whl >/dev/null
    ;;
  *)
    "${environment[@]}" maturin build --quiet --profile command --manifest-path cli/Cargo.toml --out "$out" "${arguments[@]}"
    ;;
  esac
  ls "$out"/*.whl
  place
  ;;
build)
  "${environment[@]}" cargo build --profile command --package tallyfold-cli "${arguments[@]}"
  place
  ;;
esac

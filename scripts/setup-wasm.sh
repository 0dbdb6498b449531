#!/usr/bin/env bash
# Makes sure that some Rust on this machine compiles to WebAssembly, and writes which one to
# .cache/wasm-route: `target` (cargo's own target) or `debian` (the compiler under /usr).
set -euo pipefail
cd "$(dirname "$0")/.."

target=wasm32-unknown-unknown
has_target() { [[ -d $(rustc --print target-libdir --target $target 2>/dev/null) ]]; }

if has_target; then
  route=target
elif command -v apt-get >/dev/null &&
  scripts/apt-install.sh rustc-web cargo-web rust-web-src; then
  route=debian
elif command -v rustup >/dev/null && rustup target add $target; then
  route=target
else
  echo "no Rust here compiles to $target: install that target, or Debian's rustc-web" >&2
  exit 1
fi
mkdir -p .cache
echo $route >.cache/wasm-route

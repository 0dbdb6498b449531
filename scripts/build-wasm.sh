#!/usr/bin/env bash
# Compiles the wasm binding, generates its JavaScript glue and optimizes the module, all into
# bindings-wasm/js/wasm/.
set -euo pipefail
cd "$(dirname "$0")/.."

target=wasm32-unknown-unknown
build=(build --package tallyfold-wasm --target $target --profile wasm --target-dir target-wasm)

case $(cat .cache/wasm-route) in
target)
  cargo "${build[@]}"
  ;;
debian)
  # Debian ships the standard library as source only, for its own compiler. Cargo builds it along,
  # which a stable compiler does only when told that it may. So it can be built for size: with
  # simple sorts, and without the texts of panics, which no host of WebAssembly shows. That is a
  # seventh of the module, which is larger by the other route.
  linker=$(find "$(rustc --print sysroot)/lib/rustlib" -path '*/bin/rust-lld' | head -1)
  if [[ -z $linker ]]; then
    scripts/apt-install.sh lld-19
    linker=/usr/bin/wasm-ld-19
  fi
  # A clean environment, in which cargo under /usr cannot meet another toolchain's compiler.
  env -i HOME="$HOME" PATH=/usr/bin:/bin ${CARGO_HOME:+CARGO_HOME="$CARGO_HOME"} \
    RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$linker" \
    RUSTFLAGS="-Zunstable-options -Cpanic=immediate-abort" \
    cargo "${build[@]}" -Zbuild-std=std,panic_abort -Zbuild-std-features=optimize_for_size
  ;;
esac

out=bindings-wasm/js/wasm
module=$out/tallyfold_wasm_bg.wasm
cargo run --quiet --package xtask -- target-wasm/$target/wasm/tallyfold_wasm.wasm $out
bindings-wasm/js/node_modules/.bin/wasm-opt -O3 -aimfs 10 --strip-debug --strip-producers $module -o $module
echo "wasm: $(wc -c <$module) bytes, $(gzip -9c $module | wc -c) gzipped"

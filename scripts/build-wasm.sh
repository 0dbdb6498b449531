#!/usr/bin/env bash
# Compiles the wasm binding to its six modules: the library, the sandbox, the server for web apps, exports, health and
# notifications. Generates their JavaScript glue, optimizes them, and writes both to bindings-wasm/js/wasm/.
set -euo pipefail
cd "$(dirname "$0")/.."
# Cargo has its own pool of jobs.
unset MAKEFLAGS MFLAGS

target=wasm32-unknown-unknown
build=(build --package tallyfold-wasm --target "$target" --profile wasm --target-dir target-wasm
  --no-default-features --features)

compile() {
  case $(cat .cache/wasm-route) in
  target)
    cargo "${build[@]}" "$1"
    ;;
  debian)
    # Debian ships the standard library only as source, for its own compiler, so cargo builds the
    # library, too. A stable compiler does that only with RUSTC_BOOTSTRAP. Here, the library is built
    # for size: with simple sorts, and without the texts of panics, which no WebAssembly host shows.
    # That saves a seventh of the module, compared with the other route.
    linker=$(find "$(rustc --print sysroot)/lib/rustlib" -path '*/bin/rust-lld' | head -1)
    if [[ -z $linker ]]; then
      scripts/apt-install.sh lld-19
      linker=/usr/bin/wasm-ld-19
    fi
    # A clean environment, in which cargo under /usr can't call another toolchain's compiler.
    env -i HOME="$HOME" PATH=/usr/bin:/bin ${CARGO_HOME:+CARGO_HOME="$CARGO_HOME"} \
      RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$linker" \
      RUSTFLAGS="-Zunstable-options -Cpanic=immediate-abort" \
      cargo "${build[@]}" "$1" -Zbuild-std=std,panic_abort -Zbuild-std-features=optimize_for_size
    ;;
  esac
}

out=bindings-wasm/js/wasm
optimizer=bindings-wasm/js/node_modules/.bin/wasm-opt
compiled=target-wasm/$target/wasm
modules=(library:tallyfold_wasm sandbox:tallyfold_sandbox pages:tallyfold_pages export:tallyfold_export notify:tallyfold_notify
  health:tallyfold_health)

# finish FEATURE NAME: writes the glue of a compiled module, and optimizes, sorts and deflates the module.
finish() {
  local module=$out/$2_bg.wasm
  # Only the library's size is limited. Converging takes three times as long, and saves 0.3%.
  local passes=(-O3 -ocimfs 100 -fimfs 10)
  [[ $1 != library ]] || passes+=(--converge)
  target-wasm/debug/xtask "$compiled/modules/$2.wasm" $out
  $optimizer "${passes[@]}" --low-memory-unused --strip-debug --strip-producers --dealign "$module" -o "$module"
  node bindings-wasm/js/order.mjs "$module"
  $optimizer --reorder-functions-by-name --strip-debug "$module" -o "$module"
  node bindings-wasm/js/deflate.mjs "$module"
  echo "wasm, $1: $(wc -c <"$module") bytes, $(gzip -9c "$module" | wc -c) gzipped"
}

rm -rf $out
mkdir -p $compiled/modules $out
# This has its own directory, because cargo locks target/ while it compiles the tests there.
cargo build --quiet --package xtask --target-dir target-wasm &
xtask=$!
# The compiler links a module on one core. Meanwhile, the previous module is finished on another core.
finishing=
for module in "${modules[@]}"; do
  feature=${module%:*} name=${module#*:}
  compile "$feature"
  cp $compiled/tallyfold_wasm.wasm "$compiled/modules/$name.wasm"
  wait $xtask
  [[ -z $finishing ]] || wait "$finishing"
  finish "$feature" "$name" &
  finishing=$!
done
wait "$finishing"

#!/usr/bin/env bash
# The steps of a release that .github/workflows/release.yml takes, so that they can be run anywhere:
#
#   release.sh version            prints the version that all packages have
#   release.sh check TAG          fails if the tag or a package is not of that version
#   release.sh archives BINARIES OUT   makes an archive of each binary in BINARIES/TARGET, and SHA256SUMS
#   release.sh npm FOLDER         publishes the tarballs in FOLDER
#   release.sh crates [OPTION...] publishes the crates
#
# What was published before is left out, so a release that was interrupted can be run again.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

version() { sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml"; }

check() {
  [[ $1 == "v$(version)" ]] || {
    echo "the tag is $1, and the version in Cargo.toml is $(version)" >&2
    return 1
  }
  grep -q "^  \"version\": \"$(version)\",$" "$root/bindings-wasm/js/package.json" || {
    echo "bindings-wasm/js/package.json has another version than Cargo.toml, $(version)" >&2
    return 1
  }
}

archives() {
  local binaries=$1 out=$2 folder target name
  mkdir -p "$out"
  for folder in "$binaries"/*/; do
    target=$(basename "$folder")
    [[ -f $folder/tallyfold || -f $folder/tallyfold.exe ]] || continue
    name=tallyfold-$(version)-$target
    rm -rf "${out:?}/$name"
    mkdir "$out/$name"
    cp "$root"/LICENSE* "$root/cli/README.md" "$out/$name"
    if [[ -f $folder/tallyfold.exe ]]; then
      cp "$folder/tallyfold.exe" "$out/$name"
      (cd "$out" && python3 -m zipfile -c "$name.zip" "$name")
    else
      # The transfer of files between build machines loses their executable bit.
      install -m 755 "$folder/tallyfold" "$out/$name/tallyfold"
      tar --create --gzip --directory "$out" --file "$out/$name.tar.gz" "$name"
    fi
    rm -r "${out:?}/$name"
  done
  (cd "$out" && shopt -s nullglob && sha256sum tallyfold-*.tar.gz tallyfold-*.zip >SHA256SUMS)
}

# The platforms' packages go first, so that nobody can install the command without its binary.
publish_npm() {
  local tarball package
  for tarball in "$1"/tallyfold-cli-{linux,darwin,win32}-*.tgz "$1/tallyfold-cli-$(version).tgz" "$1/tallyfold-$(version).tgz"; do
    package=$(tar --extract --gzip --to-stdout --file "$tarball" package/package.json | node -p \
      'const { name, version } = JSON.parse(require("node:fs").readFileSync(0, "utf8")); `${name}@${version}`')
    if [[ -n $(npm view "$package" version 2>/dev/null) ]]; then
      echo "$package is there already"
    else
      npm publish --access public --provenance "$tarball"
    fi
  done
}

publish_crates() {
  local crate packages=()
  for crate in tallyfold-engine tallyfold tallyfold-export tallyfold-health tallyfold-sandbox tallyfold-cli; do
    if cargo info --quiet --registry crates-io "$crate@$(version)" >/dev/null 2>&1; then
      echo "$crate is there already"
    else
      packages+=(--package "$crate")
    fi
  done
  [[ ${#packages[@]} -eq 0 ]] || cargo publish --locked "${packages[@]}" "$@"
}

command=${1-}
[[ $# -eq 0 ]] || shift
case $command in
version) version ;;
check) check "$1" ;;
archives) archives "$1" "$2" ;;
npm) publish_npm "$1" ;;
crates) publish_crates "$@" ;;
*)
  sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac

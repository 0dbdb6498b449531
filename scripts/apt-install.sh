#!/usr/bin/env bash
# apt-install.sh PACKAGE...: installs the Debian packages that are missing. It runs apt, and needs
# root, only if one is missing.
set -euo pipefail

missing=()
for package in "$@"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
    missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

sudo=()
if [[ $(id -u) -ne 0 ]] && command -v sudo >/dev/null; then sudo=(sudo); fi
exec 9>"/tmp/tallyfold-apt-$(id -u).lock"
flock 9
echo "installing ${missing[*]}"
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null

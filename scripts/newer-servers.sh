#!/usr/bin/env bash
# newer-servers.sh FOLDER: unpacks VictoriaMetrics and its vmagent into a folder, from the Debian release after the newest stable one.
# It installs nothing, and does not change apt's own lists. It uses the mirror that apt uses on this machine. (Debian builds Prometheus 3
# without its OTLP receiver.)
set -euo pipefail
folder=$1
suite=forky

[[ ! -e $folder/.complete ]] || exit 0
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' | grep -v security | head -1)
[[ -n $mirror ]] || { echo "apt has no mirror of Debian here" >&2; exit 1; }
rm -rf "$folder"
mkdir -p "$folder"
folder=$(realpath "$folder")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/lists/partial "$scratch"/cache/archives/partial
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$scratch/sources.list"
private=(
  -o "Dir::Etc::SourceList=$scratch/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$scratch/lists"
  -o "Dir::Cache=$scratch/cache" -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false
  -o APT::Sandbox::User=root
)
apt-get "${private[@]}" update -qq
cd "$scratch"
apt-get "${private[@]}" download -qq "victoria-metrics/$suite"
dpkg-deb --fsys-tarfile victoria-metrics_*.deb | tar -x -C "$folder" ./usr/bin/victoria-metrics ./usr/bin/vmagent
echo "VictoriaMetrics $(dpkg-deb -f victoria-metrics_*.deb Version)"
touch "$folder/.complete"

#!/usr/bin/env bash
# Tests the exports with real servers, and installs servers that are missing. The tests start their own servers on free
# ports of loopback, with their own directories, and stop them at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
for program in prometheus promtool prometheus-alertmanager victoria-metrics influxd; do
  command -v $program >/dev/null || missing+=($program)
done
if [[ ${#missing[@]} -gt 0 ]]; then
  if ! command -v apt-get >/dev/null; then
    echo "missing: ${missing[*]}. There is no apt-get here to install them: put Prometheus 2.42 or later, Alertmanager 0.25 or later" \
      "(as prometheus-alertmanager), VictoriaMetrics 1.79 or later and InfluxDB 1 into the PATH, or run this on Debian 12." >&2
    exit 1
  fi
  scripts/apt-install.sh prometheus prometheus-alertmanager victoria-metrics influxdb
fi

# The tests of OTLP need newer servers. Debian's next release may lack them for a while; then these tests are skipped.
scripts/newer-servers.sh .cache/servers || echo "no newer servers: tests with their OTLP receivers are skipped" >&2

exec .venv/bin/pytest -c tests/observability/pytest.ini tests/observability "$@"

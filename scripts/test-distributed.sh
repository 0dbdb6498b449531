#!/usr/bin/env bash
# One day of counts by several processes, with Dask and with PySpark: each must give what one
# process alone gives, to the last count. Wants Java for Spark, and half a gigabyte of packages.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.cache/distributed
requirements=examples/distributed/requirements.txt
command -v java >/dev/null || scripts/apt-install.sh default-jre-headless
if ! cmp -s $requirements $venv/requirements.txt; then
  "${PYTHON:-python3}" -m venv $venv
  $venv/bin/pip install --quiet --requirement $requirements
  cp $requirements $venv/
fi
$venv/bin/pip install --quiet --force-reinstall dist/*.whl

log=$(mktemp)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -f "$log"' EXIT
$venv/bin/python -u -m tallyfold sandbox --port 0 --seed 7 >"$log" 2>&1 &
for _ in {1..200}; do
  grep -q control_audience "$log" && break
  sleep 0.05
done
field() { awk -v name="$1" '$1 == name { print $2 }' "$log"; }
TALLYFOLD_ADDRESS=$(grep -o 'http://[^ ]*' "$log")
TALLYFOLD_CLIENT_ID=$(field client_id)
TALLYFOLD_CLIENT_SECRET=$(field client_secret)
TALLYFOLD_CONTROL_AUDIENCE=$(field control_audience)
export "${!TALLYFOLD_@}"
# Spark's workers are started by its own processes, which are to find the same Python and the job.
PYSPARK_PYTHON=$PWD/$venv/bin/python
PYTHONPATH=$PWD/examples/distributed
export PYSPARK_PYTHON PYTHONPATH

for engine in dask pyspark; do
  echo "== $engine (examples/distributed/with_$engine.py)"
  $venv/bin/python examples/distributed/with_$engine.py
done
echo "2 passed, 0 failed"

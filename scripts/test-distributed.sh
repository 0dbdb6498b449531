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

source scripts/serve-sandbox.sh
start_sandbox $venv/bin/python -u -m tallyfold sandbox
# Spark's workers are started by its own processes, which are to find the same Python and the job.
PYSPARK_PYTHON=$PWD/$venv/bin/python
PYTHONPATH=$PWD/examples/distributed
export PYSPARK_PYTHON PYTHONPATH

for engine in dask pyspark; do
  echo "== $engine (examples/distributed/with_$engine.py)"
  $venv/bin/python examples/distributed/with_$engine.py
done
echo "2 passed, 0 failed"

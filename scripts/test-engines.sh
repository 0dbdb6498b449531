#!/usr/bin/env bash
# Tests engines and warehouses with the sandbox: Dask, Ray, Spark, DuckDB and PostgreSQL. Installs Java for Spark, PostgreSQL, and a gigabyte of
# Python packages, which is why it is not part of `make test`.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.cache/engines
requirements=tests/engines/requirements.txt
command -v java >/dev/null || scripts/apt-install.sh default-jre-headless
[[ -d /usr/lib/postgresql ]] || scripts/apt-install.sh postgresql
if ! cmp -s $requirements $venv/requirements.txt; then
  "${PYTHON:-python3}" -m venv $venv
  $venv/bin/pip install --quiet --requirement $requirements
  cp $requirements $venv/
fi
$venv/bin/pip install --quiet --force-reinstall --no-deps .cache/wheel/*.whl

# Spark's own processes start its workers, which must use the same Python.
PYSPARK_PYTHON=$PWD/$venv/bin/python
export PYSPARK_PYTHON
exec $venv/bin/python -m pytest -c tests/engines/pytest.ini tests/engines "$@"

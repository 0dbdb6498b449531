# For everyday use: demo, test, bench, lint, dist, docs. Each target sets up what it needs once, and a second
# run rebuilds only what has changed. `make test-rust`, `test-python`, `test-js`, `test-cli`, `test-examples`, `test-observability`, `test-docs`
# and `test-packages` run one suite.
#
# The demo and most tests use Cargo's profile `dev` for the command and for the Python library. The release profiles take minutes longer
# to compile. Only targets that build or test packages, `cli`, `bench`, the grades and the WebAssembly modules use them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
# Several jobs, so that downloads run during a compilation. Cargo runs one compilation after the other, each on all cores.
JOBS ?= 4
MAKEFLAGS += --no-builtin-rules --jobs=$(JOBS)
.DELETE_ON_ERROR:
# Crates are compiled as a whole, which takes a sixth less time than in the parts that Cargo could reuse after an edit.
export CARGO_INCREMENTAL ?= 0

PYTHON ?= python3
PY := bindings-python
JS := bindings-wasm/js
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)

build_tools := .venv/.build-tools
venv := .venv/.requirements
wheel := .cache/wheel/.built
wheel_in_venv := .venv/.wheel
release_wheel := dist/.wheel
bench_wheel := .cache/bench/python/.wheel
command := .cache/command
rust_example := .cache/rust-example
node_modules := $(JS)/node_modules/.package-lock.json
wasm := $(JS)/wasm/tallyfold_health_bg.wasm
npm := $(JS)/dist/index.js
tarball := dist/tallyfold-$(VERSION).tgz
chromium := .cache/chromium
bundlers := $(JS)/hosts/node_modules/.package-lock.json
hosts := $(JS)/hosts/node_modules/.hosts
examples := examples/node_modules/.package-lock.json
static_cli := .cache/static-cli
packages_python := .cache/packages/.ready
packages_node := tests/packages/node_modules/.package-lock.json
bench_peers := bench/node_modules/.package-lock.json
docs_python := .cache/docs/.ready
site := site/index.html
docs_node := scripts/docs/node_modules/.package-lock.json

core_files := Cargo.toml Cargo.lock $(shell find {core,engine,export,health,sandbox}/Cargo.toml {core,engine,export,health,sandbox}/src -type f)
python_files := $(shell find LICENSE* $(PY)/README.md $(PY)/Cargo.toml $(PY)/pyproject.toml $(PY)/src $(PY)/python -type f -not -name widget.js)
wasm_files := $(shell find bindings-wasm/Cargo.toml bindings-wasm/src xtask -type f)
cli_files := cli/Cargo.toml cli/pyproject.toml cli/README.md $(shell find cli/src -type f) $(addprefix scripts/,build-cli.sh static-lookup.c)
js_files := $(addprefix $(JS)/,README.md package.json tsconfig.json build.mjs build_dashboard.mjs) \
	$(shell find LICENSE* $(JS)/src $(JS)/dashboard $(JS)/node $(JS)/server $(JS)/export $(JS)/health -type f)

# Without the pages that scripts/docs.sh makes.
docs_files := ARCHITECTURE.md CHANGELOG.md SECURITY.md mkdocs.yml scripts/docs.sh $(addprefix scripts/docs/,theme/home.html typedoc.json docstrings.py ratios.py) \
	$(filter-out docs/architecture.md docs/changelog.md docs/security.md docs/images/ratios.svg docs/reference/js/% docs/reference/rust/%, $(shell find docs -type f))

.PHONY: demo test bench lint fuzz dist docs pictures setup wheel wasm npm npm-package cli \
	prepare-tests compile-tests test-rust test-python test-js test-cli test-examples test-observability test-docs test-hosts test-engines test-sdist test-packages test-arm sdist clean \
	grade-cause grade-risk grade-detect grade-incidents

# All crates with tests are compiled at once, so that Cargo compiles each dependency once, with the features that any of them needs.
tested_crates := --workspace --exclude tallyfold-python --exclude tallyfold-wasm --exclude tallyfold-bench --exclude xtask
# The limit for each Python test, in seconds. pytest-timeout prints the name of a test that takes longer.
export PYTEST_TIMEOUT ?= 300
# Cargo starts each test binary with this program, which limits the time of each test.
limited := env "CARGO_TARGET_$$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')_RUNNER=$(CURDIR)/scripts/limit-tests.py"

demo: $(command) $(wheel_in_venv) $(examples) $(chromium)
	@scripts/demo.sh

test:
	@scripts/test.sh

bench: $(venv) $(bench_wheel) $(examples) $(bench_peers) $(chromium)
	@scripts/bench.sh

lint: $(venv) $(wheel_in_venv) $(tarball)
	scripts/lint.sh

fuzz:
	scripts/fuzz.sh

dist: $(release_wheel) $(tarball)
	@ls -l dist

docs: $(site)

# The pictures of the command in docs/images.
pictures: $(command) $(venv)
	.venv/bin/python scripts/pictures.py target/debug/tallyfold

sdist: $(build_tools) $(npm)
	rm -f dist/*.tar.gz
	.venv/bin/maturin sdist -m $(PY)/Cargo.toml --out dist

# Builds a wheel from the sdist alone, with the crates that are already downloaded.
test-sdist: sdist
	scripts/test-sdist.sh

setup: $(venv) $(node_modules) $(bundlers) .cache/wasm-route $(chromium)
wheel: $(wheel_in_venv)
wasm: $(wasm)
npm: $(npm)
npm-package: $(tarball)

# The command for this machine, as `cargo install` compiles it.
cli:
	cargo build --release --package tallyfold-cli
	@ls -l target/release/tallyfold

# The suites of `test`, the longest first. `suite-NAME` runs `test-NAME` once all that it needs is built, so suites run while other
# suites are being built.
suites := observability python rust docs packages examples js
suite-observability suite-rust suite-examples: compile-tests
suite-observability suite-python suite-examples suite-js: $(venv) $(wheel_in_venv)
suite-examples suite-docs suite-js: $(chromium)
suite-examples: $(examples)
suite-docs: $(site)
suite-packages: $(static_cli) $(packages_python) $(packages_node)
suite-js: $(tarball) $(bundlers)
$(addprefix suite-,$(suites)): suite-%:
	@scripts/suite.sh $*

# Everything that the suites use.
prepare-tests: compile-tests $(venv) $(wheel_in_venv) $(examples) $(bundlers) $(chromium) $(site) $(static_cli) \
	$(packages_python) $(packages_node)

# This compiles the command and the example, too.
compile-tests: | .cache
	cargo test --quiet --no-run $(tested_crates)
	touch $(command) $(rust_example)

# Every crate, and the command through its binary. Most tests of the command wait for it most of the time, so four run at once.
test-rust test-cli: export RUST_TEST_THREADS ?= 4
test-rust:
	$(limited) cargo test --no-fail-fast $(tested_crates)

# The command alone.
test-cli:
	$(limited) cargo test --no-fail-fast --package tallyfold-cli

test-python: $(venv) $(wheel_in_venv)
	cd $(PY) && ../.venv/bin/pytest

# Whole programs: each must run, and all must show the same counts.
test-examples: $(command) $(rust_example) $(wheel_in_venv) $(examples) $(chromium)
	scripts/demo.sh
	@echo "3 passed, 0 failed"
	scripts/test-rust-example.sh
	node --test --import ./tests/limit.mjs --test-timeout=1200000 --test-reporter=spec examples/guide.test.mjs

# Tests the exports with Prometheus, Alertmanager, VictoriaMetrics and InfluxDB from Debian's packages.
test-observability: export PYTEST_TIMEOUT = 600
test-observability: $(command) $(venv) $(wheel_in_venv)
	scripts/test-observability.sh

# Tests the packages that contain the command (the static binary, its wheel, the npm packages), deployment and workflows.
test-packages: $(static_cli) $(packages_python) $(packages_node)
	scripts/test-packages.sh

# The command's own tests, compiled for ARM Linux, in an emulator: not part of `test`, because of the time it takes to compile.
test-arm:
	scripts/test-arm.sh

# Tests the pages of the site in two looks: wide and light, narrow and dark.
test-docs: docs $(chromium)
	node --test --import ./tests/limit.mjs --test-timeout=1200000 --test-reporter=spec scripts/docs/site.test.mjs

# Evaluates how well the causes of the incidents in a folder (DATA) are found, with a line for each case in a file (JSON).
grade-cause:
	cargo run --quiet --release --package tallyfold-grade -- cause --data "$(DATA)" --json "$(JSON)"

# Tests with Dask, Ray, Spark, DuckDB and PostgreSQL. Few machines have these, so this is not part of `test`.
test-engines: export PYTEST_TIMEOUT = 900
test-engines: $(wheel)
	scripts/test-engines.sh

# The tests run the guide's FastAPI program with Python.
test-js: $(tarball) $(chromium) $(bundlers) $(venv) $(wheel_in_venv)
	cd $(JS) && TALLYFOLD_TARBALL=$(abspath $(tarball)) npm test --silent

# Tests the packed package in every host that users have. This needs 1.4 GB of tools, so it is not part of `test`.
test-hosts: $(tarball) $(chromium) $(hosts)
	cd $(JS) && TALLYFOLD_TARBALL=$(abspath $(tarball)) node hosts/matrix.mjs

clean:
	rm -rf target target-wasm fuzz/{target,corpus,artifacts} dist site .cache .venv {$(JS),$(JS)/hosts,examples,bench,scripts/docs,tests/packages}/node_modules $(JS)/{dist,wasm} cli/page $(PY)/python/tallyfold/_notebook/widget.js

# Python: a virtual environment with pinned tools, the wheel, and the wheel in the environment.

$(build_tools): $(PY)/requirements-build.txt
	$(PYTHON) -c 'import ensurepip' || scripts/apt-install.sh python3-venv
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --requirement $<
	touch $@

# `flock` prevents two installations into one environment at the same time.
$(venv): $(PY)/requirements-dev.txt $(build_tools)
	flock .venv .venv/bin/pip install --quiet --requirement $<
	touch $@

# The wheel contains the notebook widget, which is built with the npm package. The demo does without the widget.
$(wheel): $(core_files) $(python_files) $(build_tools) $(if $(filter demo,$(MAKECMDGOALS)),,$(npm)) | .cache
	rm -rf .cache/wheel
	.venv/bin/maturin build --quiet -m $(PY)/Cargo.toml --interpreter .venv/bin/python --out .cache/wheel
	touch $@

$(wheel_in_venv): $(wheel)
	flock .venv .venv/bin/pip install --quiet --no-deps --force-reinstall .cache/wheel/*.whl
	touch $@

# The wheel as it is released.
$(release_wheel): $(core_files) $(python_files) $(build_tools) $(npm)
	rm -f dist/*.whl
	.venv/bin/maturin build --quiet --release -m $(PY)/Cargo.toml --interpreter .venv/bin/python --out dist
	touch $@

$(bench_wheel): $(release_wheel)
	rm -rf .cache/bench/python
	.venv/bin/pip install --quiet --no-deps --target .cache/bench/python dist/*.whl
	touch $@

# The command and the guide's Rust program, in target/debug.
$(command): $(core_files) $(cli_files) | .cache
	cargo build --quiet --package tallyfold-cli
	touch $@

$(rust_example): $(core_files) core/examples/delivery.rs | .cache
	cargo build --quiet --package tallyfold --example delivery
	touch $@

# JavaScript: the wasm with its glue, dist/ with the wasm inside, the npm tarball, and the hosts in which it is tested.

$(node_modules): $(JS)/package.json $(JS)/package-lock.json
	cd $(JS) && npm ci --silent --no-audit --no-fund
	touch $@

.cache/wasm-route: scripts/setup-wasm.sh
	scripts/setup-wasm.sh

$(wasm): $(core_files) $(wasm_files) scripts/build-wasm.sh $(JS)/deflate.mjs $(JS)/order.mjs | .cache/wasm-route $(node_modules)
	scripts/build-wasm.sh

$(npm): $(wasm) $(js_files) $(node_modules)
	cd $(JS) && npm run --silent build

$(tarball): $(npm)
	mkdir -p dist
	rm -f dist/*.tgz
	npm pack --silent --pack-destination dist ./$(JS)

$(site): $(docs_files) $(core_files) $(js_files) $(docs_python) $(docs_node) $(wasm)
	SITE_NAME="tallyfold $(VERSION)" scripts/docs.sh
	touch $@

# Not `npm ci`: it refuses a lock file without the packages of other platforms, which some registries lack.
$(bundlers): $(JS)/hosts/package.json $(JS)/hosts/package-lock.json | $(node_modules)
	cd $(JS)/hosts && npm install --no-save --omit=dev --silent --no-audit --no-fund
	touch $@

$(hosts): $(JS)/hosts/package.json $(JS)/hosts/package-lock.json | $(node_modules)
	cd $(JS)/hosts && npm install --no-save --silent --no-audit --no-fund
	touch $(bundlers) $@

$(examples): $(tarball) examples/package.json
	npm install --silent --no-save --no-package-lock --prefix examples $(abspath $<)
	touch $@

$(docs_python): scripts/docs/requirements.txt $(wheel)
	$(PYTHON) -m venv .cache/docs
	.cache/docs/bin/pip install --quiet --requirement $<
	.cache/docs/bin/pip install --quiet --no-deps --force-reinstall .cache/wheel/*.whl
	touch $@

$(docs_node): scripts/docs/package-lock.json $(node_modules)
	cd scripts/docs && npm ci --silent --no-audit --no-fund
	touch $@

# The static binary and its wheel, in dist/cli.
# The command embeds the page of the dashboard, which is built with the npm package.
# Cargo compiles only the command or the wheel at a time. The two longest suites wait for the wheel, so the wheel comes first.
$(static_cli): $(core_files) $(cli_files) $(npm) | $(packages_python) $(wheel_in_venv)
	scripts/build-cli.sh --wheel
	touch $@

$(packages_python): tests/packages/requirements.txt cli/requirements-build.txt | .cache
	$(PYTHON) -c 'import ensurepip' || scripts/apt-install.sh python3-venv
	$(PYTHON) -m venv .cache/packages
	.cache/packages/bin/pip install --quiet --requirement $<
	touch $@

$(packages_node): tests/packages/package.json tests/packages/package-lock.json
	cd tests/packages && npm ci --silent --no-audit --no-fund
	touch $@

$(bench_peers): bench/package.json bench/package-lock.json
	cd bench && npm ci --silent --no-audit --no-fund
	touch $@

# Without the browser's own windows, whose pages take as much processor time as the pages of the tests.
$(chromium): | .cache
	command -v chromium-headless-shell || scripts/apt-install.sh chromium-headless-shell || command -v chromium || scripts/apt-install.sh chromium
	touch $@

.cache:
	mkdir -p $@

# Evaluates the causes of changed volumes on generated files like RiskLoc's set S. SEED=1 FILES=20 uses other files, and DATA=folder
# uses files in RiskLoc's own format. RISKLOC=folder (a copy of github.com/shaido987/riskloc) also runs RiskLoc on the first 20 files of
# the seed, or on the files of DATA.
grade-risk:
	cargo build --quiet --release --package tallyfold-grade
	target/release/tallyfold-grade risk --data "$(DATA)" --json "$(JSON)" --seed "$(SEED)" --files "$(FILES)"
	@[ -z "$(RISKLOC)" ] || grades/riskloc.sh "$(RISKLOC)" "$(SEED)" "$(DATA)"

# Evaluates the detection in single streams. Labelled windows: of the series in a folder (DATA), with a line for each series in a file
# (JSON). Simulated outbreaks: compared with R's surveillance if it is installed, which takes about 30 minutes for the first run of a seed.
# RUNS=20 simulates 20 runs instead of 100. RESTATED=1 uses a restatement of R's function, which needs no R and takes a minute.
grade-detect:
	cargo run --quiet --release --package tallyfold-grade -- detect --data "$(DATA)" --json "$(JSON)" --seed "$(SEED)" --runs "$(RUNS)" --restated "$(RESTATED)"

# Evaluates what the standard rules and a simple peer find in simulated quarters, which have known incidents and other changes. It uses the
# seeds for grading. TUNE=1 uses the seeds for tuning, SEED="1 2" other seeds, and SETTING=full or SETTING=calm only one of the two settings.
grade-incidents:
	cargo run --quiet --release -p tallyfold-grade -- incidents $(SEED)

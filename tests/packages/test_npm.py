"""The packages of npm: installed from their tarballs, without a network, and run as `npx` runs them."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import install, pack
from places import Completed, good, program, run, version

# In place of the binary, to see what the launcher passes through. It says each thing it gets as it gets it.
STAND_IN = f"""#!{sys.executable}
import os, signal, sys

def on(number, frame):
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
    if number != signal.SIGINT:
        os._exit(100 + number)

match sys.argv[1:]:
    case ["say", *words]:
        print(*(f"<{{word}}>" for word in words), sep="\\n")
        print(sys.stdin.read(), end="")
        print("warned", file=sys.stderr)
        sys.exit(37)
    case ["die", name]:
        signal.signal(signal.Signals[name], signal.SIG_DFL) if name != "SIGKILL" else None
        os.kill(os.getpid(), signal.Signals[name])
    case ["wait"]:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, on)
        os.write(1, b"ready\\n")
        while sys.stdin.readline() != "end\\n":
            pass
        sys.exit(7)
"""
PLATFORMS = {"linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64", "win32-x64"}


@pytest.fixture(scope="module")
def installed(tarballs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives a folder with both packages."""
    return install(tarballs, tmp_path_factory.mktemp("real") / "project")


@pytest.fixture(scope="module")
def stand_in(target: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives a folder with both packages, whose binary is a script."""
    folder = tmp_path_factory.mktemp("stand-in")
    script = folder / "script"
    script.write_text(STAND_IN)
    return install(pack({target: script}, folder / "made"), folder / "project")


def npx(folder: Path, *arguments: str) -> Completed:
    return run([program("npx"), "--no-install", "tallyfold", *arguments], cwd=folder)


def launcher(folder: Path) -> list[str]:
    return [program("node"), str(folder / "node_modules/tallyfold-cli/tallyfold.cjs")]


def manifest(tarball: Path) -> dict[str, Any]:
    with tarfile.open(tarball) as archive:
        file = archive.extractfile("package/package.json")
        assert file is not None
        fields: dict[str, Any] = json.load(file)
        return fields


def test_npx_runs_the_binary(installed: Path) -> None:
    assert good(npx(installed, "--version")) == f"tallyfold {version()}\n"


def test_a_wrong_argument_has_the_binarys_exit_code(installed: Path) -> None:
    done = npx(installed, "--no-such-flag")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--no-such-flag" in done.stderr


def test_all_manifests_say_one_version_and_a_licence(tarballs: list[Path]) -> None:
    for tarball in tarballs:
        fields = manifest(tarball)
        assert (fields["version"], fields["license"]) == (version(), "MIT OR Apache-2.0")
        with tarfile.open(tarball) as archive:
            assert {f"package/LICENSE{end}" for end in ("", "-MIT", "-APACHE")} <= set(archive.getnames())


def test_the_main_package_needs_one_package_for_each_platform_of_the_same_version(tarballs: list[Path]) -> None:
    fields = manifest(tarballs[-1])
    assert fields["optionalDependencies"] == {f"@tallyfold/cli-{platform}": version() for platform in PLATFORMS}
    assert fields["bin"] == {"tallyfold": "tallyfold.cjs"}
    assert "dependencies" not in fields
    assert "scripts" not in fields, "nothing is run when it is installed"


def test_a_package_for_each_platform(tmp_path: Path, binary: Path) -> None:
    targets = {
        "x86_64-unknown-linux-gnu": ("linux", "x64"),
        "aarch64-unknown-linux-musl": ("linux", "arm64"),
        "x86_64-apple-darwin": ("darwin", "x64"),
        "aarch64-apple-darwin": ("darwin", "arm64"),
        "x86_64-pc-windows-msvc": ("win32", "x64"),
    }
    packed = pack(dict.fromkeys(targets, Path("/bin/true")), tmp_path)
    assert len(packed) == len(targets) + 1
    for tarball in packed[:-1]:
        fields = manifest(tarball)
        (system,), (processor,) = fields["os"], fields["cpu"]
        assert fields["name"] == f"@tallyfold/cli-{system}-{processor}"
        name = "package/bin/tallyfold" + (".exe" if system == "win32" else "")
        with tarfile.open(tarball) as archive:
            assert archive.getmember(name).mode & 0o111 == 0o111
    assert {(*manifest(tarball)["os"], *manifest(tarball)["cpu"]) for tarball in packed[:-1]} == set(targets.values())


def test_a_release_refuses_to_lack_a_platform(target: str, binary: Path, tmp_path: Path) -> None:
    (tmp_path / target).mkdir()
    (tmp_path / target / "tallyfold").write_bytes(b"")
    script = Path(__file__).parents[2] / "cli/npm/pack.mjs"
    done = run([program("node"), script, tmp_path, tmp_path / "out", "--all"])
    assert done.returncode == 1
    assert "win32-x64" in done.stderr
    assert not list(tmp_path.glob("out/*.tgz"))


def test_arguments_streams_and_the_exit_code_pass_through(stand_in: Path) -> None:
    odd = ["", "a b", "--", "-x", "$HOME", "ü\n"]
    done = subprocess.run([*launcher(stand_in), "say", *odd], input="typed", capture_output=True, text=True, check=False)
    assert done.stdout == "".join(f"<{word}>\n" for word in odd) + "typed"
    assert (done.stderr, done.returncode) == ("warned\n", 37)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGINT"])
def test_a_binary_that_a_signal_ended_looks_so_from_outside(stand_in: Path, name: str) -> None:
    done = subprocess.run([*launcher(stand_in), "die", name], check=False)
    assert done.returncode == -signal.Signals[name]


@pytest.fixture
def waiting(stand_in: Path) -> Iterator[subprocess.Popen[str]]:
    """Gives a command that is running, without a terminal."""
    with subprocess.Popen([*launcher(stand_in), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        # Ends both, the launcher and what it has started, so that a signal that is not passed on can't block the test.
        watchdog = threading.Timer(120, end_group, [process])
        watchdog.start()
        assert process.stdout.readline() == "ready\n"
        yield process
        watchdog.cancel()
        end_group(process)


def end_group(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_the_binary_and_its_exit_code_comes_back(waiting: subprocess.Popen[str], sent: signal.Signals) -> None:
    waiting.send_signal(sent)
    assert waiting.wait() == 100 + sent
    assert waiting.stdout is not None
    assert waiting.stdout.read() == f"{sent.name}\n"


def test_an_interrupt_without_a_terminal_reaches_the_binary_which_may_go_on(waiting: subprocess.Popen[str]) -> None:
    assert waiting.stdout is not None
    waiting.send_signal(signal.SIGINT)
    assert waiting.stdout.readline() == "SIGINT\n"
    out, _ = waiting.communicate("end\n")
    assert (out, waiting.returncode) == ("", 7)


def test_ctrl_c_at_a_terminal_reaches_the_binary_once(stand_in: Path) -> None:
    process, terminal = pty.fork()
    if process == 0:
        command = launcher(stand_in)
        os.execv(command[0], [*command, "wait"])
    with os.fdopen(terminal, "r+b", buffering=0) as screen:
        seen = read_until(screen.fileno(), b"ready")
        screen.write(b"\x03")
        seen += read_until(screen.fileno(), b"SIGINT")
        screen.write(b"end\n")
        seen += read_to_the_end(screen.fileno())
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert seen.count(b"SIGINT") == 1


def read_until(file: int, word: bytes) -> bytes:
    seen = b""
    while word not in seen:
        seen += os.read(file, 4096)
    return seen


def read_to_the_end(file: int) -> bytes:
    seen = b""
    try:
        while chunk := os.read(file, 4096):
            seen += chunk
    except OSError:  # So the system says that the other side of a terminal has closed it.
        pass
    return seen


def test_without_the_platforms_package_the_launcher_says_what_to_do(tarballs: list[Path], tmp_path: Path) -> None:
    folder = install(tarballs[-1:], tmp_path / "project")
    done = npx(folder, "--version")
    assert (done.returncode, done.stdout) == (2, "")
    assert "@tallyfold/cli-linux-" in done.stderr
    assert "--omit=optional" in done.stderr


def test_on_a_platform_without_a_binary_the_launcher_names_those_that_there_are(installed: Path) -> None:
    path = launcher(installed)[1]
    pretend = 'Object.defineProperty(process, "platform", { value: "sunos" }); process.argv[1] = process.argv[2]; require(process.argv[2]);'
    done = run([program("node"), "--eval", pretend, "x", path])
    assert done.returncode == 2
    assert "no binary for sunos-" in done.stderr
    assert "cargo install tallyfold-cli" in done.stderr
    for platform in PLATFORMS:
        assert platform in done.stderr


def test_a_binary_that_can_not_be_run_is_an_error_in_words(tarballs: list[Path], tmp_path: Path) -> None:
    folder = install(tarballs, tmp_path / "project")
    (file,) = folder.glob("node_modules/@tallyfold/*/bin/tallyfold")
    file.chmod(0o644)
    done = npx(folder, "--version")
    assert done.returncode == 2
    assert f"{file.resolve()} can't be started" in done.stderr

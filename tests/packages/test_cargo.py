"""The crates: installed by cargo where there is only Rust and a C compiler, and packed as crates.io gets them."""

import os
import tarfile
from pathlib import Path

import pytest
from places import ROOT, good, program, run, version

# In the order in which they need each other.
CRATES = ["tallyfold-engine", "tallyfold", "tallyfold-export", "tallyfold-health", "tallyfold-sandbox", "tallyfold-cli"]


# It compiles all crates, and waits for other compilations.
@pytest.mark.timeout(1200)
def test_cargo_installs_it_with_nothing_but_a_c_compiler(tmp_path: Path) -> None:
    """In the profile for development, because the one for release is what the other tests have."""
    sysroot = Path(good(run(["rustc", "--print", "sysroot"])).strip())
    programs = [sysroot / "bin/cargo", sysroot / "bin/rustc", *(Path(program(name)) for name in ("cc", "ld", "as", "ar"))]
    (tmp_path / "bin").mkdir()
    for path in programs:
        (tmp_path / "bin" / path.name).symlink_to(path)
    arguments = ["install", "--path", "cli", "--locked", "--debug", "--root", tmp_path / "installed"]
    # The crates that were downloaded before.
    downloads = os.environ.get("CARGO_HOME", str(Path.home() / ".cargo"))
    environment = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path), "CARGO_HOME": downloads, "CARGO_INCREMENTAL": "0"}
    good(run([tmp_path / "bin/cargo", *arguments], env=environment, timeout=1100))
    assert good(run([tmp_path / "installed/bin/tallyfold", "--version"])) == f"tallyfold {version()}\n"


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives the folder with all crates as they would be uploaded; no crate may need one that comes after it."""
    folder = tmp_path_factory.mktemp("crates")
    options = ["--no-verify", "--allow-dirty", "--target-dir", folder]
    done = run([ROOT / "scripts/release.sh", "crates", "--dry-run", *options], timeout=300)
    good(done)
    uploads = [line.split()[1] for line in done.stderr.splitlines() if line.strip().startswith("Uploading")]
    assert uploads == CRATES
    return folder / "package"


def test_each_crate_has_what_the_registry_asks_for(packed: Path) -> None:
    for crate in CRATES:
        with tarfile.open(next(packed.rglob(f"{crate}-{version()}.crate"))) as archive:
            file = archive.extractfile(f"{crate}-{version()}/Cargo.toml")
            assert file is not None
            manifest = file.read().decode()
        assert 'license = "MIT OR Apache-2.0"' in manifest, crate
        assert 'description = "' in manifest, crate


def test_the_commands_crate_has_its_readme_and_licences(packed: Path) -> None:
    name = f"tallyfold-cli-{version()}"
    with tarfile.open(next(packed.rglob(f"{name}.crate"))) as archive:
        names = set(archive.getnames())
    assert {f"{name}/{file}" for file in ("README.md", "LICENSE", "LICENSE-MIT", "LICENSE-APACHE", "Cargo.lock")} <= names

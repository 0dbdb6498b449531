"""The static binary: in a folder that holds nothing else and that is all the system it sees."""

import http.server
import os
import shutil
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from places import Completed, good, program, run, version

NAME = "cluster.example"
# Who runs it in a container: neither root, nor anybody whom the system knows.
NOBODY = "65532:65532"
# An address of this machine that the port of DNS is free at, with whatever else runs here.
DNS = "127.0.77.53"


def test_it_is_linked_statically(binary: Path) -> None:
    assert INTERPRETER not in segments(binary.read_bytes()), "the binary asks for a dynamic linker"


# What a program that needs libraries has in its list of segments: the path of who loads them.
INTERPRETER = 3


def segments(program: bytes) -> list[int]:
    """Reads the types of the segments of a 64-bit ELF file, of little-endian byte order."""
    assert program[:6] == b"\x7fELF\x02\x01"
    start, size, count = struct.unpack_from("<Q14xHH", program, 0x20)
    return [struct.unpack_from("<I", program, start + index * size)[0] for index in range(count)]


def test_the_check_of_linking_knows_a_program_with_libraries() -> None:
    assert INTERPRETER in segments(Path(program("ls")).read_bytes())


def test_it_has_at_most_12_8_megabytes(binary: Path) -> None:
    assert binary.stat().st_size <= 12_800_000


def test_it_holds_no_path_of_the_machine_that_built_it(binary: Path) -> None:
    assert str(Path.home()).encode() + b"/.cargo" not in binary.read_bytes()


@dataclass
class Service:
    """A TLS server that has the name of a cluster, refuses everything, and remembers what was asked."""

    port: int
    authority: Path
    asked: list[tuple[str | None, str]] = field(default_factory=list)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Gives a chain for the name, whose second certificate is its authority, and the key."""
    folder = tmp_path_factory.mktemp("tls")
    openssl = program("openssl")
    request = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    authority = ["-keyout", folder / "ca.key", "-out", folder / "ca.pem"]
    good(run([*request, "-subj", "/CN=authority", *authority]))
    extensions = [f"subjectAltName=DNS:{NAME}", "basicConstraints=CA:FALSE", "extendedKeyUsage=serverAuth"]
    signed = ["-CA", folder / "ca.pem", "-CAkey", folder / "ca.key", "-keyout", folder / "key", "-out", folder / "pem"]
    good(run([*request, "-subj", "/CN=service", *(part for extension in extensions for part in ("-addext", extension)), *signed]))
    (folder / "chain.pem").write_text((folder / "pem").read_text() + (folder / "ca.pem").read_text())
    return folder / "chain.pem", folder / "key"


@pytest.fixture
def service(certificate: tuple[Path, Path]) -> Iterator[Service]:
    """Serves on a free port of loopback."""
    pem, key = certificate
    asked: list[tuple[str | None, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            asked.append((self.headers.get("host"), self.path))
            self.send_response(401)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Service(server.server_port, pem.parent / "ca.pem", asked)
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def empty(binary: Path, tmp_path: Path) -> Path:
    """Gives a folder that holds the binary, as an image from scratch does."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder the root of the file system")
    root = tmp_path / "root"
    (root / "etc/ssl/certs").mkdir(parents=True)
    shutil.copy(binary, root / "tallyfold")
    for folder in (root, *root.rglob("*")):
        folder.chmod(0o755)
    return root


def inside(root: Path, *arguments: str, **environment: str) -> Completed:
    """Runs the binary with a folder as its whole system, as a user whom nobody knows."""
    command = [program("chroot"), f"--userspec={NOBODY}", root, "/tallyfold", *arguments]
    return run(command, env={"PATH": os.environ["PATH"], **environment})


def delivery(root: Path, service: Service, **environment: str) -> Completed:
    """Asks for counts. The answer to the request for a token is 401, so the exit code is 3 if it has got there."""
    return inside(
        root,
        "delivery",
        TALLYFOLD_CLUSTER_ENDPOINT=f"https://{NAME}:{service.port}",
        TALLYFOLD_CLIENT_ID="id",
        TALLYFOLD_CLIENT_SECRET="secret",
        TALLYFOLD_CONTROL_AUDIENCE="audience",
        **environment,
    )


def assert_it_has_asked(done: Completed, service: Service) -> None:
    assert done.returncode == 3, done.stderr
    assert {host for host, _ in service.asked} == {f"{NAME}:{service.port}"}


def test_it_runs_where_nothing_else_is(empty: Path) -> None:
    assert good(inside(empty, "--version")) == f"tallyfold {version()}\n"


def test_without_certificates_it_trusts_nobody(empty: Path, service: Service) -> None:
    (empty / "etc/hosts").write_text(f"127.0.0.1 {NAME}\n")
    done = delivery(empty, service)
    assert done.returncode == 4
    assert "certificate" in done.stderr
    assert service.asked == []


def test_it_trusts_the_systems_certificates_and_reads_the_file_of_hosts(empty: Path, service: Service) -> None:
    shutil.copy(service.authority, empty / "etc/ssl/certs/ca-certificates.crt")
    (empty / "etc/hosts").write_text(f"127.0.0.1 {NAME}\n")
    assert_it_has_asked(delivery(empty, service), service)


def test_it_trusts_a_file_of_certificates_that_is_named(empty: Path, service: Service) -> None:
    shutil.copy(service.authority, empty / "own.pem")
    (empty / "own.pem").chmod(0o644)
    (empty / "etc/hosts").write_text(f"127.0.0.1 {NAME}\n")
    assert_it_has_asked(delivery(empty, service, SSL_CERT_FILE="/own.pem"), service)


def test_other_certificates_than_the_systems_are_refused(empty: Path, service: Service) -> None:
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", empty / "etc/ssl/certs/ca-certificates.crt")
    (empty / "etc/hosts").write_text(f"127.0.0.1 {NAME}\n")
    done = delivery(empty, service)
    assert done.returncode == 4
    assert "certificate" in done.stderr
    assert service.asked == []


@pytest.fixture
def dns() -> Iterator[list[str]]:
    """Answers each question of DNS with loopback; gives the names that were asked for."""
    asked: list[str] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((DNS, 53))
        thread = threading.Thread(target=answer, args=(server, asked), daemon=True)
        thread.start()
        yield asked
        # An empty datagram ends it.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(b"", (DNS, 53))
        thread.join()


def answer(server: socket.socket, asked: list[str]) -> None:
    address_record = 1
    while True:
        query, client = server.recvfrom(512)
        if not query:
            return
        labels, at = [], 12
        while length := query[at]:
            labels.append(query[at + 1 : at + 1 + length].decode())
            at += 1 + length
        question = query[12 : at + 5]
        asked.append(".".join(labels))
        (kind,) = struct.unpack_from(">H", query, at + 1)
        found = kind == address_record
        head = query[:2] + struct.pack(">HHHHH", 0x8180, 1, int(found), 0, 0)
        record = struct.pack(">HHHIH4s", 0xC00C, address_record, 1, 60, 4, socket.inet_aton("127.0.0.1"))
        server.sendto(head + question + (record if found else b""), client)


def test_it_asks_dns(empty: Path, service: Service, dns: list[str]) -> None:
    shutil.copy(service.authority, empty / "etc/ssl/certs/ca-certificates.crt")
    (empty / "etc/resolv.conf").write_text(f"nameserver {DNS}\n")
    assert_it_has_asked(delivery(empty, service), service)
    assert NAME in dns


def test_it_loads_no_library_of_the_system_to_look_up_a_name(empty: Path, service: Service, tmp_path: Path) -> None:
    """A static glibc would load what nsswitch.conf names, of whatever version, and might crash. This one ends at once."""
    source = tmp_path / "module.c"
    source.write_text("#include <stdlib.h>\n__attribute__((constructor)) static void end(void) { abort(); }\n")
    folder = empty / "lib/x86_64-linux-gnu"
    folder.mkdir(parents=True)
    (empty / "lib64").mkdir()
    good(run(["cc", "-shared", "-fPIC", source, "-o", folder / "libnss_ends.so.2"]))
    for library in ("lib/x86_64-linux-gnu/libc.so.6", "lib64/ld-linux-x86-64.so.2"):
        shutil.copy(f"/{library}", empty / library)
    (empty / "etc/nsswitch.conf").write_text("hosts: ends files dns\npasswd: ends files\n")
    (empty / "etc/hosts").write_text(f"127.0.0.1 {NAME}\n")
    shutil.copy(service.authority, empty / "etc/ssl/certs/ca-certificates.crt")
    for path in (empty, *empty.rglob("*")):
        path.chmod(0o755)
    assert subprocess.run([program("chroot"), empty, "/tallyfold", "--version"], check=False).returncode == 0
    assert_it_has_asked(delivery(empty, service), service)

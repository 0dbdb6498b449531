"""`python -m tallyfold sandbox [--port N] [--host H] [--seed S] [--scene S] [--fault JSON]...`."""

import argparse
import json
import signal
import sys
import threading
from typing import get_args

from tallyfold import ConfigError, Sandbox, __version__, serve
from tallyfold._names import Scene


def main(arguments: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tallyfold")
    parser.add_argument("--version", action="version", version=f"tallyfold {__version__}")
    commands = parser.add_subparsers(required=True)
    sandbox = commands.add_parser("sandbox", help="serve the sandbox, a simulated service")
    sandbox.add_argument("--port", type=_port, default=0, help="any free port by default")
    sandbox.add_argument("--seed", type=_seed, default=1, help="for made-up traffic (default: 1)")
    sandbox.add_argument(
        "--scene",
        choices=get_args(Scene),
        help="an incident in the traffic of the last hours",
    )
    sandbox.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to listen on (default: 127.0.0.1); "
        "0.0.0.0 accepts connections from other machines",
    )
    sandbox.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="JSON",
        help="a fault, such as "
        """'{"kind": "status", "status": 503, "endpoint": "event_delivery", "every": 3}'; """
        "may be repeated",
    )
    options = parser.parse_args(arguments)
    service = Sandbox(seed=options.seed, scene=options.scene)
    for fault in options.fault:
        try:
            service.inject(**json.loads(fault))
        except (ConfigError, TypeError, ValueError) as error:
            parser.error(f"--fault {fault}: {error}")
    try:
        _serve(service, options.port, options.host)
    except OSError as error:
        print(f"can't serve on {options.host}, port {options.port}: {error}", file=sys.stderr)
        return 1
    return 0


def _port(text: str) -> int:
    return _whole(text, 2**16 - 1)


def _seed(text: str) -> int:
    return _whole(text, 2**64 - 1)


def _whole(text: str, most: int) -> int:
    number = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= number <= most:
        raise argparse.ArgumentTypeError(f"want a number from 0 to {most}")
    return number


def _serve(service: Sandbox, port: int, host: str) -> None:
    stopped = threading.Event()
    # Handles both signals itself, because a shell starts background jobs with SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with serve(service, port, host) as server:
        print(f"tallyfold sandbox on {server.url}")
        for name, value in service.credentials.items():
            print(f"  {name:<22} {value}")
        print("Ctrl-C stops it.", flush=True)
        # On Windows, a wait without a timeout can't be interrupted.
        while not stopped.wait(1):
            pass


if __name__ == "__main__":
    sys.exit(main())

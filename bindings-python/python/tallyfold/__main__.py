"""`python -m tallyfold sandbox --port N [--seed S]`."""

import argparse
import signal
import sys
import threading

from tallyfold import Sandbox, __version__, serve


def main(arguments: list[str] | None = None) -> int:
    """Runs the command and gives its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tallyfold")
    parser.add_argument("--version", action="version", version=f"tallyfold {__version__}")
    commands = parser.add_subparsers(required=True)
    sandbox = commands.add_parser("sandbox", help="serve a replica of the service on 127.0.0.1")
    sandbox.add_argument("--port", type=_port, default=0, help="0, the default, takes any free one")
    sandbox.add_argument("--seed", type=_seed, default=1, help="for made-up traffic (default: 1)")
    options = parser.parse_args(arguments)
    try:
        _serve(options.port, options.seed)
    except OSError as error:
        print(f"can't serve on port {options.port}: {error}", file=sys.stderr)
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


def _serve(port: int, seed: int) -> None:
    stopped = threading.Event()
    # Asked for by name: a shell starts its background jobs with Ctrl-C switched off.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    service = Sandbox(seed=seed)
    with serve(service, port) as server:
        print(f"tallyfold sandbox on {server.url}")
        for name, value in service.credentials.items():
            print(f"  {name:<22} {value}")
        print("Ctrl-C stops it.", flush=True)
        # On Windows a wait without an end can't be interrupted.
        while not stopped.wait(1):
            pass


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""limit-tests.py BINARY [ARGUMENT...]: runs a test binary of Rust's test harness, with a limit for each test.

`make` sets it as cargo's runner. The harness prints the name of a test that has been running for 60 seconds. If such a
test has not finished after SECONDS more, this program prints its name, stops the binary and fails. It also sets the
usual signal handlers, file permissions, language and time zone for the binary, whatever the settings of the caller are.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import surroundings

# After the 60 seconds of the harness.
SECONDS = float(os.environ.get("TEST_LIMIT", "300")) - 60
SLOW = re.compile(r"(?:^|\n)test (.+) has been running for over 60 seconds$")
DONE = re.compile(r"^test (.+) \.\.\. (?:ok|FAILED|ignored)")


def main() -> int:
    """Runs the binary, and returns its exit code."""
    surroundings.prepare()
    # SIGTERM ends this program like Ctrl-C, so that the binary is stopped, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    command = sys.argv[1:]
    timers: dict[str, threading.Timer] = {}
    # The binary has its own session, so that processes that the tests have started are stopped with it.
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:

        def stop(name: str) -> None:
            print(f"\ntest {name} ... FAILED: stopped after {SECONDS + 60:.0f} seconds", flush=True)
            print("test result: FAILED. 0 passed; 1 failed", flush=True)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        assert process.stdout is not None
        try:
            for line in process.stdout:
                sys.stdout.buffer.write(line)
                sys.stdout.flush()
                text = line.decode(errors="replace").rstrip()
                if found := SLOW.search(text):
                    name = found[1]
                    timers[name] = threading.Timer(SECONDS, stop, [name])
                    timers[name].daemon = True
                    timers[name].start()
                elif (found := DONE.match(text)) and found[1] in timers:
                    timers.pop(found[1]).cancel()
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        code = process.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())

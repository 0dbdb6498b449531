"""What the tests of every suite in Python need of the process that they run in.

A caller may have left other settings: `nohup` and shells in the background start programs that ignore SIGINT, and
whatever a program ignores, its children ignore too.
"""

import os
import signal
import sys
import time


def prepare() -> None:
    """Gives this process and its children the usual signals, file permissions, language and time zone, and no settings of ours."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.umask(0o022)
    if sys.platform != "win32":
        for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for name in list(os.environ):
        if name == "LANGUAGE" or name.startswith(("LC_", "TALLYFOLD_")):
            del os.environ[name]
    os.environ.update(LANG="C.UTF-8", TZ="UTC")
    if sys.platform != "win32":
        time.tzset()

#!/usr/bin/env python3
"""Makes the pictures of the command in docs/images, light and dark, from real runs on the sandbox: `make pictures`."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parents[1]
COLUMNS = 100
LINES = 18
#: Black, red, green, yellow, blue, magenta, cyan and white, with a contrast of at least 4.5 to 1 where they are text.
LIGHT = [(22, 32, 44), (176, 42, 18), (26, 110, 60), (122, 84, 0), (29, 95, 191), (142, 36, 120), (20, 106, 134), (86, 98, 112)]
DARK = [(107, 118, 133), (255, 143, 107), (111, 209, 150), (217, 180, 74), (121, 174, 245), (219, 164, 242), (99, 179, 204), (230, 234, 240)]
THEMES = {
    "light": TerminalTheme((255, 255, 255), (22, 32, 44), LIGHT),
    "dark": TerminalTheme((20, 23, 28), (230, 234, 240), DARK),
}


def printed(command: Path, scene: str, arguments: list[str], folder: Path) -> str:
    """Runs the command in a terminal, and returns its output."""
    terminal, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    sandbox = [command, "sandbox", *(["--scene", scene] if scene else []), "--", command, *arguments]
    environment = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(sandbox, stdin=other, stdout=other, stderr=other, cwd=folder, env=environment):
        os.close(other)
        written = b""
        while True:
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # The other end is closed.
                break
            if not piece:
                break
            written += piece
    os.close(terminal)
    return written.decode().replace("\r\n", "\n")


def main() -> None:
    """Makes all pictures."""
    command = Path(sys.argv[1]).resolve()
    now = datetime.now(UTC)
    quarter = now.replace(minute=now.minute // 15 * 15, second=0, microsecond=0)
    began = f"{quarter - timedelta(hours=2, minutes=45):%Y-%m-%dT%H:%M:%SZ}"
    pictures = {
        "delivery": ("", ["delivery", "--since", "24h", "--top", "8"]),
        "doctor": ("", ["doctor"]),
        "watch": ("outage", ["watch", "--once"]),
        "explain": ("outage", ["explain", "--at", began]),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, (scene, arguments) in pictures.items():
            lines = printed(command, scene, arguments, Path(folder)).rstrip("\n").split("\n")
            if len(lines) > LINES:
                lines[LINES - 1 :] = ["…"]
            shown = f"\x1b[1m$ tallyfold {' '.join(arguments)}\x1b[0m\n" + "\n".join(lines)
            for look, theme in THEMES.items():
                console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
                console.print(Text.from_ansi(shown), soft_wrap=False)
                svg = console.export_svg(title=f"tallyfold {arguments[0]}", theme=theme, unique_id=f"tallyfold-{name}")
                # The fonts would be loaded from elsewhere.
                svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
                svg = svg.replace("Fira Code", "ui-monospace")
                (ROOT / f"docs/images/{name}-{look}.svg").write_text(svg)


main()

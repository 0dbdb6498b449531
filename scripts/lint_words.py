#!/usr/bin/env python3
"""Finds phrases that readers stumble over in the guide, the READMEs, the help of the command, and the error messages.

The help is in cli/tests/cases and docs/cli/reference.md, which the tests keep equal to what the command prints.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Each phrase, and what to write instead.
TURNS = {
    r"(?<![Tt]here )\b(is|are|was|were) no (?!longer|more)\w+[.,;]": "isn't a …",
    r"\bthose of\b": "the noun again",
    r"\bthat of\b": "the noun again",
    r"\b(of|to) which\b": "a second sentence",
    r"\bso (has|does|is) (the|a|an|Python|JavaScript)\b": "…, too",
    r"\b[Ww]hoever\b": "the subject that acts",
    r"\bone must\b": "the subject that acts",
    r"\bit is said\b": "who says it",
    r"\bgoes? on\b": "resumes, continues",
    r"\bends? with \d\b": "exits with …",
    r"\binstants?\b": "timestamp",
    r"\bbeside\b": "next to",
    r"\btellers?\b": "notifier",
    r"\bthe host('s)?\b(?! of\b|, or|.?s? wall clock)": "the caller, or its name",
    r"\b[Tt]he aim was\b|\b[Tt]he day before,|\bwas tried\b": "what is, not how it came about",
    r"\b(\d+ kB|\d+ s) before\b": "what is, not how it came about",
    r"\bunsure\b(?![`\"'=.)])": "in doubt",
}
PLACES = [
    *("README.md", "SECURITY.md", "cli/README.md", "bindings-python/README.md", "bindings-wasm/js/README.md"),
    *("docs/*.md", "docs/**/*.md", "cli/tests/cases/help.md"),
]


def prose(text: str) -> list[str]:
    """Returns the lines without code."""
    lines, is_code = [], False
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        is_code = is_code != fence
        lines.append("" if is_code or fence else re.sub(r"`[^`]*`|\]\([^)]*\)|<[^>]*>", "", line))
    return lines


def main() -> int:
    """Prints each place, and returns the exit code."""
    listed = subprocess.run(["git", "ls-files", *PLACES], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    found = 0
    for name in listed:
        text = (ROOT / name).read_text()
        # In these files, the code blocks are output of the command, which is checked, too.
        lines = text.splitlines() if name.startswith("cli/tests/cases/") or name == "docs/cli/reference.md" else prose(text)
        for number, line in enumerate(lines, 1):
            for turn, better in TURNS.items():
                for match in re.finditer(turn, line):
                    print(f"{name}:{number}: {match.group()!r}: write {better}")
                    found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes the clocks of all time zones by today's rules, from the time zone database of this machine.

Each line is a clock: the seconds ahead of UTC and the names of its zones. A clock with summer time has in between the
seconds ahead of UTC in summer, and when summer time begins and ends (month.week.weekday/seconds of that day, by the clock
before the change; week 5 is the last week, weekday 0 is Sunday). Rules of the past are left out, because health judges only
the last months.
"""

import re
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "health/src/usual/zones.txt"
OFFSET = r"(?:<[^>]+>|[A-Za-z]+)(?:([+-]?)(\d+)(?::(\d+))?)?"
CHANGE = r"M(\d+)\.(\d)\.(\d)(?:/(-?)(\d+)(?::(\d+))?)?"


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/zoneinfo")
    clocks: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.startswith(("posix/", "right/", "posixrules", "localtime", "Factory")) or path.is_dir():
            continue
        content = path.read_bytes()
        if content.startswith((b"TZif2", b"TZif3")):
            rule = content.rsplit(b"\n", 2)[1].decode()
            clocks.setdefault(clock(rule), []).append(name)
    lines = [f"{rule}: {' '.join(sorted(names))}\n" for rule, names in sorted(clocks.items())]
    TARGET.write_text("".join(lines))


def clock(rule: str) -> str:
    """The clock of a POSIX rule such as `EST5EDT,M3.2.0,M11.1.0`."""
    found = re.fullmatch(rf"{OFFSET}(?:{OFFSET},{CHANGE},{CHANGE})?", rule)
    assert found, rule
    parts = found.groups()
    standard = ahead(*parts[:3])
    if parts[6] is None:
        return str(standard)
    summer = standard + 3600 if parts[4] is None else ahead(*parts[3:6])
    begin, end = change(*parts[6:12]), change(*parts[12:18])
    return f"{standard} {summer} {begin} {end}"


def ahead(sign: str | None, hours: str | None, minutes: str | None) -> int:
    """The seconds ahead of UTC. POSIX counts the hours behind UTC."""
    seconds = int(hours or 0) * 3600 + int(minutes or 0) * 60
    return seconds if sign == "-" else -seconds


def change(month: str, week: str, day: str, sign: str | None, hours: str | None, minutes: str | None) -> str:
    seconds = 7200 if hours is None else int(hours) * 3600 + int(minutes or 0) * 60
    return f"{month}.{week}.{day}/{-seconds if sign == '-' else seconds}"


if __name__ == "__main__":
    main()

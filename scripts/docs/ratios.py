#!/usr/bin/env python3
"""Draws the main ratios of the table in docs/benchmarks.md as bars, into docs/images/ratios.svg."""

from html import escape
from math import log10
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLD = "100,000 entries to 1,200 groups"
MONTH = "the command: 30 days in 2,880 windows, 8 at a time"
# For each group of the picture, its rows of the table: their language, work and peer.
SHOWN = {
    "Rust": [("Rust", FOLD, "sonic-rs and HashMap"), ("Rust", FOLD, "serde_json and HashMap")],
    "Python": [("Python", FOLD, peer) for peer in ("polars", "orjson.loads alone", "orjson and pandas", "duckdb")],
    "Node": [("Node", FOLD, peer) for peer in ("JSON.parse alone", "JSON.parse and Map", "duckdb-wasm")],
    "The command": [
        ("Python", MONTH, "the Python client's CPU time"),
        ("Python", MONTH, "a curl for each window, and jq"),
    ],
}
LEFT, RIGHT, ROW = 330, 690, 22
STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #33404d; }
.strong { font-weight: 600; }
.tick { stroke: #8a94a1; }
.bar { fill: #0f7583; }
@media (prefers-color-scheme: dark) {
text { fill: #d6dce4; }
.bar { fill: #4fc0cf; }
}
</style>"""


def main() -> None:
    """Draws the picture."""
    ratios: dict[tuple[str, str, str], str] = {}
    for line in (DOCS / "benchmarks.md").read_text().splitlines():
        match [cell.strip() for cell in line.split("|")]:
            case ["", language, work, peer, _, _, ratio, _, _, ""]:
                ratios[language, work, peer] = ratio
    (DOCS / "images/ratios.svg").write_text(drawn(ratios))


def drawn(ratios: dict[tuple[str, str, str], str]) -> str:
    """Returns the picture of the main rows."""
    marks = []
    y = 34
    for group, rows in SHOWN.items():
        marks.append(f'<text class="strong" x="10" y="{y + 14}">{group}</text>')
        for row in rows:
            ratio = ratios[row]
            width = at(float(ratio)) - LEFT
            marks.append(f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(row[2])}</text>')
            marks.append(f'<rect class="bar" x="{LEFT}" y="{y + 2}" width="{width:.1f}" height="{ROW - 6}" rx="2"/>')
            marks.append(f'<text x="{LEFT + width + 6:.1f}" y="{y + 14}">{float(ratio):.3g}</text>')
            y += ROW
        y += 8
    ticks = [
        f'<line class="tick" x1="{at(times):.1f}" y1="22" x2="{at(times):.1f}" y2="32"/><text x="{at(times):.1f}" y="16" text-anchor="middle">{times}×</text>'
        for times in (1, 10, 100)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {y + 6}" role="img" aria-label="How many times as long the peers take">',
            STYLE,
            *ticks,
            *marks,
            "</svg>\n",
        ]
    )


def at(times: float) -> float:
    """The position of a ratio on the logarithmic axis."""
    return LEFT + (RIGHT - LEFT) * log10(times) / log10(300)


if __name__ == "__main__":
    main()

"""Prints the F1 of RiskLoc's published code on a folder of files in RiskLoc's format.

PYTHONPATH must contain that code. If it takes longer than LIMIT seconds for a file, it counts as if
it had named no cause there.
"""

import contextlib
import io
import multiprocessing
import sys
import time
from pathlib import Path

import pandas as pd

LIMIT = 300
MOST_FILES = 20


def named(path: Path, answer: multiprocessing.Queue) -> None:
    """Puts the causes that RiskLoc names, with the defaults of its command, in its label format."""
    from algorithms.riskloc import riskloc
    from utils.evaluation import root_cause_postprocessing

    leaves = pd.read_csv(path)
    attributes = sorted(leaves.columns.drop(["real", "predict"]))
    with contextlib.redirect_stdout(io.StringIO()):
        causes = root_cause_postprocessing(riskloc(leaves, attributes), "riskloc")
    answer.put([str(cause) for cause in causes])


def in_time(path: Path) -> list[str]:
    """Returns the causes that RiskLoc names; none if its process takes over LIMIT seconds."""
    answer = multiprocessing.Queue()
    process = multiprocessing.Process(target=named, args=(path, answer))
    process.start()
    process.join(LIMIT)
    if process.is_alive():
        process.terminate()
        process.join()
        return []
    if process.exitcode:
        raise SystemExit(f"RiskLoc failed on {path}")
    return answer.get()


def main(folder: Path) -> None:
    """Prints a line for each file, and the sum."""
    labels = pd.read_csv(folder / "injection_info.csv", dtype=str)
    hits = wrong = missed = 0
    begin = time.monotonic()
    for name, label in labels[["timestamp", "set"]].head(MOST_FILES).itertuples(index=False):
        causes = {"&".join(sorted(element.split("&"))) for element in label.split(";")}
        start = time.monotonic()
        found = set(in_time(folder / f"{name}.csv"))
        counts = len(found & causes), len(found - causes), len(causes - found)
        hits, wrong, missed = hits + counts[0], wrong + counts[1], missed + counts[2]
        took = time.monotonic() - start
        print(f"{name}  TP {counts[0]:2} FP {counts[1]:2} FN {counts[2]:2}  {took:6.1f} s", flush=True)
    f1 = 2 * hits / max(1, 2 * hits + wrong + missed)
    print(f"RiskLoc: F1 {f1:.3f}, TP {hits}, FP {wrong}, FN {missed}, {time.monotonic() - begin:.0f} s")


main(Path(sys.argv[1]))

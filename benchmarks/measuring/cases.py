"""Runs the cases of a benchmark, each in a process of its own, so that a crash ends one case only."""

from __future__ import annotations

import argparse
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

TIMEOUT = 900


def run(
    file: str,
    doc: str | None,
    one: Callable[[str, Path], str],
    cases: Sequence[str],
    folder: Path,
    target: int,
    said: str,
) -> None:
    """Runs the cases that the command line asks for, and prints a line for each. `one` runs a case, and returns a line
    that begins with "yes" if the case is good. Exits with 1 if all cases were run and fewer than `target` are good."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=folder)
    parser.add_argument("--only", nargs="*", default=cases, metavar="CASE")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        warnings.simplefilter("ignore")
        try:
            print("RESULT", one(given.only[0], given.folder))
        except Exception as error:  # noqa: BLE001 — whatever happens in a case is listed, and the others go on
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            print("RESULT", f"no   {type(error).__name__}: {str(error)[:300]} ({where})")
        return
    good = 0
    for case in given.only:
        command = [sys.executable, file, "--inside", "--folder", str(given.folder), "--only", case]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
            lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
            told = lines[-1].removeprefix("RESULT ") if lines else f"no   the process ended with {done.returncode}"
        except subprocess.TimeoutExpired:
            told = f"no   not done after {TIMEOUT} s"
        good += told.startswith("yes")
        print(f"{case:20} {told}", flush=True)
    print(f"{good} of {len(given.only)} {said}")
    sys.exit(good < target and len(given.only) == len(cases))

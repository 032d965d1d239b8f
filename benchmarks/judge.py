"""How far onnxsmith's verdicts can be taken at their word, beside `numpy.allclose` and Polygraphy on the same inputs.

    python benchmarks/judge.py [--suites NAME …] [--sample N] [--seed 0] [--folder .bench-corpus/judge]
                               [--log FILE] [--keep FOLDER] [--against CHECKOUT] [--timeout 180] [--minutes M]
                               [--only TEXT …] [--made] [--tables]

`faults` plants faults in models: each has to be called different, or not to be told. `equivalent` compares pairs that
are equivalent: none may be called different. `valid` asks whether valid models are turned away, `shapes` compares
simplified shape computations, and `cost` measures verification's share of `simplify` and `export`, beside another
checkout with `--against`. Each suite is a module in `judging/`, which says how it settles what is right without
onnxsmith.

What was judged is kept in FOLDER/judge.jsonl, or in the file of `--log`, so that a run that was stopped goes on; what
other sources of onnxsmith judged is judged again. `--sample` judges N cases of a suite, another `--seed` draws other
faults, `--only` takes cases with all these texts in their names, `--keep` keeps the pairs that were judged wrongly,
`--minutes` ends a suite after so long, `--made` takes the models that are there, `--tables` prints what is known.
Exits with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import corpus
from judging import tables
from judging.records import Log
from judging.worker import Worker

BENCH = Path(__file__).parent
SUITES = ("faults", "equivalent", "valid", "shapes", "cost")


def main() -> int:
    """Judges and prints."""
    given = arguments()
    folder = given.folder.absolute()
    if not given.tables and not given.made:
        subprocess.run([sys.executable, str(BENCH / "judging" / "bases.py"), str(folder)], check=True)
    log = Log(given.log or folder / "judge.jsonl")
    missed: list[str] = []
    for suite in given.suites:
        print(f"== {suite}", flush=True)
        if suite == "shapes":
            missed += _program("shape_computations", given)
        elif suite == "cost":
            missed += _program("cost", given)
        else:
            outcome = _suite(suite, given, folder, log)
            print("\n" + outcome.text)
            missed += outcome.missed
    print("\n".join(["", *(f"missed: {one}" for one in missed)] if missed else ["", "all targets reached"]))
    return 1 if missed else 0


def arguments() -> argparse.Namespace:
    """What was asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", nargs="*", default=list(SUITES), choices=SUITES)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=corpus.FOLDER / "judge")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--timeout", type=float, default=180)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--made", action="store_true")
    parser.add_argument("--tables", action="store_true")
    return parser.parse_args()


def _suite(suite: str, given: argparse.Namespace, folder: Path, log: Log) -> tables.Outcome:
    """Judges the suite's cases one after the other."""
    from judging import equivalent, faults, valid

    cases: dict[str, Callable[[Path, int], Iterator[str]]] = {
        "faults": faults.cases,
        "equivalent": equivalent.cases,
        "valid": valid.cases,
    }
    records: list[dict[str, Any]] = []
    end = time.monotonic() + 60 * given.minutes
    with Worker() as worker:
        for case in cases[suite](folder, given.seed):
            if given.only and not all(text in case for text in given.only):
                continue
            if sum(_counts(one) for one in records) >= (given.sample or 10**9):
                break
            known = log.get(suite, case, given.seed)
            if known is None and not given.tables and time.monotonic() < end:
                known = log.add(suite, case, given.seed, _judged(worker, suite, case, given, folder, log))
                print(_line(len(records) + 1, known), flush=True)
            records += [known] if known is not None else []
    return {"faults": tables.faults, "equivalent": tables.equivalent, "valid": tables.valid}[suite](
        records, given.sample is None
    )


def _counts(record: dict[str, Any]) -> bool:
    """A place that cannot be seen, or a pair that could not be made, is none of a sample."""
    return "verdict" in record or record.get("status") == "runs"


def _judged(worker: Worker, suite: str, case: str, given: argparse.Namespace, folder: Path, log: Log) -> dict[str, Any]:
    more: tuple[Any, ...] = ()
    if suite == "faults":
        before = log.get(suite, case, given.seed, any_code=True)
        placed = (before is not None and before.get("attempt") is not None) or (before or {}).get(
            "status"
        ) == "no place"
        more = (given.seed, before if placed else None, given.keep)
    found, error = worker.call(f"judging.{suite}:judge", folder, case, *more, timeout=given.timeout)
    return found if found is not None else {"status": "broken", "why": error}


def _line(number: int, record: dict[str, Any]) -> str:
    verdict = record.get("verdict") or record.get("compare", "")
    words = record.get("place") or record.get("why") or ""
    wrong = {"faults": ("done", "failed"), "equivalent": ("different", "failed"), "valid": ("failed", "different")}
    said = f"\n      {record.get('said')}" if verdict in wrong[record["suite"]] else ""
    ratio = f" {record['ratio']:.3g}" if record.get("ratio") is not None else ""
    peers = " ".join((record.get("peers") or {}).values())
    return f"{number:4} {verdict:12} {record.get('status')}{ratio} {record['case']} [{peers}] {words}"[:260] + said


def _program(name: str, given: argparse.Namespace) -> list[str]:
    """A suite that is a program of its own."""
    command = [sys.executable, "-m", f"benchmarks.judging.{name}", "--seed", str(given.seed)]
    if given.sample is not None:
        command += ["--count" if name == "shape_computations" else "--sample", str(given.sample)]
    if name == "cost":
        command += [
            "--folder",
            str(given.folder.absolute()),
            *(("--against", str(given.against.absolute())) if given.against else ()),
        ]
    done = subprocess.run(command, check=False, cwd=BENCH.parent)
    return [] if done.returncode == 0 else [f"{name}: ended with {done.returncode}"]


if __name__ == "__main__":
    sys.exit(main())

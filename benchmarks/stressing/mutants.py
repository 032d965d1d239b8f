"""Whether any verb breaks on a file that is nearly right: mutants of valid files, made with the structure of a format.

Each mutant is a command line of a verb (`base_files.py`; every verb in turn), and one of its files changed: a model
field by field (`model_mutations.py`), other files by their format (`file_mutations.py`). It runs in a forked process,
in a copy of the folder. A run must not print a traceback, an unexpected error, a control character or a line that a
name in a file made; die of a signal; end with a status over 3; take too long or hold too much (`forked_run.py`); read
or write outside its folder; print over 40 lines for a refusal; leave a target after a refusal, a hidden file, or a
changed input.

The same seed and number give the same mutant: `--repeat NUMBER` runs one again, prints its output and keeps its folder.
"""

from __future__ import annotations

import argparse
import datetime
import os
import random
import shlex
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from stressing import base_files, base_models, file_mutations, forked_run
from stressing.base_files import Line
from stressing.forked_run import KINDS, Outcome

SHARE = 0.6
"""How often a model file is first replaced by a model of another kind. A choice: usual lines name nodes of `net`."""
WRITTEN = {"baseline accept", "baseline drop", "baseline record", "fleet run", "fleet cell", "fleet bisect", "mcp"}
"""Verbs that change a file which they also read."""


@dataclass(frozen=True)
class Mutant:
    """A command line, and what was changed in its files."""

    verb: str
    line: Line
    change: str

    def __str__(self) -> str:
        text = shlex.join(("onnxsmith", *self.line.words)) + (f" < {self.line.stdin}" if self.line.stdin else "")
        return f"{ascii(text)[1:-1][:200]}  [{ascii(self.change)[1:-1][:300]}]"


def mutant(verb: str, number: int, seed: str, folder: Path) -> Mutant:
    """Makes a mutant in a folder that has all files."""
    draw = random.Random(f"{seed}/{number}")
    line = base_files.line(verb, draw, folder)
    if not line.files:
        return Mutant(verb, line, "words only")
    told = []
    models = [one for one in line.files if one.endswith(".onnx")]
    for name in models:
        if draw.random() < SHARE:
            kind = draw.choice(sorted(base_models.KINDS))
            shutil.copy(folder / base_files.BASES / f"{kind}.onnx", folder / name)
            told.append(f"{name}: {kind}")
    for path in {(folder / name).parent for name in models}:
        shutil.copy(folder / base_files.BASES / "weights.data", path)
        if not (path / "link.data").is_symlink():
            (path / "link.data").symlink_to(folder.parent / "canary.data")
    name = draw.choice(line.files)
    told.append(f"{name}: {file_mutations.mutate(folder / name, draw)}")
    return Mutant(verb, line, "; ".join(told))


def _state(folder: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    return {one: (folder / one).read_bytes() for one in names if (folder / one).is_file()}


def tried(verb: str, number: int, seed: str, prepared: Path, outer: Path) -> tuple[Mutant, Outcome]:
    """Makes a mutant in a new folder inside `outer`, and runs it."""
    folder = outer / "in"
    (outer / "temporary").mkdir(parents=True)
    shutil.copytree(prepared, folder, symlinks=True)
    made = mutant(verb, number, seed, folder)
    canaries = list(forked_run.watched(folder))
    named = made.line.outputs()
    outputs = [one for one in named if not (folder / one).exists()]
    files = () if verb in WRITTEN else tuple(one for one in made.line.files if one not in named)
    before, known = _state(folder, files), {*os.listdir(folder)}  # noqa: PTH208
    stdin = folder / made.line.stdin if made.line.stdin else None
    outcome = forked_run.run(made.line.words, folder, stdin)
    expected = {"in", "said", "temporary", *(one.name for one in canaries)}
    may_read = made.change.startswith("plan.toml")  # a plan is a list of commands, and may name any file
    escapes = [one for one in forked_run.touched(canaries, expected) if not (may_read and one.endswith("was read"))]
    hidden = [one for one in os.listdir(folder) if one.startswith(".") and one not in {*known, *made.line.words}]  # noqa: PTH208
    left = [*hidden, *os.listdir(outer / "temporary")] if outcome.ended and not outcome.signal else []  # noqa: PTH208
    return made, replace(
        outcome,
        escapes=tuple(escapes),
        targets=tuple(one for one in outputs if (folder / one).exists() and (folder / one).is_file()),
        leftovers=tuple(left),
        changed=tuple(one for one, content in before.items() if _state(folder, files).get(one) != content),
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of this part."""
    parser.add_argument("--count", type=int, default=3_000)
    parser.add_argument("--seed", default=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}", help="default: the day")
    parser.add_argument("--only", nargs="*", metavar="VERB", default=list(base_files.COMMANDS), help="default: all")
    parser.add_argument("--repeat", nargs="*", type=int, metavar="NUMBER", help="run these mutants only, and print")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no mutant after so many minutes")


def _prepare(folder: Path) -> None:
    """Makes the folder from which each mutant has a copy."""

    def call(words: list[str], folder: Path) -> None:
        done = forked_run.run(words, folder)
        assert done.status == 0, f"{shlex.join(words)}\n{done.said}"

    folder.mkdir(parents=True)
    (folder.parent / "temporary").mkdir()
    base_files.prepare(folder, call)


def run(given: argparse.Namespace) -> list[str]:
    """Runs the mutants and prints the counts of each verb. Returns what failed."""
    rows = {verb: Counter[str]() for verb in base_files.COMMANDS}
    end = time.monotonic() + given.minutes * 60
    forked_run.preload()
    name = tempfile.mkdtemp()  # a TemporaryDirectory would be removed by the first forked process that ends
    try:
        failed = _all(given, Path(name), rows, end)
    finally:
        shutil.rmtree(name)
    _print(rows)
    return failed


def _all(given: argparse.Namespace, folder: Path, rows: dict[str, Counter[str]], end: float) -> list[str]:
    """Runs the mutants, counts in `rows`, and returns what failed."""
    verbs, failed = sorted(rows), []
    _prepare(folder / "prepared" / "in")
    print(f"seed {given.seed}", flush=True)
    for number in given.repeat if given.repeat is not None else range(given.count):
        verb = verbs[number % len(verbs)]
        if verb not in given.only or time.monotonic() > end:
            continue
        outer = Path(tempfile.mkdtemp() if given.repeat is not None else folder / f"{number}")
        made, outcome = tried(verb, number, given.seed, folder / "prepared" / "in", outer)
        if given.repeat is None:
            shutil.rmtree(outer)
        else:
            print(f"{outer / 'in'}\n{outcome.said}\nstatus {outcome.status}, {outcome.seconds:.1f} s")
        faults = outcome.faults()
        rows[verb].update(("runs", f"status {outcome.status}", *faults))
        rows[verb]["ms"] = max(rows[verb]["ms"], int(outcome.seconds * 1000))
        if faults:
            told = ", ".join(f"{kind} ({text})" if text != "True" else kind for kind, text in faults.items())
            failed.append(f"{number} {verb}: {told}")
            print(f"  {number}: {told}: {made}", flush=True)
    return failed


def _print(rows: dict[str, Counter[str]]) -> None:
    """Prints the counts of each verb that ran, and their sums."""
    columns = ["runs", *(f"status {n}" for n in range(4)), *KINDS]
    print(f"{'':<16}" + "".join(f"{one.removeprefix('status ')[:10]:>11}" for one in columns) + f"{'longest':>10}")
    total = sum(rows.values(), Counter())
    total["ms"] = max((one["ms"] for one in rows.values()), default=0)
    for verb, counts in [*rows.items(), ("all", total)]:
        if counts["runs"]:
            figures = "".join(f"{counts[one] or '-':>11}" for one in columns)
            print(f"{verb:<16}{figures}{counts['ms'] / 1000:>8.1f} s")

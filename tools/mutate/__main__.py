"""Changes the code in small ways, one at a time, and counts what the tests notice.

    python tools/mutate reach --sample 200   draws mutants, runs the tests once, notes which case comes to which mutant
    python tools/mutate try                  runs those cases on each mutant; goes on where it was stopped
    python tools/mutate show                 the table, and the mutants that nothing noticed

A mutant is tried with the cases of `make test` first, then with those that `make test-changed` adds for its file, then
with all others: the table says how much each tier notices. Only cases that come to the changed expression can notice
it, so no others are run; of a constant outside of functions, those that call a function of its file. Mutants that
change no behaviour are listed in `equivalent.toml`, each with the reason. All lies in `.mutants/`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

from mutants import AREAS, Mutant, marked, sampled  # noqa: E402
from trying import Copy  # noqa: E402

from tests.tiers import choosing, costs  # noqa: E402

FOLDER = ROOT / ".mutants"
SLOWER = 4
"""Times as long as it costs that a run may take, and a minute. A choice: a busy machine is not that slow."""
MOST, CASES = 30.0, 300
"""Seconds of cases that are run on a mutant in each tier, and their number, the nearest first. A choice: what is
noticed at all is noticed by the nearest."""
TIERS = ("make test", "make test-changed", "make test-all")
PRELOADED = ("numpy", "onnx", "onnx_ir", "onnx_shape_inference", "torch", "pytest", "hypothesis")
"""Libraries that every forked process has at once."""


def reach_all(sample: int, seed: int, tests: Sequence[str], workers: int) -> None:
    """Draws mutants and runs the tests on a tree that tells which of them a case comes to."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*"):
        old.unlink()
    drawn = sampled({area: (sample + place) // len(AREAS) for place, area in enumerate(AREAS)}, seed)
    (FOLDER / "mutants.json").write_text(json.dumps([asdict(one) for one in drawn], indent=1), encoding="utf-8")
    numbers: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, one in enumerate(drawn):
        numbers[one.file][one.place].append(number)
    with tempfile.TemporaryDirectory() as folder:
        tree = Copy(Path(folder) / "tree")
        for file, its in numbers.items():
            path = tree.folder / file
            path.write_text(marked(path.read_text(encoding="utf-8"), its), encoding="utf-8")
        for name in ("onnxsmith_reached.py", "reached_plugin.py"):
            (tree.folder / "src" / name).write_bytes((HERE / name).read_bytes())
        paths = {"PYTHONPATH": str(tree.folder / "src"), "ONNXSMITH_REACHED_FOLDER": str(FOLDER)}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "reached_plugin", "-m", "not gpu", "-n", str(workers)]
        subprocess.run(
            [*command, "--dist", "worksteal", *tests], cwd=tree.folder, env={**os.environ, **paths}, check=False
        )


def cases_by_mutant(drawn: Sequence[Mutant]) -> dict[int, list[str]]:
    """The cases that come to each mutant."""
    found: dict[int, list[str]] = defaultdict(list)
    of_file: dict[str, list[str]] = defaultdict(list)
    for file in sorted(FOLDER.glob("reached-*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            said = json.loads(line)
            for key in said["reached"]:
                if key.isdigit():
                    found[int(key)].append(said["case"])
                else:
                    of_file["src/" + key.rpartition("/src/")[2]].append(said["case"])
    for number, one in enumerate(drawn):
        if not one.function:
            found[number] = of_file[one.file]
    return found


def reached_files(files: Sequence[str]) -> dict[str, set[str]]:
    """The test files that `make test-changed` runs for each file. Asked in another process: here the package must not
    be imported, as forked processes import it with a mutant."""
    code = "import json, sys; from tests.tiers import reach; files = json.load(sys.stdin); "
    code += "print(json.dumps({file: sorted(reach.reached([file])) for file in files}))"
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, cwd=ROOT, input=json.dumps(files), capture_output=True, text=True, check=True)
    return {file: set(found) for file, found in json.loads(done.stdout).items()}


def nearest(cases: Sequence[str], mutant: Mutant, counts: Mapping[str, int]) -> list[str]:
    """The cases in the order in which they are run: those named after the file, those of its room, then those that come
    to few other mutants, which ask closely."""
    room, stem = mutant.file.split("/")[2], Path(mutant.file).stem.strip("_")

    def far(case: str) -> tuple[bool, bool, int]:
        return f"/test_{stem}.py" not in case, f"tests/{room}/" not in case, counts[case]

    return sorted(cases, key=far)


def affordable(cases: Sequence[str], known: Mapping[str, float]) -> list[str]:
    """The first cases that cost up to `MOST` together, and at least one."""
    taken, seconds = list(cases[:1]), 0.0
    for case in cases[1:CASES]:
        seconds += known.get(case, costs.UNLISTED)
        if seconds < MOST:
            taken.append(case)
    return taken


def try_all(seed: str, part: str) -> None:
    """Tries each mutant that has no result yet."""
    drawn = [Mutant(**one) for one in json.loads((FOLDER / "mutants.json").read_text(encoding="utf-8"))]
    reached = cases_by_mutant(drawn)
    known = costs.read()
    every = sorted({case for its in reached.values() for case in its})
    counts = Counter(case for its in reached.values() for case in its)
    first = choosing.first_tier(every, known, choosing.smoke(), seed)
    number, _, of = part.partition("/")
    done = {json.loads(line)["number"] for file in FOLDER.glob("tried-*.jsonl") for line in file.open(encoding="utf-8")}
    changed = reached_files(sorted({one.file for one in drawn}))
    for library in PRELOADED:
        importlib.import_module(library)
    with tempfile.TemporaryDirectory() as folder:
        tree = Copy(Path(folder) / "tree")
        for index, one in enumerate(drawn):
            if index in done or index % int(of) != int(number) - 1:
                continue
            files = changed[one.file]
            its = nearest(reached.get(index, ()), one, counts)
            tiers = (
                [case for case in its if case in first],
                [case for case in its if case not in first and case.partition("::")[0] in files],
                [case for case in its if case not in first and case.partition("::")[0] not in files],
            )
            result = {"number": index, "reached": [len(cases) for cases in tiers], "by": "", "tier": "", "left": 0}
            for tier, cases in zip(TIERS, tiers, strict=True):
                taken = affordable(cases, known)
                result["left"] += len(cases) - len(taken)
                failed = _noticed(tree, one, taken, known)
                if failed:
                    result |= {"by": failed, "tier": tier}
                    break
            with (FOLDER / f"tried-{number}.jsonl").open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(result) + "\n")
            print(f"{index} {one.file}:{one.line} {result['tier'] or 'survived'} {result['by']}", flush=True)


def _noticed(tree: Copy, mutant: Mutant, cases: list[str], known: Mapping[str, float]) -> str:
    """The case that notices the mutant and passes without it; "" if none does."""
    cases = list(cases)
    while cases:
        limit = 60 + SLOWER * sum(known.get(case, costs.UNLISTED) for case in cases)
        with tree.changed(mutant.file, mutant.source):
            failed = tree.fails(cases, limit)
        if not failed or failed == "…" or failed not in cases:
            return failed
        if not tree.fails([failed], limit):
            return failed
        cases.remove(failed)  # fails in this tree without a mutant, too
    return ""


def show() -> None:
    """Prints what each tier notices, by area, and what survived."""
    drawn = [Mutant(**one) for one in json.loads((FOLDER / "mutants.json").read_text(encoding="utf-8"))]
    results = [json.loads(line) for file in FOLDER.glob("tried-*.jsonl") for line in file.open(encoding="utf-8")]
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for result in sorted(results, key=lambda result: result["number"]):
        one = drawn[result["number"]]
        area = one.file.split("/")[2]
        table[area][result["tier"] or ("survived" if sum(result["reached"]) else "not reached")] += 1
        if not result["tier"]:
            print(f"  survived: {one.file}:{one.line} {one.function}: {one.before} → {one.after} {result['reached']}")
    total = sum(table.values(), Counter())
    for area, counts in [*sorted(table.items()), ("all", total)]:
        noticed = sum(counts[tier] for tier in TIERS)
        shares, so_far = [], 0
        for tier in TIERS:
            so_far += counts[tier]
            shares.append(f"{tier} {so_far} ({so_far / noticed:.1%})" if noticed else f"{tier} 0")
        rest = ", ".join(f"{counts[name]} {name}" for name in ("survived", "not reached") if counts[name])
        print(f"{area}: {noticed} of {counts.total()} noticed: {', '.join(shares)}; {rest}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["reach", "try", "show"])
    parser.add_argument("tests", nargs="*", help="what `reach` runs; all tests if left out")
    parser.add_argument("--sample", type=int, default=200, help="mutants of all areas together")
    parser.add_argument("--seed", type=int, default=0, help="draws the mutants, and the rows of the first tier")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--part", default="1/1", help="tries the K-th of N parts: two can run side by side")
    given = parser.parse_intermixed_args()
    if given.what == "reach":
        reach_all(given.sample, given.seed, given.tests, given.workers)
    elif given.what == "try":
        try_all(str(given.seed), given.part)
    else:
        show()


if __name__ == "__main__":
    main()

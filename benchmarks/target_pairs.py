"""How well `check` knows before a run what a target does with a model: by its table alone, and by a build alone.

    python benchmarks/target_pairs.py [--models FOLDER …] [--targets NAME …] [--most 60] [--again] [--differences]

For each model, as it is and at fixed sizes, and each target that is installed: what the target's table foresees, what
the target says when it builds the model, and what it does when the model runs. The answers of the targets are kept
beside the corpus, so that tables can be tried again; `--again` asks anew. A table is made of onnx's test cases of
single operators (`tools/judge_table.py`), never of these models. The models are those of `corpus.py`, the smallest
first, or those of the folders given.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from onnxsmith import rooms
from onnxsmith.checking.by_rules import foreseen
from onnxsmith.checking.subject import Subject
from onnxsmith.model.files.load import load
from onnxsmith.problem import OnnxsmithError
from onnxsmith.profiles.finding import Outlook
from onnxsmith.profiles.reading import built_in, named
from onnxsmith.targets.base import Judge, Target
from targets import CORPUS, installed, models

KINDS = ("real", "light", "default", "ts", "converted")
ANSWERS = CORPUS / "targets.jsonl"


def ask(judge: Judge, subject: Subject) -> dict[str, Any]:
    """What the target says when it builds the model and when it runs it; "" for "takes it"."""
    found = {}
    for step, feeds in (("build", None), ("run", subject.feeds)):
        try:
            answer = judge.ask(subject.model, feeds)
            found[step] = "" if answer.refusal is None else answer.refusal.why or "refused"
        except OnnxsmithError as error:
            found[step] = f"limit: {error.problem.what}"
        if found[step]:
            return {"build": found[step], "run": found[step]} | found
    return found


def answers(paths: list[Path], targets: dict[str, Target], *, again: bool) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The answers by model, target and form ("dynamic", "fixed"); asks for those that are not known."""
    known: dict[tuple[str, str, str], dict[str, Any]] = {}
    if ANSWERS.exists() and not again:
        lines = map(json.loads, ANSWERS.read_text(encoding="utf-8").splitlines())
        known = {(one["model"], one["target"], one["form"]): one for one in lines}
    with ANSWERS.open("w" if again else "a", encoding="utf-8") as log:
        for path in paths:
            subject = Subject(load(path), path)
            try:
                forms = {"dynamic" if subject.dynamic else "fixed": subject}
                if subject.dynamic and subject.static is not None:
                    forms["fixed"] = subject.static
                for name, target in targets.items():
                    wanted = {form: one for form, one in forms.items() if (path.name, target_key(name, target), form) not in known}
                    if not wanted:
                        continue
                    with target.judging() as judge:
                        for form, one in wanted.items():
                            line = {"model": path.name, "target": target_key(name, target), "form": form} | ask(judge, one)
                            known[path.name, line["target"], form] = line
                            log.write(json.dumps(line) + "\n")
                            log.flush()
            finally:
                subject.close()
    return known


def target_key(name: str, target: Target) -> str:
    """The name and version."""
    return f"{name} {target.version()}"


def main() -> None:
    """Asks, and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", type=Path, default=[])
    parser.add_argument("--targets", nargs="*", default=[])
    parser.add_argument("--most", type=int, default=60)
    parser.add_argument("--again", action="store_true", help="ask anew")
    parser.add_argument("--differences", action="store_true", help="print each pair that was not foreseen")
    given = parser.parse_args()
    paths = models(given.models or [CORPUS / kind for kind in KINDS], given.most)
    if not paths:
        sys.exit("no models: run `python benchmarks/corpus.py` first")
    targets = installed(given.targets)
    known = answers(paths, targets, again=given.again)
    report(paths, targets, known, differences=given.differences)


def report(
    paths: list[Path], targets: dict[str, Target], known: dict[tuple[str, str, str], dict[str, Any]], *, differences: bool
) -> None:
    """Prints what was foreseen, by target."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in targets}
    for path in paths:
        subject = Subject(load(path), path)
        try:
            for name, target in targets.items():
                for form in ("dynamic", "fixed"):
                    line = known.get((path.name, target_key(name, target), form))
                    one = subject if (form == "dynamic") == subject.dynamic else subject.static
                    if line is None or one is None or line["run"].startswith("limit: "):
                        counts[name]["limit"] += line is not None
                        continue
                    does = "refused" if line["run"] else "taken"
                    builds = "refused" if line["build"] else "taken"
                    counts[name][f"build {builds} → {does}"] += 1
                    if name not in built_in():
                        continue
                    entries = [entry for entry in foreseen(named(name), one) if entry.outlook is not Outlook.FITS]
                    said = {Outlook.FITS: "taken", Outlook.REFUSED: "refused", Outlook.UNKNOWN: "unknown"}
                    outlook = max((entry.outlook for entry in entries), key=list(Outlook).index, default=Outlook.FITS)
                    counts[name][f"table {said[outlook]} → {does}"] += 1
                    if said[outlook] != does and differences:
                        reason = next((entry.reason for entry in entries if entry.outlook is outlook), "")
                        print(f"{name} {path.name} {form}: table {said[outlook]} {reason[:100]!r}, does {line['run'][:200]!r}")
        finally:
            subject.close()
    print(f"{len(paths)} models, as they are and at fixed sizes")
    for name, target in targets.items():
        found = counts[name]
        for way in ("build", "table"):
            pairs = {key: count for key, count in found.items() if key.startswith(way)}
            right = pairs.get(f"{way} taken → taken", 0) + pairs.get(f"{way} refused → refused", 0)
            total = sum(pairs.values())
            if total:
                print(f"{name} {target.version()} {way}: {right} of {total} ({right / total:.1%}) {pairs}")
        if found["limit"]:
            print(f"{name}: {found['limit']} reached a limit")


if __name__ == "__main__":
    main()

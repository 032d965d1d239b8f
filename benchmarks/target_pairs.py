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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from targets import CORPUS, installed, models

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.target_checks import Stage
from onnxsmith.deployment.checking.checked_model import Subject
from onnxsmith.deployment.checking.profile_prediction import foreseen
from onnxsmith.graph.files.load import load
from onnxsmith.runtimes.base import Feeds
from onnxsmith.targets.judges.base import Judge, Target
from onnxsmith.targets.profiles.condition_result import Outlook
from onnxsmith.targets.profiles.profile_reader import built_in, named

KINDS = ("real", "light", "default", "ts", "converted")
ANSWERS = CORPUS / "targets.jsonl"
Answers = dict[tuple[str, str, str], dict[str, Any]]
"""What was said of a model, by its file, the target with its version, and the form ("dynamic", "fixed")."""
SAID = {Outlook.FITS: "taken", Outlook.REFUSED: "refused", Outlook.UNKNOWN: "unknown"}


def ask(target: Target, judge: Judge, subject: Subject) -> dict[str, Any]:
    """What the target says when it builds the model and when it runs it, "" for "takes it"; whether it only parsed the
    model, because it builds for the sizes of an input."""
    build, parsed = _answer(judge, subject, None if target.runs else subject.feeds)
    run = build or _answer(judge, subject, subject.feeds)[0]
    return {"build": build, "run": run, "parsed": parsed}


def _answer(judge: Judge, subject: Subject, feeds: Feeds | None) -> tuple[str, bool]:
    try:
        answer = judge.ask(subject.model, feeds)
    except OnnxsmithError as error:
        return f"limit: {error.problem.what}", False
    refusal = answer.refusal
    return ("" if refusal is None else refusal.why or "refused"), refusal is None and answer.reached is Stage.PARSED


def answers(
    paths: list[Path], targets: dict[str, Target], *, again: bool
) -> dict[tuple[str, str, str], dict[str, Any]]:
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
                    for line in _asked(path.name, target_key(name, target), target, forms, known):
                        known[path.name, line["target"], line["form"]] = line
                        log.write(json.dumps(line) + "\n")
                        log.flush()
            finally:
                subject.close()
    return known


def _asked(file: str, key: str, target: Target, forms: dict[str, Subject], known: Answers) -> Iterator[dict[str, Any]]:
    """The lines for the forms that are not known."""
    wanted = {form: one for form, one in forms.items() if (file, key, form) not in known}
    if wanted:
        with target.judging() as judge:
            for form, one in wanted.items():
                yield {"model": file, "target": key, "form": form} | ask(target, judge, one)


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


def report(paths: list[Path], targets: dict[str, Target], known: Answers, *, differences: bool) -> None:
    """Prints what was foreseen, by target."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in targets}
    for path in paths:
        subject = Subject(load(path), path)
        try:
            for name, target in targets.items():
                key = target_key(name, target)
                lines = {form: known.get((path.name, key, form)) for form in ("dynamic", "fixed")}
                for form, line in lines.items():
                    one = subject if (form == "dynamic") == subject.dynamic else subject.static
                    if line is not None and one is not None:
                        for said in _compared(name, path.name, line, lines["fixed"], one, differences=differences):
                            counts[name][said] += 1
        finally:
            subject.close()
    print(f"{len(paths)} models, as they are and at fixed sizes")
    for name, target in targets.items():
        for way in ("build", "table"):
            pairs = {key: count for key, count in counts[name].items() if key.startswith(way)}
            right = pairs.get(f"{way} taken → taken", 0) + pairs.get(f"{way} refused → refused", 0)
            total = sum(pairs.values())
            if total:
                print(f"{name} {target.version()} {way}: {right} of {total} ({right / total:.1%}) {pairs}")
        if counts[name]["limit"]:
            print(f"{name}: {counts[name]['limit']} reached a limit")


def _compared(
    name: str, file: str, line: dict[str, Any], fixed: dict[str, Any] | None, one: Subject, *, differences: bool
) -> Iterator[str]:
    """What the build and the table said, each beside what the target did."""
    if line["run"].startswith("limit: "):
        yield "limit"
        return
    does = "refused" if line["run"] else "taken"
    # A model that was parsed and not built, because that needs sizes, is judged by the build at these sizes.
    build = fixed["build"] if line.get("parsed") and fixed is not None else line["build"]
    yield f"build {'refused' if build else 'taken'} → {does}"
    if name not in built_in():
        return
    entries = [entry for entry in foreseen(named(name), one) if entry.outlook is not Outlook.FITS]
    outlook = max((entry.outlook for entry in entries), key=list(Outlook).index, default=Outlook.FITS)
    yield f"table {SAID[outlook]} → {does}"
    if SAID[outlook] != does and differences:
        reason = next((entry.reason for entry in entries if entry.outlook is outlook), "")
        print(f"{name} {file} {line['form']}: table {SAID[outlook]} {reason[:100]!r}, does {line['run'][:200]!r}")


if __name__ == "__main__":
    main()

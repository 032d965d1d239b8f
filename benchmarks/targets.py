"""How well `check` finds what stops a target: planted refusals named, refused models fixed.

    python benchmarks/targets.py [planted|fixes] [--models FOLDER …] [--targets NAME …] [--most 60] [--seed 0]

`planted`: a node that the target refuses is put at a random place of a model that it takes;
counts how often that node is named, and nothing else. `fixes`: of the models that a target refuses, how many it takes
after `check --fix`, compared with the original. The models are those of `corpus.py` and of the folders given.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx_ir as ir

import onnxsmith
from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.target_checks import Stage
from onnxsmith.deployment.checking.checked_model import Subject
from onnxsmith.deployment.checking.refused_nodes import narrow
from onnxsmith.deployment.checking.target_query import asked
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.targets.judges.base import Target

CORPUS = Path(__file__).parent.parent / ".bench-corpus"
LARGEST = 16 * 2**20
"""Bytes of the largest file. A choice: the rest is memory and minutes."""
HEAD = '<ir_version: 10, opset_import: ["": 18, "no.such": 1]> p (float[n] x) => (float[n] y) { %s }'
PLANTS = {
    "an operator of no domain": "y = no.such.Op(x)",
    "Bernoulli": "y = Bernoulli(x)",
    "Optional": "o = Optional(x) y = OptionalGetElement(o)",
    "strings": "s = Cast<to = 8>(x) y = Cast<to = 1>(s)",
    "float8": "s = Cast<to = 17>(x) y = Cast<to = 1>(s)",
    "uint32": "s = Cast<to = 12>(x) a = Add(s, s) y = Cast<to = 1>(a)",
    "BitwiseNot": "s = Cast<to = 6>(x) a = BitwiseNot(s) y = Cast<to = 1>(a)",
    "a sequence": "s = SequenceConstruct(x, x) i = Constant<value_int = 0>() y = SequenceAt(s, i)",
}
"""Nodes that give a float tensor of the shape of `x`, of which each target refuses some."""


def models(folders: list[Path], most: int) -> list[Path]:
    """The files, the smallest first."""
    found = [path for folder in folders for path in folder.rglob("*.onnx") if path.stat().st_size <= LARGEST]
    return sorted(found, key=lambda path: (path.stat().st_size, path.name))[:most]


def installed(names: list[str]) -> dict[str, Target]:
    """The targets that can be asked here."""
    members = rooms.members("onnxsmith.targets.judges", Target)
    for name, one in members.items():
        if one.missing() is not None:
            print(f"not here: {name}")
    return {name: one for name, one in members.items() if one.missing() is None and name in (names or members)}


def plants(target: Target) -> list[str]:
    """The kinds of node that the target refuses."""
    found = []
    with target.judging() as judge:
        for kind, body in PLANTS.items():
            try:
                refused = judge.ask(from_text((HEAD % body).replace("float[n]", "float[4]"))).refusal is not None
            except OnnxsmithError:
                refused = False
            if refused:
                found.append(kind)
    return found


def planted(model: ir.Model, kind: str, draw: random.Random) -> tuple[ir.Model, set[str]] | None:
    """A copy of the model with the nodes of `kind` behind a random float tensor of the main graph, and their names."""
    made = cloned(model)
    places = [
        value
        for node in made.graph
        for value in node.outputs
        if value.dtype is ir.DataType.FLOAT and value.uses() and value.shape is not None and not value.is_graph_output()
    ]
    if not places:
        return None
    place = draw.choice(places)
    part = from_text(HEAD % PLANTS[kind])
    nodes = list(part.graph)
    result = part.graph.outputs[0]
    part.graph.outputs.clear()
    part.graph.remove(nodes)
    producer = place.producer()
    assert producer is not None
    readers = [(use.node, use.idx) for use in place.uses()]
    part.graph.inputs[0].replace_all_uses_with(place)
    for index, node in enumerate(nodes):
        node.name = f"planted_{index}"
        for value in node.outputs:
            value.name = f"planted_{index}_{value.name}"
    made.graph.insert_after(producer, nodes)
    for node, index in readers:
        node.replace_input_with(index, result)
    result.type, result.shape = place.type, place.shape
    made.opset_imports.setdefault("no.such", 1)
    return made, {node.name or "" for node in nodes}


def find_planted(paths: list[Path], targets: dict[str, Target], seed: int, rounds: int) -> None:
    """Prints how often the planted node was named, alone."""
    for name, target in targets.items():
        kinds, counts, began = plants(target), Counter[str](), time.time()
        for number, path in enumerate(paths * rounds):
            draw = random.Random(f"{seed} {name} {number}")
            subject = Subject(onnxsmith.load(path), path)
            with target.judging() as judge:
                try:
                    if not kinds or judge.ask(subject.model, subject.feeds).refusal is not None:
                        continue
                    kind = draw.choice(kinds)
                    made = planted(subject.shaped, kind, draw)
                    if made is None:
                        continue
                    faulty = subject.with_model(made[0])
                    answer = judge.ask(faulty.model, faulty.feeds)
                    if answer.refusal is None:
                        counts["taken after all"] += 1
                        continue

                    def ask(part: ir.Model, faulty: Subject = faulty, judge: object = judge) -> object:
                        return judge.ask(part, faulty.part_feeds(part)).refusal  # type: ignore[attr-defined]

                    found = narrow(faulty.shaped, ask, answer.refusal)  # type: ignore[arg-type]
                except OnnxsmithError as error:
                    counts["limit"] += 1
                    print(f"{name} {path.name}: {error.problem.what}")
                    continue
            named = {one.label for one in found.culprits}
            right = bool(named) and named <= made[1]
            counts["right" if right else "wrong"] += 1
            if not right:
                print(f"{name} {path.name} {kind}: named {sorted(named)[:5]} {found.whole}", flush=True)
        print(f"{name}: {counts['right']} of {counts['right'] + counts['wrong']} named rightly; {dict(counts)}; "
              f"{time.time() - began:.0f} s; refuses {', '.join(kinds)}")  # fmt: skip


def fixes(paths: list[Path], targets: dict[str, Target]) -> None:
    """Prints how many refused models a target takes after `--fix`."""
    for name, target in targets.items():
        refused, fixed = 0, 0
        for path in paths:
            subject = Subject(onnxsmith.load(path), path)
            try:
                if asked(name, target, subject).stage is not Stage.REFUSED:
                    continue
                refused += 1
                report = onnxsmith.check(path, [name], fix=True).report
            except OnnxsmithError as error:
                print(f"{name} {path.name}: {error.problem.what}")
                continue
            good = report.parts and report.headline.rpartition(": ")[2].startswith(
                (f"{name} agreed", f"{name} built", f"{name} ran")
            )
            fixed += bool(good)
            print(f"{name} {path.name}: {report.headline.partition(': ')[2]}", flush=True)
        print(f"{name}: {fixed} of {refused} refused models are taken after --fix")


def _folders(given: list[Path]) -> Iterator[Path]:
    yield from given or [CORPUS / kind for kind in ("real", "default", "ts", "converted")]


def main() -> None:
    """Runs the suites that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", choices=["planted", "fixes", []], default=[])
    parser.add_argument("--models", nargs="*", type=Path, default=[])
    parser.add_argument("--targets", nargs="*", default=[])
    parser.add_argument("--most", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    paths = models(list(_folders(given.models)), given.most)
    targets = installed(given.targets)
    if not paths:
        sys.exit("no models: run `python benchmarks/corpus.py` first")
    print(f"{len(paths)} models; " + ", ".join(f"{name} {one.version()}" for name, one in targets.items()))
    suites = given.suites or ["planted", "fixes"]
    if "planted" in suites:
        find_planted(paths, targets, given.seed, given.rounds)
    if "fixes" in suites:
        fixes(paths, targets)


if __name__ == "__main__":
    main()

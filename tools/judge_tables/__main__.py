"""Asks a target about single operators, and writes its table.

    python -m judge_tables ask NAME answers.jsonl [OP …]    (in the folder tools/; minutes; OP: only these, anew)
    python -m judge_tables table NAME answers.jsonl         (prints the table)

The models are onnx's own test cases of operators, none of which is a whole network: a table knows nothing of the
models that it is tried on.
"""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path

from judge_tables.asking import Asking
from judge_tables.cases import fitted, node_cases
from judge_tables.learning import table
from judge_tables.limits import limits
from judge_tables.unseen import unseen
from onnxsmith.base import rooms
from onnxsmith.runtimes.base import Runtime
from onnxsmith.targets.judges.base import Target


def main() -> None:
    """Runs the step that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["ask", "table"])
    parser.add_argument("name")
    parser.add_argument("answers", type=Path)
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--older", type=int, help="the only older opset to try; default: the last of each older form")
    parser.add_argument("--unseen", action="store_true", help="ask about operators without a test case, and add them")
    given = parser.parse_args()
    if given.step == "ask" and given.unseen:
        add_unseen(given.name, given.answers)
    elif given.step == "ask":
        ask(given.name, given.answers, set(given.operators), given.older)
    else:
        lines = [json.loads(line) for line in given.answers.read_text(encoding="utf-8").splitlines()]
        print(f"{head(given.name, len(lines))}\n\n{table(lines)}")


def head(name: str, answers: int) -> str:
    """What stands above the operators."""
    target = found(name)
    with target.judging() as judge:
        known = limits(judge)
    functions = str(known.functions).lower()
    today = datetime.datetime.now(tz=datetime.UTC).date()
    return f"""# Made by tools/judge_tables: what this version said of {answers:,} forms of onnx's test cases.
title = "{target.title}"
version = "{target.version()}"
date = {today}
sources = ["https://github.com/onnx/onnx/tree/main/onnx/backend/test/case/node"]
notes = ["The conditions were read off answers to single operators; the software itself has the last word."]
unsaid = [
    "What happens where operators meet: sizes that follow from others, memory, time.",
    "Values of attributes and numbers of axes that no test case has.",
]
unlisted = "unknown"
folds = true
functions = {functions}
opset = {{ min = 7, max = {known.opset} }}
max_ir_version = {known.ir_version}"""


def found(name: str) -> Target:
    """The target, which has to be installed."""
    target = rooms.members("onnxsmith.targets.judges", Target)[name]
    missing = target.missing()
    if missing is not None:
        raise SystemExit(f"{missing.what}: {missing.fix}")
    return target


def ask(name: str, path: Path, only: set[str], older: int | None) -> None:
    """Writes a line of JSON for each answer. The lines of other operators than `only` stay."""
    target = found(name)
    kept = path.read_text(encoding="utf-8").splitlines() if only and path.exists() else []
    with path.open("w", encoding="utf-8") as log, target.judging() as judge:
        log.writelines(f"{line}\n" for line in kept if json.loads(line)["op"].rpartition("::")[2] not in only)
        asking, known = Asking(judge), limits(judge)
        for case in node_cases(older):
            if not only or case.node.op_type in only:
                for line in asking.observed(fitted(case, known.opset, known.ir_version)):
                    log.write(json.dumps(line, default=str) + "\n")


def add_unseen(name: str, path: Path) -> None:
    """Adds lines for the operators that have none."""
    seen = {json.loads(line)["op"] for line in path.read_text(encoding="utf-8").splitlines()}
    runtime = rooms.members("onnxsmith.runtimes", Runtime).get(name)
    with path.open("a", encoding="utf-8") as log, found(name).judging() as judge:
        for line in unseen(judge, seen, runtime):
            log.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()

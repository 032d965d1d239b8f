"""Asks a target about single operators, and writes its table.

    python -m judge_tables ask NAME answers.jsonl       (in the folder tools/; minutes)
    python -m judge_tables table NAME answers.jsonl     (prints the tables below the head, which is written by hand)

The models are onnx's own test cases of operators, none of which is a whole network: a table knows nothing of the
models that it is tried on.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from judge_tables.asking import Asking
from judge_tables.cases import node_cases
from judge_tables.learning import table
from onnxsmith import rooms
from onnxsmith.targets.base import Target


def main() -> None:
    """Runs the step that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["ask", "table"])
    parser.add_argument("name")
    parser.add_argument("answers", type=Path)
    given = parser.parse_args()
    if given.step == "ask":
        ask(given.name, given.answers)
    else:
        lines = [json.loads(line) for line in given.answers.read_text(encoding="utf-8").splitlines()]
        print(table(lines))


def ask(name: str, path: Path) -> None:
    """Writes a line of JSON for each answer."""
    target = rooms.members("onnxsmith.targets", Target)[name]
    missing = target.missing()
    if missing is not None:
        raise SystemExit(f"{missing.what}: {missing.fix}")
    with path.open("w", encoding="utf-8") as log, target.judging() as judge:
        asking = Asking(judge)
        for case in node_cases():
            for line in asking.observed(case):
                log.write(json.dumps(line, default=str) + "\n")


if __name__ == "__main__":
    main()

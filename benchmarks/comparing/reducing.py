"""`reduce` on planted failures: twenty models of 100 to 1,000 nodes, each to be brought to 5 nodes in 120 seconds.

    python benchmarks/comparing/reducing.py [--only NAME …] [--json FILE]

Every reduced model is judged as its folder's own program shows it, in a process of its own, so a model that was made
small and no longer fails counts for nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import onnx

import onnxsmith
from onnxsmith.base.report.parts.edits import Reduction

sys.path.insert(0, str(Path(__file__).parent.parent))

from comparing.planted import PLANTED, Planted

MOST_NODES, MOST_SECONDS = 5, 120.0


def processor_seconds() -> float:
    """Of this process and of the children that have ended, theirs included."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def reduced(planted: Planted, folder: Path) -> dict[str, Any]:
    """Figures of one model."""
    source = folder / f"{planted.name}.onnx"
    onnx.save(planted.model(), source)
    begin, before = time.perf_counter(), processor_seconds()
    row: dict[str, Any] = {"name": planted.name, "least": planted.least}
    try:
        result = onnxsmith.reduce(source, folder / planted.name, check=planted.check, **planted.options)
    except onnxsmith.OnnxsmithError as error:
        return {**row, "seconds": time.perf_counter() - begin, "error": str(error), "good": False}
    part = result.report.part(Reduction)
    row |= {"before": part.steps[0].nodes, "after": part.steps[-1].nodes, "tries": sum(part.tries.values())}
    row["seconds"] = time.perf_counter() - begin
    row["processor"] = processor_seconds() - before
    row["operators"] = [node.op_type for node in onnx.load(folder / planted.name / "model.onnx").graph.node]
    row["good"] = row["after"] <= MOST_NODES and row["seconds"] < MOST_SECONDS
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="names of models, or parts of them")
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    chosen = [p for p in PLANTED if not arguments.only or any(text in p.name for text in arguments.only)]
    rows = []
    print(f"{'model':28} {'before':>6} {'after':>5} {'least':>5} {'tries':>5} {'seconds':>7} {'processor':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for planted in chosen:
            row = reduced(planted, Path(folder))
            rows.append(row)
            if "error" in row:
                print(f"{row['name']:28} {row['seconds']:.1f} s: {row['error']}", flush=True)
                continue
            print(
                f"{row['name']:28} {row['before']:6} {row['after']:5} {row['least']:5} {row['tries']:5} "
                f"{row['seconds']:7.1f} {row['processor']:9.1f}  {'' if row['good'] else 'MISSED '}"
                f"{', '.join(row['operators'])}",
                flush=True,
            )
    good = sum(row["good"] for row in rows)
    print(f"{good} of {len(rows)} at {MOST_NODES} nodes or fewer in under {MOST_SECONDS:g} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    return 0 if good == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())

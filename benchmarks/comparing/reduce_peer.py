"""`polygraphy debug reduce` on the planted failures of `reducing.py`: the nodes that it leaves, and its seconds.

    pip install --target FOLDER --no-deps polygraphy onnx-graphsurgeon
    PYTHONPATH=FOLDER python benchmarks/comparing/reduce_peer.py [--only NAME …] [--json FILE]

Each model is reduced as its documentation says, by `--mode bisect` and, where that ends well, what it leaves by
`--mode linear`, in 120 seconds together. Its check is a command, here this file: it feeds what every tensor held in the
original, where the tool cuts, and asks the very check that `onnxsmith reduce` is given for that failure. Finding the
failure and recording the values is not counted. What it leaves is the smallest model that it tried and that fails,
however it ended.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

sys.path.insert(0, str(Path(__file__).parent.parent))

from comparing.planted import PLANTED, Planted
from comparing.reducing import processor_seconds
from onnxsmith.comparison.reduction import portable_arrays
from onnxsmith.comparison.reduction.case import Case, fed
from onnxsmith.comparison.reduction.checks.base import Failure
from onnxsmith.comparison.reduction.oracle import Oracle
from onnxsmith.comparison.reduction.original_failure import failing
from onnxsmith.comparison.reduction.reduce import chosen
from onnxsmith.comparison.reduction.reduction_loop import record
from onnxsmith.comparison.reduction.runtime_workers import Bench
from onnxsmith.comparison.reduction.tensor_facts import Known
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import signature
from onnxsmith.verification.inputs.generate import Generator

SECONDS = 120.0
FAILS = 42
TRIED = "polygraphy_debug.onnx"
TOOL = "import sys; from polygraphy.tools import main; sys.exit(main())"


def prepared(planted: Planted, folder: Path) -> None:
    """Writes the model, what its tensors held where it failed, and the failure."""
    onnx.save(planted.model(), folder / "model.onnx")
    with Bench(60) as bench:
        oracle = Oracle(chosen(planted.check, None), bench)
        case, _, _ = failing(load(folder / "model.onnx"), oracle, None, {}, 0)
        known = record(case, bench, oracle.check.patience() or bench.time_limit)
        portable_arrays.write({**known.values, **case.feeds}, folder / "values.npz")
        _declare(case, known)
        save(case.model, folder / "model.onnx")
        assert oracle.first is not None
        told = {"marks": sorted(oracle.first.marks), "size": oracle.first.size}
        (folder / "failure.json").write_text(json.dumps(told))


def _declare(case: Case, known: Known) -> None:
    """Gives every tensor the dtype and shape that it had, without which the tool cannot cut there: it infers what is
    missing with onnxruntime, which refuses many of these models."""
    for value in (*case.model.graph.inputs, *(v for node in case.model.graph for v in node.outputs)):
        kind = known.kind(value.name or "")
        if kind is not None:
            value.type, value.shape = ir.TensorType(kind[0]), None if kind[1] is None else ir.Shape(kind[1])


def fails(planted: Planted, folder: Path, path: Path) -> bool:
    """Whether a model of the tool's fails as the original did."""
    model = load(path)
    values = dict(np.load(folder / "values.npz"))
    missing = [port.name for port in signature(model).required() if port.name not in values]
    case = fed(model, values) if not missing else Case(model, {**_made_up(model), **fed(model, values).feeds})
    told = json.loads((folder / "failure.json").read_text())
    first = Failure("", frozenset(told["marks"]), told["size"])
    with Bench(60) as bench:
        outcome = Oracle(chosen(planted.check, None), bench).judge(case)
    return outcome.failure is not None and outcome.failure.is_like(first)


def _made_up(model: Any) -> dict[str, Any]:
    return dict(Generator.for_model(model).feed({}, seed=0).values)


def judged(planted: Planted, folder: Path) -> int:
    """The exit status for the tool. The smallest model that failed is kept: the tool writes none when it breaks off."""
    if not fails(planted, folder, Path(TRIED)):
        return 0
    best = folder / "best.onnx"
    if not best.exists() or _nodes(Path(TRIED)) <= _nodes(best):
        shutil.copy(TRIED, best)
    return FAILS


def _nodes(path: Path) -> int:
    """As `onnxsmith reduce` counts them: those of bodies too, without Constants."""
    return walk.count_nodes(load(path))


def reduced(planted: Planted, folder: Path) -> dict[str, Any]:
    """Figures of one model."""
    prepared(planted, folder)
    row: dict[str, Any] = {"name": planted.name, "before": _nodes(folder / "model.onnx")}
    begin, before = time.perf_counter(), processor_seconds()
    best = folder / "best.onnx"
    row["ended"] = _ran(planted, folder, folder / "model.onnx", "bisect", SECONDS)
    if row["ended"] == "done" and best.exists():
        row["ended"] = _ran(planted, folder, best, "linear", SECONDS - (time.perf_counter() - begin))
    row["processor"] = processor_seconds() - before
    row["seconds"] = time.perf_counter() - begin
    if best.exists():
        row["operators"] = [node.op_type for node in onnx.load(best).graph.node]
        row["after"] = _nodes(best)
    return row


def _ran(planted: Planted, folder: Path, source: Path, mode: str, limit: float) -> str:
    """How the tool ended."""
    start = folder / f"{mode}-source.onnx"
    shutil.copy(source, start)
    command = [sys.executable, "-c", TOOL, "debug", "reduce", str(start), "-o", str(folder / f"{mode}.onnx")]
    command += ["--mode", mode, "--fail-code", str(FAILS)]
    command += ["--check", sys.executable, __file__, "--judge", planted.name, "--folder", str(folder)]
    with (folder / f"{mode}.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            return "done" if process.wait(timeout=max(limit, 0.1)) == 0 else "broke off"
        except subprocess.TimeoutExpired:
            return "out of time"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="names of models, or parts of them")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--judge", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.judge:
        planted = next(one for one in PLANTED if one.name == arguments.judge)
        return judged(planted, arguments.folder)
    if find_spec("polygraphy") is None or find_spec("onnx_graphsurgeon") is None:
        print("polygraphy or onnx-graphsurgeon is not installed; see the top of this file")
        return 2
    rows = []
    print(f"{'model':28} {'before':>6} {'after':>5} {'seconds':>7} {'processor':>9}")
    for planted in PLANTED:
        if arguments.only and not any(text in planted.name for text in arguments.only):
            continue
        with tempfile.TemporaryDirectory() as folder:
            row = reduced(planted, Path(folder))
        rows.append(row)
        left = f"{row['ended']}: {', '.join(row.get('operators', [])[:5])}"
        took = f"{row['seconds']:7.1f} {row['processor']:9.1f}"
        print(f"{row['name']:28} {row['before']:6} {row.get('after', '-'):>5} {took}  {left}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

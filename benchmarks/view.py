"""What `view` costs, and how many nodes of two exports of one network it pairs.

    python benchmarks/view.py [--nodes 100 5000 20000 100000] [--repeat 1] [--timeout 600] [--layers 60] [--no-pairs]

Pages: for each number of nodes, three models of that size without torch modules. `blocks` repeats a residual block, so
that it is shown as blocks; `flat` has the same operators in an order without repeats, so that all nodes are in one
level; `random` is flat, and each node reads two of the 40 nodes before it. CPU is user and system time of a fresh
process with all that it starts, memory its peak; "less start" is the CPU less that of a model of one node.

Pairs: a transformer of `--layers` layers, exported by torch's exporter and by its older one, as they are and both
simplified: nodes, the share of the nodes of the smaller file that have a partner, CPU and size of the page."""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir

import onnxsmith
from onnxsmith.comparison.graphs.model_pairs import paired
from onnxsmith.graph.files.save import save
from onnxsmith.graph.structure import walk

UNARY = ("Relu", "Tanh", "Sigmoid", "Abs", "Neg")
BINARY = ("Add", "Mul", "Sub", "Max", "Min")


@dataclass(frozen=True)
class Run:
    """One run of the command: seconds of CPU and of the clock, megabytes, bytes written, and the last line printed."""

    cpu: float
    wall: float
    memory: int
    written: int
    said: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[100, 5000, 20_000, 100_000])
    parser.add_argument("--repeat", type=int, default=1, help="runs of each, of which the least counts")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--layers", type=int, default=60)
    parser.add_argument("--no-pairs", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pages(Path(folder), given.nodes, given.repeat, given.timeout)
        if not given.no_pairs:
            pairs(Path(folder), given.layers, given.timeout)


def pages(folder: Path, sizes: list[int], repeat: int, timeout: float) -> None:
    """Prints a row for each model."""
    start = measured(folder, [made("blocks", 1, folder)], repeat, timeout)
    print(f"start: {start.cpu:.2f} s CPU, {start.memory} MB\n")
    print(f"{'model':<8}{'nodes':>9}{'CPU':>9}{'less start':>12}{'clock':>9}{'memory':>9}{'page':>10}")
    for count in sizes:
        for kind in ("blocks", "flat", "random"):
            run = measured(folder, [made(kind, count, folder)], repeat, timeout)
            print(
                f"{kind:<8}{count:>9,}{run.cpu:>7.2f} s{run.cpu - start.cpu:>10.2f} s{run.wall:>7.1f} s"
                f"{run.memory:>6} MB{run.written / 1e6:>7.1f} MB   {run.said}",
                flush=True,
            )


def measured(folder: Path, models: list[Path], repeat: int, timeout: float) -> Run:
    """Runs `view` in fresh processes, and returns the run with the least CPU."""
    return min((once(folder, models, timeout) for _ in range(repeat)), key=lambda run: run.cpu)


def once(folder: Path, models: list[Path], timeout: float) -> Run:
    output = folder / "page.html"
    code = (
        "import resource, sys; from onnxsmith.cli.application import app\n"
        "try: app()\nfinally:\n"
        " own, sub = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))\n"
        " cpu = own.ru_utime + own.ru_stime + sub.ru_utime + sub.ru_stime\n"
        " print(cpu, max(own.ru_maxrss, sub.ru_maxrss) // 1024, file=sys.stderr)"
    )
    began = time.monotonic()
    words = [sys.executable, "-c", code, "view", *map(str, models), "-o", str(output)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=True)
    cpu, memory = done.stderr.splitlines()[-1].split()
    notes = [line for line in done.stdout.splitlines() if "plain rows" in line]
    said = notes[0] if notes else ""
    return Run(float(cpu), time.monotonic() - began, int(memory), output.stat().st_size, said)


def made(kind: str, count: int, folder: Path) -> Path:
    """Writes a model of `count` nodes, and returns its path."""
    path = folder / f"{kind}{count}.onnx"
    draw = random.Random(count)
    shape, type_ = ir.Shape(["N", 16]), ir.TensorType(ir.DataType.FLOAT)
    mask = ir.Value(name="mask", shape=shape, type=type_)
    x = ir.Value(name="x", shape=shape, type=type_)
    results, nodes, weights = [x], [], []
    for at in range(count):
        step, last = at % 10, results[-1]
        if kind == "random":
            first = max(0, len(results) - 40)
            op, operands = draw.choice(BINARY), [results[draw.randrange(first, len(results))] for _ in range(2)]
        elif step == 9:
            op, operands = "Add", [last, results[-8]]
        elif step == 5:
            op, operands = "Mul", [last, mask]
        elif step == 1:
            tensor = ir.tensor(np.random.default_rng(at).normal(size=(16, 16)).astype(np.float32), name=f"w{at}")
            weights.append(ir.Value(name=f"w{at}", const_value=tensor, shape=tensor.shape, type=type_))
            op, operands = "MatMul", [last, weights[-1]]
        else:
            op, operands = UNARY[step % 5] if kind == "blocks" else draw.choice(UNARY), [last]
        nodes.append(ir.node(op, operands, name=f"n{at}"))
        results.append(nodes[-1].outputs[0])
        results[-1].name = f"v{at}"
    results[-1].shape, results[-1].type = shape, type_
    graph = ir.Graph([x, mask], [results[-1]], nodes=nodes, initializers=weights, opset_imports={"": 20}, name="g")
    save(ir.Model(graph, ir_version=10), path)
    return path


def pairs(folder: Path, layers: int, timeout: float) -> None:
    """Prints a row for both exports as they are, and one for both simplified."""
    files = exported(folder, layers)
    smaller = [folder / f"smaller_{path.name}" for path in files]
    for path, target in zip(files, smaller, strict=True):
        onnxsmith.simplify(path, target, verify=False)
    print(f"\n{'exports':<12}{'old':>7}{'new':>7}{'paired':>8}{'share':>8}{'CPU':>9}{'page':>10}")
    for title, both in (("as they are", files), ("simplified", smaller)):
        one, other = (onnxsmith.load(path) for path in both)
        _, (one, other), _, found = paired((one, other))
        counts = [walk.count_nodes(one), walk.count_nodes(other)]
        run = once(folder, both, timeout)
        done = len(found.pairs.nodes)
        print(
            f"{title:<12}{counts[0]:>7,}{counts[1]:>7,}{done:>8,}{done / min(counts):>8.1%}{run.cpu:>7.2f} s"
            f"{run.written / 1e6:>7.1f} MB",
            flush=True,
        )


def exported(folder: Path, layers: int) -> list[Path]:
    """Exports a transformer by torch's older exporter and by the newer one."""
    import warnings

    import torch
    from models.transformer import Stack

    torch.manual_seed(0)
    model, x = Stack(layers).eval(), torch.randn(2, 8, 32)
    files = [folder / "old.onnx", folder / "new.onnx"]
    ports: dict[str, list[str]] = {"input_names": ["x"], "output_names": ["y"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        axes = {"x": {0: "batch", 1: "time"}}
        torch.onnx.export(model, (x,), str(files[0]), dynamo=False, opset_version=20, dynamic_axes=axes, **ports)
        dims = {"x": {0: torch.export.Dim("batch"), 1: torch.export.Dim("time")}}
        torch.onnx.export(
            model, (x,), str(files[1]), dynamo=True, opset_version=20, dynamic_shapes=dims, external_data=False, **ports
        )
    return files


if __name__ == "__main__":
    main()

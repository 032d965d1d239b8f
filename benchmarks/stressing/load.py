"""What very large and unusual models cost: processor time and peak memory of whole commands.

`chain` is a row of Add, Relu and MatMul; its growth exponent is the slope of a least-squares line through the
logarithms of nodes and seconds, less what the command takes for a model of one node. The other shapes are unusual:
`weights` has 20,000 small initializers, `million` has 1,000,000 in 1,000 nodes, `names` has names of 1 MB, `nested` has
30 branches in each other, `fan` has one tensor that 50,000 nodes read, `ports` has 10,000 inputs and outputs, `concat`
joins 20,000 tensors, and `hole` has 1 GB of zeros in a sparse data file. `--large` adds a model of 3.2 GB
(`models/large.py`). `diff` compares with a copy that has one node more, `diff, same` with an equal copy.

A figure is the least of the runs: user and system seconds of the process and its children, and the most memory that one
of them held. A command that ends with an error is listed with the id of its problem. Over its target is a command for
the longest chain that takes longer than `TARGETS`, or another one that holds over 1,000 MB.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from models import large
from onnx import TensorProto, helper, numpy_helper
from scaling import slope

OWN = [sys.executable, "-m", "onnxsmith"]
TARGETS = {"inspect": 6, "view": 10, "diff": 15, "diff, same": 15, "edit": 12}
"""The seconds that a command may take for 100,000 nodes."""
MEMORY_OF_CHAIN, MEMORY = 600, 1000
"""The megabytes that a command may hold for 100,000 nodes, and for every other model."""
TIMEOUT = 300
FLOAT = TensorProto.FLOAT


@dataclass(frozen=True)
class Cost:
    """What one command cost. `said` is empty if it ended as it should."""

    seconds: float
    megabytes: float
    said: str


def cost(command: Sequence[str], folder: Path, statuses: tuple[int, ...] = (0,)) -> Cost:
    """Runs a command once."""
    with (folder / "said").open("w+b") as said:
        with subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read(1_000_000).decode(errors="replace")
    why = ""
    if process.returncode not in statuses:
        ids = re.search(r"\b[a-z]+/[a-z-]+\b", text)
        why = f"ended with {process.returncode}" + (f", {ids[0]}" if ids else "")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, why)


def written(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    ports: tuple[Sequence[str], Sequence[str]] = (("x",), ("y",)),
    weights: Sequence[onnx.TensorProto] = (),
) -> Path:
    """Writes a model."""
    inputs, outputs = ([port(name) for name in side] for side in ports)
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return path


def node(kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: object) -> onnx.NodeProto:
    """Returns a node that has the name of its result."""
    return helper.make_node(kind, inputs, outputs, name=f"node_{outputs[0]}"[:80], **attributes)


def array(name: str, *shape: int) -> onnx.TensorProto:
    """Returns a weight of small values, which stay finite through a long chain."""
    return numpy_helper.from_array(np.full(shape, 0.25, np.float32), name)


def port(name: str) -> onnx.ValueInfoProto:
    """Returns a declaration of a tensor."""
    return helper.make_tensor_value_info(name, FLOAT, ["n", 4])


def chain(path: Path, count: int) -> Path:
    """Add, Relu, MatMul, one after the other."""
    kinds, nodes, value = (("Add", "b"), ("Relu", ""), ("MatMul", "w")), [], "x"
    for n in range(count):
        kind, weight = kinds[n % 3]
        target = "y" if n == count - 1 else f"v{n}"
        nodes.append(node(kind, [value, weight] if weight else [value], [target]))
        value = target
    return written(path, nodes, weights=[array("b", 4), array("w", 4, 4)])


def weights(path: Path, count: int = 20_000) -> Path:
    """Each node adds a weight of its own."""
    names = ["x", *(f"v{n}" for n in range(count - 1)), "y"]
    nodes = [node("Add", [names[n], f"w{n}"], [names[n + 1]]) for n in range(count)]
    held = [numpy_helper.from_array(np.full(4, n / count, np.float32), f"w{n}") for n in range(count)]
    return written(path, nodes, weights=held)


def million(path: Path, count: int = 10**6, each: int = 1_000) -> Path:
    """Each Sum adds 1,000 weights of its own."""
    names = ["x", *(f"v{n}" for n in range(count // each - 1)), "y"]
    held = [TensorProto(name=f"w{n}", data_type=FLOAT, dims=[1], raw_data=bytes(4)) for n in range(count)]
    nodes = [
        node("Sum", [value, *(one.name for one in held[n * each : (n + 1) * each])], [names[n + 1]])
        for n, value in enumerate(names[:-1])
    ]
    return written(path, nodes, weights=held)


def names(path: Path, length: int = 10**6) -> Path:
    """A node, two tensors and a weight with names of 1 MB."""
    long = ["a" * length, "b" * length, "w" * length]
    nodes = [
        helper.make_node("Add", ["x", long[2]], [long[0]], name="n" * length),
        node("Relu", [long[0]], [long[1]]),
        node("Neg", [long[1]], ["y"]),
    ]
    return written(path, nodes, weights=[array(long[2], 4)])


def nested(path: Path, depth: int = 30) -> Path:
    """Each branch holds the next If: as many as protobuf for Python reads."""
    inner = node("Relu", ["x"], ["t0"])
    for n in range(depth):
        target = "y" if n == depth - 1 else f"t{n + 1}"
        bodies = (inner, f"t{n}"), (node("Neg", ["x"], [f"e{n}"]), f"e{n}")
        then, other = (helper.make_graph([one], name, [], [port(name)]) for one, name in bodies)
        inner = onnx.NodeProto(op_type="If", input=["c"], output=[target], name=f"if{n}")
        for name, graph in (("then_branch", then), ("else_branch", other)):
            inner.attribute.add(name=name, type=onnx.AttributeProto.GRAPH).g.CopyFrom(graph)
    return written(path, [inner], weights=[numpy_helper.from_array(np.array(True), "c")])


def fan(path: Path, count: int = 50_000) -> Path:
    """Every node reads the same tensor; a chain of Add collects the results."""
    nodes, value = [node("Neg", ["x"], ["h"])], "h"
    for n in range(count // 2):
        target = "y" if n == count // 2 - 1 else f"s{n}"
        nodes += [
            node("Relu", ["h"], [f"r{n}"]),
            node("Mean", [value, f"r{n}", "h"], [target]),
        ]
        value = target
    return written(path, nodes)


def ports(path: Path, count: int = 10_000) -> Path:
    """As many inputs and outputs, one node between each two."""
    nodes = [node("Relu", [f"x{n}"], [f"y{n}"]) for n in range(count)]
    return written(path, nodes, ([f"x{n}" for n in range(count)], [f"y{n}" for n in range(count)]))


def concat(path: Path, count: int = 20_000) -> Path:
    """One Concat of as many results."""
    nodes = [node("Relu" if n % 2 else "Neg", ["x"], [f"v{n}"]) for n in range(count)]
    nodes += [node("Concat", [f"v{n}" for n in range(count)], ["c"], axis=1), node("ReduceMean", ["c"], ["y"])]
    return written(path, nodes)


def hole(path: Path, size: int = 2**30) -> Path:
    """A weight of 1 GB in a sparse data file."""
    with path.with_suffix(".data").open("wb") as data:
        data.truncate(size)
    weight = TensorProto(name="w", data_type=FLOAT, dims=[4, size // 16], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", f"{path.stem}.data"), ("offset", 0), ("length", size)):
        weight.external_data.add(key=key, value=str(value))
    return written(path, [node("MatMul", ["x", "w"], ["h"]), node("ReduceMax", ["h"], ["y"])], weights=[weight])


SHAPES: dict[str, Callable[[Path], Path]] = {
    "weights": weights,
    "million": million,
    "names": names,
    "nested": nested,
    "fan": fan,
    "ports": ports,
    "concat": concat,
    "hole": hole,
}


def one_more(source: Path, target: Path) -> tuple[str, str]:
    """Writes a copy with one node more, in the middle of the graph. Returns the tensor behind which it is, and an
    input."""
    model = onnx.load(source, load_external_data=False)
    nodes = model.graph.node
    place = len(nodes) // 2
    name = nodes[place].output[0]
    nodes[place].output[0] = "one_more"
    nodes.insert(place + 1, node("Abs", ["one_more"], [name]))
    onnx.save(model, target)
    return name, model.graph.input[0].name


def commands(source: Path) -> dict[str, list[str]]:
    """Returns the commands for a model, by their labels."""
    copy, more = source.with_name("copy.onnx"), source.with_name("more.onnx")
    copy.write_bytes(source.read_bytes())
    tensor, first = one_more(source, more)
    step = f'[[step]]\ndo = "insert"\nafter = "{tensor}"\nop = "Identity"\nsame = true\n'
    source.with_name("patch.toml").write_text(step)
    lines = {
        "inspect": f"inspect {source.name}",
        "view": f"view {source.name} -o page.html",
        "diff": f"diff {source.name} more.onnx",
        "diff, same": f"diff {source.name} copy.onnx",
        "edit": f"edit {source.name} patch.toml -o out.onnx",
        "rename": f"rename {source.name} {first} renamed -o out.onnx",
        "simplify": f"simplify {source.name} -o out.onnx",
        "compare": f"compare {source.name} copy.onnx",
    }
    return {label: [*OWN, *line.split()] for label, line in lines.items()}


def row(label: str, command: list[str], folder: Path, runs: int) -> Cost:
    """Runs a command, and prints its cost."""
    statuses = (1,) if label == "diff" else (0,)  # 1: the models differ
    costs = [cost(command, folder, statuses) for _ in range(runs)]
    found = Cost(min(one.seconds for one in costs), min(one.megabytes for one in costs), costs[0].said)
    print(f"  {label:<12}{found.seconds:>8.2f} s {found.megabytes:>7.0f} MB  {found.said}".rstrip(), flush=True)
    return found


def chains(folder: Path, counts: Sequence[int], labels: Sequence[str], runs: int) -> list[str]:
    """Measures chains of these lengths. Returns what is over its target."""
    seconds: dict[str, list[float]] = {label: [] for label in labels}
    late = []
    for count in (1, *counts):
        source = chain(folder / "chain.onnx", count)
        print(f"chain of {count:,} nodes, {source.stat().st_size / 1e6:.1f} MB")
        lines = commands(source)
        for label in labels:
            found = row(label, lines[label], folder, runs)
            seconds[label].append(found.seconds)
            if count >= 100_000 and (found.seconds > TARGETS.get(label, 1e9) or found.megabytes > MEMORY_OF_CHAIN):
                late.append(f"{label}, {count:,} nodes")
    for label, (start, *rest) in seconds.items():
        print(f"growth exponent, {label}: {slope(counts, [max(one - start, 0.01) for one in rest]):.2f}")
    return late


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of this part."""
    parser.add_argument("--nodes", nargs="*", type=int, default=[25_000, 50_000, 100_000])
    parser.add_argument("--only", nargs="*", default=["chain", *SHAPES], metavar="SHAPE")
    parser.add_argument("--verbs", nargs="*", metavar="VERB", help="default: all; of chains those with a target")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--large", action="store_true")


def run(given: argparse.Namespace) -> list[str]:
    """Measures and prints. Returns what failed or is over its target."""
    late: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        if "chain" in given.only:
            late += chains(Path(name), given.nodes, given.verbs or list(TARGETS), given.runs)
    shapes = {shape: make for shape, make in SHAPES.items() if shape in given.only}
    if given.large:
        shapes["large"] = lambda path: large.make(path.parent)
    for shape, make in shapes.items():
        with tempfile.TemporaryDirectory() as name:
            source = make(Path(name) / f"{shape}.onnx")
            print(f"{shape}, {sum(one.stat().st_size for one in Path(name).iterdir()) / 1e6:.1f} MB")
            lines = commands(source)
            for label in given.verbs or lines:
                found = row(label, lines[label], Path(name), 1)
                late += [f"{label}, {shape}"] if found.megabytes > MEMORY or found.said else []
    return late

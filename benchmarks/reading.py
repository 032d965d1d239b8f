"""What it costs to read a model: processor time of whole commands, beside other tools in the same run.

    python benchmarks/reading.py LARGE.onnx [--runs 3]

LARGE is a model with many nodes, such as `models/llama.py 104` writes (22,482 nodes with Constant, 15,167 without).
`inspect`, `diff` (with a copy that has one node more) and `view` stand beside what Polygraphy and onnx print of it. The
small model has 49 nodes and three open dimensions, and declares no shapes inside. Each figure is the least of the runs
after one to warm up: user and system time of the process and those it waited for."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import onnx
from startup import seconds

from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

OWN = [sys.executable, "-m", "onnxsmith"]
PRINT = "import onnx, sys; print(onnx.printer.to_text(onnx.load(sys.argv[1])))"
BLOCKS = 8


def small() -> str:
    """A model of 49 nodes as text: each block multiplies a flattened tensor, and adds the tensor to the result."""
    lines, x = [], "x"
    for n in range(BLOCKS):
        lines += [f"s{n} = Shape({x})", f"f{n} = Reshape({x}, flat)", f"m{n} = MatMul(f{n}, w)", f"r{n} = Relu(m{n})"]
        lines += [f"b{n} = Reshape(r{n}, s{n})", f"a{n} = Add(b{n}, {x})"]
        x = f"a{n}"
    weights = ", ".join(["0.1"] * 64)
    ports = "(float[batch,height,width,8] x) => (float[batch,height,width,8] y)"
    held = f"<float[8,8] w = {{{weights}}}, int64[2] flat = {{-1, 8}}>"
    return f'<ir_version: 10, opset_import: ["": 20]> g {ports} {held} {{ {" ".join(lines)} y = Softmax({x}) }}'


def changed(source: Path, target: Path) -> None:
    """Writes a copy with one node more, in the middle of the graph."""
    model = onnx.load(source)
    nodes = model.graph.node
    place = next(n for n in range(len(nodes) // 2, len(nodes)) if nodes[n].op_type in ("Relu", "Softmax", "MatMul"))
    result = nodes[place].output[0]
    nodes[place].output[0] = f"{result}_before"
    nodes.insert(place + 1, onnx.helper.make_node("Relu", [f"{result}_before"], [result], name="one_more"))
    onnx.save(model, target)


def least(command: list[str], folder: Path, runs: int) -> float:
    """The least of the runs after one to warm up, in seconds."""
    statuses = (0, 1) if "diff" in command else (0,)  # 1: the models differ
    seconds(command, folder, statuses)
    return min(seconds(command, folder, statuses) for _ in range(runs))


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("large", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in (("small.onnx", small()), ("other.onnx", small().replace("Softmax", "Sigmoid"))):
            save(from_text(text), folder / file)
        large, copy = given.large.absolute(), folder / "copy.onnx"
        changed(large, copy)
        peers = {"onnx, print": [sys.executable, "-c", PRINT, str(large)]}
        polygraphy = shutil.which("polygraphy", path=str(Path(sys.executable).parent))
        if polygraphy:
            peers["polygraphy inspect"] = [polygraphy, "inspect", "model", str(large)]
        rows = {
            "inspect, large": [*OWN, "inspect", str(large)],
            "diff, large and its copy": [*OWN, "diff", str(large), str(copy)],
            "view, large": [*OWN, "view", str(large), "-o", "page.html"],
            "inspect, small": [*OWN, "inspect", "small.onnx"],
            "diff, small": [*OWN, "diff", "small.onnx", "other.onnx"],
        }
        beside = {peer: least(command, folder, given.runs) for peer, command in peers.items()}
        print(f"{'command':<28}{'seconds':>9}" + "".join(f"{f'over {peer}':>26}" for peer in beside))
        for row, command in rows.items():
            taken = least(command, folder, given.runs)
            print(f"{row:<28}{taken:>9.2f}" + "".join(f"{taken / other:>25.2f}x" for other in beside.values()))
        for peer, taken in beside.items():
            print(f"{peer:<28}{taken:>9.2f}")


if __name__ == "__main__":
    main()

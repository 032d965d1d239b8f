"""How the cost of `simplify` grows: with the number of nodes, and on a model of 3.2 GB.

    python benchmarks/scaling.py [--folder .bench-corpus] [--tools onnxsmith onnxsim …] [--layers 1 2 4 …]
                                 [--timeout 900] [--repeat 1] [--no-large] [--no-stacks]

Stacks: the Llamas that `corpus.py --only llama` made. CPU is user and system time of a fresh process, the least of
`--repeat` runs; onnxsmith runs without its verification. The growth exponent is the slope of a least-squares line
through the logarithms of nodes and CPU: of the whole process, and less what the same tool takes for a model of one
node, which is what starting it costs (of the upper half of the sizes, where the difference is not noise).
Large: 48 times Transpose, MatMul, Relu with weights in a second file (`models/large.py`), made in a temporary folder
for the occasion. Beside each figure stands its ratio to the other tool's, from the same run.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import corpus
import numpy as np
from measuring.attempt import Attempt, attempt
from measuring.tool_process import TOOLS
from models.large import make

from onnxsmith import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.walk import count_nodes

SMALL = '<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (float[n] y) { y = Relu(x) }'
STACK_TOOLS = ("onnxsmith", "onnxsim")
LARGE_TOOLS = ("onnxsmith", "onnxscript")


def run(tool: str, source: Path, timeout: float, repeat: int) -> tuple[Attempt, int | None, int]:
    """The cheapest of `repeat` runs, nodes left (None when it failed), and bytes written."""
    best: Attempt | None = None
    nodes, size = None, 0
    for _ in range(repeat):
        with tempfile.TemporaryDirectory(dir=source.parent) as folder:
            target = Path(folder) / "out.onnx"
            done = attempt(tool, source.absolute(), target, timeout)
            if done.status == "written":
                nodes, size = count_nodes(load(target)), sum(path.stat().st_size for path in Path(folder).iterdir())
        if best is None or done.cpu < best.cpu:
            best = done
    if best is None:
        raise ValueError("repeat has to be 1 or more")
    return best, nodes, size


def start_up(tool: str, timeout: float) -> float:
    """CPU seconds for a model of one node, the least of three."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "small.onnx"
        save(from_text(SMALL), source)
        return run(tool, source, timeout, 3)[0].cpu


def slope(nodes: Sequence[int], seconds: Sequence[float]) -> float:
    """Of the least-squares line through the logarithms; NaN for fewer than two points."""
    if len(nodes) < 2:
        return float("nan")
    return float(np.polyfit(np.log(nodes), np.log(seconds), 1)[0])


def stacks(folder: Path, tools: Sequence[str], layers: Sequence[int], timeout: float, repeat: int) -> None:
    """Prints CPU by size and tool, growth exponents, and the ratio to each other tool at the largest size."""
    cpu: dict[str, dict[int, float]] = {tool: {} for tool in tools}
    gone: set[str] = set()
    idle = {tool: start_up(tool, timeout) for tool in tools}
    print(f"{'layers':>6} {'nodes':>6}  " + "  ".join(f"{f'{tool}: CPU, nodes, MiB':>30}" for tool in tools))
    for count in layers:
        source = folder / "llama" / f"llama_{count}.onnx"
        if not source.exists():
            continue
        before = count_nodes(load(source))
        cells = []
        for tool in tools:
            if tool in gone:
                cells.append("not run: it was late before")
                continue
            done, after, _ = run(tool, source, timeout, repeat)
            if done.status == "written":
                cpu[tool][before] = done.cpu
                cells.append(f"{done.cpu:.2f} s {after} {done.peak_mib or 0:.0f}")
            else:
                cells.append(f"{done.status}: {done.error}"[:30])
                gone.add(tool)
        print(f"{count:6} {before:6}  " + "  ".join(f"{cell:>30}" for cell in cells), flush=True)
    for tool, points in cpu.items():
        sizes, seconds = list(points), list(points.values())
        half = len(sizes) // 2
        upper = slope(sizes[half:], [max(value - idle[tool], 0.01) for value in seconds[half:]])
        whole = slope(sizes, seconds)
        print(f"growth exponent of CPU, {tool}: {whole:.2f}; less {idle[tool]:.2f} s to start, upper half: {upper:.2f}")
    ours = cpu.get("onnxsmith", {})
    for tool, points in cpu.items():
        common = sorted(points.keys() & ours.keys())
        if tool != "onnxsmith" and common:
            largest = common[-1]
            print(f"CPU at {largest} nodes, onnxsmith / {tool}: {ours[largest] / points[largest]:.2f}")


def large(tools: Sequence[str], timeout: float, room: Path | None) -> None:
    """Prints CPU and peak memory of each tool on the large model, and the ratios to ours."""
    with tempfile.TemporaryDirectory(dir=room) as folder:
        source = make(Path(folder))
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        print(f"{size / 1e9:.2f} GB with weights in a second file, {count_nodes(load(source))} nodes")
        found = {}
        for tool in tools:
            done, nodes, written = run(tool, source, timeout, 1)
            print(
                f"  {tool:12} CPU {done.cpu:7.1f} s, peak {done.peak_mib or 0:7.0f} MiB, {nodes} nodes, "
                f"{written / 1e9:.2f} GB, {done.status} {done.error}",
                flush=True,
            )
            if done.status == "written":
                found[tool] = done
    ours = found.get("onnxsmith")
    for tool, done in found.items():
        if ours and tool != "onnxsmith" and ours.peak_mib and done.peak_mib:
            memory = ours.peak_mib / done.peak_mib
            print(f"  onnxsmith / {tool}: CPU {ours.cpu / done.cpu:.2f}, peak memory {memory:.2f}")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=corpus.FOLDER)
    parser.add_argument("--tools", nargs="*", metavar="TOOL", choices=TOOLS)
    parser.add_argument("--layers", nargs="*", type=int, default=[1, 2, 4, 8, 16, 32, 64, 128])
    parser.add_argument("--timeout", type=float, default=900)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--room", type=Path, help="where the large model is made, the temporary folder when left out")
    parser.add_argument("--no-large", action="store_true")
    parser.add_argument("--no-stacks", action="store_true")
    given = parser.parse_args()

    def installed(tools: Sequence[str]) -> list[str]:
        return [tool for tool in tools if find_spec(TOOLS[tool][0]) is not None]

    if not given.no_stacks:
        stacks(given.folder, installed(given.tools or STACK_TOOLS), given.layers, given.timeout, given.repeat)
    if not given.no_large:
        large(installed(given.tools or LARGE_TOOLS), given.timeout, given.room)


if __name__ == "__main__":
    main()

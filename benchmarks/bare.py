"""What `simplify` without verification costs: processor time of whole processes, beside onnxsim's API and onnx-ir.

    python benchmarks/bare.py [--onnxsim PYTHON] [--runs 3] MODEL.onnx …

PYTHON is the interpreter of an environment with onnx and onnxsim alone: beside other packages onnxsim imports these,
too, and takes up to five times as long. "Load and save" is onnx-ir's. Each figure is the least of the runs after one to
warm up. The last lines have the median and the worst ratio."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from startup import seconds

ONNXSIM = """
import sys, onnx, onnxsim
onnx.save(onnxsim.simplify(onnx.load(sys.argv[1]))[0], sys.argv[2])
"""
ONNX_IR = """
import sys, onnx_ir
onnx_ir.save(onnx_ir.load(sys.argv[1]), sys.argv[2])
"""


def least(command: list[str], runs: int) -> float:
    """The least of the runs after one to warm up, in seconds. `{}` in the command is a folder, new in each run."""
    found = []
    for _ in range(runs + 1):
        with tempfile.TemporaryDirectory() as name:
            found.append(seconds([word.replace("{}", name) for word in command], Path(name)))
    return min(found[1:])


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--onnxsim", default=sys.executable)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    print(f"{'model':<32}{'simplify':>10}{'onnxsim':>10}{'ratio':>8}{'load and save':>15}{'ratio':>8}")
    ratios: list[tuple[float, float]] = []
    for model in given.models:
        path = str(model.absolute())
        ours = least(
            [sys.executable, "-m", "onnxsmith", "simplify", path, "-o", "{}/out.onnx", "--no-verify"], given.runs
        )
        theirs = least([given.onnxsim, "-c", ONNXSIM, path, "{}/out.onnx"], given.runs)
        bare = least([sys.executable, "-c", ONNX_IR, path, "{}/out.onnx"], given.runs)
        ratios.append((ours / theirs, ours / bare))
        print(f"{model.name[:31]:<32}{ours:>10.2f}{theirs:>10.2f}{ours / theirs:>8.2f}{bare:>15.2f}{ours / bare:>8.2f}")
    for name, choose in (("median", statistics.median), ("worst", max)):
        first, second = (choose(column) for column in zip(*ratios, strict=True))
        print(f"{name:<32}{first:>28.2f}{second:>23.2f}")


if __name__ == "__main__":
    main()

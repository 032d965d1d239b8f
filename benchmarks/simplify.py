"""Nodes left by onnxsmith and by other simplifiers, on the same files, one fresh process for each.

    python benchmarks/simplify.py [FILE.onnx …] [--timeout 120]

Without files it takes the models that installed packages ship (silero-vad, rapidocr, magika, nudenet, ddddocr,
basic-pitch, whichever are there). Nodes exclude Constant and count subgraphs. Each result is held to the original by
onnxsmith's own verification, on several inputs; "wrong" is a result that differs, "failed" one that was not made or
does not run. CPU is user and system time of the whole process, for onnxsmith without its verification.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from onnxsmith import OnnxsmithError, load
from onnxsmith.comparison.sessions import verify_models
from onnxsmith.model.walk import count_nodes

PACKAGES = ("silero_vad", "rapidocr", "magika", "nudenet", "ddddocr", "basic_pitch")

TOOLS = {
    "onnxsmith": ("onnxsmith", "import onnxsmith; onnxsmith.simplify({src!r}, {dst!r}, verify=False)"),
    "onnxsim": ("onnxsim", "import onnx, onnxsim; m, ok = onnxsim.simplify({src!r}); onnx.save(m, {dst!r})"),
    "onnxslim": ("onnxslim", "import onnx, onnxslim; onnx.save(onnxslim.slim({src!r}), {dst!r})"),
    "onnxscript": (
        "onnxscript",
        "import onnx_ir as ir, onnxscript.optimizer as o; m = ir.load({src!r}); o.optimize(m); ir.save(m, {dst!r})",
    ),
    "onnxoptimizer": (
        "onnxoptimizer",
        (
            "import onnx, onnxoptimizer as o; passes = o.get_fuse_and_elimination_passes(); "
            "onnx.save(o.optimize(onnx.load({src!r}), passes), {dst!r})"
        ),
    ),
    "ort basic": (
        "onnxruntime",
        (
            "import onnxruntime as o; s = o.SessionOptions(); s.optimized_model_filepath = {dst!r}; "
            "s.graph_optimization_level = o.GraphOptimizationLevel.ORT_ENABLE_BASIC; o.InferenceSession({src!r}, s)"
        ),
    ),
}


@dataclass
class Outcome:
    """What one tool made of one file."""

    nodes: int | None
    bytes: int
    cpu: float
    verdict: str


def attempt(tool: str, source: Path, timeout: float) -> Outcome:
    """Runs the tool in a process of its own and holds what it wrote to the original."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "out.onnx"
        code = TOOLS[tool][1].format(src=str(source), dst=str(target))
        before = os.times()
        try:
            subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, timeout=timeout, check=True)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return Outcome(None, 0, 0.0, "failed")
        after = os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        try:
            nodes = count_nodes(load(target))
            verdict = "" if verify_models(source, target).equal else "wrong"
        except OnnxsmithError as error:
            return Outcome(
                None, 0, cpu, "failed" if error.problem.id.startswith(("model/", "runtime/")) else "unverified"
            )
        return Outcome(nodes, target.stat().st_size, cpu, verdict)


def shipped() -> list[Path]:
    """The models of the packages that are installed."""
    root = Path(sysconfig.get_path("purelib"))
    return sorted(path for package in PACKAGES for path in (root / package).rglob("*.onnx"))


def mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def main() -> None:
    """Prints a row a file and the geometric means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--timeout", type=float, default=120)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    files = given.files or shipped()
    tools = [tool for tool, (package, _) in TOOLS.items() if find_spec(package) is not None]
    print(f"{'model':40} {'nodes':>6}  " + "  ".join(f"{tool:>14}" for tool in tools))
    outcomes: dict[str, list[tuple[int, int, Outcome]]] = {tool: [] for tool in tools}
    best = 0
    for file in files:
        source = file.absolute()
        nodes = count_nodes(load(source))
        row = {tool: attempt(tool, source, given.timeout) for tool in tools}
        for tool, outcome in row.items():
            outcomes[tool].append((nodes, source.stat().st_size, outcome))
        right = [o.nodes for o in row.values() if o.nodes is not None and not o.verdict]
        best += row["onnxsmith"].nodes == min(right, default=-1)
        cells = [f"{'-' if o.nodes is None else o.nodes} {o.verdict}".strip() for o in row.values()]
        print(f"{file.name[:40]:40} {nodes:6}  " + "  ".join(f"{cell:>14}" for cell in cells), flush=True)
    for title, pick in (
        ("nodes, ratio, geometric mean", lambda n, b, o: o.nodes / n),
        ("bytes, ratio, geometric mean", lambda n, b, o: o.bytes / b),
    ):
        means = [
            mean([pick(n, b, o) for n, b, o in outcomes[t] if o.nodes is not None and not o.verdict]) for t in tools
        ]
        print(f"{title:40} {'':6}  " + "  ".join(f"{value:14.3f}" for value in means))
    cpu = [sum(o.cpu for _, _, o in outcomes[tool]) for tool in tools]
    print(f"{'CPU of all, seconds':40} {'':6}  " + "  ".join(f"{value:14.1f}" for value in cpu))
    bad = [sum(bool(o.verdict) for _, _, o in outcomes[tool]) for tool in tools]
    print(f"{'wrong, failed or unverified':40} {'':6}  " + "  ".join(f"{value:14}" for value in bad))
    print(f"onnxsmith is best or tied on {best} of {len(files)}")


if __name__ == "__main__":
    main()

"""What a verified export costs beside plain torch: processor time of whole processes, in the same run.

    PYTHONPATH=src:benchmarks python benchmarks/verified_export.py

Eight networks, each with its dynamic axes: two convolution networks of torchvision, six of transformers. Each tool
exports in a process of its own: `torch.onnx.export(dynamo=True)`, `onnxsmith.export` with verification and without. The
time is user and system time of the process and of the children that it waited for. The last line has the medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

NETWORKS = ("mobilenet_v2", "resnet18", "vit", "bert", "gpt2", "lstm", "segformer", "t5")
OF_TORCHVISION = ("mobilenet_v2", "resnet18")
TOOLS = ("torch", "verified", "unverified")


def network(name: str) -> tuple[Any, tuple[Any, ...], Any]:
    """The module, its inputs, and its dynamic axes by input and axis."""
    import torch

    torch.manual_seed(0)
    if name in OF_TORCHVISION:
        from exporting.torchvision_operators import torchvision

        module = getattr(torchvision().models, name)(weights=None).eval()
        return module, (torch.randn(2, 3, 224, 224),), {"x": {0: "batch"}}
    from models.architectures import build

    made = build(name)
    return made.module.eval(), tuple(torch.as_tensor(value) for value in made.inputs.values()), made.dynamic


def export(name: str, tool: str, target: Path) -> None:
    """Writes one file."""
    module, inputs, dynamic = network(name)
    if tool == "torch":
        import torch

        dims = {axis: torch.export.Dim(axis) for axes in dynamic.values() for axis in axes.values()}
        shapes = [{number: dims[axis] for number, axis in axes.items()} for axes in dynamic.values()]
        shapes += [{}] * (len(inputs) - len(shapes))
        torch.onnx.export(module, inputs, str(target), dynamo=True, dynamic_shapes=tuple(shapes), verbose=False)
        return
    import onnxsmith

    result = onnxsmith.export(module, inputs, output=target, dynamic=dynamic or None, verify=tool == "verified")
    assert result.ok, result.report.headline


def seconds(name: str, tool: str, folder: Path) -> float:
    """Processor time of one export in a process of its own; NaN if it fails."""
    command = [sys.executable, __file__, "--one", name, tool, str(folder / f"{name}.onnx")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as one:
        _, status, usage = os.wait4(one.pid, 0)
        one.returncode = os.waitstatus_to_exitcode(status)
    return float("nan") if one.returncode else usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs=3, metavar=("NETWORK", "TOOL", "FILE"))
    given = parser.parse_args()
    if given.one:
        export(given.one[0], given.one[1], Path(given.one[2]))
        return
    print(f"{'network':<14}" + "".join(f"{tool:>12}" for tool in TOOLS) + f"{'verified':>12}{'unverified':>12}")
    ratios: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in NETWORKS:
            taken = [seconds(name, tool, Path(folder)) for tool in TOOLS]
            ratios.append((taken[1] / taken[0], taken[2] / taken[0]))
            times = "".join(f"{one:>11.2f}s" for one in taken)
            print(f"{name:<14}{times}{ratios[-1][0]:>11.2f}x{ratios[-1][1]:>11.2f}x", flush=True)
    known = [one for one in ratios if one[0] == one[0]]
    medians = [statistics.median(column) for column in zip(*known, strict=True)]
    print(f"{'median':<50}{medians[0]:>11.2f}x{medians[1]:>11.2f}x")


if __name__ == "__main__":
    main()

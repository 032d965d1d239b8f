"""What an export costs in a session that goes on: the second and later ones in one process, beside plain torch.

    python benchmarks/interactive.py

Each tool exports two small networks in a process of its own: the first export pays for imports and is printed apart,
then follow rounds of both. Figures are the processor time of that process, median of the rounds; a child that runs the
file for the check has its own column. Exits with 1 when a later export of ours is over its target.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

ROUNDS = 8
TARGET = 0.15  # seconds of processor time for an export that is not the first, verified
TOOLS = ("plain torch", "onnxsmith", "onnxsmith, unverified")


def networks() -> dict[str, tuple[Any, Any]]:
    """Two small networks, each with an input."""
    import torch
    from torch import nn

    return {
        "linear": (nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), torch.rand(2, 8)),
        "convolution": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)), torch.rand(1, 3, 16, 16)),
    }


def export(tool: str, module: Any, x: Any, file: Path) -> None:
    """Writes one file."""
    if tool == "plain torch":
        import torch

        torch.onnx.export(module.eval(), (x,), str(file), dynamo=True, verbose=False)
        return
    import onnxsmith

    assert onnxsmith.export(module, (x,), output=file, verify=tool == "onnxsmith").ok


def spent() -> tuple[float, float]:
    """Seconds of processor time of this process and of the children it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time(), children.ru_utime + children.ru_stime


def measure(tool: str) -> dict[str, list[tuple[float, float]]]:
    """Network → what each of its exports took, in this process; the first of all stands under `first`."""
    found: dict[str, list[tuple[float, float]]] = {"first": []}
    models = networks()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for name, (module, x) in models.items():
                own, children = spent()
                export(tool, module, x, Path(folder) / "m.onnx")
                now, children_now = spent()
                key = name if found["first"] else "first"
                found.setdefault(key, []).append((now - own, children_now - children))
    return found


def measured(tool: str) -> dict[str, list[tuple[float, float]]]:
    """The same, in a process of its own with one thread."""
    done = subprocess.run(
        [sys.executable, __file__, "--tool", tool],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[tuple[float, float]]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Measures, prints the table, returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", choices=TOOLS, help="measure this one here and print the figures as JSON")
    tool = parser.parse_args().tool
    if tool:
        warnings.simplefilter("ignore")
        print(json.dumps(measure(tool)))
        return 0
    found = {name: measured(name) for name in TOOLS}
    over = False
    print(f"{'export':<14}{'tool':<24}{'process':>10}{'children':>10}{'ratio':>8}")
    for row in ("first", *networks()):
        medians = {name: [statistics.median(each) for each in zip(*found[name][row], strict=True)] for name in TOOLS}
        for name, (own, children) in medians.items():
            ratio = own / medians["plain torch"][0]
            late = row != "first" and name == "onnxsmith" and own > TARGET
            over = over or late
            said = "  OVER ITS TARGET" if late else ""
            print(f"{row:<14}{name:<24}{own:>8.3f} s{children:>8.3f} s{ratio:>7.2f}x{said}")
    return int(over)


if __name__ == "__main__":
    sys.exit(main())

"""What the first export of a process costs, and what later ones cost, beside `torch.onnx.export(dynamo=True)`.

    python benchmarks/first_export.py

The module is tiny (a linear layer and a ReLU), so that the figures are those of starting: imports, registries, the
runtime's process. The first export is the processor time, user and system, of a whole process that exports once, with
the processes that it waited for. Later exports are timed inside a process, after its first one. Each figure is the
median of 3 processes, which take turns. onnxsmith verifies its file, torch does not. Exits with 1 over a target.
"""

from __future__ import annotations

import compileall
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import onnxsmith

RUNS = 3
LATER = 4  # exports after the first one of a process
RATIO = 1.15  # target: first export, times that of torch
SECONDS = 0.15  # target: processor time of a later export

MODULE = """
import time
import torch
module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval()
example = (torch.randn(2, 4),)
"""
EXPORTS = {
    "onnxsmith": "import onnxsmith\ndef export(): onnxsmith.export(module, example, output='model.onnx')\n",
    "torch.onnx": "def export(): torch.onnx.export(module, example, 'torch.onnx', dynamo=True, verbose=False)\n",
}
TIMED = f"""
export()
for _ in range({LATER}):
    begun = time.process_time()
    export()
    print(time.process_time() - begun)
"""


def run(code: str, folder: Path) -> tuple[float, list[float]]:
    """Processor time of a process, in seconds, and the numbers that it printed.

    Raises RuntimeError when the process fails.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said = process.stdout.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"an export ended with {process.returncode}")
    numbers = [float(line) for line in said.splitlines() if line.replace(".", "", 1).replace("e-", "", 1).isdigit()]
    return usage.ru_utime + usage.ru_stime, numbers


def main() -> int:
    """Measures, prints the table, returns the exit status."""
    compileall.compile_dir(str(Path(onnxsmith.__file__).parent), quiet=2)  # an installed package has its bytecode
    first: dict[str, list[float]] = {name: [] for name in EXPORTS}
    later: dict[str, list[float]] = {name: [] for name in EXPORTS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(RUNS):
            for tool, code in EXPORTS.items():
                first[tool].append(run(MODULE + code + "export()\n", folder)[0])
                later[tool] += run(MODULE + code + TIMED, folder)[1]
    once = {tool: statistics.median(found) for tool, found in first.items()}
    again = {tool: statistics.median(found) for tool, found in later.items()}
    print(f"{'tool':<14}{'first export':>14}{'later exports':>16}")
    for tool in EXPORTS:
        print(f"{tool:<14}{once[tool]:>12.2f} s{again[tool]:>14.3f} s")
    ratio = once["onnxsmith"] / once["torch.onnx"]
    print(f"first export: {ratio:.2f} times torch's (target {RATIO}); later: {again['onnxsmith']:.3f} s ({SECONDS})")
    return int(ratio > RATIO or again["onnxsmith"] > SECONDS)


if __name__ == "__main__":
    sys.exit(main())

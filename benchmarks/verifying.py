"""What verification costs: processor time of whole processes, beside plain runs of onnxruntime in the same run.

    python benchmarks/verifying.py MODEL.onnx …
    python benchmarks/verifying.py --runs 5 --thorough MODEL.onnx …

A plain run imports onnxruntime and numpy, makes a session and runs it once. `simplify` is held beside `--no-verify` and
two plain runs; `compare`, of the model and its simplified form, beside two plain runs. Each figure is the least of some
runs, because other work on the machine only adds. The last line has the median and the worst ratio of each column.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import astuple, dataclass
from pathlib import Path

PLAIN = """
import sys
import numpy as np, onnxruntime as ort
def value(port):
    kind = port.type.removeprefix("tensor(").removesuffix(")")
    dtype = {"float": "float32", "double": "float64"}.get(kind, kind)
    return np.ones([size if isinstance(size, int) else 4 for size in port.shape], dtype)
session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
session.run(None, {port.name: value(port) for port in session.get_inputs()})
"""


@dataclass(frozen=True)
class Ratios:
    """Processor time of three commands, in multiples of what they are held beside."""

    simplify: float
    compare: float
    per_layer: float


def seconds(command: list[str]) -> float:
    """Processor time of one run, user and system, of the process and the children it waited for.

    Raises RuntimeError when the command fails.
    """
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as one:
        said = one.stderr.read() if one.stderr is not None else b""
        _, status, usage = os.wait4(one.pid, 0)
        one.returncode = os.waitstatus_to_exitcode(status)
    if one.returncode:
        raise RuntimeError(f"{' '.join(command)[:200]} ended with {one.returncode}: {said.decode()[-500:]}")
    return usage.ru_utime + usage.ru_stime


def measured(model: Path, folder: Path, runs: int, words: list[str]) -> Ratios:
    """The ratios of one model; `words` are further options of the commands that verify."""

    def least(*command: str) -> float:
        return min(seconds([sys.executable, *command]) for _ in range(runs))

    own = ("-m", "onnxsmith")
    simple, other = str(folder / "simple.onnx"), str(folder / "other.onnx")
    bare = least(*own, "simplify", str(model), "-o", simple, "--no-verify")
    plain = least("-c", PLAIN, str(model)) + least("-c", PLAIN, simple)
    verified = least(*own, "simplify", str(model), "-o", other, *words)
    compared = least(*own, "compare", str(model), simple, *words)
    by_layer = least(*own, "compare", str(model), simple, "--per-layer", *words)
    return Ratios(verified / (bare + plain), compared / plain, by_layer / plain)


def main() -> None:
    """Prints one row for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--thorough", action="store_true")
    given = parser.parse_args()
    words = ["--thorough"] if given.thorough else []
    rows: list[Ratios] = []
    print(f"{'model':32} {'simplify':>9} {'compare':>9} {'per layer':>9}")
    for model in given.models:
        with tempfile.TemporaryDirectory() as folder:
            try:
                rows.append(measured(model, Path(folder), given.runs, words))
            except RuntimeError as error:
                print(f"{model.name:32} left out: {error}")
                continue
        print(f"{model.name:32} {''.join(f'{one:9.2f} ' for one in astuple(rows[-1]))}", flush=True)
    for name, of in (("median", statistics.median), ("worst", max)) if rows else ():
        print(f"{name:32} {''.join(f'{of(column):9.2f} ' for column in zip(*map(astuple, rows), strict=True))}")


if __name__ == "__main__":
    main()

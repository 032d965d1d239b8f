"""Measures whether `bench` repeats, and whether it calls identical models equal. For a quiet machine.

    python benchmarks/bench_repeat.py [--seconds 20] [--runs 5] [--repetitions 20]

Two claims: the ratio of two different variants lies within 3% of its median in five benchmarks, and the interval of two
identical models contains 1 in at least 19 of 20 benchmarks. Exits with 1 when a claim is missed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

import onnxsmith
from onnxsmith.base.report.parts.measurements import Measurement, Ratio, Ratios

WITHIN = 0.03
"""Largest distance of a ratio from the median of all."""
HELD = 0.95
"""Least share of intervals of identical models that contain 1."""


def main() -> int:
    """Measures both claims, prints each benchmark, and says whether the claims hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of measuring, for each benchmark")
    parser.add_argument("--runs", type=int, default=5, help="benchmarks of two different variants")
    parser.add_argument("--repetitions", type=int, default=20, help="benchmarks of two identical models")
    parser.add_argument("--threads", type=int, default=1, help="of onnxruntime; 1 is disturbed least by others")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = network(Path(folder))
        usual, plain = (f"{path}@onnxruntime:{level}:threads={options.threads}" for level in ("all", "disable"))
        print(f"load average {os.getloadavg()[0]:.2f}, {len(os.sched_getaffinity(0))} processors")
        ratios = [benched(plain, usual, options.seconds, seed) for seed in range(options.runs)]
        same = [benched(usual, usual, options.seconds, seed) for seed in range(options.repetitions)]
    return verdict(ratios, same)


def benched(a: str, b: str, seconds: float, seed: int) -> Ratio:
    """The ratio of b's time to that of a."""
    report = onnxsmith.bench(a, b, seconds=seconds, seed=seed).report
    (one,) = report.part(Ratios).ratios
    seen = report.part(Measurement)
    others = "unknown" if seen.others is None else f"{seen.others:.0%}"
    print(f"  {one}; {one.result}; {seen.rounds} rounds, load {seen.load}, others {others}", flush=True)
    return one


def verdict(ratios: list[Ratio], same: list[Ratio]) -> int:
    """Prints both claims with what was measured; 1 if one is missed."""
    known = [one.ratio for one in ratios if one.ratio is not None]
    middle = statistics.median(known) if known else 0.0
    furthest = max((abs(one / middle - 1) for one in known), default=0.0)
    repeats = bool(known) and len(known) == len(ratios) and furthest <= WITHIN
    if ratios:
        print(
            f"ratio of two variants: {middle:.3f}, furthest {furthest:.1%} away in {len(ratios)}; target {WITHIN:.0%}"
        )
    found = [one for one in same if one.low is not None and one.high is not None]
    held = sum(one.low <= 1 <= one.high for one in found if one.low is not None and one.high is not None)
    holds = not same or held >= HELD * len(same)
    if same:
        print(f"identical models: {held} of {len(same)} intervals contain 1; target {HELD:.0%}")
        print(f"  ranked by mistake: {sum(one.ranked for one in same)}; no interval: {len(same) - len(found)}")
    met = (repeats or not ratios) and holds
    print("both claims hold" if met else "a claim is missed")
    return 0 if met else 1


def network(folder: Path) -> Path:
    """Four convolutions with activations and a linear layer, some milliseconds a run."""
    random, path = np.random.default_rng(0), folder / "network.onnx"
    with onnxsmith.build(path, opset=20) as g:
        x = g.input("x", "float32", [1, 3, 64, 64])
        for inside, outside in ((3, 16), (16, 32), (32, 32), (32, 32)):
            w = random.standard_normal((outside, inside, 3, 3)).astype(np.float32) / 10
            x = g.Relu(g.Conv(x, w, np.zeros(outside, np.float32), pads=[1, 1, 1, 1]))
        weights = random.standard_normal((32, 10)).astype(np.float32)
        g.output("y", g.Softmax(g.MatMul(g.Flatten(g.GlobalAveragePool(x)), weights)))
    return path


if __name__ == "__main__":
    sys.exit(main())

"""Prunes a digits ResNet of usual widths, trains it on, and times it beside the whole one.

    python benchmarks/pruning.py [--share 30%] [--multiple 8] [--seconds 20]

The network and its pictures are those of `examples/93_prune`, with 64 and 128 channels in place of 16 and 32. Prints
the share of pictures that are read before, without the channels, and after training on; size, multiply-adds and time
are parts of those of the whole network, exported and simplified alike. Times are measured in turns, on one thread.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import onnxsmith
from onnxsmith.base.report.parts.measurements import Ratios
from onnxsmith.base.report.parts.pruning import Pruning

sys.path.insert(0, str(Path(__file__).parent.parent / "examples" / "93_prune"))
import digits
import torch
from torch import nn

LOW, HIGH = 64, 128


class Wide(digits.Network):
    """The network of the example, with more channels."""

    def __init__(self) -> None:
        nn.Module.__init__(self)
        self.stem = nn.Conv2d(1, LOW, 3, stride=2, padding=1)
        self.low = digits.Block(LOW)
        self.wider = nn.Conv2d(LOW, HIGH, 3, stride=2, padding=1)
        self.high = digits.Block(HIGH)
        self.head = nn.Linear(HIGH, 10)


def exported(network: nn.Module, path: Path, **options: Any) -> Path:
    """The network as a file."""
    example = (torch.zeros(1, 1, digits.SIDE, digits.SIDE),)
    result = onnxsmith.export(network, example, output=path, input_names=["x"], **options)
    assert result.ok, result.report.headline
    return path


def main() -> None:
    """Trains, prunes, trains on, measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", default="30%")
    parser.add_argument("--multiple", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = digits.fit(Wide(), 4, 2e-3)
    print(f"before: {digits.right(network):.2%} of the pictures are read", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        net, kept = exported(network, folder / "net.onnx", simplify=False), folder / "kept.json"
        more = {} if given.multiple is None else {"multiple": given.multiple}
        done = onnxsmith.prune(
            net, folder / "small.onnx", share=given.share, data=list(digits.samples()), metric="top1", keep_list=kept,
            measure_time=False, **more,
        )  # fmt: skip
        print(done.report.headline, flush=True)
        part = next(one for one in done.report.parts if isinstance(one, Pruning))
        print(f"multiply-adds: {part.macs_before} → {part.macs_after}", flush=True)
        onnxsmith.shrink(network, kept)
        again = digits.fit(network, 2, 1e-3)
        print(f"trained on: {digits.right(again):.2%}", flush=True)
        torch.manual_seed(0)
        whole = exported(digits.fit(Wide(), 1, 2e-3), folder / "whole.onnx")
        small = exported(again, folder / "again.onnx")
        print(f"size: {small.stat().st_size / whole.stat().st_size:.3f}")
        timed = onnxsmith.bench(
            whole, small, subjects=("onnxruntime",), threads=(1,), seconds=given.seconds, tolerance=float("inf")
        )
        for ratio in next(one for one in timed.report.parts if isinstance(one, Ratios)).ratios:
            print(f"time: {ratio.ratio:.3f} ({ratio.low:.3f} to {ratio.high:.3f})")


if __name__ == "__main__":
    main()

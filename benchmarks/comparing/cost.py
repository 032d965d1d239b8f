"""What a comparison by layer costs, beside a session for each tensor and beside two plain runs.

    python benchmarks/comparing/cost.py [--width 384] [--layers 6]

The network is a vision transformer of 224 x 224 pixels. "A session for each tensor" exposes one tensor at a time and
builds a session for it, which is how torch's own finder of differences worked until it was dropped.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import onnx
import onnxruntime as ort
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent.parent))
import onnxsmith
from comparing.faults import _export
from comparing.networks import Layer
from onnxsmith.report.parts.layers import Layers
from onnxsmith.report.parts.timing import Timing


class Vit(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.layers = nn.ModuleList(Layer(width, 6, False) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--layers", type=int, default=6)
    asked = parser.parse_args()
    torch.manual_seed(0)
    module, args = Vit(asked.width, asked.layers).eval(), (torch.randn(1, 3, 224, 224),)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vit.onnx"
        _export(module, args, path)
        program = torch.export.export(module, args)
        plain = _spent(lambda: _plain(module, args, path))
        inputs = {"image": args[0].numpy()}
        results = []

        def compare(reference: object) -> None:
            results.append(onnxsmith.compare(reference, path, per_layer=True, generate=False, inputs=inputs))

        traced, whole = _spent(lambda: compare((module, args))), _spent(lambda: compare(program))
        names = [layer.name for layer in results[1].report.part(Layers).layers]
        each = _spent(lambda: _session_each(path, names, args))
    print(f"tensors compared: {len(names)}; equal: {[result.ok for result in results]}")
    print(f"seconds of processor time, of child processes too; share of plain runs: {1:.1f}")
    for name, spent in (
        ("two plain runs and a session", plain),
        ("a session for each tensor", each),
        ("compare --per-layer, a module", traced),
        ("compare --per-layer, an exported program", whole),
    ):
        print(f"{name:42} {spent:7.2f} s  {spent / plain:6.1f} x plain  {each / spent:6.1f} x faster than one for each")
    print(
        "stages of the last, seconds:",
        {key: round(value, 2) for key, value in results[1].report.part(Timing).seconds.items()},
    )
    return 0 if each >= 15 * whole and whole <= 2.5 * plain else 1


def _spent(run: Callable[[], object]) -> float:
    """Processor seconds of a call, those of its child processes too: a wall clock would count who else is here."""
    began = os.times()
    run()
    ended = os.times()
    return sum(ended[:4]) - sum(began[:4])


def _plain(module: nn.Module, args: tuple[torch.Tensor, ...], path: Path) -> None:
    with torch.no_grad():
        module(*args)
    ort.InferenceSession(str(path)).run(None, {"image": args[0].numpy()})


def _session_each(path: Path, names: list[str], args: tuple[torch.Tensor, ...]) -> None:
    for name in names:
        model = onnx.load(path)
        if name not in {output.name for output in model.graph.output}:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
        ort.InferenceSession(model.SerializeToString()).run([name], {"image": args[0].numpy()})


if __name__ == "__main__":
    sys.exit(main())

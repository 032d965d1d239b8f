"""What a comparison by layer costs, beside a session for each tensor and beside two plain runs.

    python benchmarks/comparing/cost.py [--width 384] [--layers 6] [--repeat 3]

The network is a vision transformer of 224 x 224 pixels. Four ways to hold its file to the program of torch.export that
it was made from, each in a process of its own, with torch, onnxruntime and onnxsmith imported before the clock starts:

- `plain`: the program and the file once each, with the session that this takes, and nothing compared;
- `compare`: `onnxsmith.compare(..., per_layer=True)` on one input, of the program and of the module itself;
- `torch`: `torch.onnx.verification.verify_onnx_program(..., compare_intermediates=True)`, which builds a session for
  each tensor;
- `each`: the same by hand, without torch's histograms: one tensor exposed at a time, a session for it.

Processor seconds, with those of child processes: a wall clock would count who else is here.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

WAYS = {
    "plain": "two plain runs and a session",
    "program": "compare --per-layer, a program of torch.export",
    "module": "compare --per-layer, a module",
    "each": "a session for each tensor, by hand",
    "torch": "torch.onnx.verification, intermediates",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--repeat", type=int, default=3, help="of the fast ways; the median counts")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if asked.way:
        print(json.dumps(_measured(asked)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        _written(asked, Path(folder))
        found = {way: _in_a_process(asked, way, folder) for way in WAYS}
    plain = found["plain"]["seconds"]
    print("tensors:", {way: one["tensors"] for way, one in found.items() if one["tensors"]})
    for way, one in found.items():
        spent = one["seconds"]
        peers = "".join(f"{found[peer]['seconds'] / spent:8.1f} x faster than {peer}" for peer in ("torch", "each"))
        print(f"{WAYS[way]:48}{spent:8.2f} s{spent / plain:8.1f} x plain{peers}")
    print("stages of compare, seconds of a clock:", found["program"]["stages"])
    program = found["program"]["seconds"]
    return 0 if found["torch"]["seconds"] >= 15 * program and program <= 2.5 * plain else 1


def _in_a_process(asked: argparse.Namespace, way: str, folder: str) -> dict[str, Any]:
    """The median of several runs, of the slow ways of one."""
    command = [sys.executable, __file__, "--way", way, "--folder", folder]
    command += ["--width", str(asked.width), "--layers", str(asked.layers)]
    times = 1 if way in ("each", "torch") else asked.repeat
    runs = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        for _ in range(times)
    ]
    return {**runs[0], "seconds": statistics.median(run["seconds"] for run in runs)}


def _network(asked: argparse.Namespace) -> tuple[Any, Any]:
    import torch
    from torch import nn

    from comparing.networks import Layer

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

    torch.manual_seed(0)
    return Vit(asked.width, asked.layers).eval(), (torch.randn(1, 3, 224, 224),)


def _written(asked: argparse.Namespace, folder: Path) -> None:
    import torch

    module, args = _network(asked)
    torch.onnx.export(module, args, verbose=False).save(folder / "vit.onnx")
    torch.export.save(torch.export.export(module, args), folder / "vit.pt2")


def _measured(asked: argparse.Namespace) -> dict[str, Any]:
    import onnxruntime  # noqa: F401
    import torch

    import onnxsmith.comparison.outputs.compare
    from onnxsmith.base.report.parts.layers import Layers
    from onnxsmith.base.report.parts.written_files import Timing

    path = asked.folder / "vit.onnx"
    module, args = _network(asked)
    program = torch.export.load(asked.folder / "vit.pt2")
    results: list[Any] = []
    if asked.way == "plain":
        return {"seconds": _spent(lambda: _plain(program, args, path)), "tensors": 0}
    if asked.way == "torch":
        exported = torch.onnx.export(program, args, verbose=False)
        from torch.onnx.verification import verify_onnx_program

        spent = _spent(lambda: results.append(verify_onnx_program(exported, args, compare_intermediates=True)))
        return {"seconds": spent, "tensors": len(results[0])}
    if asked.way == "each":
        names = _shared(program, path)
        return {"seconds": _spent(lambda: _session_each(path, names, args)), "tensors": len(names)}
    side = program if asked.way == "program" else (module, args)
    inputs = {"image": args[0].numpy()}
    spent = _spent(lambda: results.append(onnxsmith.compare(side, path, per_layer=True, generate=False, inputs=inputs)))
    report = results[0].report
    assert results[0].ok
    stages = {key: round(value, 2) for key, value in report.part(Timing).seconds.items()}
    return {"seconds": spent, "tensors": len(report.part(Layers).layers), "stages": stages}


def _spent(run: Callable[[], object]) -> float:
    began = os.times()
    run()
    ended = os.times()
    return sum(ended[:4]) - sum(began[:4])


def _plain(program: Any, args: Any, path: Path) -> None:
    import onnxruntime as ort
    import torch

    with torch.no_grad():
        program.module()(*args)
    ort.InferenceSession(str(path)).run(None, {"image": args[0].numpy()})


def _shared(program: Any, path: Path) -> list[str]:
    """Tensors that have one name in the program and in the file."""
    import onnx

    made = {name for node in onnx.load(path).graph.node for name in node.output}
    return [node.name for node in program.graph.nodes if node.name in made]


def _session_each(path: Path, names: list[str], args: Any) -> None:
    import onnx
    import onnxruntime as ort

    for name in names:
        model = onnx.load(path)
        if name not in {output.name for output in model.graph.output}:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
        ort.InferenceSession(model.SerializeToString()).run([name], {"image": args[0].numpy()})


if __name__ == "__main__":
    sys.exit(main())

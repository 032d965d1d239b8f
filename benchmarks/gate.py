"""What the gate sees: regressions planted in models of a baseline, and reruns in which nothing changed.

    PYTHONPATH=src:benchmarks:tools python benchmarks/gate.py [--reruns 200] [--timed-reruns 20] [--load 8]

Six small networks are exported by plain torch and recorded. Each regression is planted in one file, and the baseline is
checked without times: a wrong number in the weights, another attribute, a constant of the pre-processing, an order of
classes, ports in another order or with other names, a larger file, more nodes. A regression counts as seen if the
verdict is not `done`, and as named if one of its causes is the expected one. A rerun in which something is reported is
a false alarm. Slower models (`slower_models.py`) are recorded and checked with their times; so are the reruns of
`--timed-reruns`. The reruns happen while `--load` processes keep the machine busy, `--at-once` of them at the same
time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import slower_models
from onnx import TensorProto, helper, numpy_helper
from repeat import load

from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.baselines import Baselines
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.gate.baselines import verbs
from onnxsmith.gate.baselines.settings import Settings

NO_TIMES, TIMES = Settings(times=False), Settings()
Fault = Callable[[onnx.ModelProto], bool]
"""Changes a model, and says whether it could."""


def networks() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Small networks of different kinds, each with its inputs."""
    import torch
    from torch import nn

    class Two(nn.Module):
        """Two inputs of one shape and two outputs of one shape, which a caller may confuse."""

        def __init__(self) -> None:
            super().__init__()
            self.left, self.right = nn.Linear(8, 6), nn.Linear(8, 6)

        def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            x = self.left(a) - torch.relu(self.right(b))
            return torch.softmax(x, -1), torch.tanh(x)

    class Scaled(nn.Module):
        """Pre-processing in the graph: a mean and a spread."""

        def __init__(self) -> None:
            super().__init__()
            self.mean, self.std = nn.Parameter(torch.full((3, 1, 1), 0.45)), nn.Parameter(torch.full((3, 1, 1), 0.22))
            self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
            self.head = nn.Linear(8, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.body((x - self.mean) / self.std))

    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.norm, self.head = nn.Embedding(50, 16), nn.LayerNorm(16), nn.Linear(16, 4)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.norm(self.table(ids)).mean(1))

    image = torch.rand(2, 3, 16, 16)
    return {
        "mlp": (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)), (torch.rand(3, 8),)),
        "conv": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.LeakyReLU(0.1), nn.Conv2d(8, 4, 3)), (image,)),
        "norm": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.InstanceNorm2d(8, affine=True), nn.ELU()), (image,)),
        "two": (Two(), (torch.rand(3, 8), torch.rand(3, 8))),
        "scaled": (Scaled(), (image,)),
        "words": (Words(), (torch.randint(0, 50, (2, 7)),)),
    }


def floats(model: onnx.ModelProto) -> list[Any]:
    """The float initializers with several elements, the largest first."""
    found = [one for one in model.graph.initializer if one.data_type == TensorProto.FLOAT]
    return sorted((one for one in found if int(np.prod(one.dims)) > 1), key=lambda one: -int(np.prod(one.dims)))


def scaled(which: int, by: float) -> Fault:
    """The largest element of a weight is off by a factor."""

    def plant(model: onnx.ModelProto) -> bool:
        held = floats(model)
        if which >= len(held):
            return False
        values = numpy_helper.to_array(held[which]).copy()
        place = np.unravel_index(int(np.abs(values).argmax()), values.shape)
        values[place] *= by
        held[which].CopyFrom(numpy_helper.from_array(values, held[which].name))
        return True

    return plant


def attribute(name: str, by: Callable[[float], float]) -> Fault:
    """An attribute of the first node that has it takes another value."""

    def plant(model: onnx.ModelProto) -> bool:
        for node in model.graph.node:
            for one in node.attribute:
                if one.name == name and one.type == onnx.AttributeProto.FLOAT:
                    one.f = by(one.f)
                    return True
        return False

    return plant


def class_order(model: onnx.ModelProto) -> bool:
    """The first two classes of the last bias change places, and their weights with them."""
    size = next((one.dims[0] for one in reversed(model.graph.initializer) if len(one.dims) == 1 and one.dims[0] > 1), 0)
    done = False
    for one in model.graph.initializer:
        if one.data_type == TensorProto.FLOAT and size and size in one.dims:
            values = numpy_helper.to_array(one).copy()
            axis = list(one.dims).index(size)
            order = [1, 0, *range(2, size)]
            one.CopyFrom(numpy_helper.from_array(np.take(values, order, axis), one.name))
            done = True
    return done


def swapped(ports: str) -> Fault:
    """Two inputs or outputs change places."""

    def plant(model: onnx.ModelProto) -> bool:
        held = getattr(model.graph, ports)
        if len(held) < 2:
            return False
        first, second = onnx.ValueInfoProto(), onnx.ValueInfoProto()
        first.CopyFrom(held[0])
        second.CopyFrom(held[1])
        held[0].CopyFrom(second)
        held[1].CopyFrom(first)
        return True

    return plant


def renamed(model: onnx.ModelProto) -> bool:
    """An input has another name."""
    old, new = model.graph.input[0].name, "pixels"
    model.graph.input[0].name = new
    for node in model.graph.node:
        for at, name in enumerate(node.input):
            if name == old:
                node.input[at] = new
    return True


def larger(model: onnx.ModelProto) -> bool:
    """A weight that nothing needs makes the file a third larger."""
    count = max(400, model.ByteSize() // 12)
    model.graph.initializer.append(
        numpy_helper.from_array(np.random.default_rng(0).random(count, np.float32), "unused")
    )
    model.graph.node.append(helper.make_node("Identity", ["unused"], ["unused_too"]))
    return True


def more_nodes(model: onnx.ModelProto) -> bool:
    """Ten nodes more, which change nothing."""
    name = model.graph.output[0].name
    for node in model.graph.node:
        for at, made in enumerate(node.output):
            if made == name:
                node.output[at] = "before_0"
    for at in range(10):
        target = name if at == 9 else f"before_{at + 1}"
        model.graph.node.append(helper.make_node("Identity", [f"before_{at}"], [target]))
    return True


FAULTS: dict[str, tuple[Fault, set[str]]] = {
    "a weight off by 1%": (scaled(0, 1.01), {"weights"}),
    "another weight off by 1%": (scaled(1, 1.01), {"weights"}),
    "a third weight off by 1%": (scaled(2, 1.01), {"weights"}),
    "a weight with another sign": (scaled(0, -1.0), {"weights"}),
    "an epsilon": (attribute("epsilon", lambda old: old * 100), {"graph"}),
    "a slope": (attribute("alpha", lambda old: old * 1.1), {"graph"}),
    "the order of classes": (class_order, {"weights"}),
    "inputs permuted": (swapped("input"), {"interface"}),
    "outputs permuted": (swapped("output"), {"interface"}),
    "an input renamed": (renamed, {"interface"}),
    "a larger file": (larger, {"size"}),
    "ten nodes more": (more_nodes, {"nodes"}),
}


def causes(report: Report) -> set[str]:
    """The causes of what is not as recorded."""
    parts = [part for part in report.parts if isinstance(part, Baselines)]
    return {change.kind for part in parts for change in part.changes}


def planted(folder: Path, names: list[str], baseline: Path) -> Iterator[tuple[str, bool, bool]]:
    """Yields a label for each regression, whether it was seen, and whether its cause was named."""
    for name in names:
        file = folder / f"{name}.onnx"
        before = file.read_bytes()
        for what, (plant, wanted) in FAULTS.items():
            model = onnx.load_from_string(before)
            if not plant(model):
                continue
            onnx.save(model, file)
            report = verbs.check([file], baseline, NO_TIMES)
            yield f"{name}: {what}", report.verdict is not Verdict.DONE, bool(causes(report) & wanted)
        file.write_bytes(before)


def planted_slower(folder: Path, baseline: Path) -> Iterator[tuple[str, bool, bool]]:
    """Yields a label for each slower model with what was said of its time, whether it was reported, and whether as
    slower."""
    files = slower_models.write(folder)
    verbs.record(list(files.values()), baseline, TIMES)
    for name, file in files.items():
        before = file.read_bytes()
        for what, plant in slower_models.SLOWER[name].items():
            model = onnx.load_from_string(before)
            plant(model)
            onnx.save(model, file)
            report = verbs.check([file], baseline, TIMES)
            changes = report.part(Baselines).changes
            said = [one.what for one in changes if one.kind in ("slower", "faster")]
            is_slower = any((one.kind, one.result) == ("slower", "worse") for one in changes)
            yield f"{name}: {what}: {'; '.join(said) or 'no change'}", report.verdict is not Verdict.DONE, is_slower
        file.write_bytes(before)


def verdict(baseline: Path, settings: Settings) -> str:
    """The verdict on unchanged models, with what is worse."""
    report = verbs.check([], baseline, settings)
    worse = {f"{one.model} {one.kind}: {one.what}" for one in report.part(Baselines).changes if one.result == "worse"}
    return "; ".join([report.verdict.value, *sorted(worse)])


def main() -> None:
    """Measures and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reruns", type=int, default=200)
    parser.add_argument("--timed-reruns", type=int, default=20)
    parser.add_argument("--load", type=int, default=8, help="busy processes beside the reruns")
    parser.add_argument("--at-once", type=int, default=1, help="reruns at the same time")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    import torch

    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as name:
        folder, made = Path(name), networks()
        for network, (module, inputs) in made.items():
            torch.onnx.export(module.eval(), inputs, str(folder / f"{network}.onnx"), dynamo=True, verbose=False,
                              external_data=False)  # fmt: skip
        baseline = folder / "baseline.json"
        verbs.record([folder / f"{network}.onnx" for network in made], baseline, NO_TIMES)
        found = list(planted(folder, list(made), baseline))
        for label, seen, is_named in found:
            if not (seen and is_named):
                print(f"{'not seen' if not seen else 'another cause'}: {label}")
        print(f"seen {sum(seen for _, seen, _ in found)} of {len(found)}, cause named {sum(n for *_, n in found)}")
        timed = folder / "timed.json"
        slower = list(planted_slower(folder, timed))
        for label, _, is_slower in slower:
            print(f"{'slower' if is_slower else 'NOT slower'}: {label}")
        print(f"slower: reported {sum(seen for _, seen, _ in slower)} of {len(slower)},", end=" ")
        print(f"as slower {sum(is_slower for *_, is_slower in slower)}")
        print("load of the machine before the reruns:", *os.getloadavg(), flush=True)
        spawn = multiprocessing.get_context("spawn")
        with load(given.load), ProcessPoolExecutor(given.at_once, spawn) as pool:
            for file, settings, reruns in ((baseline, NO_TIMES, given.reruns), (timed, TIMES, given.timed_reruns)):
                begin = time.monotonic()
                verdicts = Counter(pool.map(verdict, [file] * reruns, [settings] * reruns))
                print(
                    f"reruns of {file.name}: {dict(verdicts)}, {time.monotonic() - begin:.0f} s, load",
                    *os.getloadavg(),
                    flush=True,
                )


if __name__ == "__main__":
    main()

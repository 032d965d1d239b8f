"""How many nodes of two exports of one network `diff` and `view` pair, and whether the pairs compute the same.

    python benchmarks/pairing.py [NETWORK ...] [--layers 94] [--folder FOLDER]

Each network is exported by torch's exporter and by its older one, with open axes: those of `models/architectures.py`
that are named (without names, a selection), and a stack of `--layers` transformer layers (0: none). For both files as
they are: their nodes; the pairs of nodes, and their share of the nodes of the smaller file; the nodes in regions that
compute the same, of either file, and the share of the nodes of the smaller file and of both files that are in a pair or
in such a region; and the CPU of pairing alone. "N of M agree" compares the results of paired nodes on a random input,
run by onnxruntime without optimisations, as far as both are tensors with a name; the second such figure are the tensors
in which regions end. What disagrees is listed with its operators. `--folder` keeps the files, and uses them again.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from models.architectures import build
from models.exporting import export

import onnxsmith
from onnxsmith.base.garbage_collection import no_collection
from onnxsmith.comparison.graphs.graph_differences import Found
from onnxsmith.comparison.graphs.model_pairs import paired
from onnxsmith.graph.structure import walk

NETWORKS = (
    "bert", "clip_vision", "convnext", "deberta_v2", "detr", "gpt2", "llama", "lstm", "mobilenet_v2", "resnet",
    "segformer", "swin", "t5", "vit", "whisper_encoder",
)  # fmt: skip
WAYS = ("ts", "default")
"""The older exporter, and the newer one."""
_RELATIVE, _ABSOLUTE = 1e-3, 1e-4
"""How far results may differ: relatively, or by this part of the largest magnitude. A choice: above rounding in
float32, far below what another tensor has."""

Arrays = dict[str, Any]


@dataclass
class Agreement:
    """How many of the tensors that were compared agree, and which operators made the others."""

    compared: int = 0
    agree: int = 0
    wrong: Counter[str] = field(default_factory=Counter)

    def add(self, same: bool, what: str) -> None:
        self.compared += 1
        self.agree += same
        if not same:
            self.wrong[what] += 1

    def __str__(self) -> str:
        return f"{self.agree:,} of {self.compared:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--layers", type=int, default=94)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    versions = (f"{name} {importlib.metadata.version(name)}" for name in ("torch", "transformers", "onnxruntime"))
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {', '.join(versions)}")
    print(
        f"{'network':<16}{'older':>7}{'newer':>7}{'pairs':>7}{'share':>8}{'regions':>9}{'nodes':>13}{'smaller':>9}"
        f"{'both':>8}{'CPU':>9}   {'pairs agree':<16}region ends agree"
    )
    with tempfile.TemporaryDirectory() as aside:
        folder = given.folder or Path(aside)
        if given.layers:
            row(f"stack of {given.layers}", *stack(folder, given.layers))
        for name in given.networks:
            files = exported(folder, name)
            if files is not None:
                row(name, files, dict(build(name).inputs))


def stack(folder: Path, layers: int) -> tuple[list[Path], dict[str, Any]]:
    """Returns both exports of the stack, and an input."""
    import torch
    from view import exported as both

    folder = folder / f"stack{layers}"
    files = [folder / "old.onnx", folder / "new.onnx"]
    if not all(path.exists() for path in files):
        folder.mkdir(parents=True, exist_ok=True)
        both(folder, layers)
    return files, {"x": torch.randn(3, 5, 32)}


def exported(folder: Path, name: str) -> list[Path] | None:
    """Returns both exports of a network; None, with a line that says why, if torch cannot make one of them."""
    files = []
    for way in WAYS:
        files.append(folder / way / f"{name}.onnx")
        if not files[-1].exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trouble = export(name, way, True, files[-1])
            if trouble:
                print(f"{name:<16}no export by {way!r}: {trouble}")
                return None
    return files


def row(title: str, files: list[Path], inputs: dict[str, Any]) -> None:
    """Prints the figures of one pair of files."""
    models = onnxsmith.load(files[0]), onnxsmith.load(files[1])
    began = time.process_time()
    with no_collection():
        _, (one, other), _, found = paired(models)
    seconds = time.process_time() - began
    counts = [walk.count_nodes(one), walk.count_nodes(other)]
    pairs, inside = len(found.pairs.nodes), [sum(len(region.nodes[side]) for region in found.same) for side in (0, 1)]
    small = counts.index(min(counts))
    results = [values(path, inputs) for path in files]
    nodes, ends = agreement(one, found, results)
    print(
        f"{title:<16}{counts[0]:>7,}{counts[1]:>7,}{pairs:>7,}{pairs / min(counts):>8.1%}{len(found.same):>9,}"
        f"{f'{inside[0]:,} + {inside[1]:,}':>13}{(pairs + inside[small]) / min(counts):>9.1%}"
        f"{(2 * pairs + sum(inside)) / sum(counts):>8.1%}{seconds:>7.2f} s   {nodes!s:<16}{ends}",
        flush=True,
    )
    for what, said in (("pairs", nodes), ("ends", ends)):
        if said.wrong:
            print(f"{'':<16}{what} that differ: {', '.join(f'{n} {op}' for op, n in said.wrong.most_common())}")


def values(path: Path, inputs: dict[str, Any]) -> Arrays:
    """Runs a file, and returns the results of all nodes of its main graph by name."""
    model = onnx.load(path)
    known = {port.name for port in model.graph.output}
    names = [name for node in model.graph.node for name in node.output if name and name not in known]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {port.name: inputs[port.name].numpy() for port in session.get_inputs()}
    return dict(zip((port.name for port in session.get_outputs()), session.run(None, feeds), strict=True))


def agreement(model: ir.Model, found: Found, results: list[Arrays]) -> tuple[Agreement, Agreement]:
    """Compares the results of paired nodes, and the tensors in which regions end."""
    nodes, ends = Agreement(), Agreement()
    for one, other in found.pairs.nodes.items():
        if one.graph is model.graph:
            compared(nodes, zip(one.outputs, other.outputs, strict=False), f"{one.op_type}/{other.op_type}", results)
    for region in found.same:
        for pair in region.ends:
            compared(ends, [pair], "/".join(walk.op_name(v.producer()) for v in pair if v.producer()), results)  # type: ignore[arg-type]
    return nodes, ends


def compared(said: Agreement, tensors: Iterable[tuple[ir.Value, ir.Value]], what: str, results: list[Arrays]) -> None:
    """Adds one comparison, if the tensors of both sides have values."""
    both = [(results[0].get(a.name or ""), results[1].get(b.name or "")) for a, b in tensors]
    arrays = [(a, b) for a, b in both if isinstance(a, np.ndarray) and isinstance(b, np.ndarray)]
    if arrays:
        said.add(all(alike(a, b) for a, b in arrays), what)


def alike(a: Any, b: Any) -> bool:
    """Whether two arrays hold the same numbers, but for rounding."""
    if a.shape != b.shape:
        return False
    if a.dtype.kind != "f" or b.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    scale = float(np.abs(np.nan_to_num(a, posinf=0, neginf=0)).max(initial=0))
    return bool(np.allclose(a, b, _RELATIVE, _ABSOLUTE * scale, equal_nan=True))


if __name__ == "__main__":
    sys.exit(main())

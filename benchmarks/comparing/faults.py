"""Faults planted in exported networks: a comparison by layer has to name the node first, and none where none is.

    python benchmarks/comparing/faults.py [--only TEXT …] [--seed 0]

Each network is exported by torch's exporter. A fault is planted in the file, or in what onnxsmith makes of it; the side
that is right is the torch module, or the file as it was.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

sys.path.insert(0, str(Path(__file__).parent.parent))
import onnxsmith
from comparing.networks import NETWORKS
from onnxsmith.base.report.parts.layers import Layers

Plant = Callable[[ir.Node, np.random.Generator], bool]


def _constant(value: ir.Value | None) -> np.ndarray[Any, Any] | None:
    if value is None:
        return None
    maker = value.producer()
    if maker is not None and maker.op_type == "Constant" and "value" in maker.attributes:
        return maker.attributes["value"].as_tensor().numpy()
    return value.const_value.numpy() if value.const_value is not None else None


def _exchange(node: ir.Node, place: int, array: np.ndarray[Any, Any]) -> None:
    """Another constant for this reader alone."""
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    old = node.inputs[place]
    assert old is not None
    value = ir.Value(name=f"{old.name}_{node.outputs[0].name}", const_value=ir.tensor(array))
    value.type, value.shape = ir.TensorType(value.const_value.dtype), ir.Shape(array.shape)
    graph.register_initializer(value)
    node.replace_input_with(place, value)


def weight(node: ir.Node, rng: np.random.Generator) -> bool:
    """One number of a weight is another."""
    if node.op_type not in ("Conv", "MatMul", "Gemm", "LSTM"):
        return False
    for place in (1, 0):
        array = _constant(node.inputs[place]) if place < len(node.inputs) else None
        if array is not None and array.ndim >= 2 and array.dtype == np.float32:
            changed = array.copy()
            where = tuple(rng.integers(0, size) for size in array.shape)
            changed[where] += np.float32(2 * np.abs(array).max())
            _exchange(node, place, changed)
            return True
    return False


def attribute(node: ir.Node, _: np.random.Generator) -> bool:
    """A slope, a count of the padding, a way to place pixels."""
    if node.op_type == "LeakyRelu":
        node.attributes["alpha"] = ir.AttrFloat32("alpha", 0.3)
    elif node.op_type == "AveragePool" and "pads" in node.attributes:
        known = node.attributes.get("count_include_pad")
        node.attributes["count_include_pad"] = ir.AttrInt64("count_include_pad", 1 - (known.as_int() if known else 0))
    elif node.op_type == "Resize" and node.attributes["mode"].as_string() == "linear":
        mode = node.attributes["coordinate_transformation_mode"].as_string()
        other = "half_pixel" if mode != "half_pixel" else "asymmetric"
        node.attributes["coordinate_transformation_mode"] = ir.AttrString("coordinate_transformation_mode", other)
    else:
        return False
    return True


def axis(node: ir.Node, _: np.random.Generator) -> bool:
    """Softmax along the other of two axes."""
    if node.op_type != "Softmax":
        return False
    known = node.attributes["axis"].as_int() if "axis" in node.attributes else -1
    node.attributes["axis"] = ir.AttrInt64("axis", -2 if known in (-1, 3, 2) else -1)
    return True


def epsilon(node: ir.Node, _: np.random.Generator) -> bool:
    if node.op_type not in ("LayerNormalization", "BatchNormalization", "InstanceNormalization", "GroupNormalization"):
        return False
    node.attributes["epsilon"] = ir.AttrFloat32("epsilon", 1e-2)
    return True


def rounding(node: ir.Node, _: np.random.Generator) -> bool:
    """Down where it was to the nearest, or the nearest pixel from the other side."""
    if node.op_type == "Round":
        node.op_type = "Floor"
        return True
    if node.op_type == "Resize" and node.attributes["mode"].as_string() == "nearest":
        node.attributes["nearest_mode"] = ir.AttrString("nearest_mode", "ceil")
        node.attributes["coordinate_transformation_mode"] = ir.AttrString(
            "coordinate_transformation_mode", "half_pixel"
        )
        return True
    return False


def flag(node: ir.Node, _: np.random.Generator) -> bool:
    """A Gemm whose square weight is read the other way."""
    array = _constant(node.inputs[1]) if node.op_type == "Gemm" else None
    if array is None or array.shape[0] != array.shape[1]:
        return False
    known = node.attributes["transB"].as_int() if "transB" in node.attributes else 0
    node.attributes["transB"] = ir.AttrInt64("transB", 1 - known)
    return True


def cast(node: ir.Node, _: np.random.Generator) -> bool:
    """A Cast to half precision, or to whole numbers, that is gone."""
    if node.op_type != "Cast" or node.attributes["to"].as_int() not in (ir.DataType.FLOAT16, ir.DataType.INT32):
        return False
    reader = next(iter(node.outputs[0].consumers()), None)
    if reader is None or reader.op_type != "Cast" or reader.attributes["to"].as_int() != ir.DataType.FLOAT:
        return False
    source = node.inputs[0]
    if source is None or source.dtype not in (None, ir.DataType.FLOAT):
        return False
    node.attributes["to"] = ir.AttrInt64("to", ir.DataType.FLOAT.value)
    node.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
    return True


def gelu(node: ir.Node, _: np.random.Generator) -> bool:
    if node.op_type != "Gelu" or "approximate" in node.attributes:
        return False
    node.attributes["approximate"] = ir.AttrString("approximate", "tanh")
    return True


def pad(node: ir.Node, _: np.random.Generator) -> bool:
    """One pixel further to one side, or the edge in place of its reflection."""
    if node.op_type == "Pad" and "mode" in node.attributes and node.attributes["mode"].as_string() == "reflect":
        node.attributes["mode"] = ir.AttrString("mode", "edge")
        return True
    if node.op_type not in ("Conv", "MaxPool", "AveragePool") or "pads" not in node.attributes:
        return False
    pads = list(node.attributes["pads"].as_ints())
    half = len(pads) // 2
    if not pads or pads[0] == 0 or pads[half] == 0:
        return False
    pads[0] -= 1
    pads[half] += 1
    node.attributes["pads"] = ir.AttrInt64s("pads", pads)
    return True


def scale(node: ir.Node, _: np.random.Generator) -> bool:
    """A constant factor that is 2% off."""
    if node.op_type not in ("Mul", "Div"):
        return False
    for place in (1, 0):
        array = _constant(node.inputs[place])
        if array is not None and array.dtype == np.float32 and array.size == 1:
            _exchange(node, place, (array * np.float32(1.02)).astype(np.float32))
            return True
    return False


FAULTS: tuple[Plant, ...] = (weight, attribute, axis, epsilon, rounding, flag, cast, gelu, pad, scale)


@dataclass(frozen=True)
class Case:
    """A fault in a file, and the side that is right: the module, or the file before."""

    name: str
    reference: Any
    candidate: ir.Model | Path
    culprit: str


def cases(folder: Path, seed: int) -> Iterator[Case]:
    """One case for each network, side and kind of fault that the file has a place for; and each without a fault."""
    rng = np.random.default_rng(seed)
    for name, build in NETWORKS.items():
        plain, small = folder / f"{name}.onnx", folder / f"{name}_small.onnx"
        module, args = build()
        _export(module, args, plain)
        made = onnxsmith.simplify(plain, small)
        assert made.ok, made.report
        for side, reference, file in (
            ("module", (module, args), plain),
            ("module, simplified", (module, args), small),
            ("file", plain, small),
        ):
            yield Case(f"{name}, {side}, no fault", reference, file, "")
        for number, fault in enumerate(FAULTS):
            right, file = (((module, args), plain), ((module, args), small), (plain, plain))[number % 3]
            model = ir.load(file)
            places = [node for node in model.graph if fault(_clone_probe(node), rng)]
            if not places:
                continue
            node = places[int(rng.integers(0, len(places)))]
            fault(node, rng)
            yield Case(
                f"{name}, {fault.__name__}, {('module', 'module, simplified', 'file')[number % 3]}",
                right,
                model,
                node.name or "",
            )


def _clone_probe(node: ir.Node) -> ir.Node:
    """The node once more, in a graph of its own, to ask whether a fault has a place there."""
    copy = ir.Node(
        node.domain, node.op_type, node.inputs, dict(node.attributes), num_outputs=len(node.outputs), name=node.name
    )
    for mine, theirs in zip(copy.outputs, node.outputs, strict=True):
        mine.name, mine.type = theirs.name, theirs.type
    probe = ir.Graph([], [], nodes=[copy], opset_imports={"": 20}, name="probe")
    assert probe is not None
    readers = list(node.outputs[0].consumers()) if node.outputs else []
    for reader in readers[:1]:
        follower = ir.Node(reader.domain, reader.op_type, [copy.outputs[0]], dict(reader.attributes))
        probe.append(follower)
    return copy


def _export(module: torch.nn.Module, args: tuple[Any, ...], path: Path) -> None:
    import logging

    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(module, args, verbose=False, optimize=True)
    logging.disable(logging.NOTSET)
    assert program is not None
    program.save(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(Path(folder), asked.seed):
            if not all(text in case.name for text in asked.only):
                continue
            began = time.monotonic()
            status = _judged(case)
            counts[("no fault: " if not case.culprit else "fault: ") + status.partition(":")[0]] += 1
            print(f"{status:12} {time.monotonic() - began:5.1f} s  {case.name}  {case.culprit}", flush=True)
    print(dict(counts))
    faults = sum(count for name, count in counts.items() if name.startswith("fault"))
    first = counts["fault: first"]
    print(
        f"named first: {first} of {faults} ({first / max(faults, 1):.1%}); "
        f"named without a fault: {counts['no fault: named']}"
    )
    return 0 if first >= 0.98 * faults and not counts["no fault: named"] else 1


def _judged(case: Case) -> str:
    try:
        result = onnxsmith.compare(case.reference, case.candidate, per_layer=True)
    except onnxsmith.OnnxsmithError as error:
        return f"failed: {error.problem}"
    part = result.report.part(Layers)
    if not part.culprits:
        return "missed" if case.culprit else "none"
    steps = part.layer(part.culprits[0]).steps
    if not case.culprit:
        return f"named: {steps}, {part.layer(part.culprits[0])}"
    if steps[0] == case.culprit:
        return "first"
    return f"among: {steps}" if case.culprit in steps else f"other: {steps}"


if __name__ == "__main__":
    sys.exit(main())

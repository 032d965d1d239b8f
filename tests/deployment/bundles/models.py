"""Models for the tests of bundles, and the parts of a report that they read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.target_checks import Bundle, BundleCheck

OPSET = 17


def written(folder: Path, graph: onnx.GraphProto, *, opset: int = OPSET, name: str = "model") -> Path:
    """The graph as a file."""
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return path


def linear(folder: Path) -> Path:
    """y = Relu(x · w), batch dynamic."""
    weight = np.random.default_rng(0).standard_normal((3, 2)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(weight, "w")],
    )
    return written(folder, graph, name="linear")


def identity(folder: Path, *ports: tuple[str, str, int, list[Any]]) -> Path:
    """Gives each input (input's name, output's name, dtype, shape) back."""
    graph = helper.make_graph(
        [helper.make_node("Identity", [given], [named]) for given, named, _, _ in ports],
        "identity",
        [helper.make_tensor_value_info(given, dtype, shape) for given, _, dtype, shape in ports],
        [helper.make_tensor_value_info(named, dtype, shape) for _, named, dtype, shape in ports],
    )
    return written(folder, graph, name="identity")


def classifier(folder: Path, *, size: int = 8, softmax: bool = False) -> Path:
    """A small convolutional classifier of pictures [batch, 3, size, size] with four classes."""
    random = np.random.default_rng(1)
    weights = {
        "w": random.standard_normal((6, 3, 3, 3)).astype(np.float32) / 5,
        "b": random.standard_normal(6).astype(np.float32) / 5,
        "c": random.standard_normal((6, 4)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["pixels", "w", "b"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "c"], ["scores" if not softmax else "s"]),
    ]
    nodes += [helper.make_node("Softmax", ["s"], ["scores"], axis=-1)] if softmax else []
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["batch", 3, size, size])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 4])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return written(folder, graph, name="classifier")


def upscaler(folder: Path, *, channels: int = 1) -> Path:
    """Enlarges [batch, channels, height, width] twofold: a convolution and DepthToSpace."""
    weight = np.random.default_rng(2).standard_normal((4 * channels, channels, 3, 3)).astype(np.float32) / 5
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["h"], pads=[1, 1, 1, 1]),
        helper.make_node("DepthToSpace", ["h"], ["y"], blocksize=2),
    ]
    graph = helper.make_graph(
        nodes,
        "upscaler",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", channels, "height", "width"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", channels, "2*height", "2*width"])],
        [numpy_helper.from_array(weight, "w")],
    )
    return written(folder, graph, name="upscaler")


HOSTILE = ['a"b', "a'b", "back\\slash", "line\nbreak", '"""', "class", "input.1", "output:0", "1st", "</script>",
           "${x}", "{{ x }}", "??/", "é\U0001f600", "a/b", "../x", "*/", "//"]  # fmt: skip
"""Names that break careless code generators."""


def hostile(folder: Path) -> Path:
    """A model whose inputs and outputs have hostile names."""
    return identity(
        folder,
        *[(f"{name} in", f"{name} out", TensorProto.FLOAT, [f"{name} dim", 2]) for name in HOSTILE],
        ("self", "return", TensorProto.INT64, [3]),
    )


def checks(report: Report) -> dict[str, BundleCheck]:
    """The checks of a report by the part of the bundle."""
    return {check.name: check for check in report.part(Bundle).checks}


def manifest(folder: Path) -> dict[str, Any]:
    held: dict[str, Any] = json.loads((folder / "golden" / "manifest.json").read_text(encoding="utf-8"))
    return held

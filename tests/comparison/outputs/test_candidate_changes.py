"""The smallest change that makes the outputs agree is the cause: an attribute, a weight, an operand, a node."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import onnxsmith
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.comparison.outputs.stored_values import layout
from onnxsmith.comparison.outputs.undoing_patches import _toml
from onnxsmith.verification.by_layer.pair_difference import value_difference
from onnxsmith.verification.rounding import counted

RNG = np.random.default_rng(0)
WEIGHTS = {
    "w": RNG.standard_normal((16, 16)),
    "b": RNG.standard_normal(16),
    "v": RNG.standard_normal((16, 16)),
    "c": RNG.standard_normal(16),
    "gain": RNG.uniform(0.5, 2, 16),
    "shift": RNG.standard_normal(16),
}
RESHAPES = {"flat": np.array([-1, 16]), "deep": np.array([2, 6, 16])}


def node(op: str, read: str, made: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, read.split(), [made], name=f"{op}_{made}", **attributes)


def model(*nodes: onnx.NodeProto, **weights: object) -> onnx.ModelProto:
    held = {**WEIGHTS, **RESHAPES, **weights}
    arrays = {name: np.asarray(one) for name, one in held.items() if any(name in n.input for n in nodes)}
    tensors = [
        numpy_helper.from_array(one.astype(np.int64 if one.dtype.kind == "i" else np.float32), name)
        for name, one in arrays.items()
    ]
    ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 6, 16])] for name in "xy"]
    graph = helper.make_graph(list(nodes), "g", *ports, tensors)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])


def found(reference: onnx.ModelProto, candidate: onnx.ModelProto) -> Layers:
    return onnxsmith.compare(reference, candidate, per_layer=True).report.part(Layers)


def first(layers: Layers) -> str:
    return layers.layer(layers.culprits[0]).steps[0]


LINEAR = (node("MatMul", "x w", "m"), node("Add", "m b", "linear"))
GEMM = (
    node("Reshape", "x flat", "before"),
    node("Gemm", "before w b", "gemm"),
    node("Reshape", "gemm deep", "linear"),
)
NORM = node("LayerNormalization", "x gain shift", "n")


def test_an_exact_rewrite_before_a_wrong_operand_is_no_culprit() -> None:
    reference = model(*LINEAR, NORM, node("Relu", "linear", "r"), node("Add", "r x", "y"))
    candidate = model(*GEMM, NORM, node("Relu", "linear", "r"), node("Add", "r n", "y"))
    layers = found(reference, candidate)
    assert first(layers) == "Add_y"
    assert layers.cause is not None
    assert (layers.cause.node, layers.cause.agrees) == ("Add_y", True)


def test_an_exact_rewrite_before_a_missing_node_is_no_culprit() -> None:
    reference = model(*LINEAR, node("Abs", "linear", "a"), node("Mul", "a x", "y"))
    result = onnxsmith.compare(reference, model(*GEMM, node("Mul", "linear x", "y")), per_layer=True)
    layers = result.report.part(Layers)
    assert first(layers) == "Mul_y"
    assert layers.cause is not None
    assert layers.cause.changes == ("Abs only in the reference",)
    assert layers.cause.agrees
    assert not any(
        text.rstrip().endswith(":") for p in result.report.problems for text in (p.what, p.why.split(";")[0])
    )


def test_an_inserted_node_comes_before_the_nodes_that_read_it() -> None:
    """Both readers err by their own reckoning."""
    readers = "r", "i"
    plain, doubled = (
        model(
            node("Relu", "x", "r"),
            *inserted,
            node("MatMul", f"{read} w", "p"),
            node("Mul", f"{read} x", "q"),
            node("Add", "p q", "y"),
            mask=RNG.integers(0, 2, (2, 6, 16)).astype(np.float32) * 2,
        )
        for read, inserted in zip(readers, ((), (node("Mul", "r mask", "i"),)), strict=True)
    )
    layers = found(plain, doubled)
    assert first(layers) == "Mul_i"
    assert layers.cause is not None
    assert layers.cause.agrees


@pytest.mark.parametrize("turned", ["transposed", "blocks"])
def test_a_weight_in_another_order_has_a_fix_that_works_when_pasted(turned: str, tmp_path: Path) -> None:
    w = WEIGHTS["w"]
    wrong = w.T if turned == "transposed" else np.roll(w, 8, axis=1)
    nodes = (*LINEAR, node("Relu", "linear", "y"))
    onnx.save(model(*nodes), tmp_path / "right.onnx")
    onnx.save(model(*nodes, w=wrong), tmp_path / "wrong.onnx")
    result = onnxsmith.compare(tmp_path / "right.onnx", tmp_path / "wrong.onnx", per_layer=True)
    cause = result.report.part(Layers).cause
    assert cause is not None
    assert (cause.node, cause.agrees) == ("MatMul_m", True)
    program = f'onnxsmith() {{ "{sys.executable}" -m onnxsmith "$@"; }}\n{result.report.problems[-1].fix.strip("`")}'
    subprocess.run(["bash", "-euc", program], cwd=tmp_path, check=True, capture_output=True)
    assert onnxsmith.compare(tmp_path / "right.onnx", tmp_path / "wrong_fixed.onnx").ok


def test_an_attribute_is_tried_alone_beside_an_operand_that_is_stored_otherwise() -> None:
    """The reference computes the weight, the candidate stores it."""
    reference = model(node("Neg", "w", "k"), node("Gemm", "f k b", "g", alpha=1.0), *_around())
    candidate = model(node("Gemm", "f k b", "g", alpha=0.5), *_around(), k=-WEIGHTS["w"])
    layers = found(reference, candidate)
    assert layers.cause is not None
    assert (layers.cause.node, layers.cause.agrees) == ("Gemm_g", True)
    assert layers.cause.changes == ("alpha 1 → 0.5",) or "alpha" in layers.cause.changes[0]
    assert "alpha" in layers.cause.patch


def _around() -> tuple[onnx.NodeProto, ...]:
    return (node("Reshape", "g deep", "y"), node("Reshape", "x flat", "f"))


def test_a_wrong_weight_of_two_layers_without_a_tensor_between_is_found() -> None:
    """A simplifier has reshaped the tensors between two layers."""
    before = (
        node("Tanh", "x", "s1"),
        node("Sigmoid", "s1", "s2"),
        node("Neg", "s2", "s3"),
        node("Softplus", "s3", "s"),
    )
    after = (node("Add", "q s1", "e1"), node("Tanh", "e1", "e2"), node("Mul", "e2 s2", "y"))
    reference = model(
        *before,
        node("MatMul", "s w", "m"),
        node("Add", "m b", "linear"),
        node("Relu", "linear", "r"),
        node("MatMul", "r v", "p"),
        node("Add", "p c", "q"),
        *after,
    )
    wrong = WEIGHTS["v"].copy()
    wrong[3, 4] += 3
    candidate = model(
        *before,
        node("Reshape", "s flat", "t1"),
        node("Gemm", "t1 w b", "t2"),
        node("Relu", "t2", "t3"),
        node("Gemm", "t3 v c", "t4"),
        node("Reshape", "t4 deep", "q"),
        *after,
        v=wrong,
    )
    layers = found(reference, candidate)
    assert first(layers) == "Gemm_t4"
    assert layers.cause is not None
    assert layers.cause.agrees


def test_a_mask_does_not_hide_a_difference() -> None:
    ours = np.array([1.0, 2.0, -3.4e38, 0.5], np.float32)
    theirs = np.array([1.0, 2.2, -3.4e38, 0.5], np.float32)
    rounding = counted(4, 1, 2.0**-24)
    assert value_difference(ours, theirs, rounding).reason
    assert not value_difference(ours, ours.copy(), rounding).reason
    assert value_difference(ours, np.where(ours < 0, np.float32(0), ours), rounding).reason


def test_orders_of_a_weight_are_told() -> None:
    weight = RNG.standard_normal((3, 4, 5))
    assert layout(weight, weight.transpose(2, 0, 1)) == (
        "its axes are in the order [1, 2, 0] in the reference",
        (("transpose", [1, 2, 0]),),
    )
    flipped = layout(weight, weight[:, ::-1])
    assert flipped is not None
    assert flipped[1] == (("gather", (1, [3, 2, 1, 0])),)
    assert layout(weight, weight * 2) is None


class Taking(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        taken: torch.Tensor = self.first(x)[:, 0]
        return torch.as_tensor(self.second(taken.reshape(2, 4, 4).flatten(1)))


def test_a_constant_in_the_export_of_a_module_is_found(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, example = Taking().eval(), torch.randn(2, 6, 16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, (example,), tmp_path / "m.onnx", dynamo=True, verbose=False)
    wrong = onnx.load(tmp_path / "m.onnx")
    gather = next(one for one in wrong.graph.node if one.op_type == "Gather")
    index = helper.make_tensor("other", TensorProto.INT64, [], [3])
    wrong.graph.initializer.append(index)
    gather.input[1] = "other"
    result = onnxsmith.compare((module, (example,)), wrong, per_layer=True)
    layers = result.report.part(Layers)
    assert first(layers) == gather.name
    assert layers.cause is not None
    assert layers.cause.agrees


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_a_patch_has_the_digits_of_the_dtype(dtype: Any) -> None:
    array = np.array([0.1, 1 / 3, 1e-7], dtype)
    read = tomllib.loads(f"value = {_toml(array.tolist(), array.dtype)}")["value"]
    assert np.array_equal(np.array(read, dtype), array)

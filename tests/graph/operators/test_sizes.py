"""Rules of sizes: onnxruntime refuses what they refuse, and runs what they let pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import onnxsmith
from onnxsmith import OnnxsmithError
from onnxsmith.graph.operators.sizes.size_checks import RULES

Operands = tuple[Any, ...]
Case = tuple[str, Operands, dict[str, Any]]


def f(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, np.float32)


def i(*numbers: int) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.int64)


S = np.array(0.5, np.float32)
U = np.array(3, np.uint8)

VALID: list[Case] = [
    ("Add", (f(2, 1, 3), f(4, 1)), {}),
    ("Where", (np.array([True, False]), f(3, 2), S), {}),
    ("PRelu", (f(2, 3, 4), f(3, 1)), {}),
    ("Clip", (f(2), S, S), {}),
    ("MatMul", (f(5, 2, 3), f(3, 4)), {}),
    ("MatMul", (f(3), f(5, 3, 4)), {}),
    ("Gemm", (f(3, 2), f(4, 3), f(4)), {"transA": 1, "transB": 1}),
    ("Conv", (f(1, 4, 8, 8), f(6, 2, 3, 3), f(6)), {"group": 2, "pads": [1, 1, 1, 1]}),
    ("Conv", (f(1, 4, 8), f(6, 4, 3)), {"kernel_shape": [3]}),
    ("ConvTranspose", (f(1, 4, 8, 8), f(4, 3, 3, 3), f(6)), {"group": 2}),
    ("MaxPool", (f(1, 4, 8, 8),), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 0, 0]}),
    ("GlobalAveragePool", (f(1, 4, 8),), {}),
    ("DepthToSpace", (f(1, 8, 2, 2),), {"blocksize": 2}),
    ("SpaceToDepth", (f(1, 2, 4, 6),), {"blocksize": 2}),
    ("Resize", (f(1, 2, 4, 4), None, np.array([1, 1, 2, 2], np.float32)), {}),
    ("Resize", (f(1, 2, 4, 4), None, None, i(1, 2, 8, 8)), {}),
    ("GridSample", (f(1, 2, 4, 4), f(1, 3, 3, 2)), {}),
    ("BatchNormalization", (f(2, 3, 4, 4), f(3), f(3), f(3), f(3)), {}),
    ("InstanceNormalization", (f(2, 3, 4), f(3), f(3)), {}),
    ("GroupNormalization", (f(2, 6, 4), f(6), f(6)), {"num_groups": 3}),
    ("LayerNormalization", (f(2, 3, 4), f(4), f(4)), {}),
    ("LayerNormalization", (f(2, 3, 4), f(3, 4)), {"axis": 1}),
    ("Concat", (f(2, 3), f(2, 4)), {"axis": -1}),
    ("Reshape", (f(2, 3, 4), i(0, -1)), {}),
    ("Reshape", (f(0, 3), i(0, 5)), {"allowzero": 1}),
    ("Expand", (f(3, 1), i(2, 1, 4)), {}),
    ("Transpose", (f(2, 3, 4),), {"perm": [2, 0, 1]}),
    ("Squeeze", (f(2, 1, 4), i(1)), {}),
    ("Unsqueeze", (f(2), i(0, -1)), {}),
    ("Flatten", (f(2, 3),), {"axis": 2}),
    ("Split", (f(7, 2), i(3, 4)), {"axis": 0}),
    ("Split", (f(7, 2),), {"axis": 0, "num_outputs": 2}),
    ("Slice", (f(7, 2), i(0, 1), i(5, 9), i(0, 1), i(2, 1)), {}),
    ("Gather", (f(7, 2), i(-7, 6)), {}),
    ("GatherElements", (f(7, 2), i(0, 1).reshape(1, 2)), {}),
    ("ScatterElements", (f(7, 2), i(0, 1).reshape(1, 2), f(1, 2)), {}),
    ("ScatterND", (f(7, 2), i(0, 1).reshape(2, 1), f(2, 2)), {}),
    ("Tile", (f(2, 3), i(2, 1)), {}),
    ("Pad", (f(2, 3), i(0, 1, 0, 1)), {}),
    ("CumSum", (f(2, 3), np.array(1, np.int64)), {}),
    ("ReduceSum", (f(2, 3), i(-1)), {}),
    ("Softmax", (f(2, 3),), {"axis": 1}),
    ("TopK", (f(2, 3), i(3)), {}),
    ("Einsum", (f(2, 3), f(3, 4)), {"equation": "ij,jk->ik"}),
    ("LSTM", (f(5, 2, 3), f(1, 16, 3), f(1, 16, 4), f(1, 32), None, f(1, 2, 4), f(1, 2, 4)), {"hidden_size": 4}),
    ("GRU", (f(5, 2, 3), f(2, 12, 3), f(2, 12, 4)), {"hidden_size": 4, "direction": "bidirectional"}),
    ("RNN", (f(5, 2, 3), f(1, 4, 3), f(1, 4, 4)), {"hidden_size": 4}),
    ("QuantizeLinear", (f(2, 3), f(3), np.zeros(3, np.uint8)), {}),
    ("DequantizeLinear", (np.ones((2, 3), np.uint8), S, U), {}),
    ("QLinearConv", (np.ones((1, 3, 4, 4), np.uint8), S, U, np.ones((2, 3, 3, 3), np.uint8), S, U, S, U), {}),
    ("Attention", (f(1, 2, 5, 4), f(1, 2, 7, 4), f(1, 2, 7, 4)), {}),
    ("Range", (S, np.array(3, np.float32), S), {}),
]

WRONG: list[Case] = [
    ("Add", (f(2, 3), f(4)), {}),
    ("Where", (np.array([True, False]), f(3, 3), S), {}),
    ("PRelu", (f(2, 3, 4), f(3)), {}),
    ("Clip", (f(2), f(2)), {}),
    ("MatMul", (f(5, 2, 3), f(4, 3)), {}),
    ("MatMul", (f(5, 2, 3), f(4, 3, 3)), {}),
    ("Gemm", (f(2, 3), f(4, 3)), {}),
    ("Gemm", (f(2, 3), f(3, 4), f(3)), {}),
    ("Conv", (f(1, 4, 8, 8), f(6, 3, 3, 3)), {}),
    ("Conv", (f(1, 4, 8, 8), f(6, 4, 3, 3), f(5)), {}),
    ("Conv", (f(1, 4, 8, 8), f(6, 4, 3, 3)), {"kernel_shape": [5, 5]}),
    ("Conv", (f(1, 4, 8, 8), f(6, 4, 3, 3)), {"pads": [1, 1]}),
    ("Conv", (f(1, 4, 8, 8), f(5, 2, 3, 3)), {"group": 2}),
    ("Conv", (f(1, 4, 8, 8), f(6, 4, 3)), {}),
    ("ConvTranspose", (f(1, 4, 8, 8), f(3, 4, 3, 3)), {}),
    ("MaxPool", (f(1, 4, 8, 8),), {"kernel_shape": [3]}),
    ("GlobalAveragePool", (f(4),), {}),
    ("DepthToSpace", (f(1, 6, 2, 2),), {"blocksize": 2}),
    ("SpaceToDepth", (f(1, 2, 4, 5),), {"blocksize": 2}),
    ("Resize", (f(1, 2, 4, 4), None, np.array([2, 2], np.float32)), {}),
    ("Resize", (f(1, 2, 4, 4),), {}),
    ("GridSample", (f(1, 2, 4, 4), f(1, 3, 3, 3)), {}),
    ("BatchNormalization", (f(2, 3, 4, 4), f(3), f(3), f(4), f(3)), {}),
    ("InstanceNormalization", (f(2, 3, 4), f(4), f(4)), {}),
    ("GroupNormalization", (f(2, 6, 4), f(3), f(3)), {"num_groups": 3}),
    ("GroupNormalization", (f(2, 6, 4), f(6), f(6)), {"num_groups": 4}),
    ("LayerNormalization", (f(2, 3, 4), f(3)), {}),
    ("LayerNormalization", (f(2, 3, 4), f(4), f(3)), {}),
    ("Concat", (f(2, 3), f(3, 3)), {"axis": 1}),
    ("Concat", (f(2, 3), f(3)), {"axis": 0}),
    ("Reshape", (f(2, 3), i(4, 2)), {}),
    ("Reshape", (f(2, 3), i(4, -1)), {}),
    ("Expand", (f(2, 3), i(4, 3)), {}),
    ("Transpose", (f(2, 3),), {"perm": [0, 0]}),
    ("Squeeze", (f(2, 3), i(1)), {}),
    ("Unsqueeze", (f(2), i(0, 0)), {}),
    ("Flatten", (f(2, 3),), {"axis": 3}),
    ("Split", (f(7, 2), i(3, 3)), {"axis": 0}),
    ("Slice", (f(7, 2), i(0), i(5), i(0), i(0)), {}),
    ("Gather", (f(7, 2), i(7)), {}),
    ("GatherElements", (f(7, 2), i(0, 1)), {}),
    ("ScatterElements", (f(7, 2), i(0, 1).reshape(1, 2), f(2, 2)), {}),
    ("ScatterND", (f(7, 2), i(0, 1).reshape(2, 1), f(3, 2)), {}),
    ("Tile", (f(2, 3), i(2)), {}),
    ("Pad", (f(2, 3), i(0, 1)), {}),
    ("CumSum", (f(2, 3), np.array(2, np.int64)), {}),
    ("ReduceSum", (f(2, 3), i(2)), {}),
    ("Softmax", (f(2, 3),), {"axis": 2}),
    ("TopK", (f(2, 3), i(4)), {}),
    ("Einsum", (f(2, 3), f(4, 4)), {"equation": "ij,jk->ik"}),
    ("LSTM", (f(5, 2, 3), f(1, 12, 3), f(1, 16, 4)), {"hidden_size": 4}),
    ("GRU", (f(5, 2, 3), f(1, 12, 3), f(1, 12, 4), f(1, 12)), {"hidden_size": 4}),
    ("RNN", (f(5, 2, 3), f(1, 4, 3), f(1, 4, 5)), {"hidden_size": 4}),
    ("QuantizeLinear", (f(2, 3), f(2), np.zeros(2, np.uint8)), {}),
    ("DequantizeLinear", (np.ones((2, 3), np.uint8), f(3), np.zeros(2, np.uint8)), {}),
    ("QLinearConv", (np.ones((1, 3, 4, 4), np.uint8), S, U, np.ones((2, 4, 3, 3), np.uint8), S, U, S, U), {}),
    ("Attention", (f(1, 2, 5, 4), f(1, 2, 7, 5), f(1, 2, 7, 4)), {}),
    ("Range", (f(2), S, S), {}),
]


def opset(case: Case) -> int:
    return 23 if case[0] == "Attention" else 21


def on_onnxruntime(case: Case) -> None:
    """Runs the node with every operand as an input, so that nothing is folded or checked before."""
    op, operands, attributes = case
    names = ["" if one is None else f"i{index}" for index, one in enumerate(operands)]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in zip(names, operands, strict=True)
        if name
    ]
    count = 2 if op in ("TopK", "Split") else 1
    outputs = [f"o{index}" for index in range(count)]
    node = helper.make_node(op, names, outputs, **attributes)
    infos = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph([node], "g", inputs, infos)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset(case))], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    session.run(None, {name: one for name, one in zip(names, operands, strict=True) if name})


def built(case: Case) -> None:
    op, operands, attributes = case
    g = onnxsmith.build(opset=opset(case))
    first = g.input("x", operands[0].dtype, list(operands[0].shape))
    g.call(op, [first, *operands[1:]], attributes, None, None)


def named(case: Case) -> str:
    return f"{case[0]} {[None if one is None else one.shape for one in case[1]]} {case[2]}"


@pytest.mark.parametrize("case", VALID, ids=named)
def test_valid(case: Case) -> None:
    on_onnxruntime(case)
    built(case)


@pytest.mark.parametrize("case", WRONG, ids=named)
def test_wrong(case: Case) -> None:
    with pytest.raises(OnnxsmithError) as refused:
        built(case)
    assert refused.value.problem.id == "build/shape"
    assert refused.value.problem.fix
    assert refused.value.problem.why
    assert "does not fit its operands" not in refused.value.problem.what, "onnx refused it, not the rule"
    with pytest.raises(Exception, match=r"(?s)."):  # any of onnxruntime's
        on_onnxruntime(case)


def test_every_rule_has_a_case() -> None:
    same = {rule for op, rule in RULES.items() if op in {case[0] for case in WRONG}}
    assert not {op for op, rule in RULES.items() if rule not in same} - {
        "Dropout",
        "If",
        "Loop",
    }  # conditions: test_control_flow.py


def test_names_and_unknown_sizes_pass() -> None:
    g = onnxsmith.build()
    x = g.input("x", "float32", ["n", None, "m"])
    assert (x + f(5)).rank == 3
    assert g.LayerNormalization(x, f(7)).rank == 3
    assert g.MatMul(x, f(9, 4)).shape[-1] == 4
    assert g.Reshape(x, [0, 5, -1]).rank == 3

"""Every node of the ONNX test data can be made: none is refused, and dtypes and shapes are those of the outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.load import load
from onnxsmith.graph.operators.operator_methods import Operators
from onnxsmith.graph.structure import walk
from tests.suites.backend_data import Case, cases

OLDEST = 7
PART = 12
"""One case in so many in `make test`; a choice: some seconds."""


def remade(case: Case) -> tuple[int, list[str]]:
    """Makes the nodes of a case anew; returns how many, and what is wrong with the results."""
    source = load(case.model)
    if source.opset_imports.get("", OLDEST) < OLDEST:
        return 0, []
    if any(walk.has_subgraphs(node) for node in source.graph):
        return 0, []
    graph = ir.Graph([], [], nodes=[], name="g", opset_imports=dict(source.opset_imports))
    g = Operators(ir.Model(graph, ir_version=10, functions=list(source.functions.values())))
    values: dict[ir.Value, ir.Value] = {}
    for value, array in zip(source.graph.inputs, case.feeds, strict=False):
        shape = ir.Shape(array.shape) if isinstance(array, np.ndarray) else value.shape
        values[value] = ir.Value(name=value.name, type=value.type, shape=shape)
        values[value].meta.update(value.meta)
        graph.inputs.append(values[value])
    for value in source.graph.initializers.values():
        if value not in values and value.const_value is not None:
            values[value] = g.weight(value.name or "", value.const_value).value
    for node in source.graph:
        operands = [None if value is None else values[value] for value in node.inputs]
        attributes: dict[str, Any] = dict(node.attributes)
        name = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        made = g.node(name, *operands, outputs=[value.name or None for value in node.outputs], **attributes)
        for value, handle in zip(node.outputs, made if isinstance(made, tuple) else (made,), strict=True):
            if handle is not None:
                values[value] = handle.value
    found = [(values[value], array) for value, array in zip(source.graph.outputs, case.expected, strict=True)]
    return len(source.graph), [str(value) for value, array in found if not fits(value, array)]


def fits(value: ir.Value, array: Any) -> bool:
    """Whether the inferred dtype and shape are those of the output."""
    if not isinstance(array, np.ndarray):
        return True
    is_text = array.dtype.kind in "OUS"
    if value.dtype is not None and not is_text and value.dtype.numpy() != array.dtype:
        return False
    if value.shape is None:
        return True
    pairs = list(zip(value.shape, array.shape, strict=False))
    return len(value.shape) == array.ndim and all(not isinstance(a, int) or a == b for a, b in pairs)


@pytest.mark.parametrize("step", [PART, pytest.param(1, marks=pytest.mark.whole)])
def test_every_node_can_be_made(step: int) -> None:
    count = 0
    wrong: dict[str, list[str]] = {}
    for case in cases()[::step]:
        nodes, found = remade(case)
        count += nodes
        if found:
            wrong[case.name] = found
    assert not wrong
    assert count > 10_000 // step

"""Single operators to ask a target about: the test cases that the onnx package ships, those of `ml_cases.py`, and other
forms of them."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from judge_tables.ml_cases import ml_cases
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.load import from_proto
from onnxsmith.graph.structure import schema
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.surgery import opset_conversion

OLDEST = 7
"""The oldest opset that is tried. Older files are rare, and runtimes treat them by rules of their own."""
DYNAMIC = ("", "first", "all")
"""Which axes of the inputs are symbolic: none, the first of each, all."""


@dataclass(frozen=True)
class Case:
    """A model of one node, and values for its inputs. `constants` are the names of operands that are initializers,
    `dynamic` says which axes are symbolic."""

    name: str
    model: ir.Model
    feeds: Mapping[str, Any]
    constants: frozenset[str] = frozenset()
    dynamic: str = ""
    changed: Mapping[str, str] = field(default_factory=dict)

    @property
    def node(self) -> ir.Node:
        """The one node."""
        return self.model.graph[0]

    @property
    def version(self) -> int:
        """The version of the operator's domain."""
        return self.model.opset_imports[self.node.domain]

    @property
    def schema(self) -> schema.Schema | None:
        """The operator's schema at that version."""
        return schema.find(self.node.op_type, self.node.domain, self.version)


def node_cases(at: int | None = None) -> Iterator[Case]:
    """Yields the cases of one node, each at its own opset and, where the operator was another before, at the older
    opsets, or at the one that is given."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        tests = sorted(load_model_tests(kind="node"), key=lambda test: test.name)
    for test in tests:
        if test.model is None or len(test.model.graph.node) != 1 or not test.data_sets:
            continue
        model = from_proto(test.model, where=test.name)
        values = [_value(value) for value in test.data_sets[0][0]]
        values = [np.asarray(value) if isinstance(value, np.generic) else value for value in values]
        case = Case(test.name, model, dict(zip((one.name or "" for one in model.graph.inputs), values, strict=False)))
        if case.schema is not None:
            yield case
            yield from _older(case, at)
    yield from (Case(*found) for found in ml_cases())


def fitted(case: Case, opset_limit: int | None, ir_limit: int | None) -> Case:
    """The case with the newest IR version and opset that a target reads, where its own are newer and the operator is
    the same there."""
    found, given = case.schema, case.model.opset_imports.get("", 0)
    model = cloned(case.model)
    if ir_limit is not None:
        model.ir_version = min(model.ir_version, ir_limit)
    if opset_limit is not None and not case.node.domain and found is not None and found.since <= opset_limit < given:
        model.opset_imports[""] = opset_limit
    return replace(case, model=model)


def _value(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    return numpy_helper.to_optional(value) if isinstance(value, onnx.OptionalProto) else value


def _older(case: Case, at: int | None) -> Iterator[Case]:
    """The case at the last opset of each older form of its operator."""
    if case.node.domain:
        return
    known = schema.versions(case.node.op_type, "")
    versions = [after - 1 for _, after in itertools.pairwise(known) if OLDEST < after <= case.version]
    if at is not None:
        versions = [at] if versions and at <= max(versions) else []
    for version in versions:
        try:
            model = opset_conversion.convert(cloned(case.model), version)
        except OnnxsmithError:
            continue
        if len(model.graph) == 1:  # the operator itself, not what it was written as
            yield replace(case, model=model)


def with_constants(case: Case, names: frozenset[str]) -> Case:
    """The case with these inputs as initializers."""
    model, feeds = cloned(case.model), dict(case.feeds)
    for value in list(model.graph.inputs):
        array = feeds.get(value.name or "")
        if value.name in names and isinstance(array, np.ndarray):
            model.graph.inputs.remove(value)
            value.const_value = _tensor(array, value.name)
            model.graph.initializers[value.name or ""] = value
            del feeds[value.name or ""]
    return replace(case, model=model, feeds=feeds, constants=frozenset(names))


def with_fewer_results(case: Case) -> Case | None:
    """The case with the first result alone; None if it has no other, or if the specification wants them."""
    found = case.schema
    if found is None or len(case.node.outputs) < 2 or not all(one.optional for one in found.outputs[1:]):
        return None
    model = cloned(case.model)
    del model.graph.outputs[1:]
    for value in model.graph[0].outputs[1:]:
        value.name = ""
    return replace(case, model=model)


def with_lower_rank(case: Case) -> Case | None:
    """The case with a first operand without its last axis, of size 1; None if it has no such axis, or if attributes
    count axes."""
    if case.schema is None or {"axis", "axes"} & {*case.schema.required, *case.schema.defaults}:
        return None
    name = case.node.inputs[0].name or "" if case.node.inputs and case.node.inputs[0] is not None else ""
    array = case.feeds.get(name)
    if not isinstance(array, np.ndarray) or array.ndim < 2 or array.shape[-1] != 1:
        return None
    model = cloned(case.model)
    next(one for one in model.graph.inputs if one.name == name).shape = ir.Shape(array.shape[:-1])
    for value in model.graph.outputs:
        value.shape = None
    return replace(case, model=model, feeds={**case.feeds, name: array[..., 0]})


def _tensor(array: Any, name: str | None) -> ir.TensorProtocol:
    if array.dtype.kind in "OUS":
        return ir.StringTensor([str(one).encode() for one in array.ravel()], shape=ir.Shape(array.shape), name=name)
    return ir.tensor(array, name=name)


def with_symbols(case: Case, dynamic: str) -> Case:
    """The case with symbolic axes; axes of one size have one symbol."""
    model = cloned(case.model)
    for value in model.graph.inputs:
        array = case.feeds.get(value.name or "")
        if isinstance(array, np.ndarray) and array.ndim:
            last = array.ndim if dynamic == "all" else 1
            value.shape = ir.Shape([f"s{size}" if at < last else size for at, size in enumerate(array.shape)])
    for value in model.graph.outputs:
        if value.shape is not None:
            value.shape = ir.Shape([None] * len(value.shape))
    return replace(case, model=model, dynamic=dynamic)


def with_dtype(case: Case, variable: str, dtype: str) -> Case | None:
    """The case with another dtype for a type variable; None where it has none, or where the dtype is no tensor's."""
    found = case.schema
    if found is None or not dtype.startswith("tensor("):
        return None
    code = ir.DataType[_NAMES.get(dtype[7:-1], dtype[7:-1].upper())]
    model, feeds, touched = cloned(case.model), dict(case.feeds), False
    node = model.graph[0]
    pairs = [(found.input(at), value) for at, value in enumerate(node.inputs)]
    pairs += [(found.output(at), value) for at, value in enumerate(node.outputs)]
    for formal, value in pairs:
        if formal is None or value is None or formal.type != variable:
            continue
        array = feeds.get(value.name or "")
        if isinstance(array, np.ndarray):
            feeds[value.name or ""] = _cast(array, code)
            touched = True
        elif not value.is_graph_output():
            return None
        value.type = ir.TensorType(code)
    return replace(case, model=model, feeds=feeds, changed={variable: dtype}) if touched else None


_NAMES = {"float": "FLOAT", "double": "DOUBLE", "bool": "BOOL", "string": "STRING"}


def _cast(array: Any, code: ir.DataType) -> Any:
    if code is ir.DataType.STRING:
        return np.array([str(one) for one in array.ravel().tolist()], dtype=object).reshape(array.shape)
    with np.errstate(all="ignore"):
        if array.dtype.kind in "OUS":
            return np.ones(array.shape, code.numpy())
        return np.asarray(array).astype(code.numpy())

"""Models of one operator with attributes that are not the default: the node tests of onnx, and own older forms.

The own models are in `operator_cases.txt`.
"""

from __future__ import annotations

import importlib
import itertools
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.test.case.node as node_tests
from onnx import defs, helper, numpy_helper

OLDEST = 7
"""The oldest opset that is written."""
_LARGEST = 20_000
"""The most elements of a case's inputs, so that a case is cheap."""
_SIZES = {"n": 2, "c": 4}
"""The sizes of named dimensions of own models; the others are 3."""
_SLOW = {"attention", "averagepool", "lppool", "maxpool"}
"""Modules whose import computes for seconds what their tests expect. Own models stand for them."""
_OTHER = {"EACH": ("Max", "Min", "Sum", "Mean")}
_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")


@dataclass(frozen=True)
class Case:
    """A model with one node of the operator (or few nodes), and values for its inputs."""

    name: str
    model: onnx.ModelProto
    feeds: dict[str, Any]

    def at(self, version: int) -> Case:
        """The case with another opset."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        del model.opset_import[:]
        model.opset_import.append(helper.make_opsetid("", version))
        model.ir_version = max(8, helper.find_min_ir_version_for(list(model.opset_import)))
        return replace(self, model=model)

    def features(self, op_type: str) -> set[tuple[Any, ...]]:
        """What a choice of few cases should have: each attribute's values, operands that are there, dtypes, ranks."""
        node = next(node for node in self.model.graph.node if node.op_type == op_type)
        found: set[tuple[Any, ...]] = {("input", at) for at, name in enumerate(node.input) if name}
        known = defs.get_schema(op_type, self.model.opset_import[0].version, "")
        found |= {("without", at) for at in range(len(known.inputs)) if ("input", at) not in found}
        found |= {("without", name) for name in known.attributes} - {("without", one.name) for one in node.attribute}
        found |= {("outputs", sum(map(bool, node.output))), ("initializers", bool(self.model.graph.initializer))}
        for attribute in node.attribute:
            value = helper.get_attribute_value(attribute)
            found.add((attribute.name, "" if isinstance(value, onnx.GraphProto) else str(value)[:60]))
        for port in self.model.graph.input[:1]:
            found |= {("dtype", port.type.tensor_type.elem_type), ("rank", len(port.type.tensor_type.shape.dim))}
        return found


def versions(op_type: str) -> list[int]:
    """The versions of an operator of ONNX from the form at the oldest opset on."""
    every = sorted(one.since_version for one in _schemas() if one.name == op_type)
    return [*[one for one in every if one <= OLDEST][-1:], *[one for one in every if one > OLDEST]]


def changes() -> list[tuple[str, int]]:
    """Each operator of ONNX with each version that changed it."""
    names = sorted({one.name for one in _schemas()})
    return [(name, after) for name in names for _, after in itertools.pairwise(versions(name))]


@cache
def _schemas() -> tuple[Any, ...]:
    return tuple(one for one in defs.get_all_schemas_with_history() if one.domain == "")


@cache
def cases(op_type: str) -> tuple[Case, ...]:
    """The cases of an operator: with all operands computed, and with all but the first constant."""
    found = [*_own(op_type), *_node_tests(op_type)]
    return tuple(form for case in found for form in (case, _with_constants(case)) if form is not None)


def few(op_type: str, given: list[Case], most: int) -> list[Case]:
    """A choice of cases that has as many features as possible."""
    left, chosen, seen = list(given), [], set[tuple[Any, ...]]()
    features = {case.name: case.features(op_type) for case in given}
    while left and len(chosen) < most:
        best = max(left, key=lambda case: len(features[case.name] - seen))
        if not features[best.name] - seen:
            break
        seen |= features[best.name]
        chosen.append(best)
        left.remove(best)
    return chosen


def _node_tests(op_type: str) -> Iterator[Case]:
    """The operator's own test cases of the onnx package. Only the modules that name the operator are imported: all
    together take ten seconds."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for module, text in _modules().items():
            if f'"{op_type}"' in text and module not in _SLOW:
                importlib.import_module(f"{node_tests.__name__}.{module}")
    for test in node_tests._NodeTestCases:
        graph = test.model.graph
        if len(graph.node) != 1 or graph.node[0].op_type != op_type or graph.node[0].domain or not test.data_sets:
            continue
        if "_expanded" not in test.name:
            values = [_value(value) for value in test.data_sets[0][0]]
            if sum(np.size(value) if isinstance(value, np.ndarray) else 1 for value in values) <= _LARGEST:
                yield Case(test.name, test.model, dict(zip([port.name for port in graph.input], values, strict=False)))


@cache
def _modules() -> dict[str, str]:
    folder = Path(str(node_tests.__file__)).parent
    return {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("*.py")) if path.stem != "__init__"}


def _value(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def _own(op_type: str) -> Iterator[Case]:
    for number, version, model in _models():
        if op_type in {node.op_type for node in model.graph.node}:
            yield Case(f"own {number}, opset {version}", model, _feeds(model))


@cache
def _models() -> tuple[tuple[int, int, onnx.ModelProto], ...]:
    lines = Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()
    found = []
    for number, line in enumerate(lines, start=1):
        if line.startswith("#"):
            continue
        version, _, text = line.partition(" ")
        sums = () if int(version) > 13 else ("Sum",)  # ReduceSum changed earlier than the other reductions
        names = {**_OTHER, "REDUCE": tuple(f"Reduce{name}" for name in (*_REDUCTIONS, *sums))}
        word = next((word for word in names if word in text), "")
        for name in names.get(word, ("",)):
            plain = _filled(text.replace(word, name) if word else text)
            model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {version}]> {plain}')
            found.append((number, int(version), model))
    return tuple(found)


def _filled(text: str) -> str:
    random = np.random.default_rng(1)

    def numbers(match: re.Match[str]) -> str:
        count = int(np.prod([int(size) for size in match[2].split(",")]))
        return match[1] + "{" + ",".join(f"{value:.3f}" for value in random.normal(size=count)) + "}"

    return re.sub(r"(float\[([\d,]+)\] \w+ = )\{RAND\}", numbers, text)


def _feeds(model: onnx.ModelProto) -> dict[str, Any]:
    random = np.random.default_rng(0)
    held = {tensor.name for tensor in model.graph.initializer}
    positive = {node.op_type for node in model.graph.node} & {"Multinomial", "ReduceLogSum", "Pow"}
    found = {}
    for port in model.graph.input:
        kind = port.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        shape = [dim.dim_value or _SIZES.get(dim.dim_param, 3) for dim in kind.shape.dim]
        if port.name in held:
            continue
        if port.name in _PARAMETERS:
            values: Any = _PARAMETERS[port.name]
        elif dtype.kind in "iub":
            values = random.integers(0, 2 if dtype.kind == "b" else 3, shape)
        else:
            values = random.normal(size=shape)
        found[port.name] = np.asarray(np.abs(values) if positive else values).astype(dtype)
    return found


_PARAMETERS = {
    "scales": [1, 1, 2, 3], "shrink": [1, 1, 0.5, 2], "parts": [2, 4], "half": [0.5, 0.5], "pads": [0, 1, 2, 0, 1, 0],
}  # fmt: skip
"""Values of computed parameters, by the name of the graph input."""


def _with_constants(case: Case) -> Case | None:
    """The case with all inputs but the first as initializers; None if that changes nothing."""
    model, feeds = onnx.ModelProto(), dict(case.feeds)
    model.CopyFrom(case.model)
    kept = list(model.graph.input)[:1]
    for port in list(model.graph.input)[1:]:
        array, kind = feeds[port.name], port.type.tensor_type.elem_type
        if not isinstance(array, np.ndarray) or not port.type.HasField("tensor_type"):
            kept.append(port)
            continue
        if kind == onnx.TensorProto.STRING:
            tensor = helper.make_tensor(port.name, kind, array.shape, [str(one).encode() for one in array.ravel()])
        else:
            tensor = numpy_helper.from_array(array, port.name)
        if tensor.data_type != kind:
            kept.append(port)
            continue
        model.graph.initializer.append(tensor)
        del feeds[port.name]
    if len(kept) == len(model.graph.input):
        return None
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return Case(f"{case.name}, constant", model, feeds)

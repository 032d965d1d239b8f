"""Inputs that became constants: the module follows them, the graph does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.exporter.probes.base import Case, Probe
from onnxsmith.problem import OnnxsmithError, Problem
from onnxsmith.report.parts.diagnosis import Finding, Weight
from onnxsmith.runtimes.torch_eager import TorchEager


class Constants(Probe):
    """An input that no output of the graph can be reached from, though other values of it change what torch gives."""

    rank = 65

    def look(self, case: Case) -> Iterator[Finding]:
        if case.built is None:
            return
        for way in case.ways:
            if way.made is None:
                continue
            for name in _unreached(way.made.graph.model):
                if self._matters(case, name):
                    yield self._finding(case, name)
            return

    def _matters(self, case: Case, name: str) -> bool:
        assert case.built is not None
        example = dict(case.built.example)
        with TorchEager().prepare(case.built.program) as session:
            try:
                before, again = session.run(example), session.run(example)
                if not _same(before, again):
                    return False
                for other in _others(example[name]):
                    if not _same(before, session.run({**example, name: other})):
                        return True
            except OnnxsmithError:
                return False
        return False

    def _finding(self, case: Case, name: str) -> Finding:
        lines = [
            one.problem.where
            for one in case.found
            if one.problem.id
            in ("forward/numpy", "forward/data-attribute", "forward/copied-tensor", "forward/python-value")
        ]
        return Finding(
            Problem(
                "export/constant-input",
                f"input {name!r} became a constant: no output of the graph depends on it",
                where=lines[0] if lines else type(case.model.module).__qualname__,
                why="torch gives other results for other values of it; on the way its values became Python numbers, a "
                "numpy array or a copy, which a trace writes down as they were",
                fix="compute with the tensor itself from the input to the output",
            ),
            Weight.WRONG,
            "recompose",
        )


def _unreached(model: ir.Model) -> list[str]:
    reached: set[str] = set()
    todo: list[ir.Value] = list(model.graph.outputs)
    seen: set[int] = set()
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        reached.add(value.name or "")
        node = value.producer()
        if node is None:
            continue
        todo += [one for one in node.inputs if one is not None]
        for attribute in node.attributes.values():
            for graph in _graphs(attribute):
                todo += list(graph.outputs)
    return [value.name or "" for value in model.graph.inputs if value.name not in reached]


def _graphs(attribute: ir.Attr) -> list[ir.Graph]:
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.as_graph()]
    return list(attribute.as_graphs()) if attribute.type == ir.AttributeType.GRAPHS else []


def _others(array: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    if array.dtype == np.bool_:
        yield ~array
    elif array.dtype.kind in "iu":
        yield np.zeros_like(array)
        yield array + array.dtype.type(1)
    else:
        yield (array * array.dtype.type(-1.5) + array.dtype.type(0.25)).astype(array.dtype)


def _same(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return all(np.array_equal(np.asarray(a[name]), np.asarray(b[name]), equal_nan=False) for name in a)

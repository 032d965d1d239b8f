"""Asks a target about forms of a case, and says what distinguishes those that it takes from those that it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx_ir as ir

from judge_tables.cases import Case, with_constants, with_dtype, with_fewer_results, with_lower_rank, with_symbols
from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.operators.dtypes import shown
from onnxsmith.runtimes.base import Runtime
from onnxsmith.targets.judges.base import Judge


class Asking:
    """Asks one target, and keeps which forms of operators had their dtypes tried."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._dtypes: dict[tuple[str, str, int], int] = {}

    def observed(self, case: Case) -> Iterator[dict[str, Any]]:
        """Asks about the case with inputs, with constants, with symbolic axes, and with other dtypes."""
        forms = [case, *_constant_forms(case)]
        if (fewer := with_fewer_results(case)) is not None:
            forms += [fewer, *_constant_forms(fewer)]
        taken, fixed = None, None
        for form in forms:
            line = self._line(form)
            yield line
            if line["taken"]:
                taken, fixed = taken or form, form
        if taken is None and len(case.feeds) != len(forms[-1].constants):
            line = self._line(form := with_constants(case, frozenset(case.feeds)))
            yield line
            taken = fixed = form if line["taken"] else None
        if taken is None:
            yield from self._dtypes_of(case, forms[-1].constants)
            return
        for name in sorted(taken.constants if len(taken.constants) > 1 else ()):
            yield self._line(with_constants(case, taken.constants - {name}))
        for dynamic in ("all", "first") if fixed is not None and fixed.feeds else ():
            line = self._line(with_symbols(fixed, dynamic))  # with as many constants as it can have, as in a network
            yield line
            if line["taken"]:
                break
        lower = with_lower_rank(case)
        if lower is not None and _mean_the_same(case, lower):
            yield self._line(with_constants(lower, taken.constants) if taken.constants else lower)
        yield from self._dtypes_of(case, taken.constants)

    def _dtypes_of(self, case: Case, constants: frozenset[str]) -> Iterator[dict[str, Any]]:
        """Other dtypes for each type variable. Two cases of an operator at a version are enough."""
        found = case.schema
        assert found is not None
        key = (case.node.domain, case.node.op_type, found.since)
        self._dtypes[key] = self._dtypes.get(key, 0) + 1
        if self._dtypes[key] > 2:
            return
        variables = {one.type: one.types for one in found.inputs if len(one.types) > 1}
        for variable, types in variables.items():
            for dtype in sorted(types):
                other = with_dtype(case, variable, dtype)
                if other is not None:
                    yield self._line(with_constants(other, constants) if constants else other)

    def _line(self, case: Case) -> dict[str, Any]:
        refusal, limit = "", ""
        try:
            answer = self._judge.ask(case.model, case.feeds)
            refusal = answer.refusal.why or "refused" if answer.refusal is not None else ""
        except OnnxsmithError as error:
            limit = error.problem.what
        return described(case) | {"taken": not refusal and not limit, "why": refusal[:300], "limit": limit}


def _mean_the_same(one: Case, other: Case) -> bool:
    """Whether onnxruntime gives the same numbers for both, in any shape: what a model of another rank means is not
    sure."""
    runtime = rooms.members("onnxsmith.runtimes", Runtime)["onnxruntime"]
    found: list[list[Any]] = []
    try:
        for case in (one, other):
            with runtime.prepare(case.model) as session:
                found.append([np.ravel(value) for value in session.run(dict(case.feeds)).values()])
        return all(np.array_equal(a, b) for a, b in zip(*found, strict=True))
    except (OnnxsmithError, ValueError):
        return False


def _constant_forms(case: Case) -> list[Case]:
    names = [
        one.name or "" for one in case.model.graph.inputs if isinstance(case.feeds.get(one.name or ""), np.ndarray)
    ]
    return [with_constants(case, frozenset(names[1:]))] if len(names) > 1 else []


def described(case: Case) -> dict[str, Any]:
    """What a table can have conditions on."""
    node, found = case.node, case.schema
    assert found is not None
    operands = {found.input_name(at): value for at, value in enumerate(node.inputs) if value is not None}
    results = [found.output_name(at) for at, value in enumerate(node.outputs) if value.name]
    dtypes: dict[str, str] = {}
    formals = [*((found.input(at), value) for at, value in enumerate(node.inputs)),
               *((found.output(at), value) for at, value in enumerate(node.outputs))]  # fmt: skip
    for formal, value in formals:
        if formal is not None and value is not None and isinstance(value.type, ir.TensorType):
            dtypes.setdefault(formal.type, shown(value.type.dtype))
    first = next(iter(operands.values()), None)
    attributes = {name: attribute.value for name, attribute in node.attributes.items() if _is_plain(attribute)}
    defaults = {name: one.value for name, one in found.defaults.items() if one is not None and _is_plain(one)}
    return {
        "op": f"{node.domain}::{node.op_type}" if node.domain else node.op_type,
        "case": case.name,
        "since": found.since,
        "dtypes": dtypes,
        "operands": list(operands),
        "results": results,
        "attributes": {name: list(value) if isinstance(value, tuple) else value
                       for name, value in (defaults | attributes).items()},
        "rank": len(first.shape) if first is not None and first.shape is not None else None,
        "constants": sorted(name for name, value in operands.items() if value.const_value is not None),
        "dynamic": case.dynamic,
        "changed": dict(case.changed),
    }  # fmt: skip


def _is_plain(attribute: ir.Attr) -> bool:
    kinds = ir.AttributeType
    return attribute.type in (kinds.INT, kinds.STRING, kinds.INTS, kinds.STRINGS, kinds.FLOAT)

"""Finds a small program that builds a model with one operator. Candidates are tried until one of them passes the check
and runs."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.editor.building.build import build
from onnxsmith.graph.structure.schema import Parameter, Schema

_SECONDS = 10.0
"""Limits the seconds of the search. A choice: most operators need a fraction of this time."""
_SHAPES: tuple[list[int], ...] = ([2, 2, 2, 2], [2, 2], [2, 2, 2], [2], [])
"""Lists shapes of operands. All sizes are equal, because equal sizes fit together in most operators."""
_NUMBERS = ([1], [2, 2, 2, 2], [0], [2, 2], [1, 1, 1, 1, 1, 1, 1, 1])
_COMBINATIONS = 400
"""Limits the combinations of operands that are tried for each number of operands, after combinations with equal sizes.
A choice."""
_DTYPES = {
    "tensor(float)": "float32",
    "tensor(int64)": "int64",
    "tensor(bool)": "bool",
    "tensor(int32)": "int32",
    "tensor(uint8)": "uint8",
    "tensor(string)": "string",
}
_VALUES: dict[ir.AttributeType, tuple[Any, ...]] = {
    ir.AttributeType.INT: (1, 0),
    ir.AttributeType.INTS: ([2, 2], [1], [0]),
    ir.AttributeType.FLOAT: (1.0,),
    ir.AttributeType.FLOATS: ([1.0],),
    ir.AttributeType.STRING: ("ij,jk->ik",),
}


@dataclass(frozen=True)
class _Operand:
    """Describes an operand of the example: an input of a dtype and shape, a constant, or an operand that is left
    out."""

    dtype: str = ""
    shape: tuple[int, ...] = ()
    values: tuple[float, ...] | None = None

    def code(self, name: str) -> str:
        """Returns the operand as Python code; `name` is the variable of an input."""
        if self.values is None:
            return name if self.dtype else "None"
        return f"np.array({list(self.values)}, np.{self.dtype})"


def example(op: str, domain: str, schema: Schema, version: int) -> str:
    """Returns a program with `onnxsmith.build` that was checked and run; "" if the search found no program in time.
    Operators with branches or bodies, and operators of other domains than ai.onnx, have no example."""
    end = time.monotonic() + _SECONDS
    if domain or any(schema.attributes[name] not in _VALUES for name in schema.required):
        return ""
    for operands, attributes in _candidates(schema):
        if time.monotonic() > end:
            return ""
        results = _results(op, version, operands, attributes, run=False)
        if results and _results(op, version, operands, attributes, run=True):
            return _code(op, version, operands, attributes, several=results == "several")
    return ""


def _candidates(schema: Schema) -> Iterator[tuple[tuple[_Operand, ...], dict[str, Any]]]:
    required = [one for one in schema.inputs if not one.optional]
    counts = dict.fromkeys((len(required), *range(len(schema.inputs), len(required), -1)))
    values = [_VALUES[schema.attributes[name]] for name in schema.required]
    for count in counts:
        choices = [
            list(_choices(one, schema, given=not one.optional or index == count - 1))
            for index, one in enumerate(schema.inputs[:count])
        ]
        pairs = itertools.product(range(len(_SHAPES)), repeat=2)
        alike = [tuple(_at(each, n if index else m) for index, each in enumerate(choices)) for m, n in pairs]
        equal = [one for one in alike if len({operand.shape for operand in one}) == 1]
        some = itertools.islice(itertools.product(*choices), _COMBINATIONS)
        for operands in dict.fromkeys((*equal, *alike, *some)):
            for chosen in itertools.product(*values):
                yield operands, dict(zip(schema.required, chosen, strict=True))


def _at(choices: list[_Operand], number: int) -> _Operand:
    return choices[min(number, len(choices) - 1)]


def _choices(one: Parameter, schema: Schema, *, given: bool) -> Iterator[_Operand]:
    dtype = next((_DTYPES[type_] for type_ in _DTYPES if type_ in one.types), "")
    if not given or not dtype:
        yield _Operand()
        return
    if one.types == {"tensor(int64)"} or (one is not schema.inputs[0] and one.types == {"tensor(float)"}):
        yield from (_Operand(dtype, (len(n),), tuple(n)) for n in _NUMBERS)
    yield from (_Operand(dtype, tuple(shape)) for shape in _SHAPES)


def _results(op: str, version: int, operands: tuple[_Operand, ...], attributes: dict[str, Any], *, run: bool) -> str:
    """Returns "one" or "several" for the number of tensors that the call returns; "" if the call is refused."""
    try:
        with build(opset=version, verify=run) as g:
            given = [_made(g, index, one) for index, one in enumerate(operands)]
            results = getattr(g, op)(*given, **attributes)
            several = isinstance(results, tuple | list)
            g.output("y", results[0] if several else results)
    except OnnxsmithError:
        return ""
    return "several" if several else "one"


def _made(g: Any, index: int, one: _Operand) -> Any:
    if one.values is not None:
        return np.array(one.values, one.dtype)
    return g.input(f"x{index}", one.dtype, list(one.shape)) if one.dtype else None


def _code(op: str, version: int, operands: tuple[_Operand, ...], attributes: dict[str, Any], *, several: bool) -> str:
    lines = ["import numpy as np"] if any(one.values is not None for one in operands) else []
    lines += ["import onnxsmith", "", f'with onnxsmith.build("{op.lower()}.onnx", opset={version}) as g:']
    words = []
    for index, one in enumerate(operands):
        words.append(one.code(f"x{index}"))
        if one.dtype and one.values is None:
            lines.append(f'    x{index} = g.input("x{index}", "{one.dtype}", {list(one.shape)})')
    words += [f"{name}={value!r}" for name, value in attributes.items()]
    call = f"g.{op}({', '.join(words)})"
    lines += [f"    first, *others = {call}", '    g.output("y", first)'] if several else [f'    g.output("y", {call})']
    return "\n".join(lines)

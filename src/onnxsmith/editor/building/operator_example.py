"""Finds an example of an operator: a program or a model that was run."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base import folders
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.editor.building.build import Builder, build
from onnxsmith.editor.building.build_completion import run_once
from onnxsmith.editor.building.operator_calls import CALLS
from onnxsmith.graph.files.save import save_for_now
from onnxsmith.graph.files.text import to_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import versions
from onnxsmith.graph.structure.schema import Parameter, Schema

_USUAL = 21
"""Sets the opset of ONNX's own operators beside those of another domain. It is the default of `onnxsmith.build`."""
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
    ir.AttributeType.INT: (1, 0, 2),
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
        """Returns the operand as Python code; `name` is the name of an input."""
        if self.values is None:
            return f'g.input("{name}", "{self.dtype}", {list(self.shape)})' if self.dtype else "None"
        return f"{list(self.values)}"


def example(op: str, domain: str, schema: Schema, version: int) -> str:
    """Returns a program with `onnxsmith.build` that was checked and run at `version` of the domain; "" if the search
    found no program in time."""
    full = f"{domain}::{op}" if domain else op
    call = CALLS.get(full, "")
    if call and _runs(call, domain, version, run=True):
        return _program(op, domain, version, call)
    end = time.monotonic() + _SECONDS
    if any(schema.attributes[name] not in _VALUES for name in schema.required):
        return ""
    for operands, attributes in _candidates(schema):
        if time.monotonic() > end:
            return ""
        words = [one.code(f"x{index}") for index, one in enumerate(operands)]
        words += [f"{name}={value!r}" for name, value in attributes.items()]
        call = f"g.{op}({', '.join(words)})" if not domain else f"g.node({', '.join([repr(full), *words])})"
        call = call.replace("'", '"')
        results = _runs(call, domain, version, run=False)
        if results == "several":
            call = f"{call}[0]"
        if results and _runs(call, domain, version, run=True):
            return _program(op, domain, version, call)
    return ""


def text_of_deprecated(op: str, domain: str, schema: Schema, version: int) -> str:
    """Returns a model of one node as ONNX text, on one line, that was run; "" if none was found in time. For forms that
    the specification deprecates: the checker refuses them, and runtimes may know them."""
    end = time.monotonic() + _SECONDS
    if any(schema.attributes[name] not in _VALUES for name in schema.required):
        return ""
    for operands, attributes in _candidates(schema):
        if time.monotonic() > end:
            return ""
        try:
            model = _model(op, domain, version, operands, attributes)
            with folders.temporary() as folder:
                path = folder / "model.onnx"
                save_for_now(model, path)
                run_once(path, model, "")
        except (OnnxsmithError, ValueError):
            continue
        return " ".join(to_text(model, weights=True).split())
    return ""


def _model(op: str, domain: str, version: int, operands: tuple[_Operand, ...], attributes: dict[str, Any]) -> ir.Model:
    """Makes a model of one node, whose first result is the output."""
    given: list[ir.Value | None] = []
    inputs, weights = [], []
    for index, one in enumerate(operands):
        value = None
        if one.values is not None:
            array = np.array(one.values, one.dtype)
            value = ir.Value(name=f"x{index}", const_value=ir.tensor(array, name=f"x{index}"))
            weights.append(value)
        elif one.dtype:
            dtype = ir.DataType.from_numpy(np.dtype(one.dtype)) if one.dtype != "string" else ir.DataType.STRING
            value = ir.Value(name=f"x{index}", type=ir.TensorType(dtype), shape=ir.Shape(one.shape))
            inputs.append(value)
        given.append(value)
    written = [ir.convenience.convert_attribute(name, value) for name, value in attributes.items()]
    node = ir.Node(domain, op, given, written, num_outputs=1, name=op.lower())
    node.outputs[0].name = "y"
    imports: dict[str, int] = {domain: version} if not domain else {"": _USUAL, domain: version}
    graph = ir.Graph(inputs, node.outputs, nodes=[node], initializers=weights, name="g", opset_imports=imports)
    model = inferred(ir.Model(graph, ir_version=versions.newest().ir))[0]
    model.ir_version = versions.least_ir(model)
    if model.graph.outputs[0].dtype is None or model.graph.outputs[0].shape is None:
        model.graph.outputs[0].type, model.graph.outputs[0].shape = inputs[0].type, inputs[0].shape
    return model


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


def _runs(call: str, domain: str, version: int, *, run: bool) -> str:
    """Returns "one" or "several" for the number of tensors that the call returns; "" if the call is refused."""
    try:
        with _builder(domain, version, verify=run) as g:
            results = eval(call, {"g": g, "np": np})  # a call that this file or `CALLS` writes
            several = isinstance(results, tuple | list)
            g.output("y", results[0] if several else results)
    except (OnnxsmithError, ValueError, TypeError, IndexError):
        return ""
    return "several" if several else "one"


def _builder(domain: str, version: int, *, verify: bool) -> Builder:
    if domain:
        return build(imports={domain: version}, verify=verify)
    return build(opset=version, verify=verify)


def _program(op: str, domain: str, version: int, call: str) -> str:
    """Returns the program, whose last line builds the model."""
    wanted = f'imports={{"{domain}": {version}}}' if domain else f"opset={version}"
    lines = ["import numpy as np"] if "np." in call else []
    lines += ["import onnxsmith", ""]
    return "\n".join([*lines, f'with onnxsmith.build("{op.lower()}.onnx", {wanted}) as g: g.output("y", {call})'])

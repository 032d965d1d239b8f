"""Reads the user's declarations of opsets, inputs and outputs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.operators import dtypes
from onnxsmith.graph.operators.tensor import Tensor
from onnxsmith.graph.structure import schema as schemas
from onnxsmith.graph.structure.signature import names_something

if TYPE_CHECKING:
    from onnxsmith.editor.building.build import Builder

_OLDEST = 7
"""Names the oldest opset that can be built: Add and similar operators broadcast since opset 7, and onnxruntime runs no
older opset."""
_AROUND = re.compile(r"(seq|sequence|optional)\((.*)\)")


def refuse_opset(opset: Any, imports: Mapping[str, Any], where: str) -> None:
    """Raises `build/opset` for a version that the installed onnx does not know."""
    for domain, version in {"": opset, **imports}.items():
        newest = schemas.domains().get(domain)
        least = _OLDEST if not domain else 1
        if (
            isinstance(version, bool)
            or not isinstance(version, int)
            or version < least
            or version > (newest or version)
        ):
            name = f"the version of {domain}" if domain else "the opset"
            limits = f"{least} to {newest}" if newest is not None else f"{least} or more"
            raise problem(
                "build/opset",
                f"a model cannot be built with {name} {version!r}",
                where=where,
                why=f"the installed onnx supports {limits}",
                fix=f"give a whole number, {limits}; for newer versions, run `pip install --upgrade onnx`",
            )


def read_type(dtype: Any, where: str) -> ir.TypeProtocol:
    """Reads `float32`, `seq(float32)`, `optional(seq(float32))`, or a type of onnx-ir."""
    if isinstance(dtype, ir.TensorType | ir.SequenceType | ir.OptionalType):
        return dtype
    around = _AROUND.fullmatch(dtype.strip()) if isinstance(dtype, str) else None
    if around is None:
        return ir.TensorType(dtypes.read(dtype, where))
    inner = read_type(around[2].removeprefix("tensor(").rstrip(")") if "tensor(" in around[2] else around[2], where)
    return ir.OptionalType(inner) if around[1] == "optional" else ir.SequenceType(inner)


def read_shape(name: Any, shape: Any, where: str, *, needed: bool) -> ir.Shape | None:
    """Reads the shape of an input.

    Raises:
        OnnxsmithError: `build/input` for a dimension that is neither a size, a name nor None.
    """
    if shape is None:
        if not needed:
            return None
        raise _bad(name, "has no shape", where, "give a list, with None for an unknown size; [] is a scalar")
    if isinstance(shape, str | int) or not isinstance(shape, Sequence):
        raise _bad(name, f"has the shape {shape!r}, not a list", where, f"write [{shape!r}]")
    dims: list[int | str | None] = []
    for dim in shape:
        if dim is None or (isinstance(dim, str) and names_something(dim)):
            dims.append(dim)
        elif isinstance(dim, int | np.integer) and not isinstance(dim, bool) and int(dim) >= 0:
            dims.append(int(dim))
        else:
            raise _bad(
                name,
                f"has the dimension {dim!r}",
                where,
                'give a size of 0 or more, a name such as "batch", or None for an unknown size',
            )
    return ir.Shape(dims)


def output_value(builder: Builder, name: Any, tensor: Any, where: str) -> ir.Value:
    """Returns the value that becomes an output.

    Raises:
        OnnxsmithError: `build/output` for a wrong name or tensor, or an unknown dtype or rank.
    """
    if isinstance(name, Tensor) and isinstance(tensor, str):
        raise _no_output(
            tensor, "is given in the wrong order", "", where, f"g.output({tensor!r}, …): the name is first"
        )
    if not isinstance(name, str) or not name:
        raise _no_output(name, "is not a name", "", where, 'give a text: g.output("y", y)')
    if not isinstance(tensor, Tensor | ir.Value):
        several = isinstance(tensor, tuple | list)
        raise _no_output(
            name,
            "gets several tensors" if several else f"gets {'nothing' if tensor is None else type(tensor).__name__}",
            "an output is one tensor of the graph",
            where,
            f'give one output each: g.output("{name}_0", {name}[0])'
            if several
            else "give a tensor that the graph makes",
        )
    if any(value.name == name for value in builder.outputs):
        raise _no_output(
            name,
            "is an output already",
            "every output has a name of its own",
            where,
            f"give another name, such as {_free(name, builder)!r}",
        )
    if builder.is_inside:
        why = "only the whole model has outputs"
        raise _no_output(name, "is made inside a branch or a body", why, where, "return the tensor from the branch")
    handle = builder.readable(tensor, f"the output {name!r}")
    value = handle.value
    if value.type is None and value.dtype is None:
        raise _no_output(
            name, "has no known dtype", "no schema of its operator is installed", where, _declared(handle, "float32")
        )
    if value.shape is None and isinstance(value.type, ir.TensorType):
        why = "the specification requires the rank of an output, but shape inference cannot compute it here"
        raise _no_output(name, "has an unknown rank", why, where, _declared(handle, handle.dtype or "float32"))
    return value


def _declared(handle: Tensor, dtype: str) -> str:
    return f'declare it first: {handle.name.rpartition(".")[2]}.declare("{dtype}", ["batch", None])'


def _free(name: Any, builder: Any) -> str:
    taken = {value.name for value in builder.outputs}
    return next(made for index in itertools.count(1) if (made := f"{name}_{index}") not in taken)


def _no_output(name: Any, what: str, why: str, where: str, fix: str) -> OnnxsmithError:
    return problem("build/output", f"the output {name!r} {what}", where=where, why=why, fix=fix)


def _bad(name: Any, what: str, where: str, fix: str) -> OnnxsmithError:
    return problem("build/input", f"the input {name!r} {what}", where=where, fix=fix)

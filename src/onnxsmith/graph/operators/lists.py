"""Joins lists with tensors in them, such as the shape `[g.Shape(x)[0], -1]`, into one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.operators import constant_tensors
from onnxsmith.graph.operators.tensor import Tensor

if TYPE_CHECKING:
    from onnxsmith.graph.operators.operator_methods import Operators


def joined(home: Operators, given: Sequence[Any]) -> Any:
    """Returns one vector with the elements of a list of scalars and vectors of the graph, and Python numbers. Returns
    other lists as they are.

    Raises:
        OnnxsmithError: `build/constant` for a dimension's name in the list, or for a tensor of rank 2 or more,
            `build/operands` for the results of an operator.
    """
    if not any(isinstance(one, Tensor) for one in given):
        return given
    if isinstance(given, tuple):
        raise problem(
            "build/operands",
            f"{len(given)} tensors are given as one operand: {', '.join(map(repr, given))}",
            where=home.blame(),
            why="an operator with several results returns a tuple",
            fix="take one of them: values, indices = g.TopK(x, 5), then values",
        )
    pieces: list[Any] = []
    for one in given:
        if isinstance(one, Tensor):
            pieces.append(_vector(home, one))
        elif constant_tensors.is_python(one) and not isinstance(one, str | bytes | list | tuple):
            pieces.append(_number(one, given))
        else:
            raise problem(
                "build/constant",
                f"the list {list(given)!r} has {one!r} beside tensors",
                where=home.blame(),
                why="beside tensors, only numbers can stand in a list",
                fix="write g.Shape(x)[0] for the size of a dimension at run time",
            )
    return pieces[0] if len(pieces) == 1 else home.Concat(*pieces, axis=0)


def _vector(home: Operators, tensor: Tensor) -> Tensor:
    if tensor.rank == 1:
        return tensor
    if tensor.rank == 0:
        return home.Unsqueeze(tensor, axes=[0])  # type: ignore[no-any-return]
    raise problem(
        "build/constant",
        f"a list has the tensor {tensor!r} as element",
        where=home.blame(),
        why="the elements of a list are joined to a vector, so each is a scalar or a vector",
        fix=f"write g.Reshape({tensor.name}, [-1])",
    )


def _number(number: Any, given: Sequence[Any]) -> Any:
    dtypes = {one.value.dtype for one in given if isinstance(one, Tensor)}
    dtype = next(iter(dtypes)) or ir.DataType.INT64
    return np.asarray([number]).astype(dtype.numpy())

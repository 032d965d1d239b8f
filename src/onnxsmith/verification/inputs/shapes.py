"""Evaluates the symbolic dimensions of an input at given sizes."""

from __future__ import annotations

from onnxsmith.base.problem import problem
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.structure.signature import Dim, Port
from onnxsmith.verification.inputs.size_proposals import Sizes


def shape_of(port: Port, sizes: Sizes) -> tuple[int, ...]:
    """Returns the input's shape with sizes in place of symbols.

    Raises:
        OnnxsmithError: `feeds/unknown-rank` if the file does not say how many dimensions the input has;
            `feeds/unknown-size` if an axis has no size.
    """
    if port.shape is None:
        raise problem(
            "feeds/unknown-rank",
            f"the file does not say how many dimensions input {port.name!r} has",
            fix=f"give an example with its sizes, such as --input '{port.name}={_spec_dtype(port)}[1,3,224,224]'",
        )
    found = [dims.evaluate(dim, sizes) for dim in port.shape]
    if None in found:
        shape = ",".join(str(2 if size is None else size) for size in found)
        raise problem(
            "feeds/unknown-size",
            f"axis {found.index(None)} of input {port.name!r} has no size",
            where=f"{port.name}: {port}",
            fix=f"give an example with its sizes: --input '{port.name}={_spec_dtype(port)}[{shape}]'",
        )
    return tuple(size for size in found if size is not None)


def _spec_dtype(port: Port) -> str:
    return {"float": "float32", "double": "float64"}.get(port.dtype, port.dtype)


def size_of(dim: Dim, sizes: Sizes) -> int:
    """Returns the size of a dimension: the number itself, the size of the symbol, or the value of the expression."""
    value = dims.evaluate(dim, sizes)
    if value is None:
        raise problem(
            "feeds/unknown-size",
            f"dimension {dim!r} has no size",
            fix="give an example input with this dimension: --input inputs.npz",
        )
    return value

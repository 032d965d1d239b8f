"""Compares feeds with a signature before a runtime sees them, because each runtime words its errors differently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import first_few, pasted
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.runtimes._dtypes import numpy_dtype
from onnxsmith.runtimes._maps import of_map
from onnxsmith.runtimes.base import Array, Feeds, Value

_SHOWN = 3
"""Limits the names that a problem lists. A choice."""


def check(feeds: Feeds, signature: Signature, *, one_size: bool = False) -> None:
    """Raises the first error in the feeds. With `one_size`, a symbol must have one size in all inputs.

    Raises:
        OnnxsmithError: `run/missing-input`, `run/unknown-input`, `run/not-an-array`, `run/wrong-dtype`,
            `run/wrong-shape`, or `run/dimension-conflict`.
    """
    ports = {port.name: port for port in signature.inputs}
    unknown = [name for name in feeds if name not in ports]
    if unknown:
        raise problem(
            "run/unknown-input",
            f"the model has no input{'s' * (len(unknown) > 1)} {first_few([repr(name) for name in unknown], _SHOWN)}",
            fix=f"its inputs are: {_listing(signature)}",
        )
    missing = [port for port in signature.required() if port.name not in feeds and port.kind != "optional"]
    if missing:
        raise problem(
            "run/missing-input",
            f"no value was given for input {missing[0].name!r}",
            where=f"{missing[0].name}: {missing[0]}",
            fix=f"give all of: {_listing(signature)}",
        )
    for name, value in feeds.items():
        port = ports[name]
        if port.kind == "map" and not port.many:
            _check_map(port, value)
        elif port.kind == "tensor":
            _check_tensor(port, value)
        elif isinstance(value, list) or port.kind == "sequence":
            _check_sequence(port, value)
        elif value is not None:
            _check_array(port, value)
    found = conflict(feeds, signature) if one_size else None
    if found is not None:
        raise found


@contextmanager
def explained(feeds: Feeds, signature: Signature) -> Iterator[None]:
    """Turns a runtime's refusal into `run/dimension-conflict`, if a symbol has two sizes in the feeds."""
    try:
        yield
    except OnnxsmithError as error:
        found = conflict(feeds, signature) if error.problem.id == "runtime/failed" else None
        if found is None:
            raise
        raise found from error


def with_maps(feeds: Feeds, signature: Signature) -> Feeds:
    """Replaces each dictionary in the feeds by two arrays, keys and values."""
    maps = {port.name for port in signature.inputs if port.kind == "map"}
    return {name: of_map(v) if name in maps and isinstance(v, Mapping) else v for name, v in feeds.items()}


def _check_map(port: Port, value: Value) -> None:
    is_pair = isinstance(value, list) and len(value) == 2 and all(isinstance(one, np.ndarray) for one in value)
    if not is_pair or len({one.shape for one in value or ()}) != 1:
        raise problem(
            "run/not-an-array",
            f"{_kind(value)} was given where a map is needed",
            where=_where(port),
            fix="pass a dictionary, or a list of two arrays: the keys and the same number of values",
        )


def _check_sequence(port: Port, value: Value) -> None:
    if not isinstance(value, list):
        raise problem(
            "run/not-an-array",
            f"{_kind(value)} was given where a list of arrays is needed",
            where=_where(port),
            fix="pass a list of numpy arrays",
        )
    for item in value:
        _check_array(port, item)


def _check_array(port: Port, value: Value) -> Array:
    """Returns the value if it is an array of the port's dtype; otherwise raises an error."""
    if not isinstance(value, np.ndarray):
        tensor = type(value).__module__.split(".")[0] == "torch"
        raise problem(
            "run/not-an-array",
            f"{_kind(value)} was given where a numpy array is needed",
            where=_where(port),
            fix="pass tensor.detach().cpu().numpy()" if tensor else f"pass {_made(port)}",
        )
    if port.dtype != "undefined" and not _same_dtype(value, port.dtype):
        wanted = numpy_dtype(port.dtype)
        raise problem(
            "run/wrong-dtype",
            f"the array is {value.dtype}, the model needs {port.dtype}",
            where=_where(port),
            why="numpy makes float64 by default" if value.dtype == np.float64 else "",
            fix=f"array.astype({wanted.name!r})",
        )
    if value.dtype == object and not all(isinstance(item, str | bytes) for item in value.flat):
        raise problem(
            "run/wrong-dtype",
            "the array has objects that are not strings",
            where=_where(port),
            fix="array.astype(str).astype(object)",
        )
    return value


def _made(port: Port) -> str:
    """Returns the code that makes an array for an input."""
    if port.dtype == "undefined":
        return "numpy.asarray(value)"
    name = "object" if port.dtype == "string" else repr(numpy_dtype(port.dtype).name)
    return f"numpy.asarray(value, dtype={name})"


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _where(port: Port) -> str:
    return f"input {port.name!r}, which is {port}"


def conflict(feeds: Feeds, signature: Signature) -> OnnxsmithError | None:
    """Returns `run/dimension-conflict` if one symbol has two sizes in checked feeds, which most likely explains a
    runtime's refusal. A runtime may also accept such feeds: in the format, a shared symbol is only a hint."""
    sizes: dict[str, tuple[int, str, int]] = {}
    for port in signature.inputs:
        value = feeds.get(port.name)
        if port.kind != "tensor" or port.shape is None or not isinstance(value, np.ndarray):
            continue
        for axis, (size, dim) in enumerate(zip(value.shape, port.shape, strict=True)):
            if isinstance(dim, str) and sizes.setdefault(dim, (size, port.name, axis))[0] != size:
                other, name, place = sizes[dim]
                return problem(
                    "run/dimension-conflict",
                    f"dimension {dim!r} is {size} here and {other} in {name!r}",
                    where=_where(port),
                    fix=f"give axis {axis} of {port.name!r} the size {other}, or axis {place} of {name!r} the size "
                    f"{size}",
                )
    return None


def _check_tensor(port: Port, given: Value) -> None:
    value, where = _check_array(port, given), _where(port)
    if port.shape is None:
        return
    if value.ndim != len(port.shape):
        raise problem(
            "run/wrong-shape",
            f"the array has {value.ndim} dimensions, the model needs {len(port.shape)}",
            where=f"{where}; given {list(value.shape)}",
            fix=_in_place(value.shape, port)
            or "add the missing axes (array[None] puts a batch in front), or remove the extra axes",
        )
    for axis, (size, dim) in enumerate(zip(value.shape, port.shape, strict=True)):
        if isinstance(dim, int) and dim != size:
            raise problem(
                "run/wrong-shape",
                f"axis {axis} is {size}, but the model requires {dim}",
                where=f"{where}; given {list(value.shape)}",
                fix=_in_place(value.shape, port)
                or f"give size {dim}, or export the model again with a dynamic axis {axis}",
            )


def _in_place(given: tuple[int, ...], port: Port) -> str:
    """Returns the fix for an array that only has its channels in another place than the model, or no batch; "" if that
    does not make it fit."""
    shape = port.shape
    if shape is None:
        return ""
    rank = len(shape)
    to_front, to_back = (0, rank - 1, *range(1, rank - 1)), (0, *range(2, rank), 1)
    if len(given) == rank - 1:
        if _fits((1, *given), shape):
            return "array[None] puts the missing batch in front"
        for axes in (to_front, to_back) if rank > 2 else ():
            if _fits(tuple((1, *given)[axis] for axis in axes), shape):
                order = ", ".join(str(axis - 1) for axis in axes[1:])
                return f"array.transpose({order})[None] moves the channels, and puts the missing batch in front"
    if len(given) != rank or rank < 3:
        return ""
    for axes, layout in ((to_front, "NHWC"), (to_back, "NCHW")):
        if _fits(tuple(given[axis] for axis in axes), shape):
            also = pasted(f"{port.name}={layout}")
            verb = (
                f"; or change the model so that it accepts this array: `onnxsmith layout MODEL {also} -o "
                f"{layout.lower()}.onnx`"
            )
            return f"array.transpose({', '.join(map(str, axes))}) moves the channels{verb if rank == 4 else ''}"
    return ""


def _fits(given: tuple[int, ...], shape: tuple[int | str, ...]) -> bool:
    pairs = zip(given, shape, strict=False)
    return len(given) == len(shape) and all(isinstance(dim, str) or dim == size for size, dim in pairs)


def _same_dtype(value: Array, dtype: str) -> bool:
    if dtype == "string":
        return value.dtype.kind in "OUS"
    return value.dtype == numpy_dtype(dtype)


def _listing(signature: Signature) -> str:
    return ", ".join(f"{port.name} {port}" for port in signature.required()) or "none"

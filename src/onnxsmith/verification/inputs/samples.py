"""Takes apart arrays that hold several samples, and says which input a sample lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from onnxsmith.base.problem import problem
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.verification.inputs.size_proposals import of_feed


def samples(arrays: Mapping[str, Any], interface: Signature) -> list[dict[str, Any]]:
    """The samples that arrays by input name hold, as one dictionary for each; one sample if they hold one.

    An array holds several samples if it has one axis more than its input, or if its first axis is longer than the 1
    that the input fixes. Arrays that hold one are in the first sample only, because later inputs get them from there.
    If arrays hold different numbers of samples, they are left as they are: the model refuses them.
    """
    ports = {port.name: port for port in interface.inputs}
    stacked = {name: found for name, array in arrays.items() if (found := _stacked(array, ports.get(name))) is not None}
    counts = {len(found) for found in stacked.values()}
    if len(counts) != 1 or counts == {0}:
        return [dict(arrays)]
    made: list[dict[str, Any]] = [{name: found[at] for name, found in stacked.items()} for at in range(counts.pop())]
    made[0] |= {name: array for name, array in arrays.items() if name not in stacked}
    return made


def _stacked(array: Any, port: Port | None) -> Any | None:
    """The array with the samples along its first axis, each as the input takes it; None if it holds one sample."""
    if not isinstance(array, np.ndarray) or port is None or port.shape is None or port.kind != "tensor":
        return None
    shape = port.shape
    if array.ndim == len(shape) + 1 and _fits(array.shape[1:], shape):
        return array
    longer = array.ndim == len(shape) > 0 and shape[0] == 1 and array.shape[0] > 1
    return array[:, None] if longer and _fits(array.shape[1:], shape[1:]) else None


def _fits(sizes: tuple[int, ...], shape: tuple[Any, ...]) -> bool:
    return all(not isinstance(dim, int) or dim == size for size, dim in zip(sizes, shape, strict=True))


def check_complete(
    label: str, own: Mapping[str, Any], held: Mapping[str, Any], interface: Signature, without: Collection[str] = ()
) -> None:
    """Refuses an input without a value for all that the model needs, except for those in `without`. `own` are the
    values that were given for it, `held` also those of the input before.

    Raises:
        OnnxsmithError: `input/incomplete` if a value is missing, or was copied and has other sizes than the own ones.
    """
    mine = of_feed(interface, {name: value for name, value in held.items() if name in own})
    for port in interface.required():
        if port.kind == "optional" or port.name in (*own, *without):
            continue
        why = "no input before it has one either"
        if port.name in held:
            clashes = list(_clashes(interface, port, held[port.name], mine))
            if not clashes:
                continue
            why = f"the value of the input before does not fit: dimension {clashes[0]} here"
        raise problem(
            "input/incomplete",
            f"{label} has no value for the input {port.name!r}",
            where=f"{port.name}: {port}",
            why=why,
            fix=f"add {port.name!r} to the file, or give it behind the file: --input {port.name}=FILE.npy",
        )


def _clashes(interface: Signature, port: Port, value: Any, mine: Mapping[str, int]) -> Iterator[str]:
    for symbol, size in of_feed(interface, {port.name: value}).items():
        if mine.get(symbol, size) != size:
            yield f"{symbol!r} is {size} there and {mine[symbol]}"

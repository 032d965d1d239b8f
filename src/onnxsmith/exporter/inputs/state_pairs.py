"""Describes the inputs and outputs of a graph that hand a state from call to call."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base import user_files

if TYPE_CHECKING:
    from onnxsmith.graph.structure.signature import Port

METADATA = "onnxsmith.state"
"""The file's metadata holds the pairs under this key, as JSON."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Carried:
    """A state that is handed on. `initial` has the value of the first call for each input, `places` the tensor of the
    module, both in the order of the outputs. `growing` are the axes that change their size from call to call, by input,
    with a name for each. `begun` are the tensors before the first call, which are smaller than the inputs if later
    calls widen them."""

    argument: str = ""
    initial: Mapping[str, Array] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    growing: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    begun: Mapping[str, Array] = field(default_factory=dict)

    def described(self, inputs: Mapping[str, Port], outputs: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yields each pair as data for the file's metadata. `initial` is a number if all elements are equal, otherwise
        the elements as little-endian bytes in base64. `outputs` maps each input to its output."""
        for name, value in self.initial.items():
            port = inputs[name]
            flat = value.reshape(-1)
            uniform = bool(flat.size) and value.dtype.kind in "fiub" and bool((flat == flat[0]).all())
            first = {"fill": flat[0].item()} if uniform else {"base64": _text(value)}
            yield {
                "input": name,
                "output": outputs[name],
                "of": self.places[name],
                "dtype": port.dtype,
                "shape": list(value.shape),
                "initial": first if flat.size else {"fill": 0},
            }


def _text(value: Array) -> str:
    little = value.astype(value.dtype.newbyteorder("<")) if value.dtype.kind in "fiuc" else value
    return base64.b64encode(np.ascontiguousarray(little).tobytes()).decode("ascii")


@dataclass(frozen=True)
class Stored:
    """A pair as a file's metadata describes it, with the value of the first call."""

    input: str
    output: str
    first: Array


def stored(model: ir.Model) -> tuple[Stored, ...]:
    """Returns the pairs in the metadata of a file; empty if it has none, or if they cannot be read."""
    text = model.metadata_props.get(METADATA)
    try:
        found = user_files.parse_json(text) if text else []
        return tuple(Stored(str(one["input"]), str(one["output"]), _first(one)) for one in found)
    except (KeyError, TypeError, ValueError, AttributeError):  # metadata that something else wrote
        return ()


def _first(one: Mapping[str, Any]) -> Array:
    dtype = ir.DataType[one["dtype"].upper()].numpy()
    initial, shape = one["initial"], [int(size) for size in one["shape"]]
    if "fill" in initial:
        return np.full(shape, initial["fill"], dtype)
    return np.frombuffer(base64.b64decode(initial["base64"]), dtype).reshape(shape)

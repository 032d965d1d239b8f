"""Writes the steps of a patch file that undo a difference of two graphs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.comparison.outputs.stored_values import differing
from onnxsmith.runtimes.base import Array

_KINDS = ir.AttributeType
_PLAIN = (_KINDS.INT, _KINDS.INTS, _KINDS.FLOAT, _KINDS.FLOATS, _KINDS.STRING, _KINDS.STRINGS)
"""Kinds of attributes that a patch file can hold."""
_MOST_NUMBERS = 512
"""How many numbers a patch lists. A choice: it has to fit into a command line."""
_FEW_NUMBERS = 64
"""How many numbers a patch lists if there is a shorter form. A choice: some lines of a terminal."""


@dataclass(frozen=True)
class Source:
    """Where the reference's file holds a constant: `tensor` is its name, `held` its value there."""

    file: str = ""
    tensor: str = ""
    held: ir.TensorProtocol | None = None

    def is_tensor(self, array: Array) -> bool:
        """Whether the file's tensor is this array, in its shape and dtype."""
        if not self.file or not self.tensor or self.held is None:
            return False
        held = self.held.numpy()
        return held.shape == array.shape and held.dtype == array.dtype and np.array_equal(held, array)


NO_SOURCE = Source()


def attributes_patch(label: str, names: Sequence[str], counterpart: ir.Node) -> str:
    """Returns the step that sets attributes to their values in the reference, or removes those that the reference
    lacks. "" if a patch file cannot hold a value."""
    if not names:
        return ""
    given = {name: counterpart.attributes.get(name) for name in names}
    if any(one is not None and one.type not in _PLAIN for one in given.values()):
        return ""
    values = ", ".join(f"{name} = {_toml('' if one is None else one.value)}" for name, one in given.items())
    return f'[[step]]\ndo = "set"\nnode = {_toml(label)}\nattributes = {{ {values} }}\n'


def constant_patch(value: ir.Value, array: Array, source: Source = NO_SOURCE) -> str:
    """Returns the step that gives a constant the reference's value: the few elements that differ, the tensor of the
    reference's file, or all numbers. "" if other nodes read it too, or if it is large and in no file."""
    if len(value.uses()) != 1 or value.is_graph_input() or array.dtype.kind not in "fiub":
        return ""
    held = const_tensor(value)
    if held is None or not value.name or tuple(held.shape.numpy()) != array.shape or not np.isfinite(array).all():
        return ""
    begin = f'[[step]]\ndo = "constant"\ntensor = {_toml(value.name)}\n'
    apart = differing(array, held.numpy())
    places = np.argwhere(apart)
    if 2 * len(places) <= array.size and len(places) <= _FEW_NUMBERS:
        numbers = _toml(array[apart].tolist(), array.dtype)
        return f"{begin}at = {_toml(places.tolist())}\nvalue = {numbers}\n"
    if array.size > _FEW_NUMBERS and source.is_tensor(array):
        return f"{begin}value = {{ file = {_toml(source.file)}, tensor = {_toml(source.tensor)} }}\n"
    return f"{begin}value = {_toml(array.tolist(), array.dtype)}\n" if array.size <= _MOST_NUMBERS else ""


def layout_patch(label: str, place: int, steps: Sequence[tuple[str, object]]) -> str:
    """Returns the steps that bring a weight into the reference's order, in front of the node's operand."""
    texts = []
    for kind, given in steps:
        if kind == "transpose":
            what = f'op = "Transpose"\nattributes = {{ perm = {_toml(given)} }}'
        elif kind == "reshape":
            what = f'op = "Reshape"\noperands = [{_toml(given)}]'
        else:
            assert isinstance(given, tuple)
            axis, rows = given
            if len(rows) > _MOST_NUMBERS:
                return ""
            what = f'op = "Gather"\noperands = [{_toml(rows)}]\nattributes = {{ axis = {axis} }}'
        texts.append(f'[[step]]\ndo = "insert"\nbefore = {_toml(label)}\ninput = {place}\n{what}\n')
    return "".join(texts)


def _toml(value: object, dtype: npt.DTypeLike = np.float32) -> str:
    """Returns the value as TOML. A float has the digits that its dtype needs, by default the dtype of attributes."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(one, dtype) for one in value)}]"
    if isinstance(value, str | bytes):
        return json.dumps(value.decode() if isinstance(value, bytes) else value)
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, float):
        return repr(float(str(np.asarray(value, dtype)[()])))
    return repr(value)

"""Finds the graph input that can take a picture, and refuses what cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.editor.node_placement import port
from onnxsmith.editor.processing import marks
from onnxsmith.graph.operators import dtypes
from onnxsmith.graph.shapes.dims import names_of
from onnxsmith.graph.structure import dim_ranges, dim_relations, walk
from onnxsmith.graph.structure.fresh import unused

_CHANNELS = (1, 3, 4)
_RANK = 4


@dataclass(frozen=True)
class PictureInput:
    """Describes an input of [batch, channels, height, width], or with the channels last."""

    value: ir.Value
    name: str
    dtype: ir.DataType
    channels: int
    channels_first: bool

    @property
    def sides(self) -> tuple[int, int]:
        """The axes of height and width."""
        return (2, 3) if self.channels_first else (1, 2)

    @property
    def is_open(self) -> bool:
        """Whether the file leaves a side open."""
        return self.value.shape is None or not all(isinstance(self.value.shape[axis], int) for axis in self.sides)

    @property
    def symbols(self) -> dict[int, str]:
        """The names of the symbolic sides, by axis."""
        dims = {axis: self.value.shape[axis] for axis in self.sides} if self.value.shape is not None else {}
        return {axis: dim.value for axis, dim in dims.items() if isinstance(dim, ir.SymbolicDim) and dim.value}

    def size_for(self, given: tuple[int, int] | None) -> tuple[int, int]:
        """Returns the size of the model's input.

        Raises:
            OnnxsmithError: `edit/not-a-picture` if the given size contradicts the model, or if neither has a size.
        """
        assert self.value.shape is not None
        own = [dim if isinstance(dim := self.value.shape[axis], int) else None for axis in self.sides]
        if given is None and None in own:
            raise self.refusal(
                "the model takes pictures of any size, and the step has no size",
                "a model processes all pictures of a batch at one size",
                "write the size of the training: size = [224, 224]",
            )
        found = given or (own[0] or 0, own[1] or 0)
        if any(one is not None and one != size for one, size in zip(own, found, strict=True)):
            both = [a or b for a, b in zip(own, found, strict=True)]
            shown = "x".join("?" if one is None else str(one) for one in own)
            raise self.refusal(
                f"the model takes pictures of {shown}, not {found[0]}x{found[1]}",
                "the input has this size in the file",
                f"write size = {both}" if None in own else "leave size out",
            )
        return found

    def check_numbers(self, mean: tuple[float, ...], std: tuple[float, ...], rescale: float) -> None:
        """Refuses numbers that do not fit the channels or the dtype.

        Raises:
            OnnxsmithError: `edit/not-a-picture`.
        """
        for name, numbers in (("mean", mean), ("std", std)):
            if len(numbers) not in (1, self.channels):
                raise self.refusal(
                    f"{name} has {len(numbers)} numbers, but the model has {self.channels} channels",
                    "each channel of the model's input needs its own number, or all of them the same",
                    f"write {name} = {[0.5] * self.channels}, for example",
                )
        if self.dtype.is_integer() and (set(mean), set(std), rescale) != ({0.0}, {1.0}, 1.0):
            raise self.refusal(
                f"a model of {dtypes.shown(self.dtype)} takes the grey levels themselves",
                "mean, std and rescale give fractions",
                "leave mean, std and rescale out",
            )

    def check_colour(self, colour: str) -> None:
        """Refuses an order of channels that the model cannot have.

        Raises:
            OnnxsmithError: `edit/not-a-picture`.
        """
        needed = {"grey": 1, "bgr": 3}.get(colour, self.channels)
        if needed != self.channels:
            raise self.refusal(
                f"colour = {colour!r} needs a model of {needed} channel{'s' * (needed > 1)}",
                f"the model has {self.channels}",
                "leave colour out",
            )

    def refusal(self, what: str, why: str, fix: str) -> OnnxsmithError:
        return problem("edit/not-a-picture", what, where=f"{self.name}: {self.value.shape}", why=why, fix=fix)


def picture_input(model: ir.Model, selector: Any) -> PictureInput:
    """Returns the input that a name or a handle means; without it the only input of rank 4.

    Raises:
        OnnxsmithError: `edit/no-match` if there is none; `edit/not-a-picture` if it cannot take pictures.
    """
    inputs = list(model.graph.inputs)
    if selector is None:
        fitting = [value for value in inputs if value.shape is not None and len(value.shape) == _RANK]
        if len(fitting) != 1:
            names = ", ".join(value.name or "" for value in inputs)
            raise problem(
                "edit/not-a-picture",
                f"{len(fitting) or 'no'} inputs have four axes, so the input of the picture is not clear",
                where=names,
                why="without `input`, the step takes the only input of rank 4",
                fix=f'write input = "{(fitting or inputs or [ir.Value(name="x")])[0].name}"',
            )
        selector = fitting[0]
    value = port(inputs, selector)
    name, shape, dtype = value.name or "", value.shape, value.dtype
    if not isinstance(value.type, ir.TensorType) or dtype is None or shape is None or len(shape) != _RANK:
        shown = "its shape is not known" if shape is None else f"it has {len(shape)} axes"
        raise _refusal(value, "is no picture", f"{shown}; a picture has four: batch, channels, height and width")
    _refuse_dtype(value, dtype)
    axis = next((axis for axis in (1, 3) if shape[axis] in _CHANNELS), None)
    if axis is None:
        raise _refusal(
            value, "has no axis of channels", "the axis 1, or the axis 3, of a picture has 1, 3 or 4 elements"
        )
    for one in marks.found(model):
        if one.is_before and marks.picture_of(model, one)[0] is value:
            raise _refusal(value, "takes pictures already", f"the processing {one.name!r} is in the graph",
                           'take it out first, with a step do = "remove-processing"')  # fmt: skip
    channels = shape[axis]
    assert isinstance(channels, int)
    return PictureInput(value, name, dtype, channels, axis == 1)


def _refuse_dtype(value: ir.Value, dtype: ir.DataType) -> None:
    if value.const_value is not None:
        fix = f'make the default a constant, or remove it: do = "drop-input", input = "{value.name}"'
        raise _refusal(value, "has a default value", "a default is no picture", fix)
    floats = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE)
    integers = (ir.DataType.UINT8, ir.DataType.INT32, ir.DataType.INT64)
    if dtype not in (*floats, *integers):
        shown = ", ".join(str(dtypes.shown(one)) for one in (*floats, *integers))
        raise _refusal(value, f"is of {dtypes.shown(dtype)}", f"grey levels can become {shown}")


def _refusal(value: ir.Value, what: str, why: str, fix: str = "") -> OnnxsmithError:
    return problem(
        "edit/not-a-picture",
        f"the input {value.name!r} {what}",
        where=f"{value.name}: {dtypes.shown(value.dtype)}{value.shape or ''}",
        why=why,
        fix=fix or "choose another input; `onnxsmith inspect MODEL` shows the inputs",
    )


def symbol(model: ir.Model, wish: str) -> str:
    """Returns a name for a dimension that no dimension has yet."""
    taken = {name for value in walk.values(model) for name in names_of(value.shape)}
    taken |= set(dim_ranges.ranges(model)) | set(dim_relations.relations(model))
    return unused(wish, taken)

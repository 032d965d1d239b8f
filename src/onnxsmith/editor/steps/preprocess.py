"""`preprocess`: puts the processing of pictures before a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.graph_cleanup import remove_unread
from onnxsmith.editor.node_placement import operators
from onnxsmith.editor.processing import marks, parameters, picture_nodes, picture_rules
from onnxsmith.editor.processing.opset_refusal import refuse_old_opset
from onnxsmith.editor.processing.picture_check import PictureCheck
from onnxsmith.editor.processing.picture_input import PictureInput, picture_input, symbol
from onnxsmith.editor.processing.picture_rules import PictureRules
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.operators import dtypes
from onnxsmith.graph.structure import dim_ranges, dim_relations, tensor_paths

_SYMBOLS = ("picture_height", "picture_width")


@dataclass(frozen=True)
class Preprocess(Step):
    """Puts the processing of pictures before the graph input `input` (by default the only input of rank 4). The model
    then takes pictures of any height and width, uint8[batch, height, width, channels], under the same name or `name`.
    `size` is the [height, width] of the model's input, by default that of the model. `fit` is "stretch", "crop" (the
    middle, after a resize of the shorter side to `shorter`, or of both sides to `resized`), or "pad" (with the grey
    level `fill`, at `place` "centre" or "corner" of the result). `resize` is "bilinear", "bicubic" or "nearest", as in
    Pillow. A grey level p becomes `(p * rescale - mean) / std`; `mean` and `std` have one number, or one for each
    channel of the model. `colour` is the order of the model's channels, "rgb" or "bgr"; with "grey" a model of one
    channel gets the grey levels of a coloured picture. With `middle` "even" an odd rest beside the crop is halved as in
    torchvision."""

    first = ("input", "size")

    input: Any = None
    size: Any = None
    fit: str = "stretch"
    shorter: int | None = None
    resized: Any = None
    resize: str = "bilinear"
    colour: str = "rgb"
    rescale: float | int | None = None
    mean: Any = 0.0
    std: Any = 1.0
    fill: int = 0
    place: str = "centre"
    middle: str = "down"
    name: str | None = None

    def apply(self, work: Work) -> str:
        found = picture_input(work.model, self.input)
        rules = self._rules(found)
        refuse_old_opset(work.model, picture_nodes.FIRST_OPSET, "Resize cannot smooth a picture that gets smaller")
        value, name = found.value, found.name
        old, restores = work.inputs.get(name), _restores(work, found)
        picture = self._picture(work, found, rules)
        graph = work.model.graph
        before = graph[0] if len(graph) else None
        make = operators(work, graph, before, name, [picture])
        key = f"{marks.BEFORE} {name}"
        with make.scope(key.replace(" ", "_")):
            end = picture_nodes.process(make, picture, rules, found.dtype, channels_first=found.channels_first)
        node = end.producer()
        assert node is not None
        _take_place(work, value, end, found, rules)
        if value.is_graph_output():
            work.outputs[end.name or ""] = work.outputs.pop(name, None)
            work.notes.append(f"the output {name} is now called {end.name}, because the input {name} is a picture now")
        value.replace_all_uses_with(end, replace_graph_outputs=True)
        marks.mark(remove_unread(make.made, node), node, key, restores)
        work.inputs.pop(name, None)
        work.inputs[picture.name or ""] = old
        work.processing.add(key)
        work.allow_constants()
        work.adapt_candidate.append(lambda model: marks.cut(model, key, {}))
        work.also.append(PictureCheck(work, key, rules, found.channels_first))
        return f"{picture.name}: {dtypes.shown(picture.dtype)}{picture.shape} → {dtypes.shown(found.dtype)}{end.shape}"

    def _rules(self, found: PictureInput) -> PictureRules:
        """Reads the fields.

        Raises:
            OnnxsmithError: `edit/step-argument` for a field that cannot be read; `edit/not-a-picture` for a size, or a
                number of means, that contradicts the model.
        """
        size = found.size_for(None if self.size is None else self._read("size", parameters.size))
        fit = self._read("fit", parameters.one_of(picture_rules.FITS))
        colour = self._read("colour", parameters.one_of(picture_rules.COLOURS))
        rescale = self._rescale(found)
        mean, std = (self._read(one, parameters.numbers) for one in ("mean", "std"))
        found.check_numbers(mean, std, rescale)
        found.check_colour(colour)
        if 0.0 in std:
            raise _argument("std has a zero", "the difference to the mean is divided by it", "std = 1")
        if not 0 <= self.fill <= 255:
            raise _argument(f"fill cannot be {self.fill}", "it is a grey level of 0 to 255", "fill = 114")
        return PictureRules(
            size,
            found.channels,
            fit,
            *self._before_the_fit(fit, size),
            self._read("resize", parameters.one_of(picture_rules.RESIZES)),
            colour,
            rescale,
            mean,
            std,
            self.fill,
            self._read("place", parameters.one_of(picture_rules.PLACES)),
            self._read("middle", parameters.one_of(picture_rules.MIDDLES)),
        )

    def _rescale(self, found: PictureInput) -> float:
        if self.rescale is None:
            return 1.0 if found.dtype.is_integer() else 1 / 255
        if not parameters.numbers(self.rescale)[0] > 0:
            raise _argument(f"rescale cannot be {self.rescale}", "it is a factor above 0", "rescale = 1.0")
        return float(self.rescale)

    def _before_the_fit(self, fit: str, size: tuple[int, int]) -> tuple[int | None, tuple[int, int] | None]:
        """Returns the shorter side, or both sides, after the resize."""
        given = [one for one in ("shorter", "resized") if getattr(self, one) is not None]
        if given and fit != "crop":
            raise _argument(f"{given[0]} needs fit = 'crop'", f"fit is {fit!r}", f"leave {given[0]} out")
        if len(given) > 1:
            raise _argument("the resize before the crop has two sizes", "shorter and resized are given",
                            "leave resized out")  # fmt: skip
        if fit != "crop":
            return None, size if fit == "stretch" else None
        if self.resized is not None:
            both = self._read("resized", parameters.size)
            if both[0] < size[0] or both[1] < size[1]:
                raise _argument(f"nothing of {both[0]}x{both[1]} pixels can be cut to {size[0]}x{size[1]}",
                                "the crop is larger", f"resized = {list(size)}")  # fmt: skip
            return None, both
        shorter = max(size) if self.shorter is None else self._read("shorter", parameters.positive)
        if shorter < max(size):
            raise _argument(f"a shorter side of {shorter} pixels cannot be cut to {size[0]}x{size[1]}",
                            "the crop is larger", f"shorter = {max(size)}")  # fmt: skip
        return shorter, None

    def _read(self, name: str, reader: Callable[[Any], Any]) -> Any:
        value = getattr(self, name)
        try:
            return reader(value)
        except (ValueError, TypeError) as error:
            raise _argument(f"{name} cannot be {value!r}", str(error), _EXAMPLES[name]) from error

    def _picture(self, work: Work, found: PictureInput, rules: PictureRules) -> ir.Value:
        """Puts the picture in the place of the input."""
        graph, value = work.model.graph, found.value
        name = found.name if self.name is None else self.name
        others = {place.value.name for place in tensor_paths.places(work.model)}
        if not name or name in others - {found.name}:
            raise problem(
                "edit/name-taken",
                f"the picture cannot be called {name!r}",
                where=found.name,
                why="another tensor has this name" if name else "the name is empty",
                fix=f"leave name out, or write name = {work.names.free(name or 'picture')!r}",
            )
        sides = [symbol(work.model, one) for one in _SYMBOLS]
        shape = ir.Shape([value.shape[0] if value.shape is not None else None, *sides, rules.picture_channels])
        picture = ir.Value(name=name, type=ir.TensorType(ir.DataType.UINT8), shape=shape, doc_string=value.doc_string,
                           metadata_props=work.metadata(value))  # fmt: skip
        graph.inputs[list(graph.inputs).index(value)] = picture
        value.name = work.names.free(f"{found.name}_processed")
        return picture


def _restores(work: Work, found: PictureInput) -> dict[str, Any]:
    """Returns what has to be restored when the processing is taken out."""
    graph = work.model.graph
    keys = (dim_ranges.KEY, dim_relations.KEY)
    return {
        "input": marks.port(found.value, list(graph.inputs).index(found.value)),
        "outputs": [marks.port(value, at) for at, value in enumerate(graph.outputs)] if found.is_open else [],
        "ir_version": work.model.ir_version or 0,
        "metadata": {key: work.model.metadata_props[key] for key in keys if key in work.model.metadata_props},
    }


def _take_place(work: Work, value: ir.Value, end: ir.Value, found: PictureInput, rules: PictureRules) -> None:
    """Gives the last result the name, the dtype and the shape that the input had, with the sizes of the rules."""
    name, value.name = value.name, None
    end.name, end.type = name, value.type
    sides = dict(zip(found.sides, rules.size, strict=True))
    end.shape = ir.Shape([sides.get(axis, dim) for axis, dim in enumerate(value.shape or ())])
    work.declare(end)
    if found.is_open:
        work.reshape(*(one for use in value.uses() for one in use.node.outputs))
        work.fix_symbols({dim: size for axis, size in sides.items() if (dim := found.symbols.get(axis))})


def _argument(what: str, why: str, fix: str) -> OnnxsmithError:
    return problem("edit/step-argument", what, why=why, fix=f"write {fix}" if " = " in fix else fix)


_EXAMPLES = {
    "size": "size = [224, 224]",
    "resized": "resized = [256, 256]",
    "shorter": "shorter = 256",
    "mean": "mean = [0.485, 0.456, 0.406]",
    "std": "std = [0.229, 0.224, 0.225]",
    **{
        name: f'{name} = "{words[0]}"'
        for name, words in (
            ("fit", picture_rules.FITS),
            ("resize", picture_rules.RESIZES),
            ("colour", picture_rules.COLOURS),
            ("place", picture_rules.PLACES),
            ("middle", picture_rules.MIDDLES),
        )
    },
}

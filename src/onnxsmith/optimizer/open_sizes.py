"""Opens axes of fixed size before a model is simplified, so that no size that the graph computes becomes a constant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import pasted, several
from onnxsmith.graph.shapes.symbolic_inference import inferred_outputs
from onnxsmith.graph.structure import walk

_PLACE = re.compile(r"(?P<input>.+):(?P<axis>\d+)=(?P<name>[A-Za-z_]\w*)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_SHAPES = ("Shape", "Size")


def open_axes(model: ir.Model, texts: Sequence[str]) -> Iterator[str]:
    """Declares fixed axes of inputs as open, in the model itself: `x:0=batch`, or `batch` for the first axis of each
    input. Outputs declare what follows from the inputs. Yields notes.

    Raises:
        OnnxsmithError: `simplify/no-such-port` for an input or axis that the model lacks, or a text that says none;
            `model/closed-axis` if the model does not run at a second size.
    """
    if not texts:
        return
    asked: dict[str, list[str]] = {}
    for text in texts:
        name, places = _read(model, text.strip())
        for value, axis in places:
            shape = list(value.shape or ())
            shape[axis] = ir.SymbolicDim(name)
            value.shape = ir.Shape(shape)
            asked.setdefault(name, []).append(f"{value.name}:{axis}={name}")
    shapes = inferred_outputs(model)
    for value in (value for node in walk.all_nodes(model) for value in node.outputs):
        value.shape = shapes.get(value.name or "") if value.is_graph_output() else None
    _refuse_closed(model, asked)
    for places_of in asked.values():
        yield f"kept open: {', '.join(places_of)}"


def _refuse_closed(model: ir.Model, asked: dict[str, list[str]]) -> None:
    from onnxsmith.verification.closed_axes import closed

    for one in closed(model, {}):
        if one.symbol in asked:
            again = " ".join(map(pasted, asked[one.symbol]))
            raise problem(
                "model/closed-axis",
                f"{one.symbol} cannot stay dynamic: the graph itself fixes the size",
                where=one.node,
                why=f"at {one.size} the model runs; at {one.other}: {one.why}",
                fix=f"make it dynamic first: `onnxsmith set-dim MODEL {again} -o open.onnx`, then simplify open.onnx",
            )


def _read(model: ir.Model, text: str) -> tuple[str, list[tuple[ir.Value, int]]]:
    """Returns the name in a text, and the axes of inputs that it means."""
    inputs = {value.name or "": value for value in model.graph.inputs if not value.is_initializer()}
    found = _PLACE.fullmatch(text)
    if found is None and _NAME.fullmatch(text) is not None:
        places = [(value, 0) for value in inputs.values() if value.shape and isinstance(value.shape[0], int)]
        if len({value.shape[0] for value, _ in places if value.shape}) == 1:
            return text, places
    example = pasted(f"{next(iter(inputs), 'x')}:0=batch")
    if found is None:
        raise _wrong(f"{text!r} says no axis", "the first axes of the inputs have other sizes", f"write {example}")
    value, axis = inputs.get(found["input"]), int(found["axis"])
    if value is None:
        raise _wrong(f"the model has no input {found['input']!r}", f"it has {', '.join(inputs)}", f"write {example}")
    if value.shape is None or axis >= len(value.shape):
        rank = "unknown" if value.shape is None else str(len(value.shape))
        raise _wrong(f"{found['input']} has no axis {axis}", f"its rank is {rank}", f"write {example}")
    if not isinstance(value.shape[axis], int):
        raise _wrong(f"axis {axis} of {found['input']} is dynamic already", "", "remove this option")
    return found["name"], [(value, axis)]


def _wrong(what: str, why: str, fix: str) -> OnnxsmithError:
    return problem("simplify/no-such-port", what, why=why, fix=fix)


class Frozen:
    """Remembers how many sizes a model computes whose first input has a first axis of fixed size. Simplifying makes
    constants of them."""

    def __init__(self, model: ir.Model) -> None:
        fixed = (one for one in model.graph.inputs if one.shape and len(one.shape) > 1 and not one.is_initializer())
        self._input = next((value for value in fixed if value.shape and isinstance(value.shape[0], int)), None)
        self._said = f"{self._input.name} is declared {self._input.shape}" if self._input is not None else ""
        self._place = f"{self._input.name}:0=batch" if self._input is not None else ""
        self._count = _count(model) if self._said else 0

    def notes(self, after: ir.Model) -> tuple[str, ...]:
        """Says which of them are constants now, and how to keep them."""
        gone = self._count - (_count(after) if self._count else 0)
        if gone <= 0:
            return ()
        said = (
            f"{self._said}: {several(gone, 'Shape node')} removed, and the sizes that they computed are now constants"
        )
        return (f"{said}. To keep the first axis dynamic: --keep-open {pasted(self._place)} (not tried)",)


def _count(model: ir.Model) -> int:
    return sum(node.op_type in _SHAPES and not node.domain for node in walk.all_nodes(model))

"""Changes the interface of a model before it is simplified: defaults of inputs, sizes of inputs, outputs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.base import name_patterns
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import listed, pasted
from onnxsmith.graph.shapes.dims import symbols
from onnxsmith.graph.structure import tensor_paths, walk
from onnxsmith.graph.structure.dim_ranges import whole
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery.names import fix_symbols
from onnxsmith.optimizer.open_sizes import open_axes

_AXIS = re.compile(r"(?P<input>.+):(?P<axis>\d+)=(?P<size>\d+)")
_SYMBOL = re.compile(r"(?P<name>[^=:]+)=(?P<size>\d+)")


@dataclass(frozen=True)
class Interface:
    """Narrows a model. `fix_defaults` turns initializers that are also graph inputs into constants. `dims` fixes the
    size of symbolic dimensions (`batch=1`, or `x:0=1` for the first axis of the input x). `outputs` are the graph
    outputs that stay (all if it is empty), `dropped` those that are removed: names, or patterns such as `head_*`.
    `open` are axes of fixed size that the model declares as open instead: the one change that makes it wider."""

    fix_defaults: bool = False
    dims: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    open: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.fix_defaults or bool(self.dims or self.outputs or self.dropped or self.open)

    def narrowed(self, model: ir.Model) -> tuple[ir.Model, tuple[str, ...]]:
        """Returns a copy of the model with the narrower interface (weights shared), and notes on the changes.

        Raises:
            OnnxsmithError: `simplify/no-such-port` for an output, input, axis or dimension that the model lacks;
                `simplify/all-outputs` if no output stays; `model/closed-axis` if the graph fixes an axis of `open`.
        """
        made = cloned(model)
        notes = [*self._fix_sizes(made), *self._keep_outputs(made), *(_constants(made) if self.fix_defaults else ())]
        notes += open_axes(made, self.open)
        return made, tuple(notes)

    def _fix_sizes(self, model: ir.Model) -> Iterator[str]:
        inputs = {value.name or "": value for value in model.graph.inputs}
        for text in self.dims:
            if (named := _SYMBOL.fullmatch(text.strip())) is not None:
                sizes = {named["name"].strip(): whole(named["size"])}
                known = symbols(signature(model))
                if not sizes.keys() <= set(known):
                    raise _missing("symbolic dimension", named["name"].strip(), list(known))
            elif (placed := _AXIS.fullmatch(text.strip())) is not None:
                if placed["input"] not in inputs:
                    raise _missing("graph input", placed["input"], list(inputs))
                sizes = _fix_axis(inputs[placed["input"]], whole(placed["axis"]), whole(placed["size"]))
            else:
                raise problem(
                    "simplify/no-such-port",
                    f"{text!r} does not set a dimension to a size",
                    fix=_examples(model),
                )
            fix_symbols(model, sizes)
            yield f"fixed for good: {text.strip()}"

    def _keep_outputs(self, model: ir.Model) -> Iterator[str]:
        names = [value.name or "" for value in model.graph.outputs]
        kept = (_named(model, self.outputs, names) if self.outputs else set(names)) - _named(model, self.dropped, names)
        if names and not kept:
            raise problem(
                "simplify/all-outputs",
                "no output of the model would stay",
                why=f"{', '.join(self.dropped)} leaves out {', '.join(names)}",
                fix=f"keep one: --keep-output {pasted(names[0])} alone, without --drop-output",
            )
        left = [value for value in model.graph.outputs if value.name in kept]
        if gone := [name for name in names if name not in kept]:
            model.graph.outputs.clear()
            model.graph.outputs.extend(left)
            yield f"outputs left out: {', '.join(gone)}"


def _named(model: ir.Model, texts: tuple[str, ...], names: list[str]) -> set[str]:
    """Returns the outputs that the names or patterns match."""
    found: set[str] = set()
    for text in texts:
        fitting = [text] if text in names else name_patterns.fitting(names, text)
        if not fitting:
            if text in {value.name for node in model.graph for value in node.outputs}:
                raise problem(
                    "simplify/no-such-port",
                    f"{text!r} is an intermediate tensor of the model, not an output",
                    why=f"the outputs are {', '.join(names)}",
                    fix=f"`onnxsmith extract MODEL --to {pasted(text)} -o part.onnx` gives the part that computes "
                    f"it; `onnxsmith expose MODEL {pasted(text)} -o more.onnx` makes it one more output",
                )
            raise _missing("graph output", text, names)
        found.update(fitting)
    return found


def defaults(model: ir.Model) -> list[ir.Value]:
    """Returns the initializers that are also graph inputs, so that a caller may replace them."""
    return [value for value in model.graph.inputs if value.const_value is not None and value.is_initializer()]


def told(reason: str, node: ir.Node) -> str:
    """Returns the reason of a refusal at a node. If a constant is missing, adds which default of an input could become
    one."""
    return f"{reason}{replaceable(node)}" if "constant" in reason else reason


def replaceable(node: ir.Node) -> str:
    """Returns a note on the first default of a graph input that the node, or a node directly before it, reads; "" if
    there is none."""
    makers = (value.producer() for value in node.inputs if value is not None)
    for one in (node, *(maker for maker in makers if maker is not None)):
        for value in one.inputs:
            if value is not None and value.is_initializer() and value.is_graph_input():
                return f"; {value.name} is also a graph input, whose value a caller may replace (--fix-defaults)"
    return ""


def _constants(model: ir.Model) -> Iterator[str]:
    found = defaults(model)
    if not found:
        return
    gone = set(found)
    left = [value for value in model.graph.inputs if value not in gone]
    model.graph.inputs.clear()
    model.graph.inputs.extend(left)
    for value in found:
        model.graph.initializers[value.name or ""] = value
    was = model.ir_version
    if not walk.has_own_initializers(model):
        model.ir_version = walk.FIRST_WITH_CONSTANTS
        yield f"IR version {was} → {model.ir_version}: before version 4, every constant also has to be a graph input"
    yield f"defaults of inputs that are constants now: {len(found)}"


def _fix_axis(value: ir.Value, axis: int, size: int) -> dict[str, int]:
    """Fixes the size of an axis. Returns its symbol with the size, because other values may declare the symbol, too."""
    name = value.name or ""
    if value.shape is None or axis >= len(value.shape):
        raise problem(
            "simplify/no-such-port",
            f"the input {name!r} has no axis {axis}",
            why="its rank is " + ("unknown" if value.shape is None else str(len(value.shape))),
            fix=f"write an axis from 0 to {len(value.shape) - 1}: {pasted(f'{name}:0={size}')}"
            if value.shape
            else "leave it out",
        )
    was = value.shape[axis]
    if isinstance(was, int) and was >= 0 and was != size:
        raise problem(
            "simplify/no-such-port",
            f"axis {axis} of the input {name!r} has the fixed size {was}",
            fix=f"remove this option, or make the axis dynamic first: `onnxsmith set-dim MODEL "
            f"{pasted(f'{name}:{axis}=n')} -o dynamic.onnx`, and simplify dynamic.onnx",
        )
    value.shape = ir.Shape([size if index == axis else dim for index, dim in enumerate(value.shape)])
    return {was.value: size} if isinstance(was, ir.SymbolicDim) and was.value else {}


def _examples(model: ir.Model) -> str:
    """Returns how the size of a dimension of this model is written."""
    named = next(iter(symbols(signature(model))), None)
    port = next((value.name for value in model.graph.inputs if value.shape), None)
    forms = [
        *([f"{pasted(f'{named}=1')} for all dimensions of this name"] if named else []),
        *([f"{pasted(f'{port}:0=1')} for an axis of the input {port}"] if port else []),
    ]
    return f"write {' or '.join(forms)}" if forms else "leave it out"


_SHOWN = 4
"""Limits the names that an error offers where none is similar. A choice."""


def _missing(kind: str, name: str, known: list[str]) -> OnnxsmithError:
    near = tensor_paths.near(name, known)
    return problem(
        "simplify/no-such-port",
        f"the model has no {kind} {name!r}",
        why=f"it has {listed(known) or 'none'}",
        fix=f"write {' or '.join(map(repr, near or known[:_SHOWN]))} in place of {name!r}" if known else "leave it out",
    )

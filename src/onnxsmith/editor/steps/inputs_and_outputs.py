"""`add_input`, `drop_input`, `drop_output`, `expose`: change which tensors are graph inputs and outputs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.base.words import first_few, pasted, several
from onnxsmith.editor.edited_model import Work, dims
from onnxsmith.editor.graph_cleanup import remove_unneeded
from onnxsmith.editor.node_selectors import Takes
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.operators import constant_tensors
from onnxsmith.graph.shapes.dims import symbols, written
from onnxsmith.graph.shapes.symbolic_inference import infer_in_place
from onnxsmith.graph.structure import captures, tensor_paths, walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery.exposing import expose

_SHOWN = 5
"""Limits the constants that an error names. A choice: one line."""


@dataclass(frozen=True)
class AddInput(Step):
    """Makes the constant `tensor` a graph input of the same dtype and shape. It is an initializer or the result of a
    Constant node, of the main graph only. The model is compared with the original on the constant's own value."""

    first = ("tensor",)

    tensor: Any

    def apply(self, work: Work) -> str:
        value = work.find.tensor(self.tensor)
        graph, name = work.model.graph, value.name or ""
        held = const_tensor(value)
        node = value.producer()
        if value in graph.inputs:
            raise problem("edit/is-input", f"{name!r} is a graph input already", fix="leave the step out")
        if (
            held is None
            or (node is not None and node.graph is not graph)
            or (node is None and name not in graph.initializers)
        ):
            raise _refusal(work, value, held)
        if node is not None:
            new = ir.Value(name=name)
            value.replace_all_uses_with(new, replace_graph_outputs=True)
            value.name = None
            captures.release(node)
            graph.remove(node, safe=True)
            value = new
        else:
            del graph.initializers[name]
            value.const_value = None
        value.type, value.shape = ir.TensorType(held.dtype), ir.Shape(dims(held))
        graph.inputs.append(value)
        work.inputs[name] = None
        work.resize_by(value)
        work.adapt_candidate.append(lambda model: _constant(model, name, held))
        return f"{name}: {held.dtype.name.lower()}{list(dims(held))}"


def _refusal(work: Work, value: ir.Value, held: ir.TensorProtocol | None) -> OnnxsmithError:
    graph, name = work.model.graph, value.name or ""
    inside = not any(place.value is value and not place.bodies for place in tensor_paths.places(work.model))
    own = [one.name or "" for one in graph.initializers.values() if one not in graph.inputs][:_SHOWN]
    others = f"choose a constant of the main graph: {', '.join(own)}" if own else "leave the step out"
    if held is not None:
        others = f'to change its value, use the step constant: tensor = "{name}", value = …'
    elif not inside:
        starts = " ".join(f"--from {pasted(one)}" for one in (name, *_other_inputs(graph, value)))
        others = f"to start the model at this tensor, use `onnxsmith extract MODEL {starts} -o part.onnx`"
    return problem(
        "edit/not-constant",
        f"{name!r} is not a constant of the main graph",
        why="the constant belongs to a branch or a body, but only the main graph has inputs"
        if inside
        else "it is computed",
        fix=others,
    )


def _other_inputs(graph: ir.Graph, start: ir.Value) -> list[str]:
    """Returns the graph inputs that the outputs also need if the model begins at `start`."""
    seen, left = {start}, [value for value in graph.outputs if value is not start]
    while left:
        value = left.pop()
        node = value.producer()
        if value not in seen and node is not None:
            left += captures.reads(node)
        seen.add(value)
    return [value.name or "" for value in graph.inputs if value in seen and not value.is_initializer()]


def _constant(model: ir.Model, name: str, tensor: ir.TensorProtocol) -> ir.Model:
    """Returns the edited model with the new input set to the constant's value."""
    value = next(one for one in model.graph.inputs if one.name == name)
    model.graph.inputs.remove(value)
    value.const_value = tensor
    model.graph.initializers[name] = value
    return model


@dataclass(frozen=True)
class DropInput(Step):
    """Removes the graph inputs `input` (a name, a name with `*`, or a list of names). If nodes read an input, `value`
    takes its place: a number, a list or an array. A number fills a shape without symbolic dimensions. Without `value`
    the default of the input becomes a constant, as for weights that are also inputs. A model of IR version 3 then
    becomes one of version 4, the first with constants that are not inputs. A name with `*` skips inputs that need a
    value."""

    first = ("input", "value")

    input: Any
    value: Any = None

    def apply(self, work: Work) -> str:
        graph = work.model.graph
        asked = values = work.find.tensors(self.input, Takes("graph input", lambda one: one in graph.inputs))
        if any(self._can_go(one) for one in asked):
            takes = Takes("removable graph input", lambda one: one in graph.inputs and self._can_go(one))
            values = work.find.tensors(self.input, takes)
        stay = [one.name or "" for one in asked if one not in values]
        if stay:
            work.notes.append(f"{', '.join(stay)}: not removed (read by nodes, and without a default value)")
        return "; ".join([self._drop(work, value) for value in values])

    def _can_go(self, value: ir.Value) -> bool:
        return self.value is not None or value.const_value is not None or not _is_used(value)

    def _drop(self, work: Work, value: ir.Value) -> str:
        graph = work.model.graph
        if value not in graph.inputs:
            names = [one.name or "" for one in graph.inputs]
            meant = tensor_paths.near(value.name or "", names) or names
            raise problem(
                "edit/no-match",
                f"{value.name!r} is not a graph input",
                why=f"the inputs are {', '.join(names) or 'none'}",
                fix=f"write {' or '.join(map(repr, meant))}" if meant else "leave the step out",
            )
        name = value.name or ""
        used = _is_used(value)
        default = value.const_value
        if used and self.value is None and default is None:
            raise problem(
                "edit/input-needed",
                f"the input {name!r} is read by {_readers(value)}",
                why="without the input, the nodes that read it need another value",
                fix=f"give a value that replaces it: value = {_example(value)}, or an array: "
                f'value = {{ file = "{name}.npy" }}',
            )
        tensor = self._tensor(value) if self.value is not None else default
        graph.inputs.remove(value)
        original = work.inputs.pop(name, None)
        if tensor is not None and used:
            tensor.name = name
            was = value.shape if value.shape is not None else ir.Shape(dims(tensor))
            value.const_value, value.type, value.shape = tensor, ir.TensorType(tensor.dtype), ir.Shape(dims(tensor))
            graph.initializers[name] = value
            work.reshape(*(one for use in value.uses() for one in use.node.outputs))
            pairs = zip(was, dims(tensor), strict=True)
            work.fix_symbols({dim.value: size for dim, size in pairs if isinstance(dim, ir.SymbolicDim) and dim.value})
            work.allow_constants()
        elif name in graph.initializers:
            del graph.initializers[name]
        if original is not None:
            work.adapt_reference.append(lambda model: _fixed(model, original, tensor))
        return f"{name}{f', fixed to a constant of {list(dims(tensor))}' if tensor is not None and used else ''}"

    def _tensor(self, value: ir.Value) -> ir.TensorProtocol:
        name = value.name or ""
        if constant_tensors.is_array(self.value):
            made = constant_tensors.of_array(self.value, f"the value of {name}", "")
        else:
            made = constant_tensors.of_python(self.value, value.dtype or ir.DataType.FLOAT, f"the value of {name}", "")
            shape = value.shape
            if not isinstance(self.value, list | tuple) and shape is not None and len(shape):
                if not shape.is_static():
                    raise problem(
                        "edit/shape",
                        f"{name} has symbolic dimensions, so a single number is not enough: the constant needs a shape",
                        where=f"{name}: {shape}",
                        fix=f"give a value of the shape that the input should have, such as value = {_example(value)}",
                    )
                made = ir.tensor(np.broadcast_to(made.numpy(), shape.numpy()).copy(), dtype=made.dtype)
        if value.dtype is not None and made.dtype != value.dtype:
            raise problem(
                "edit/dtype",
                f"{name} has the dtype {value.dtype.name.lower()}, but the value has {made.dtype.name.lower()}",
                fix=f'convert the array: value.astype("{value.dtype.numpy().name}")',
            )
        sizes = list(value.shape) if value.shape is not None else list(dims(made))
        if len(sizes) != len(dims(made)) or any(
            isinstance(a, int) and a != b for a, b in zip(sizes, dims(made), strict=True)
        ):
            raise problem(
                "edit/shape",
                f"{name} has the shape {value.shape}, but the value has {list(dims(made))}",
                fix=f"give a value of the input's shape, such as value = {_example(value)}",
            )
        return made


def _is_used(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


_SHOWN_READERS = 3
"""Limits the readers that an error names. A choice: one line."""


_LONGEST_EXAMPLE = 16
"""Limits the numbers of an example. A choice: one line."""


def _readers(value: ir.Value) -> str:
    names = dict.fromkeys(walk.node_label(use.node) for use in value.uses())
    return first_few(names, _SHOWN_READERS) if names else "no node, but is a graph output"


def _example(value: ir.Value) -> str:
    """Returns an example of a value: a number, which fills a fixed shape, or else a list of the input's shape, in which
    symbolic dimensions have the size 1."""
    integer = value.dtype is not None and value.dtype.is_integer()
    number: Any = True if value.dtype == ir.DataType.BOOL else 1 if integer else 1.0
    if value.shape is None or value.shape.is_static():
        return json.dumps(number)
    sizes = [size if isinstance(size, int) else 1 for size in value.shape]
    if math.prod(sizes) > _LONGEST_EXAMPLE:
        return f'{{ file = "{value.name}.npy" }}, written with numpy.save'
    return json.dumps(np.full(sizes, number).tolist())


def _fixed(model: ir.Model, name: str, tensor: ir.TensorProtocol | None) -> ir.Model:
    """Returns the original with the same value in place of the input."""
    value = next(one for one in model.graph.inputs if one.name == name)
    model.graph.inputs.remove(value)
    model.graph.initializers.pop(name, None)
    if tensor is not None:
        value.const_value, value.type, value.shape = tensor, ir.TensorType(tensor.dtype), ir.Shape(dims(tensor))
        model.graph.initializers[name] = value
    return model


@dataclass(frozen=True)
class DropOutput(Step):
    """Removes the graph outputs `output` (a name, a name with `*`, or a list of names) and the nodes that only they
    needed. Graph inputs stay."""

    first = ("output",)

    output: Any

    def apply(self, work: Work) -> str:
        graph = work.model.graph
        wanted = work.find.tensors(self.output, Takes("graph output", lambda value: value in graph.outputs))
        for value in wanted:
            if value not in graph.outputs:
                near = tensor_paths.near(value.name or "", [one.name or "" for one in graph.outputs])
                raise problem(
                    "edit/no-match",
                    f"{value.name!r} is not a graph output",
                    why=f"the outputs are {', '.join(one.name or '' for one in graph.outputs)}",
                    fix=f"write {' or '.join(map(repr, near or [one.name or '' for one in graph.outputs]))}",
                )
        left = [value for value in graph.outputs if value not in wanted]
        if not left:
            *rest, last = [f'"{value.name}"' for value in wanted]
            raise problem(
                "edit/no-outputs",
                "the model would have no output left",
                where=", ".join(value.name or "" for value in wanted),
                why="a model needs at least one output",
                fix=f"keep one, {last} for example: output = [{', '.join(rest)}]"
                if rest
                else "make another tensor an output first, with the step expose",
            )
        graph.outputs.clear()
        graph.outputs.extend(left)
        for value in wanted:
            work.outputs.pop(value.name or "", None)
        gone = remove_unneeded(work.model)
        return f"{', '.join(value.name or '' for value in wanted)}, with {several(gone, 'node')}"


@dataclass(frozen=True)
class Expose(Step):
    """Makes `tensor`, or all selected tensors, graph outputs with their dtype and shape. `name` names the output of a
    single tensor. A tensor of a branch is exposed too. For a tensor of a body, the output has its value of each run, as
    a stack or a list. Of several tensors, those that cannot be outputs are left out, and a note names them."""

    first = ("tensor",)

    tensor: Any
    name: str | None = None

    def apply(self, work: Work) -> str:
        values = self._values(work)
        if self.name is not None and len(values) > 1:
            raise problem(
                "edit/many-matches",
                f"the step gives one name to {len(values)} tensors",
                fix="select one tensor, or leave name out",
            )
        work.infer()
        outer = [value for value in values if _is_outer(work, value)]
        inner = [value for value in values if value not in outer]
        refused = _without_rank(work, outer)
        done = [self._expose(work, value) for value in outer if value.name not in refused]
        if inner:
            done += self._bring_out(work, inner, refused)
        self._say(work, refused, is_any=bool(done))
        return ", ".join(done)

    def _say(self, work: Work, refused: Mapping[str, str], *, is_any: bool) -> None:
        """Notes the tensors that are left out.

        Raises:
            OnnxsmithError: `edit/not-exposable` if no tensor is left.
        """
        if not refused:
            return
        name, why = next(iter(refused.items()))
        if is_any:
            work.notes.append(f"left out {several(len(refused), 'tensor')}, {first_few(list(refused), 8)}: {why}")
            return
        place = next(place for place in tensor_paths.places(work.model) if place.name == name)
        raise problem(
            "edit/not-exposable",
            f"{name!r} cannot become an output of the model, because it is computed in a body"
            if place.bodies
            else f"{name!r} cannot be an output",
            why=why,
            fix=_around(place) if place.bodies else "expose the tensors from which it is computed",
        )

    def _values(self, work: Work) -> list[ir.Value]:
        """Returns the selected tensors. A name with `*` skips tensors that are already graph outputs, and a note lists
        them."""
        graph = work.model.graph
        if self.name is not None:
            return work.find.tensors(self.tensor)
        takes = Takes("tensor that is not a graph output", lambda value: value not in graph.outputs)
        values = work.find.tensors(self.tensor, takes)
        skipped = [value.name or "" for value in work.find.tensors(self.tensor) if value not in values]
        if skipped:
            work.notes.append(
                f"{', '.join(skipped)}: {'a graph output' if len(skipped) == 1 else 'graph outputs'} already"
            )
        outputs = [value.name or "" for value in values if value in graph.outputs]
        if outputs:
            rest = [value.name or "" for value in values if value not in graph.outputs]
            raise problem(
                "edit/is-output",
                f"{outputs[0]!r} is a graph output already",
                fix=f"leave it out, and keep {', '.join(rest)}" if rest else "leave the step out",
            )
        return values

    def _expose(self, work: Work, value: ir.Value) -> str:
        graph, name = work.model.graph, value.name or ""
        if value.is_graph_input() or value.is_initializer() or self.name not in (None, name):
            node = ir.node("Identity", [value])
            graph.append(node)
            copy = node.outputs[0]
            copy.name = self._free(work, self.name or f"{name}_output")
            copy.type, copy.shape = value.type, value.shape
            if copy.type is None and value.const_value is not None:
                copy.type, copy.shape = ir.TensorType(value.const_value.dtype), ir.Shape(dims(value.const_value))
            value = copy
        graph.outputs.append(value)
        work.declare(value)
        work.outputs[value.name or ""] = None
        return f"{name}{f' as {value.name}' if value.name != name else ''}"

    def _free(self, work: Work, name: str) -> str:
        if self.name is None:
            return work.names.free(name)
        if name in {place.value.name for place in tensor_paths.places(work.model)}:
            raise problem(
                "edit/name-taken",
                f"another tensor is called {name!r}",
                fix=f"choose a name that is free, such as {work.names.free(name)}",
            )
        return name

    def _bring_out(self, work: Work, inner: list[ir.Value], refused: dict[str, str]) -> list[str]:
        """Exposes tensors of bodies, and adds those that cannot come out to `refused`."""
        places = [place.name for place in tensor_paths.places(work.model) if place.value in inner]
        exposed = expose(work.model, places)
        refused |= exposed.refused
        if not exposed.outlets:
            return []
        work.become(exposed.model)
        by_name = {value.name: value for value in work.model.graph.outputs}
        done = []
        for name, outlet in exposed.outlets.items():
            value = by_name[outlet.output]
            if self.name is not None:
                value.name = self._free(work, self.name)
            work.outputs[value.name or ""] = None
            what = "a stack with one row for each run" if outlet.axes else "a list with one tensor for each run"
            done.append(f"{name} as {value.name}, {what}" if outlet.repeated else f"{name} as {value.name}")
        return done


def _without_rank(work: Work, values: Sequence[ir.Value]) -> dict[str, str]:
    """Returns the tensors whose rank is unknown, with the reason, because the standard requires the rank of an output.
    A tensor that comes from a sequence gets its shape from the elements of the sequence."""
    lacking = [value for value in values if isinstance(value.type, ir.TensorType) and value.shape is None]
    if not lacking:
        return {}
    copy = cloned(work.model)
    infer_in_place(copy, elements=True)
    found = {value.name: value.shape for node in copy.graph for value in node.outputs}
    named = set(symbols(signature(work.model)))
    for value in lacking:
        shape = found.get(value.name)
        if shape is not None:
            value.shape = ir.Shape([dim if isinstance(dim, int) or dim in named else None for dim in written(shape)])
    return {value.name or "": "its rank is unknown" for value in lacking if value.shape is None}


def _around(place: tensor_paths.Place) -> str:
    """Advises to expose a result of the node around a tensor."""
    node = place.bodies[0].node
    results = ", ".join(value.name for value in node.outputs if value.name)
    return f"expose a result of the {node.op_type} around it instead: {results}"


def _is_outer(work: Work, value: ir.Value) -> bool:
    graph = work.model.graph
    node = value.producer()
    return (node is not None and node.graph is graph) or value in graph.inputs or value in graph.initializers.values()

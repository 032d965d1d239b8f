"""Defines `extract`, which cuts out the part of the model between tensors."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.base.words import pasted, several
from onnxsmith.editor import border_types
from onnxsmith.editor.edited_model import Work, depending
from onnxsmith.editor.graph_cleanup import remove_unneeded
from onnxsmith.editor.node_selectors import Takes
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import tensor_paths, walk
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.graph.surgery.body_model import body_model, with_part
from onnxsmith.graph.surgery.exposing import expose
from onnxsmith.graph.surgery.graph_cuts import cut
from onnxsmith.graph.surgery.joining import joined

_LARGE = 2**30
"""Limits the bytes of weights outside the part up to which the original is run as a whole. A choice: reading 1 GiB
takes a second or two, and runtimes hold it twice."""

_STARTS = Takes("tensor that is no constant", lambda value: const_tensor(value) is None)
_ENDS = Takes("computed tensor", lambda value: value.producer() is not None)


def _behind(ends: Iterable[ir.Value], starts: Collection[ir.Value]) -> str:
    """Returns the advice to end the part at a tensor that is computed from these, and is none of `starts`."""
    names: dict[str, None] = {}
    queue, seen = list(ends), set[ir.Value]()
    for value in queue:  # grows while it is read
        for out in (out for use in value.uses() for out in use.node.outputs if out not in seen):
            seen.add(out)
            if out in starts:
                queue.append(out)
            else:
                names[out.name or ""] = None
    return f"end the part at a tensor behind it: {' or '.join(names)}" if names else "choose another end"


@dataclass(frozen=True)
class Extract(Step):
    """Keeps the nodes that compute the tensors `to` (by default the graph outputs) from the tensors `from`, which
    become the inputs of the part. If the part also needs graph inputs, `from` has to name them too. Without `from`, the
    inputs are the graph inputs that the part needs. The part is verified in place: the original, in which the part
    computes everything behind `from`, must give the same tensors `to`. If more than 1 GiB of weights lie outside the
    part, the original is only run from the tensors `from` on.

    If `to` names tensors of a branch or a body, a part of the branch or body is extracted. Its inputs are tensors of
    the body, and tensors that the body reads from the graphs around it. `to` then names at least one tensor of the
    body. If `from` is given, it has to name all of these inputs; without `from` the step finds them.
    """

    first = ("from_", "to")

    from_: Any = None
    to: Any = None

    def apply(self, work: Work) -> str:
        graph = work.model.graph
        starts = work.find.tensors(self.from_, _STARTS) if self.from_ is not None else []
        ends = work.find.tensors(self.to, _ENDS) if self.to is not None else list(graph.outputs)
        body = _body(work, starts, ends)
        work.infer()
        original = work.model
        whole = original if body is None else body_model(original, body)
        places = {place.value: place.name for place in tensor_paths.places(original)} if body is not None else {}
        names = [value.name or "" for value in starts if value.producer() is not None]
        same = [value.name or "" for value in ends if value in starts or value.producer() is None]
        if same:
            raise problem(
                "edit/empty-part",
                f"no node computes {', '.join(same)} in the part",
                why="the tensor is a graph input, a constant, or a tensor that `from` names",
                fix=_behind(ends, starts),
            )
        border_types.complete(
            [value for value in starts if value.producer() is not None],
            ends if self.to is not None else [],
            dict(original.opset_imports),
        )
        made = cut(whole, names, [value.name or "" for value in ends])
        part = made.model
        _refuse_unused(original, part, starts, ends, made.inputs)
        self._refuse_undefined(part, starts, made.inputs)
        by_port = {port: name for name, port in made.inputs.items()}
        for port in part.graph.inputs:
            port.name = by_port.get(port.name or "", port.name)
        wires = [port.name or "" for port in part.graph.inputs]
        old_outputs = {value.name or "": work.original.get(value) for value in ends}
        work.become(part)
        work.resize_by(*(port for port in part.graph.inputs if port.name in made.inputs))
        work.inputs = dict.fromkeys(wires)
        outputs = [value.name or "" for value in part.graph.outputs]
        if body is None:
            work.outputs = old_outputs
            ahead = _bytes(whole) - _bytes(part)
            if ahead > _LARGE:
                work.adapt_reference.append(lambda reference: _started(reference, wires, outputs))
                work.notes.append(
                    "the part was compared alone, on values for its first tensors, because the rest of the model "
                    f"has {ahead / 2**30:.1f} GiB of weights"
                )
            else:
                work.adapt_candidate.append(lambda candidate: _in_place(whole, candidate, wires))
        else:
            work.outputs = {value.name or "": value.name for value in ends}
            inner = {value.name or "": places[value] for value in ends}
            work.adapt_reference.append(lambda reference: _brought_out(reference, inner))
            work.adapt_candidate.append(lambda candidate: _in_body(original, body, candidate))
        count = several(walk.count_nodes(part), "node")
        return f"{count} from {', '.join(wires) or 'constants'} to {', '.join(outputs)}"

    def _refuse_undefined(self, part: ir.Model, starts: list[ir.Value], found: dict[str, str]) -> None:
        """Raises if the part still needs a graph input that `from` does not name."""
        if self.from_ is None:
            return
        allowed = {*found.values(), *(value.name for value in starts)}
        missing = [
            value.name or ""
            for value in part.graph.inputs
            if value.name not in allowed and value.const_value is None and value.name not in part.graph.initializers
        ]
        if missing:
            listed = _options("from", [*(value.name or "" for value in starts), *missing])
            raise problem(
                "edit/undefined",
                f"the part also needs the input{'s' * (len(missing) > 1)} {', '.join(missing)}",
                why="a path of nodes leads from this input to the part's outputs, and passes no tensor that `from` "
                "names",
                fix=f"{listed}; in Python, give a list of these names",
            )


def _refuse_constants(unused: list[ir.Value]) -> None:
    """Raises if a tensor of `from` is a constant that no node computes: only computed tensors can be cut."""
    for value in unused:
        if value.producer() is None and value.const_value is not None:
            raise problem(
                "edit/unused-cut",
                f"{value.name} is a constant, and stays a constant in the part",
                why="a part can start only at graph inputs and at computed tensors",
                fix="leave the constant out of `from`, or turn it into a graph input with an earlier step: do = "
                f'"add-input", tensor = "{value.name}"',
            )


def _refuse_unused(
    whole: ir.Model, part: ir.Model, starts: list[ir.Value], ends: list[ir.Value], found: dict[str, str]
) -> None:
    """Raises if no end depends on a start."""
    used = {*found, *(one.name for one in part.graph.inputs)}
    unused = [value for value in starts if value.name not in used]
    if not unused:
        return
    _refuse_constants(unused)
    start, names = unused[0], [value.name or "" for value in ends]
    behind = [value.name or "" for value in ends if start in depending(whole, {value})]
    turned = f"{_options('from', behind)} {_options('to', [start.name or ''])}"
    raise problem(
        "edit/unused-cut",
        f"{start.name} has no influence on {', '.join(names)}",
        why=f"{start.name} comes later in the graph: it is computed from {', '.join(behind)}"
        if behind
        else "no path of nodes leads from {start.name} to these outputs",
        fix=f"leave it out of `from`, or swap the two ends: {turned}" if behind else "leave it out of `from`",
    )


def _options(name: str, values: Iterable[str]) -> str:
    """Returns options of the command line: `--from a --from b`."""
    return " ".join(f"--{name} {pasted(value)}" for value in values)


def _body(work: Work, starts: list[ir.Value], ends: list[ir.Value]) -> ir.Graph | None:
    """Returns the branch or body that holds the ends; None for the main graph. It can read the starts.

    Raises:
        OnnxsmithError: `edit/out-of-scope` if the ends are in several graphs, or a start is out of their reach.
    """
    inner = {place.value: place for place in tensor_paths.places(work.model) if place.bodies}
    bodies = [inner[value].bodies if value in inner else () for value in ends]
    around = {None, *(body.graph for body in bodies[0])}
    graphs = [inner[value].bodies[-1].graph if value in inner else None for value in (*ends, *starts)]
    if len({held[-1].graph if held else None for held in bodies}) == 1 and set(graphs) <= around:
        return graphs[0]
    value = next(value for value in (*ends, *starts) if value in inner)
    raise problem(
        "edit/out-of-scope",
        f"{value.name!r} is inside a branch or a body, but other tensors of the part are outside",
        why="a part is cut out of one graph",
        fix=f"choose only ends (`to`) inside {'/'.join(inner[value].path)}; tensors that the part reads from "
        "outside become inputs",
    )


def _bytes(model: ir.Model) -> int:
    return sum(tensor.nbytes for tensor in walk.initializer_tensors(model))


def _started(model: ir.Model, wires: list[str], outputs: list[str]) -> ir.Model:
    """Returns the original from the tensors `wires` on. onnx-ir cuts it, so that the part is compared with the result
    of independent code."""
    copy = inferred(model)[0]
    graph = ir.convenience.extract(copy.graph, wires, outputs)
    functions = list(copy.functions.values())
    return ir.Model(graph, ir_version=copy.ir_version, producer_name=copy.producer_name, functions=functions)


def _brought_out(model: ir.Model, inner: dict[str, str]) -> ir.Model:
    """Returns the model with tensors of a body as outputs, each under its own name: one value for each run of the
    body."""
    exposed = expose(model, inner.values())
    if exposed.refused:
        name, why = next(iter(exposed.refused.items()))
        raise problem(
            "edit/not-exposable",
            f"{name!r} cannot become an output of the model, because it is computed in a body; so the part cannot be "
            "compared with the original",
            why=why,
            fix="add --no-verify; the part is then written without a comparison",
        )
    outputs = {value.name: value for value in exposed.model.graph.outputs}
    chosen = [outputs[exposed.outlets[name].output] for name in inner.values()]
    exposed.model.graph.outputs.clear()
    exposed.model.graph.outputs.extend(chosen)
    _rename(exposed.model, list(inner))
    remove_unneeded(exposed.model)
    return exposed.model


def _in_body(original: ir.Model, body: ir.Graph, part: ir.Model) -> ir.Model:
    """Returns the original with the part computing in its body. The part's outputs are exposed like the original's
    outputs."""
    part = opset_conversion.convert(
        part, opset_conversion.of(original)
    )  # the body belongs to the original, which stays as it is
    ends = [value.name or "" for value in part.graph.outputs]
    model, made = with_part(original, body, part)
    places = {place.value: place.name for place in tensor_paths.places(model)}
    return _brought_out(model, {end: places[value] for end, value in zip(ends, made, strict=True)})


def _rename(model: ir.Model, names: list[str]) -> None:
    """Names the outputs. Another tensor with such a name is renamed."""
    outputs = list(model.graph.outputs)
    for place in tensor_paths.places(model):
        if place.value.name in names and place.value not in outputs:
            place.value.name = f"{place.value.name}.whole"
    for value, name in zip(outputs, names, strict=True):
        value.name = name


def _at_one_opset(whole: ir.Model, part: ir.Model) -> tuple[ir.Model, ir.Model]:
    """Returns both models at the same opset, because a later step of the edit may have converted the part. This is the
    part's opset if the whole can be converted to it, else the whole's opset."""
    try:
        return opset_conversion.convert(whole, opset_conversion.of(part)), part
    except OnnxsmithError:
        return whole, opset_conversion.convert(part, opset_conversion.of(whole))


def _in_place(whole: ir.Model, part: ir.Model, wires: list[str]) -> ir.Model:
    """Returns the original in which the part computes its outputs, from the tensors at which it starts. The outputs are
    the part's current outputs, because a later step of the edit may have renamed or removed some."""
    whole, part = _at_one_opset(whole, part)
    outputs = [value.name or "" for value in part.graph.outputs]
    ports = [port.name or "" for port in part.graph.inputs]
    grafted = joined(whole, part, dict(zip(ports, wires, strict=True)))
    kept = list(grafted.graph.outputs)[len(whole.graph.outputs) :]
    grafted.graph.outputs.clear()
    old = {value.name or "": value for node in grafted.graph for value in node.outputs}
    for name, value in zip(outputs, kept, strict=True):
        if name in old and old[name] is not value:
            old[name].name = f"{name}.whole"
        value.name = name
    grafted.graph.outputs.extend(kept)
    remove_unneeded(grafted)
    return grafted

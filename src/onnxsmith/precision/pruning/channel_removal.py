"""Removes channels from a model, and makes the reference with which the result is compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.symbolic_inference import infer
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.precision.pruning.channel_groups import Channel, Channels, families
from onnxsmith.precision.pruning.channel_links import Cuts, Indices, Slot
from onnxsmith.precision.pruning.moved_weights import Moved
from onnxsmith.precision.pruning.pruning_preparation import Working
from onnxsmith.precision.pruning.torch_parameters import Parameter, merged, norms, parameters

Kept = Mapping[Slot, Indices]


def kept_without(found: Channels, gone: Iterable[Channel]) -> Kept:
    """Returns the indices that stay along each axis that becomes shorter."""
    masks: dict[Slot, np.ndarray[tuple[int], np.dtype[np.bool_]]] = {}
    for channel in gone:
        for slot, at in channel:
            masks.setdefault(slot, np.ones(found.links.slots[slot], bool))[at] = False
    return {slot: np.flatnonzero(mask) for slot, mask in masks.items()}


def pruned(model: ir.Model, kept: Kept) -> ir.Model:
    """Returns a copy of the model with only the elements of `kept`; other axes stay whole.

    Raises:
        OnnxsmithError: `prune/shapes` if the inferred shapes differ from those that the cut should give.
    """
    made = cloned(model)
    cuts = Cuts(kept, Names(made))
    for node in made.graph:
        family = families().get(node.op_type) if not node.domain else None
        if family is not None and any(cuts.axes(value) for value in (*node.inputs, *node.outputs)):
            family.rewrite(node, cuts)
    for value in list(made.graph.initializers.values()):
        axes = cuts.axes(value)
        if axes:
            _cut(value, axes)
        if not value.uses() and not value.is_graph_output():
            del made.graph.initializers[value.name or ""]
    # Inference from the cut weights is compared with the shapes that the cut should give.
    expected = _forget_shapes(made, cuts)
    note = infer(made)
    _check(made, expected, note)
    facts.forget(made)
    return made


def _cut(value: ir.Value, axes: Mapping[int, Indices]) -> None:
    assert value.const_value is not None
    array = value.const_value.numpy()
    for axis, indices in axes.items():
        array = np.take(array, indices, axis)
    array = np.ascontiguousarray(array)
    value.const_value = ir.Tensor(array, value.const_value.dtype, name=value.name)
    value.shape = ir.Shape(array.shape)


def _forget_shapes(model: ir.Model, cuts: Cuts) -> dict[str, tuple[int | None, ...]]:
    """Removes the recorded shapes of tensors that become smaller, and returns the shapes that they should get."""
    expected = {}
    for node in model.graph:
        for value in node.outputs:
            axes = cuts.axes(value)
            if axes and value.shape is not None:
                expected[value.name or ""] = tuple(
                    len(axes[at]) if at in axes else (size if isinstance(size, int) else None)
                    for at, size in enumerate(value.shape)
                )
                value.shape = None
    return expected


def _check(model: ir.Model, expected: Mapping[str, tuple[int | None, ...]], note: str | None) -> None:
    for node in model.graph:
        for value in node.outputs:
            wanted = expected.get(value.name or "")
            if wanted is None:
                continue
            found = None if value.shape is None else tuple(d if isinstance(d, int) else None for d in value.shape)
            wrong = found is None or len(found) != len(wanted)
            pairs = () if wrong or found is None else zip(found, wanted, strict=True)
            if wrong or any(a != b for a, b in pairs if a is not None and b is not None):
                raise problem(
                    "prune/shapes",
                    "the inferred shapes of the pruned model differ from the shapes that the cut should produce",
                    where=f"{value.name} of {node.op_type} {node.name!r}",
                    why=f"inferred {found}, expected {wanted}" + (f"; {note}" if note else ""),
                    fix="report this as a bug, with the model; nothing was written",
                )


def masked(model: ir.Model, kept: Kept, products: Iterable[Slot]) -> ir.Model:
    """Returns a copy of the model that keeps all channels but ignores the removed ones: the weights that read them are
    zero.

    At the elements that stay, this copy computes what the pruned model has to compute. Under the name of a tensor that
    becomes smaller the copy has only these elements, so that tensors of both models can be compared by name.
    """
    made = cloned(model)
    for name, axis in products:
        value = made.graph.initializers.get(name)
        if (name, axis) in kept and value is not None and value.const_value is not None:
            array = np.array(value.const_value.numpy())
            gone = np.setdiff1d(np.arange(array.shape[axis]), kept[name, axis])
            array[(slice(None),) * axis + (gone,)] = 0
            value.const_value = ir.Tensor(array, value.const_value.dtype, name=name)
    _name_the_kept(made, kept)
    return made


def _name_the_kept(model: ir.Model, kept: Kept) -> None:
    """Renames the tensors that become smaller, and adds nodes that give their kept elements under the old name."""
    graph, names, cuts = model.graph, Names(model), Cuts(kept)
    for node in list(graph):
        for value in node.outputs:
            axes = cuts.axes(value)
            if not axes or value.is_graph_output():
                continue
            name = value.name or ""
            value.name = names.free(f"{name}_with_all_channels")
            whole = value
            for step, (axis, indices) in enumerate(axes.items(), 1):
                last = step == len(axes)
                index = ir.Value(name=names.free(f"{name}_kept"), const_value=ir.tensor(indices))
                assert index.const_value is not None
                index.const_value.name = index.name
                graph.initializers[index.name or ""] = index
                taken = ir.Value(name=name if last else names.free(f"{name}_part"), type=value.type)
                graph.append(ir.Node("", "Gather", [whole, index], [ir.AttrInt64("axis", axis)], outputs=[taken]))
                whole = taken


Axes = dict[str, list[int]]
Flags = npt.NDArray[np.bool_]


def kept_channels(work: Working, found: Channels, kept: Kept) -> dict[str, Axes]:
    """Returns, for each weight that became smaller, the shortened axes and the indices that stayed along them. Name and
    axes are those of the torch parameter if the file says which one it is, else those of the file. A weight whose
    elements were moved from other stored tensors has the names of these tensors. The transpose of a parameter is left
    out."""
    model, places = work.model, work.moved
    known, behind = parameters(model, work.copies), norms(model) | merged(model)
    tied = {b: a for a, b in found.links.twins} | dict(found.links.twins)
    said: dict[str, Axes] = {}
    made: dict[str, dict[int, Indices]] = {}
    for (name, axis), indices in sorted(kept.items()):
        if name in places.steps:
            made.setdefault(name, {})[axis] = indices
        elif name in model.graph.initializers and (name in known or tied.get(name) not in known):
            for one in known.get(name, [Parameter(name)]):
                own, left = one.kept(axis, indices)
                said.setdefault(one.name, {})[str(own)] = left
        for norm in behind.get(name, []) if axis == 1 else ():
            said[norm] = {"0": [int(index) for index in indices]}
    said |= _of_sources(places, made)
    return {name: dict(sorted(axes.items())) for name, axes in sorted(said.items())}


def _of_sources(places: Moved, made: Mapping[str, Mapping[int, Indices]]) -> dict[str, Axes]:
    """Returns what stayed of the source tensors of moved weights: an element stays if it stays in the weight. If the
    elements that stay do not form a block along the axes of the source, returns the weight's own name and axes."""
    stays: dict[str, Flags] = {}
    goes: dict[str, Flags] = {}
    for name in places.results:
        names, which, at = places.elements(name)
        mask = np.zeros(which.shape, bool)
        axes = made.get(name, {})
        mask[np.ix_(*(axes.get(axis, np.arange(which.shape[axis])) for axis in range(which.ndim)))] = True
        for number, source in enumerate(names):
            own = which == number
            for flags, chosen in ((stays, own & mask), (goes, own & ~mask)):
                flags.setdefault(source, np.zeros(places.shapes[source], bool)).flat[at[chosen]] = True
    found: dict[str, Axes] = {}
    unsaid = set()
    for source, gone in goes.items():
        axes_of = _block(stays[source], gone)
        if axes_of is None:
            unsaid |= {name for name in made if source in places.sources(name)}
        elif axes_of:
            found[source] = axes_of
    for name in sorted(unsaid):
        found[name] = {str(axis): [int(one) for one in indices] for axis, indices in made[name].items()}
    return found


def _block(stays: Flags, goes: Flags) -> Axes | None:
    """Returns the indices that stay along each shortened axis; None if the elements do not form a block."""
    block = []
    for axis in range(stays.ndim):
        others = tuple(one for one in range(stays.ndim) if one != axis)
        block.append(np.flatnonzero(stays.any(others) | ~goes.any(others)))
    kept = np.zeros(stays.shape, bool)
    kept[np.ix_(*block)] = True
    if (stays & ~kept).any() or (goes & kept).any():
        return None
    return {
        str(axis): [int(one) for one in indices]
        for axis, indices in enumerate(block)
        if len(indices) < stays.shape[axis]
    }


def kept_channels_text(found: dict[str, Axes]) -> str:
    """Returns the list as JSON, with one weight on each line."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(axes)}" for name, axes in found.items())
    return "{\n" + lines + "\n}\n"

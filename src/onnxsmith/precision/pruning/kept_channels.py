"""Writes which part of each weight stayed, so that a torch module can be pruned in the same way."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from onnxsmith.precision.pruning.channel_links import Indices
from onnxsmith.precision.pruning.channel_removal import Kept
from onnxsmith.precision.pruning.groups import Channels
from onnxsmith.precision.pruning.moved_weights import Moved
from onnxsmith.precision.pruning.pruning_preparation import Working
from onnxsmith.precision.pruning.torch_names import Parameter, merged, norms, parameters

Axes = dict[str, list[int]]
Flags = npt.NDArray[np.bool_]


def of(work: Working, found: Channels, kept: Kept) -> dict[str, Axes]:
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


def text(found: dict[str, Axes]) -> str:
    """Returns the list as JSON, with one weight on each line."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(axes)}" for name, axes in found.items())
    return "{\n" + lines + "\n}\n"

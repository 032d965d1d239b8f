"""Runs a model at a second size of each axis that it declares as open."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files import closed_axes
from onnxsmith.graph.files.closed_axes import Closed, first_axes, places
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.dim_ranges import Size
from onnxsmith.graph.structure.signature import is_symbol, signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.verification.explore import Plan
from onnxsmith.verification.input_search import Run, Search, Tries
from onnxsmith.verification.inputs import size_proposals
from onnxsmith.verification.inputs.generate import Generator

_OTHERS = 4
"""How many other sizes of an axis are tried. A choice: a U-Net takes multiples only, a table has a last row."""
_NODE = re.compile(r"running (\w+) node\. Name:'([^']*)'")
"""Matches the node in a message of onnxruntime."""


def closed(model: ir.Model, known: Mapping[str, Size], seed: int = 0) -> tuple[Closed, ...]:
    """Returns the open axes of a model that runs at one size of them only, on the usual runtime. Axes in `known` are
    left out. Returns what inference finds if the model does not run here."""
    interface = signature(model)
    names = [name for name in interface.symbols() if is_symbol(name) and name not in known]
    if not names:
        return ()
    start = {name: 1 for name in names if name in first_axes(interface)}
    plan = Plan(Generator.for_model(inferred(model)[0]).under(interface), known={**known, **start}, seed=seed)
    free = Plan(plan.generator, known=known, seed=seed)
    try:
        with runtimes.get(runtimes.default()).prepare(model) as session:
            search = Search(Tries(session, plan))
            base = search.base()
            if base is None:
                return ()
            tries = Tries(session, free)
            found = [_closed(tries, search, name, base, names) for name in names]
    except OnnxsmithError:
        return closed_axes.closed(model)
    return tuple(one for one in found if one is not None)


def _closed(tries: Tries, search: Search, name: str, base: Run, names: list[str]) -> Closed | None:
    """Tries other sizes of one axis, then of all axes together, because some have to be equal."""
    now = base.feed.sizes
    refusals: list[tuple[int, str]] = []
    interface = tries.plan.generator.signature
    others = list(itertools.islice(size_proposals.others(name, now, interface), _OTHERS))
    together = [{one: 2 * size for one, size in now.items()}, {one: 3 * size for one, size in now.items()}]
    for sizes in ({**now, name: other} for other in others):
        if tries.run(sizes, 1, search.chosen, search.manner) is not None:
            return None
        if tries.last is not None:
            refusals.append((sizes[name], f"{tries.last.what}. {tries.last.why}".strip(". ")))
    if len(names) > 1 and any(tries.run(one, 1, search.chosen, search.manner) is not None for one in together):
        return None
    if not refusals:
        return None
    other, why = refusals[0]
    node = _NODE.search(why)
    return Closed(name, places(interface, name), now[name], other, " ".join(node.groups()).strip() if node else "", why)

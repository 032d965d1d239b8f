"""`diff`: says what changed between two models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.garbage_collection import no_collection
from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.model_changes import (
    Difference,
    InterfaceChanges,
    NodeChange,
    NodeChanges,
    PortChange,
    PropertyChange,
    PropertyChanges,
    Region,
    Renaming,
    Renamings,
    SameRegions,
    WeightChange,
    WeightChanges,
)
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.words import several
from onnxsmith.comparison.graphs import equal_regions, properties
from onnxsmith.comparison.graphs.graph_differences import Found
from onnxsmith.comparison.graphs.model_pairs import FunctionPairs, Models, paired
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.model_identity import identifies, model_file
from onnxsmith.graph.reading.scopes import function_name
from onnxsmith.graph.reading.weights import held
from onnxsmith.graph.structure import walk

_SIDES = ("removed", "added")


@identifies("old", "new")
def diff(old: Source, new: Source, *, ignore: Iterable[str] = ()) -> Result:
    """Says what changed from one model to another: nodes, attributes, wiring, weights, interface, versions, metadata.

    The models are not run. Nodes are paired by their computation, their use, their weights, and the simplified forms of
    both models. So other names and another node order are no difference; changed names are only listed. For removed and
    added nodes, the report says how many compute the same as other nodes of the other model. Names of inputs and
    outputs are a difference, because callers use them. So is a weight that is stored in another form. The verdict is
    `different` if anything differs, and `cannot-tell` if nothing differs but values are missing. `ignore` lists what is
    not a difference: `names` (of inputs, outputs and dimensions), `weights`, `shapes` (declared for intermediate
    tensors), `metadata`, `doc`, `versions`.

    Raises:
        OnnxsmithError: `model/…` if a file is not a valid model, `diff/unknown-part` for an unknown word in `ignore`.
    """
    leave_out = _checked(ignore)
    if (known := _same_bytes(old, new)) is not None:
        return known
    with stage("load"):
        models = load(old), load(new)
        for source, model in zip((old, new), models, strict=True):
            if model is not source:
                walk.mark_flat(model)
    with stage("pair"), no_collection():
        notes, models, pairs, found = paired(models)
    with stage("weights"):
        weights = (*found.weights.changes(), *found.unread)
    found.interface += (PortChange("dimension", "dimension renamed", a, a, b) for a, b in found.dimensions.renamed())
    rows = Rows(
        tuple(found.changed),
        tuple(found.regions.found()),
        weights,
        tuple(found.interface),
        tuple(properties.changes(*models, pairs, found)),
        (found.nested[0], found.nested[1]),
    )
    counted, names = Counted(rows, leave_out), renamings(*models, found, pairs)
    missing = sum(row.kind == "unreadable" for row in weights)
    verdict = Verdict.DIFFERENT if counted.counts else Verdict.CANNOT_TELL if missing else Verdict.DONE
    summary = _summary(models, found, counted, names)
    notes += _notes(found, missing)
    said = found.unrelated or _said(counted, names, missing)
    headline = f"{_name(old)} → {_name(new)}: {said}"
    same = [SameRegions(equal_regions.rows(found.same))] if found.same else []
    parts = (summary, *counted.parts, *same, *([Renamings(tuple(names))] if names else []))
    return Result(Report("diff", verdict, parts, notes=tuple(notes), headline=headline))


def _same_bytes(old: Source, new: Source) -> Result | None:
    """Returns the report on two files with the same bytes, which need no comparison; None for other models. Data files
    with weights have to be the same files, because their hashes cover only a part of them."""
    if not isinstance(old, str | Path) or not isinstance(new, str | Path):
        return None
    paths = Path(old), Path(new)
    files = [model_file(path, "read") for path in paths]
    if files[0] is None or files[1] is None or not files[0].same_graph(files[1]):
        return None
    folders = {path.absolute().parent for path in paths}
    if len(folders) > 1 and files[0].data:
        return None
    with stage("load"):
        model = load(old)
    tensors = list(held(model))
    if any(item.tensor is None or item.missing for item in tensors):
        return None
    nodes, constants = walk.count_nodes(model), walk.count_constants(model)
    elements = sum(item.tensor.size for item in tensors if item.tensor is not None)
    part = Difference(nodes, nodes, nodes, nodes, len(tensors), elements, {}, {}, {}, {}, {}, constants, constants)
    said = "the same file" if paths[0].samefile(paths[1]) else "the same bytes"
    return Result(Report("diff", Verdict.DONE, (part,), headline=f"{_name(old)} → {_name(new)}: equal, {said}"))


def _checked(ignore: Iterable[str]) -> set[str]:
    words = {ignore} if isinstance(ignore, str) else set(ignore)
    unknown = sorted(words - set(IGNORED))
    if unknown:
        raise problem(
            "diff/unknown-part",
            f"{unknown[0]!r} cannot be ignored",
            fix=f"write {' or '.join(near_names(unknown[0], IGNORED, 1) or IGNORED)}",
        )
    return words


def _summary(models: Models, found: Found, counted: Counted, names: list[Renaming]) -> Difference:
    changed = sum(bool(one.op) for one in found.changed)
    return Difference(
        old_nodes=walk.count_nodes(models[0]),
        new_nodes=walk.count_nodes(models[1]),
        old_constants=walk.count_constants(models[0]),
        new_constants=walk.count_constants(models[1]),
        paired=len(found.pairs.nodes),
        equal=len(found.pairs.nodes) - changed,
        weights=len(found.weights.pairs()),
        elements=found.weights.elements(),
        changes=dict(counted.counts),
        ignored=dict(counted.ignored),
        names=dict(Counter(one.kind for one in names)),
        otherwise=equal_regions.counted(found.same),
        of_weights=dict(zip(_SIDES, map(len, found.of_weights), strict=True)) if any(found.of_weights) else {},
    )


def _said(counted: Counted, names: list[Renaming], missing: int) -> str:
    if counted.counts and sum(counted.counts.values()) == counted.renamed:
        inside = f", {several(len(names), 'name')} inside the graph" if names else ""
        return f"only names differ ({several(counted.renamed, 'name')} of inputs, outputs or dimensions{inside})"
    if counted.counts:
        return ", ".join(several(count, noun) for noun, count in counted.counts.items())
    if missing:
        return f"equal as far as the values can be read; the values of {several(missing, 'weight')} are missing"
    if names:
        return f"only names differ ({several(len(names), 'name')} inside the graph)"
    return "equal except for the ignored differences" if counted.ignored else "equal"


def _notes(found: Found, missing: int) -> list[str]:
    notes = []
    for count, side in zip(found.nested, _SIDES, strict=True):
        if count:
            notes.append(f"{several(count, f'{side} node')} in branches and bodies are not in the list")
    if found.swapped:
        notes.append(f"operands in another order, which has no effect: {several(found.swapped, 'node')}")
    if found.moved:
        notes.append(
            f"attributes in one model, inputs with equal values in the other: {several(found.moved, 'parameter')}"
        )
    if found.idle:
        notes.append(f"stored in both models, but read by nodes of only one: {several(found.idle, 'weight')}")
    if missing:
        notes.append(f"not compared, because the values are missing: {several(missing, 'weight')}")
    return notes


def _name(source: Source) -> str:
    return str(source) if isinstance(source, str | Path) else "the model"


# Lists the nodes, tensors, weights and functions that have another name in the second model.


def renamings(a: ir.Model, b: ir.Model, found: Found, functions: FunctionPairs) -> list[Renaming]:
    """Returns the names that differ, except those of inputs and outputs, which belong to the interface."""
    return list(_renamings(a, b, found, functions))


def _renamings(a: ir.Model, b: ir.Model, found: Found, functions: FunctionPairs) -> Iterator[Renaming]:
    if a.graph.name != b.graph.name:
        yield Renaming("graph", a.graph.name or "", b.graph.name or "")
    for one, other in functions.pairs:
        if one != other:
            yield Renaming("function", function_name(a.functions[one]), function_name(b.functions[other]))
    ports = {*a.graph.inputs, *a.graph.outputs}
    for first, second, path in found.paths:
        if first.name != second.name:
            yield Renaming("node", first.name or "", second.name or "", path)
        for value, partner in zip(first.outputs, second.outputs, strict=False):
            if value.name != partner.name and value not in ports and value.name and partner.name:
                yield Renaming("tensor", value.name, partner.name, path)
    for value, partner in found.pairs.values.items():
        if value.is_graph_input() and value not in ports and value.name != partner.name:
            yield Renaming("tensor", value.name or "", partner.name or "")
    seen: set[ir.Value] = set()
    for value, partner in found.weights.pairs():
        if value.name != partner.name and value not in ports and value not in seen:
            seen.add(value)
            yield Renaming("weight", value.name or "", partner.name or "")


IGNORED = ("names", "weights", "shapes", "metadata", "doc", "versions")
"""The kinds of differences that a caller can ignore."""

_WEIGHTS = {
    "form": "converted weight",
    "rounding": "differently rounded weight",
    "removed": "removed weight",
    "added": "added weight",
}
_PROPERTIES = {
    "version": ("version", "versions"),
    "function": ("function", ""),
    "metadata": ("metadata change", "metadata"),
    "doc": ("description", "doc"),
    "shape": ("declared shape", "shapes"),
}
"""The noun for each kind of property, and the word by which a caller ignores it."""


@dataclass(frozen=True)
class Rows:
    """All differences, by kind."""

    changed: tuple[NodeChange, ...]
    regions: tuple[Region, ...]
    weights: tuple[WeightChange, ...]
    interface: tuple[PortChange, ...]
    properties: tuple[PropertyChange, ...]
    nested: tuple[int, int] = (0, 0)
    """Removed and added nodes in branches and bodies of the nodes in `regions`."""


class Counted:
    """The differences that count. `parts` show them; `counts` and `ignored` have their numbers by kind. `renamed` is
    the number of inputs, outputs and dimensions with another name."""

    def __init__(self, rows: Rows, ignore: Collection[str]) -> None:
        self._ignore = ignore
        self.counts: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self.renamed = sum(_port_word(row) == "names" for row in rows.interface)
        self.parts = tuple(self._parts(rows))

    def _parts(self, rows: Rows) -> Iterator[Part]:
        interface = tuple(row for row in rows.interface if self._keeps("interface change", _port_word(row)))
        if interface:
            yield InterfaceChanges(interface)
        for noun, count in (
            ("changed node", len(rows.changed)),
            ("removed node", sum(len(one.removed) for one in rows.regions) + rows.nested[0]),
            ("added node", sum(len(one.added) for one in rows.regions) + rows.nested[1]),
        ):
            if count:
                self.counts[noun] += count
        if rows.changed or rows.regions:
            yield NodeChanges(rows.changed, rows.regions)
        readable = [row for row in rows.weights if row.kind != "unreadable"]
        weights = tuple(row for row in readable if self._keeps(_WEIGHTS.get(row.kind, "changed weight"), "weights"))
        weights += tuple(row for row in rows.weights if row.kind == "unreadable")
        if weights:
            yield WeightChanges(weights)
        properties = tuple(row for row in rows.properties if self._keeps(*_PROPERTIES[row.kind]))
        if properties:
            yield PropertyChanges(properties)

    def _keeps(self, noun: str, word: str) -> bool:
        """Counts a row. Returns whether it counts as a difference."""
        is_kept = word not in self._ignore
        (self.counts if is_kept else self.ignored)[noun] += 1
        return is_kept


def _port_word(row: PortChange) -> str:
    return "names" if row.kind in ("renamed", "dimension renamed") else ""

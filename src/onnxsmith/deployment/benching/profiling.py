"""Profiles a model node by node with onnxruntime's own profiler, and sums the times by torch module."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.measurements import KernelTime, ModuleTime, OperatorTime, Profile
from onnxsmith.deployment.benching.subject_preparation import Ready
from onnxsmith.graph.files.load import load
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.walk import node_label, op_name
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.runtimes._isolated import Turn
from onnxsmith.viewer.inspection.costs.cost_totals import Path, grouping

_SKIPPED = 3
"""Counts the first runs that are left out: the first run allocates memory. A choice."""
_NOTHING = 1e-9
"""Names the smallest time in seconds for which a row is shown; the rounding of sums is far below."""
_COUNTED, _FEWEST = 0.25, 3
"""Sets the share of the runs that count, which are the shortest runs, and their least number. Means over all runs would
charge the kernels with the time of other processes. A choice."""
_MOST = 200
"""Limits the runs. A choice: a hundred runs of a large model give about a megabyte of events."""


@dataclass
class _Kernel:
    """Describes a kernel of the optimised graph, with its time over all runs in microseconds."""

    op: str
    name: str
    provider: str
    sources: tuple[ir.Node, ...]
    time: float = 0.0
    count: int = 0


def refuse_unreadable(ready: Ready) -> None:
    """Raises if onnxsmith can read no profiler of the subject's runtime.

    Raises:
        OnnxsmithError: `bench/no-profile`.
    """
    if not ready.subject.runtime.profiles or ready.side.model is None:
        raise problem(
            "bench/no-profile",
            f"{ready.subject.on} has no profile that can be read",
            fix="profile the model on onnxruntime: --subject onnxruntime --profile",
        )


def profiled(ready: Ready, values: Mapping[str, Any], *, seconds: float, usual: float) -> Profile:
    """Profiles a subject for about `seconds` on inputs under the lead's names; `usual` is the time of a run.

    Raises:
        OnnxsmithError: `bench/no-profile` if onnxsmith can read no profiler of the runtime.
    """
    refuse_unreadable(ready)
    assert ready.side.model is not None
    numbered = Numbered(load(ready.side.model))
    runs = _SKIPPED + max(_FEWEST, min(_MOST, int(seconds / max(usual, 1e-6))))
    with ready.subject.runtime.prepare(numbered.model, ready.subject.options) as session:
        assert isinstance(session, Turn)
        answer = session.ask({"do": "profile", "runs": runs}, ready.own(values))
    kept, whole = _least_disturbed(answer["runs"], answer["whole"])
    sources = numbered.sources(answer["nodes"])
    return _part(ready, numbered, _kernels(kept, answer["nodes"], sources), whole)


def _least_disturbed(runs: Sequence[Any], whole: Sequence[float]) -> tuple[list[Any], list[float]]:
    """Returns the runs that count, with their times. These are the shortest runs, without the first runs."""
    order = sorted(range(_SKIPPED, len(whole)), key=lambda index: whole[index])
    kept = order[: max(_FEWEST, int(len(order) * _COUNTED))]
    return [runs[index] for index in kept], [whole[index] for index in kept]


def _kernels(
    runs: Sequence[Any], nodes: Sequence[Mapping[str, Any]], sources: Sequence[list[ir.Node]]
) -> list[_Kernel]:
    """Returns the kernels that ran. An event names its node. If several nodes have the same name, they run in the order
    of the optimised graph."""
    of_name: dict[str, list[int]] = defaultdict(list)
    for index, node in enumerate(nodes):
        of_name[node["name"]].append(index)
    found: dict[tuple[str, int], _Kernel] = {}
    for run in runs:
        counts = Counter(name for name, *_ in run)
        seen: Counter[str] = Counter()
        for name, op, provider, time in run:
            own = of_name.get(name, [])
            at = seen[name] if len(own) > 1 and counts[name] == len(own) else 0
            seen[name] += 1
            known = len(own) == 1 or (len(own) > 1 and counts[name] == len(own))
            key = (name, own[at] if known else -1)
            if key not in found:
                found[key] = _Kernel(op, name, provider, tuple(sources[own[at]]) if known else ())
            found[key].time += time
            found[key].count += 1
    return list(found.values())


def _part(ready: Ready, numbered: Numbered, kernels: Sequence[_Kernel], whole: Sequence[float]) -> Profile:
    by, separator, path_of = grouping(numbered.nodes)
    runs = max(len(whole), 1)
    operators: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    modules: dict[Path, float] = defaultdict(float)
    rows = []
    for one in sorted(kernels, key=lambda kernel: -kernel.time):
        seconds = one.time / runs / 1e6
        operators[one.op][0] += seconds
        operators[one.op][1] += one.count / runs
        path = _module(one.sources, path_of)
        if path is not None:
            for depth in range(len(path) + 1 if path != ("",) else 0):
                modules[path[:depth]] += seconds
            if path == ("",):
                modules[path] += seconds
        rows.append(
            KernelTime(
                name=_label(one, numbered),
                op=one.op,
                provider=one.provider,
                computes=tuple(op_name(node) for node in one.sources),
                nodes=tuple(numbered.labels[node] for node in one.sources),
                module="" if path is None else separator.join(path),
                seconds=seconds,
                attributed=path is not None,
            )
        )
    return Profile(
        subject=ready.subject.label,
        runs=len(whole),
        run=statistics.fmean(whole) / 1e6 if whole else 0.0,
        by=by,
        operators=tuple(OperatorTime(op, round(n), t) for op, (t, n) in _largest(operators)),
        modules=_tree(modules, separator) if by != "operator" else (),
        kernels=tuple(rows),
        note=numbered.note,
    )


def _largest(operators: Mapping[str, list[float]]) -> list[tuple[str, list[float]]]:
    return sorted(operators.items(), key=lambda item: -item[1][0])


def _label(kernel: _Kernel, numbered: Numbered) -> str:
    """Returns the name in the file of the kernel's last node, else onnxruntime's name of the kernel."""
    return numbered.labels[kernel.sources[-1]] if kernel.sources else kernel.name


def _module(sources: Sequence[ir.Node], path_of: Callable[[ir.Node], Path]) -> Path | None:
    """Returns the innermost module that contains all nodes of a kernel. Nodes without a module are ignored, unless no
    node has a module."""
    paths = [path_of(node) for node in sources]
    named = [path for path in paths if path not in ((), ("",))]
    if not named:
        return ("",) if paths else None
    common = named[0]
    for path in named[1:]:
        same = [a == b for a, b in zip(common, path, strict=False)]
        common = common[: same.index(False) if False in same else len(same)]
    return common


def _tree(modules: Mapping[Path, float], separator: str) -> tuple[ModuleTime, ...]:
    """Returns a row for each module with a time, the slowest first, each after the row of the module that contains it.
    The last row, without a name, is for nodes without a module, and for kernels with nodes of several modules."""
    rows: list[ModuleTime] = []

    def add(path: Path) -> None:
        inner = [one for one in modules if len(one) == len(path) + 1 and one[: len(path)] == path and one != ("",)]
        own = modules[path] - sum(modules[one] for one in inner)
        if path:
            rows.append(ModuleTime(separator.join(path), len(path) - 1, modules[path], max(own, 0.0)))
        for one in sorted(inner, key=lambda one: -modules[one]):
            add(one)

    if () in modules:
        add(())
    tops = sum(time for path, time in modules.items() if len(path) == 1 and path != ("",))
    rest = modules.get((), 0.0) - tops + modules.get(("",), 0.0)
    if rest > _NOTHING:
        rows.append(ModuleTime("", 0, rest, rest))
    return tuple(rows)


# Finds the nodes of a file that a kernel of the optimised graph computes.
# An optimiser fuses nodes, and gives the fused nodes new names. Most names of tensors stay: a fused node writes the
# tensor that the last of its original nodes wrote, and reads the tensors that the first of them read. It computes the
# nodes between these tensors.

_PREFIX = "onnxsmith."
_NUMBER = re.compile(re.escape(_PREFIX) + r"(\d+)(?![\d.])")
_BLOCKED = "_nchwc"
"""Is the ending of the name that onnxruntime gives a node whose result has a blocked layout. The rest is the name of
the tensor (nchwc_transformer.cc)."""


class Numbered:
    """Holds a copy of a model without calls of functions. Every node has a unique name, so that a kernel can be traced
    to its node. `labels` are the names of the nodes in the file."""

    def __init__(self, model: ir.Model) -> None:
        self.model, self.note = inlined(model)
        self.nodes = list(walk.all_nodes(self.model))
        self.labels = {node: node_label(node) for node in self.nodes}
        for number, node in enumerate(self.nodes):
            node.name = f"{_PREFIX}{number}"
        self._producers = {value.name: node for node in self.nodes for value in node.outputs if value.name}

    def sources(self, optimised: Sequence[Mapping[str, Any]]) -> list[list[ir.Node]]:
        """Returns for each node of the optimised graph the nodes of the file that it computes; empty if unknown."""
        tensors: dict[str, str] = {}
        """Maps a tensor of the optimised graph to its name in the file."""
        results = [self._results(node) for node in optimised]
        for node, found in zip(optimised, results, strict=True):
            tensors |= {theirs: ours for theirs, ours in zip(node["outputs"], found, strict=False) if ours}
        computed = set(tensors.values())
        made: dict[str, list[ir.Node]] = {}
        """Maps a tensor to the nodes that are computed by the first kernel with this tensor."""
        sources = []
        for node, found in zip(optimised, results, strict=True):
            names = [name for name in found if name]
            operands = {tensors.get(name, name) for name in node["inputs"]}
            if names and operands.issuperset(names) and names[0] in made:
                sources.append(made[names[0]])  # the same tensor in another layout
                continue
            sources.append(self._between(names, operands, computed) or self._named(node["name"]))
            made |= {name: sources[-1] for name in names if name not in made}
        return sources

    def _results(self, node: Mapping[str, Any]) -> list[str]:
        """Returns the names in the file of the tensors that a node computes; "" for an unknown name."""
        blocked = node["name"].removesuffix(_BLOCKED)
        own = _NUMBER.fullmatch(node["name"])
        names = [v.name or "" for v in self.nodes[int(own[1])].outputs] if own and self._has(own[1]) else []
        found = []
        for index, name in enumerate(node["outputs"]):
            if name in self._producers:
                found.append(name)
            elif index == 0 and blocked != node["name"] and blocked in self._producers:
                found.append(blocked)
            else:
                found.append(names[index] if index < len(names) else "")
        return found

    def _between(self, results: Sequence[str], operands: set[str], computed: set[str]) -> list[ir.Node]:
        """Returns the nodes between the operands and the results. The walk goes backwards from the results, and stops
        at tensors that another kernel has computed."""
        found: dict[ir.Node, None] = {}
        waiting = [name for name in results if name in self._producers]
        while waiting:
            node = self._producers[waiting.pop()]
            if node in found:
                continue
            found[node] = None
            for value in node.inputs:
                name = value.name if value is not None else None
                if name and name in self._producers and name not in operands and name not in computed:
                    waiting.append(name)
        # `index` searches the list, so only short results are put in order.
        return sorted(found, key=self.nodes.index) if len(found) < 100 else list(found)

    def _named(self, name: str) -> list[ir.Node]:
        """Returns the nodes whose names occur in a kernel's name, such as `fused onnxsmith.3`."""
        return [self.nodes[int(number)] for number in _NUMBER.findall(name) if self._has(number)]

    def _has(self, number: str) -> bool:
        return int(number) < len(self.nodes)

"""Profiles a model node by node with onnxruntime's own profiler, and sums the times by torch module."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.profile import KernelTime, ModuleTime, OperatorTime, Profile
from onnxsmith.deployment.benching.fused_kernels import Numbered
from onnxsmith.deployment.benching.subject_preparation import Ready
from onnxsmith.graph.files.load import load
from onnxsmith.graph.structure.walk import op_name
from onnxsmith.runtimes._isolated import Turn
from onnxsmith.viewer.inspection.costs.cost_groups import Path, grouping

_SKIPPED = 3
"""Number of first runs that do not count: the first run allocates memory. A choice."""
_NOTHING = 1e-9
"""Smallest time in seconds for which a row is shown; the rounding of sums is far below."""
_COUNTED, _FEWEST = 0.25, 3
"""Share of the runs that count, the shortest ones, and their least number. Means over all runs would charge the kernels
with the time of other processes. A choice."""
_MOST = 200
"""Largest number of runs. A choice: a hundred runs of a large model give about a megabyte of events."""


@dataclass
class _Kernel:
    """A kernel of the optimised graph, with its time over all runs in microseconds."""

    op: str
    name: str
    provider: str
    sources: tuple[ir.Node, ...]
    time: float = 0.0
    count: int = 0


def profiled(ready: Ready, values: Mapping[str, Any], *, seconds: float, usual: float) -> Profile:
    """Profiles a subject for about `seconds` on inputs under the lead's names; `usual` is the time of a run.

    Raises:
        OnnxsmithError: `bench/no-profile` if onnxsmith can read no profiler of the runtime.
    """
    if not ready.subject.runtime.profiles or ready.side.model is None:
        raise problem(
            "bench/no-profile",
            f"{ready.subject.on} has no profile that can be read",
            fix="profile it on onnxruntime: --subject onnxruntime --profile",
        )
    numbered = Numbered(load(ready.side.model))
    runs = _SKIPPED + max(_FEWEST, min(_MOST, int(seconds / max(usual, 1e-6))))
    with ready.subject.runtime.prepare(numbered.model, ready.subject.options) as session:
        assert isinstance(session, Turn)
        answer = session.ask({"do": "profile", "runs": runs}, ready.own(values))
    kept, whole = _least_disturbed(answer["runs"], answer["whole"])
    sources = numbered.sources(answer["nodes"])
    return _part(ready, numbered, _kernels(kept, answer["nodes"], sources), whole)


def _least_disturbed(runs: Sequence[Any], whole: Sequence[float]) -> tuple[list[Any], list[float]]:
    """Returns the runs that count, with their times: the shortest runs, apart from the first ones."""
    order = sorted(range(_SKIPPED, len(whole)), key=lambda index: whole[index])
    kept = order[: max(_FEWEST, int(len(order) * _COUNTED))]
    return [runs[index] for index in kept], [whole[index] for index in kept]


def _kernels(
    runs: Sequence[Any], nodes: Sequence[Mapping[str, Any]], sources: Sequence[list[ir.Node]]
) -> list[_Kernel]:
    """Returns the kernels that ran. An event names its node. If several nodes have that name, they run in the order of
    the optimised graph."""
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
    """Returns the innermost module that contains all nodes of a kernel. Nodes without a module are ignored, unless all
    are."""
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
    """Returns a row for each module with a time, after the row of the module that contains it, the slowest first. The
    last row, without a name, is for nodes without a module, and for kernels with nodes of several modules."""
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

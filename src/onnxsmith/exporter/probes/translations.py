"""Every operator that has no ONNX form, with its line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.causes._text import line_in
from onnxsmith.exporter import probing
from onnxsmith.exporter.probes.base import Case, Probe
from onnxsmith.problem import Problem
from onnxsmith.report.parts.diagnosis import Finding, Weight

_OTHERWISE = {
    "aten.median": "x.sort(dim).values.select(dim, (x.shape[dim] - 1) // 2)",
    "aten.kthvalue": "x.sort(dim).values.select(dim, k - 1)",
    "aten.logcumsumexp": "(x - x.amax(dim, keepdim=True)).exp().cumsum(dim).log() + x.amax(dim, keepdim=True)",
    "aten.nanmedian": "x.sort(dim).values.gather(dim, ((~x.isnan()).sum(dim, keepdim=True) - 1) // 2).squeeze(dim)",
    "aten.searchsorted": "(sorted.unsqueeze(-2) < values.unsqueeze(-1)).sum(-1)",
    "aten.bucketize": "(boundaries < values.unsqueeze(-1)).sum(-1)",
    "aten.bincount": "torch.nn.functional.one_hot(x, n).sum(0)",
    "aten.histc": "torch.nn.functional.one_hot(((x - low) / (high - low) * n).long().clamp(0, n - 1), n).sum(0)",
    "aten.renorm": "x * (maxnorm / x.norm(p, dim=1, keepdim=True)).clamp(max=1)",
    "aten.lgamma": "0.5 * (math.log(2 * math.pi) - x.log()) + x * ((x + 1 / (12 * x - 0.1 / x)).log() - 1)",
    "aten._cdist_forward": "(a.unsqueeze(-2) - b.unsqueeze(-3)).pow(2).sum(-1).sqrt()",
    "aten._linalg_det": "for 2x2: m[..., 0, 0] * m[..., 1, 1] - m[..., 0, 1] * m[..., 1, 0]",
}
"""The same from operators that have one."""


class Translations(Probe):
    """The program as torch.onnx would translate it; each operator is looked up, so none hides behind another."""

    rank = 60

    def look(self, case: Case) -> Iterator[Finding]:
        if case.built is None or case.traced.exported is None or case.good:
            return
        for operator, where, message in _missing(case.traced.exported):
            short = operator.removesuffix(".default").rpartition(".")[0] if operator.count(".") > 1 else operator
            other = _OTHERWISE.get(operator) or _OTHERWISE.get(short, "")
            code = other or _symbolic(operator)
            yield Finding(
                Problem(
                    "export/no-translation",
                    f"no ONNX translation for {operator}",
                    where=where,
                    why="torch's advice to submit a PR to PyTorch is not needed: one operator lacks",
                    fix=f"write it with others: {other}"
                    if other
                    else "write it with others; or let it be one node of a domain of yours, which a plugin of the "
                    "runtime computes",
                ),
                Weight.STOPS,
                "recompose" if other else "edit",
                said=message,
                code=code,
            )


def _missing(exported: Any) -> Iterator[tuple[str, str, str]]:
    from torch.onnx._internal.exporter import _dispatching

    with probing.decomposed(exported) as (program, registry):
        seen: set[tuple[str, str]] = set()
        for node in program.graph.nodes:
            if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
                continue
            function, message = _dispatching.dispatch(node, registry)
            where = line_in(str(node.meta.get("stack_trace", "")))
            name = str(node.target).removesuffix(".default")
            if function is None and (name, where) not in seen and "_assert" not in name:
                seen.add((name, where))
                yield name, where, f"No ONNX function found for {name}: {message}"


def _symbolic(operator: str) -> str:
    name = operator.replace(".", "_").rpartition("::")[2]
    return f'y = torch.onnx.ops.symbolic("custom::{name}", (x,), dtype=x.dtype, shape=x.shape, version=1)'

"""Copies a comparison to float32, for sides in float16 or bfloat16 whose own rounding hides too much."""

from __future__ import annotations

from dataclasses import replace

from onnxsmith.comparison.outputs.comparison_setup import Compared, from_graphs
from onnxsmith.comparison.outputs.sides import SideSource
from onnxsmith.runtimes.torch_eager import TorchProgram, in_single
from onnxsmith.verification import single_precision


def single(read: Compared) -> Compared | None:
    """Returns the comparison of float32 copies. None if there are none, if the user chose a tolerance, or if both sides
    are one file, because then the runtimes' kernels of the narrow dtype are compared.

    Raises:
        OnnxsmithError: `runtime/failed` if a torch module cannot be copied.
    """
    if read.tolerance is not None or read.a.source == read.b.source:
        return None
    a, b = _copy(read.a), _copy(read.b)
    if a is None or b is None:
        return None
    tolerances, generator, coarser, few_steps = from_graphs(a, b)
    plan = replace(read.plan, generator=generator, given=single_precision.feeds_of(read.plan.given))
    return replace(
        read, a=a, b=b, plan=plan, tolerances=tolerances, coarser=coarser, few_steps=few_steps, notes=(), clauses=()
    )


def _copy(side: SideSource) -> SideSource | None:
    if isinstance(side.source, TorchProgram):
        program = in_single(side.source)
        program = replace(program, signature=single_precision.signature_of(program.signature))
        example = single_precision.values_of(side.example)
        return replace(side, source=program, interface=program.signature, example=example)
    copy = None if side.model is None else single_precision.single(side.model)
    if copy is None:
        return None
    return replace(side, source=copy, model=copy, interface=single_precision.signature_of(side.interface))

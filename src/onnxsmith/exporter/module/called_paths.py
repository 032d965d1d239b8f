"""Runs a module on the code path of a call and on the code path of a trace.

In evaluation mode and without gradients, torch computes attention by fused kernels that no trace can follow, and code
may ask whether it is being exported. Running the module both ways finds the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np
from torch.nn.attention import SDPBackend, sdpa_kernel

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.seams.torch.flags import exporting, without_kernels
from onnxsmith.base.words import several
from onnxsmith.exporter.rewrites.attention_modules import NestedEncoder
from onnxsmith.runtimes.base import Feeds, Outputs, Session, Value
from onnxsmith.runtimes.torch_eager import TorchEager, TorchProgram


def as_traced(program: TorchProgram) -> TorchProgram:
    """Returns the program on the code path of a trace: formulas in place of fused kernels, and the branches for
    `is_compiling()` and `is_exporting()`."""

    @contextmanager
    def around() -> Iterator[None]:
        with ExitStack() as stack:
            NestedEncoder().apply(program.module, stack)  # a trace applies this rewrite too
            stack.enter_context(without_kernels())
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
            stack.enter_context(exporting(True))
            yield

    return replace(program, around=around)


class Reference(Session):
    """The module as called: the reference that a graph is compared with.

    Refuses inputs for which a fused kernel gives NaN and the formula gives numbers, for example a query whose keys are
    all masked: torch does not define the result, and its kernels differ.
    """

    def __init__(self, program: TorchProgram) -> None:
        self.program = program
        self._called, self._traced = TorchEager().prepare(program), TorchEager().prepare(as_traced(program))
        self.signature, self.provider = self._called.signature, self._called.provider
        self._undefined = 0

    @property
    def untried(self) -> tuple[str, ...]:
        """Returns the part of the headline about the refused inputs."""
        count = self._undefined
        there = "it" if count == 1 else "them"
        said = f"{several(count, 'input')} left out: on {there}, only torch's fused kernels return NaN"
        return (said,) if count else ()

    def run(self, feeds: Feeds) -> Outputs:
        outputs = self._called.run(feeds)
        if any(map(_nans, outputs.values())) and self._is_defined_otherwise(feeds, outputs):
            self._undefined += 1
            raise OnnxsmithError(_UNDEFINED)
        return outputs

    def _is_defined_otherwise(self, feeds: Feeds, outputs: Outputs) -> bool:
        try:
            formula = self._traced.run(feeds)
        except OnnxsmithError:
            return False
        return any(_nans(value) > _nans(formula[name]) for name, value in outputs.items())


_UNDEFINED = Problem(
    "export/other-path",
    "for this input the module returns NaN when it is called, but numbers when it is traced",
    why="in a call, torch computes attention with a fused kernel, which returns NaN for a query whose keys are all "
    "masked and treats a float mask as boolean; a trace records the plain formula of attention",
    fix="use boolean masks that leave each query at least one key, or accept the results of the formula with "
    "--as-traced",
)


def _nans(value: Value) -> int:
    array = np.asarray(value) if value is not None and not isinstance(value, list) else np.zeros(0)
    return int(np.isnan(array).sum()) if array.dtype.kind in "fcV" else 0


def located(found: Problem, program: TorchProgram, feeds: Feeds) -> Problem:
    """Adds to the problem the line at which the two code paths diverge on this input."""
    from onnxsmith.exporter.module.first_difference import find

    return replace(found, where=find(program, as_traced(program), feeds).line)


def explained(
    program: TorchProgram, feeds: Feeds, found: Verification, compare: Callable[[TorchProgram], Verification]
) -> Problem | None:
    """Returns the problem if two code paths cause a difference: the graph differs from the module as called, but not
    from the module as traced. `compare` compares the graph with a program. None for any other difference."""
    bad = next((output for output in found.outputs if not output.equal), None)
    if bad is None or not found.differs:
        return None
    try:
        if compare(as_traced(program)).differs:
            return None
        return other_path(program, feeds, f"output {bad.name!r} differs, {bad.reason}")
    except OnnxsmithError:
        return None


def other_path(program: TorchProgram, feeds: Feeds, differs: str) -> Problem:
    """Returns the problem of a graph that agrees with the module as traced, but not as called, on this input. `differs`
    names the output and the difference."""
    from onnxsmith.exporter.module.first_difference import find

    parting = find(program, as_traced(program), feeds)
    kernel = parting.is_torchs
    return Problem(
        "export/other-path",
        f"{parting.module} returns other results when it is called than when it is traced: {differs}",
        where=parting.line,
        why="in evaluation mode and without gradients, torch computes attention with a fused kernel, but a trace "
        "records the plain formula of attention; for this input, kernel and formula give different results (at "
        "masked positions, or because the kernel treats a float mask as boolean)"
        if kernel
        else (
            "after this line, the code that the module runs during an export or a compilation differs from the "
            "code that it runs in a call"
        ),
        fix="use boolean masks that leave each query at least one key, or accept the formula's results with --as-traced"
        if kernel
        else "make both code paths compute the same results, or accept the results of the traced code with --as-traced",
    )

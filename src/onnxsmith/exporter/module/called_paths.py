"""The paths of computation that a module takes when it is called, and when it is traced.

Called in evaluation mode and without gradients, torch computes attention by fused kernels that no trace can follow, and
code may ask whether it is being exported. What differs is found by running the module both ways.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np
from torch.nn.attention import SDPBackend, sdpa_kernel

from onnxsmith.exporter.module.first_difference import find
from onnxsmith.exporter.rewrites.nested_encoder import NestedEncoder
from onnxsmith.problem import OnnxsmithError, Problem
from onnxsmith.runtimes.base import Feeds, Outputs, Session, Value
from onnxsmith.runtimes.torch_eager import TorchEager, TorchProgram
from onnxsmith.seams.torch.flags import exporting, without_kernels


def as_traced(program: TorchProgram) -> TorchProgram:
    """The program in the path that it takes while it is traced: formulas, and what code does that asks whether it is
    being compiled or exported."""

    @contextmanager
    def around() -> Iterator[None]:
        with ExitStack() as stack:
            NestedEncoder().apply(program.module, stack)  # what a trace computes there, too
            stack.enter_context(without_kernels())
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
            stack.enter_context(exporting(True))
            yield

    return replace(program, around=around)


class Reference(Session):
    """The module as it is called, as the side that a graph is held to.

    It refuses inputs on which a fused kernel gives NaN where the formula gives numbers, as for a query that may attend
    to nothing: what torch computes there is not defined, and differs from kernel to kernel.
    """

    def __init__(self, program: TorchProgram) -> None:
        self._called, self._traced = TorchEager().prepare(program), TorchEager().prepare(as_traced(program))
        self.signature, self.provider = self._called.signature, self._called.provider
        self._undefined = 0

    @property
    def untried(self) -> tuple[str, ...]:
        """What a headline has to say of the inputs that it refused."""
        count = self._undefined
        said = f"{count} input{'s' if count > 1 else ''} on which only torch's fused kernels give NaN left out"
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
    "the module gives NaN on this input when it is called, and numbers when it is traced",
    why="called, it computes by a fused kernel of torch, which gives NaN for a query that may attend to nothing and "
    "takes a float mask for a boolean one; traced, it computes by the formula",
    fix="give every query something to attend to, and boolean masks; or accept the formula with --as-traced",
)


def _nans(value: Value) -> int:
    array = np.asarray(value) if value is not None and not isinstance(value, list) else np.zeros(0)
    return int(np.isnan(array).sum()) if array.dtype.kind in "fcV" else 0


def located(found: Problem, program: TorchProgram, feeds: Feeds) -> Problem:
    """The problem with the line at which the two paths part on this input."""
    return replace(found, where=find(program, as_traced(program), feeds).line)


def other_path(program: TorchProgram, feeds: Feeds, differs: str) -> Problem:
    """The problem of a graph that agrees with the module in the path that a trace takes, and not with the module as it
    is called, on this input. `differs` says in which output, and by how much."""
    parting = find(program, as_traced(program), feeds)
    kernel = parting.is_torchs
    return Problem(
        "export/other-path",
        f"{parting.module} computes something else when it is called than when it is traced: {differs}",
        where=parting.line,
        why="called in evaluation mode without gradients, it is computed by a fused kernel of torch; the formula that "
        "is traced in its place gives other results here (at masked places, or for a float mask, which the kernel "
        "takes for a boolean one)"
        if kernel
        else "from this line on other code runs while the module is exported or compiled than when it is called",
        fix="give what the two compute alike (boolean masks that leave every query something to attend to), or "
        "accept the formula's results with --as-traced"
        if kernel
        else "let both ways compute the same, or accept what is traced with --as-traced",
    )

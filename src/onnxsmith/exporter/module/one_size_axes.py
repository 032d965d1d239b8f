"""Names the dynamic axes that a verification could show at one size only, and the line of forward that refuses others.

The file then does what the module does at each size that the module takes, so the export succeeds. But the user asked
for a dynamic axis, and nothing shows that the axis is one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.exporter.factory import model_line
from onnxsmith.exporter.inputs.module_program import Built
from onnxsmith.exporter.module.dynamic_axes import STEPS, Axis, longer
from onnxsmith.graph.structure.signature import is_symbol
from onnxsmith.runtimes.torch_eager import TorchEager


def problems(built: Built, part: Verification, limited: Collection[str] = ()) -> Iterator[Problem]:
    """Yields a problem for each dynamic axis of the inputs whose runs all had one size. Leaves out the axes whose sizes
    the user or the file limits: those in `limited`, and those with a range."""
    for symbol in built.program.signature.symbols() if part.verified else ():
        sizes = {size for size in (part.sizes or {}).get(symbol, ()) if size}
        if len(sizes) == 1 and is_symbol(symbol) and symbol not in {*limited, *part.ranges}:
            yield _problem(built, symbol, sizes.pop())


def _problem(built: Built, symbol: str, size: int) -> Problem:
    axes = [
        (port.name, axis)
        for port in built.program.signature.inputs
        for axis, dim in enumerate(port.shape or ())
        if dim == symbol
    ]
    static = f"leave {', '.join(f'{name}:{axis}' for name, axis in axes)} out of --dynamic"
    refusal = _refusal(built, axes)
    if refusal is None:
        return Problem(
            "export/one-size",
            f"{symbol} was compared at size {size} only",
            where=type(built.program.module).__qualname__,
            why="the module accepts longer inputs, but refused every generated input of another size",
            fix=f"{static}, or make forward accept inputs with any values",
        )
    other, error = refusal
    return Problem(
        "export/one-size",
        f"the module itself accepts only {size} for {symbol}",
        where=model_line(error.__cause__ or error) or type(built.program.module).__qualname__,
        why=f"at {other}: {error.problem.why or error.problem.what}",
        fix=f"change the line so that it uses the size of the input, and export again; or {static}",
    )


def _refusal(built: Built, axes: Sequence[Axis]) -> tuple[int, OnnxsmithError] | None:
    """Returns a longer size with the error that the module raises there; None if the module takes a longer size."""
    name, axis = axes[0]
    first: tuple[int, OnnxsmithError] | None = None
    with TorchEager().prepare(built.program) as session:
        for step in STEPS:
            try:
                session.run(longer(built.example, axes, step))
            except OnnxsmithError as error:
                first = first or (built.example[name].shape[axis] + step, error)
            else:
                return None
    return first

"""Captures a program by one strategy, and renames the graph's inputs, outputs and dimensions as the user calls them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.exporter.factory import model_line
from onnxsmith.exporter.graph import stored_integers, zero_reshapes
from onnxsmith.exporter.graph.padded_pools import keep_apart
from onnxsmith.exporter.strategies.base import Strategy
from onnxsmith.exporter.tracing.frozen_axes import FrozenAxisError
from onnxsmith.exporter.tracing.size_branches import SizeBranch
from onnxsmith.exporter.translating.register import Registration
from onnxsmith.graph.structure import allowed_dtypes, provenance, versions, walk
from onnxsmith.graph.structure.signature import Signature, is_symbol, signature
from onnxsmith.graph.surgery import names, opset_conversion
from onnxsmith.runtimes.torch_eager import TorchEager, TorchProgram
from onnxsmith.verification.free_values import Free
from onnxsmith.verification.inputs.size_proposals import of_feed

Arrays = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Graph:
    """A captured graph with the user's names.

    `sizes` are the sizes of the example for the capture; `fixed`, `numbers`, `branches`, `counted`, `bounds` and
    `registered` are as in `strategies/base.py`. `rewritten` names the nodes that changed with the requested opset.
    """

    model: ir.Model
    how: str
    opset_how: str
    sizes: dict[str, int]
    notes: tuple[str, ...]
    fixed: tuple[str, ...]
    numbers: Mapping[str, frozenset[int]]
    branches: Sequence[SizeBranch] = ()
    counted: Sequence[str] = ()
    bounds: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    rewritten: Sequence[str] = ()
    free: Sequence[str] = ()
    """Says which outputs are free by definition, as `--free` does."""
    registered: Sequence[Registration] = ()


def capture(strategy: Strategy, program: TorchProgram, example: Arrays, asked_opset: int | None) -> Graph:
    """Captures the program by one strategy.

    Raises:
        OnnxsmithError: the strategy's problem; `export/frozen-axis` if an axis requested as dynamic is a constant in
            the graph; `export/opset` if the model cannot be converted to the opset.
    """
    roomy, how_grown = grown(program, example)
    captured = strategy.capture(program, roomy, asked_opset)
    model = captured.model
    _check_ports(model, program.signature)
    symbols = _symbols(model, program.signature)
    names.rename_ports(
        model,
        [port.name for port in program.signature.inputs],
        [port.name for port in program.signature.outputs],
    )
    names.rename_symbols(model, symbols)
    provenance.shorten(model)
    emitted = opset_conversion.of(model)
    rewritten: list[str] = []
    emptied: tuple[str, ...] = ()
    if asked_opset is not None:
        emptied = zero_reshapes.without_allowzero(model) if asked_opset < zero_reshapes.SINCE <= emitted else ()
        converted = opset_conversion.convert(model, asked_opset, asked_by="--opset {opset}")
        rewritten, model = opset_conversion.rewritten(model, converted), converted
    _check_dtypes(model)
    keep_apart(model)
    stored_integers.store(model)
    versions.drop_unused_imports(model)
    model.ir_version = versions.least_ir(model)  # exporters write the newest, which the runtimes of an old opset refuse
    how = f"converted from {emitted}" if opset_conversion.of(model) != emitted else ""
    numbered = {str(number): port.name for number, port in enumerate(program.signature.outputs)}
    bounds = {symbols[name]: limits for name, limits in captured.bounds.items() if name in symbols}
    return Graph(
        model=model,
        how=captured.how,
        opset_how=how,
        sizes=of_feed(program.signature, roomy),
        notes=(*how_grown, *_limits(bounds), *emptied, *captured.notes),
        fixed=captured.fixed,
        numbers={symbols.get(name, name): numbers for name, numbers in captured.numbers.items()},
        branches=captured.branches,
        counted=captured.counted,
        bounds=bounds,
        rewritten=tuple(rewritten),
        registered=captured.registered,
        free=[str(one) for one in Free(captured.free).renamed(numbered).freedoms],
    )


def grown(program: TorchProgram, example: Arrays) -> tuple[dict[str, np.ndarray[Any, Any]], tuple[str, ...]]:
    """Returns an example whose dynamic axes are at least 2 long, and a note if it differs: torch treats sizes 0 and 1
    as constants."""
    now = of_feed(program.signature, example)
    small = {symbol: 2 for symbol, size in now.items() if size < 2}
    if not small:
        return dict(example), ()
    from onnxsmith.exporter.inputs.resized_examples import resized

    made = resized(program, example, {**now, **small})
    with TorchEager().prepare(program) as session:
        try:
            session.run(made)
        except OnnxsmithError as error:
            ports = program.signature.inputs
            named = [(port.name, axis, dim) for port in ports for axis, dim in enumerate(port.shape or ())]
            axes = ", ".join(f"{name}:{axis}" for name, axis, dim in named if dim in small)
            raise problem(
                "export/frozen-axis",
                f"the model does not run with {', '.join(f'{symbol}=2' for symbol in small)}",
                where=model_line(error.__cause__ or error) or ", ".join(f"{port.name} {port}" for port in ports),
                why=error.problem.why,
                fix=f"leave {axes} out of --dynamic; or make forward follow the size: -1 or {ports[0].name}.shape[i] "
                "in place of 1; or give an example of a size, 2 or more, that the model accepts",
            ) from error
    said = ", ".join(f"{symbol} = {now[symbol]}" for symbol in small)
    return made, (f"the example has {said}; torch used 2, because torch treats sizes 0 and 1 as constants",)


def _check_ports(model: ir.Model, expected: Signature) -> None:
    found = signature(model)
    for what, ours, theirs in (("inputs", expected.inputs, found.inputs), ("outputs", expected.outputs, found.outputs)):
        if len(ours) != len(theirs):
            raise problem(
                "export/capture-failed",
                f"the graph has {len(theirs)} {what}, but the model has {len(ours)}",
                why=f"the graph has these: {', '.join(port.name for port in theirs) or 'none'}",
                fix="return only tensors from forward, and pass as tensors only the values that vary between calls",
            )


def _symbols(model: ir.Model, expected: Signature) -> dict[str, str]:
    """Maps each symbol of the graph to the user's name. Raises FrozenAxisError if a dynamic axis is a constant in the
    graph."""
    renamed: dict[str, str] = {}
    for value, port in zip(model.graph.inputs, expected.inputs, strict=True):
        for axis, (got, wanted) in enumerate(zip(value.shape or (), port.shape or (), strict=True)):
            if not isinstance(wanted, str):
                continue
            if isinstance(got, int):
                said = Problem(
                    "export/frozen-axis",
                    f"axis {axis} of input {port.name!r} ({wanted}) became the constant {got}",
                    where=_first_source(model),
                    why="the trace turned the size of this axis into a Python number",
                    fix=f"leave {port.name}:{axis} out of --dynamic, or change the line of forward that makes a "
                    "Python number of this size",
                )
                raise FrozenAxisError(said, [(port.name, axis)])
            if got.value is not None and is_symbol(got.value):
                renamed.setdefault(got.value, wanted)
    return renamed


def _check_dtypes(model: ir.Model) -> None:
    """Refuses bfloat16 operands of operators that do not take them: a runtime would only say that the model is
    invalid."""
    found = next(allowed_dtypes.refused(model, ir.DataType.BFLOAT16), None)
    if found is None:
        return
    operator, version = found.node.op_type, opset_conversion.of(model)
    source = provenance.of(found.node).source
    in_float = "compute this line in float32: x.float() before it, .bfloat16() after it"
    raise problem(
        "export/dtype",
        f"{operator} of opset {version} does not support {found.dtype}",
        where=source or walk.node_label(found.node),
        why=f"{operator} supports {found.dtype} from opset {found.since} on"
        if found.since
        else "no opset defines the operator for this dtype",
        fix=f"--opset {found.since}; or {in_float}" if found.since else in_float,
    )


def _first_source(model: ir.Model) -> str:
    return next((p.source for node in model.graph if (p := provenance.of(node)).source), "")


def _limits(bounds: Mapping[str, tuple[int, int | None]]) -> Iterator[str]:
    for name, (low, high) in bounds.items():
        high = None if high is not None and high >= _UNBOUNDED else high
        if low > 2 or high is not None:
            yield f"torch captured {name} for sizes from {low}{f' to {high}' if high is not None else ''}"


_UNBOUNDED = 2**62
"""Upper bounds from this number on mean no limit: torch uses about the largest int64 for sizes that depend on data."""


def with_shapes(program: TorchProgram, model: ir.Model) -> TorchProgram:
    """Returns the program with the output dtypes and shapes of the graph, for reports."""
    outputs = signature(model).outputs
    return replace(program, signature=replace(program.signature, outputs=outputs))

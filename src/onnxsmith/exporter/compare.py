"""`compare`: do two models compute the same? A side is a file, a graph, a torch module, or a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.clock import Clock, stage
from onnxsmith.comparison.explore import Plan
from onnxsmith.comparison.rounding import Rounding, roundings
from onnxsmith.comparison.verdict import problems, verdict
from onnxsmith.comparison.verify import Side, verify
from onnxsmith.comparison.view import View
from onnxsmith.feeds import given as inputs_given
from onnxsmith.feeds.generate import Feed, Generator
from onnxsmith.model import shapes
from onnxsmith.model.load import TEXT_SUFFIXES, load
from onnxsmith.model.signature import Port, Signature, signature
from onnxsmith.problem import problem
from onnxsmith.report.base import Report
from onnxsmith.report.parts.timing import Timing
from onnxsmith.result import Result
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Program, Runtime
from onnxsmith.sources import factory


def compare(
    reference: Any,
    candidate: Any,
    *,
    inputs: Mapping[str, Any] | Sequence[str] = (),
    sizes: Mapping[str, int] | None = None,
    runtime: str | None = None,
    generate: bool = True,
    seed: int = 0,
) -> Result:
    """Runs two models on the same inputs and compares every output.

    A side is a path (`m.onnx`, or `m.onnx@reference` to choose its runtime, with options if need be:
    `m.onnx@onnxruntime:disable`), a `ModelProto`, an `ir.Model`, a torch
    module with inputs as `(module, args)`, or a target `file.py:factory`. Axes are dynamic where the ONNX side says so.
    `inputs` are arrays by name or texts as the command line takes them; `generate` False compares on these alone.

    Raises:
        OnnxsmithError: what either side raises on loading; `verify/outputs-differ` when the sides do not have the same
            number of inputs or outputs; `verify/…` and `runtime/…` when no comparison could be made.
    """
    with Clock() as clock:
        with stage("load"):
            a, b = _side(reference, runtime), _side(candidate, runtime)
            a, b = _as_programs(a, b)
            notes = _pair(a, b)
            graph = next((side.source for side in (a, b) if not isinstance(side.source, Program)), None)
            tolerances, generator = _from_graph(graph, a)
            values = dict(inputs) if isinstance(inputs, Mapping) else inputs_given.values(inputs, a.interface)
            feeds = (Feed("the given input", {}, values),) if values else ()
            plan = Plan(generator, feeds, known=sizes or {}, start=a.example_sizes, generate=generate, seed=seed)
        with stage("verify"), a.runtime.prepare(a.source) as first, b.runtime.prepare(b.source) as second:
            renamed = _as(second, b.interface, a.interface)
            part = verify(Side(a.label, first), Side(b.label, renamed), plan, tolerances)
    part = replace(part, notes=(*notes, *part.notes))
    report = Report(
        "compare",
        verdict(part),
        (part, Timing(dict(clock.seconds))),
        problems(part),
        headline=f"{a.label} and {b.label}: {'equal' if part.equal else 'DIFFERENT'} on {len(part.runs)} inputs",
    )
    return Result(report)


@dataclass
class _SideSource:
    """One side before it is prepared."""

    label: str
    source: Path | ir.Model | Program
    runtime: Runtime
    interface: Signature
    torch_model: factory.TorchModel | None = None
    example_sizes: dict[str, int] | None = None


def _side(value: Any, runtime: str | None) -> _SideSource:
    if isinstance(value, str) and _is_target(value):
        return _torch_side(factory.load(value), value)
    if factory.is_module(value) or (isinstance(value, tuple) and value and factory.is_module(value[0])):
        return _torch_side(factory.as_model(value, "the given module"), type(value).__qualname__)
    name = runtime or runtimes.default()
    label = "the given model"
    if isinstance(value, str | Path):
        text, at, asked = str(value).rpartition("@")
        if at and not Path(str(value)).exists():
            value, name = Path(text), asked
        label = Path(value).name
        model = load(value)
        source: Path | ir.Model = Path(value) if Path(value).suffix == ".onnx" else model
    else:
        source = model = load(value)
    return _SideSource(f"{label} on {name}", source, runtimes.get(name), signature(model))


def _is_target(text: str) -> bool:
    """Whether it names a factory: `m.onnx@onnxruntime:disable` does not, though it ends like one."""
    on_runtime = Path(text.rpartition("@")[0]).suffix in (".onnx", *TEXT_SUFFIXES)
    return factory.is_target(text) and not on_runtime and not Path(text).exists()


def _torch_side(model: factory.TorchModel, label: str) -> _SideSource:
    empty = Signature((), ())
    return _SideSource(f"{label} in PyTorch, eager", _Later(), runtimes.get("torch-eager"), empty, model)


class _Later(Program):
    """Stands for a torch program until the other side has said which axes are dynamic."""


def _as_programs(a: _SideSource, b: _SideSource) -> tuple[_SideSource, _SideSource]:
    return _as_program(a, b.interface), _as_program(b, a.interface)


def _as_program(side: _SideSource, other: Signature) -> _SideSource:
    """A torch side with the dynamic axes of the other; the module is put in evaluation mode, as for an export."""
    if side.torch_model is None:
        return side
    from onnxsmith.exporter import program as programs

    side.torch_model.module.eval()
    built = programs.build(side.torch_model, {})
    program, example = built.program, built.example
    ports = program.signature.inputs
    if len(ports) == len(other.inputs):
        ports = tuple(_opened(mine, theirs) for mine, theirs in zip(ports, other.inputs, strict=True))
    sizes = {
        dim: size
        for port in ports
        for dim, size in zip(port.shape or (), example[port.name].shape, strict=True)
        if isinstance(dim, str)
    }
    opened = replace(program, signature=Signature(ports, program.signature.outputs))
    return replace(side, source=opened, interface=opened.signature, example_sizes=sizes)


def _opened(mine: Port, theirs: Port) -> Port:
    if mine.shape is None or theirs.shape is None or len(mine.shape) != len(theirs.shape):
        return mine
    dims = (b if isinstance(b, str) else a for a, b in zip(mine.shape, theirs.shape, strict=True))
    return replace(mine, shape=tuple(dims))


def _pair(a: _SideSource, b: _SideSource) -> tuple[str, ...]:
    """Ports pair by name; where the names differ and the numbers do not, by position, which is said."""
    notes = []
    for what in ("inputs", "outputs"):
        ours, theirs = getattr(a.interface, what), getattr(b.interface, what)
        names, others = [port.name for port in ours], [port.name for port in theirs]
        if set(names) == set(others):
            continue
        if len(names) != len(others):
            missing = sorted(set(names) - set(others)) or sorted(set(others) - set(names))
            raise problem(
                "verify/outputs-differ" if what == "outputs" else "verify/interface",
                f"{a.label} has {len(names)} {what}, {b.label} has {len(others)}",
                where=f"only on one side: {', '.join(missing)}",
                fix="compare models that have the same interface; `onnxsmith inspect` shows both",
            )
        pairs = ", ".join(f"{x}={y}" for x, y in zip(names, others, strict=True) if x != y)
        notes.append(f"{what} were paired by position: {pairs}")
    return tuple(notes)


def _from_graph(graph: Path | ir.Model | Program | None, a: _SideSource) -> tuple[Mapping[str, Rounding], Generator]:
    """Tolerances and values come from the ONNX graph; two torch modules have none and must agree to the bit."""
    if graph is None or isinstance(graph, Program):
        return {}, Generator(a.interface)
    inferred, _ = shapes.inferred(load(graph))
    found = Generator.for_model(inferred)
    new = {theirs.name: mine.name for theirs, mine in _paired(found.signature.inputs, a.interface.inputs)}
    by_output = roundings(inferred)
    outs = {theirs.name: mine.name for theirs, mine in _paired(found.signature.outputs, a.interface.outputs)}
    generator = Generator(
        a.interface,
        {new.get(name, name): limits for name, limits in found.allowed.items()},
        {new.get(name, name): texts for name, texts in found.texts.items()},
    )
    return {outs.get(name, name): rounding for name, rounding in by_output.items()}, generator


def _paired(theirs: Sequence[Port], mine: Sequence[Port]) -> list[tuple[Port, Port]]:
    by_name = {port.name: port for port in mine}
    if all(port.name in by_name for port in theirs):
        return [(port, by_name[port.name]) for port in theirs]
    return list(zip(theirs, mine, strict=False))


def _as(session: runtimes.Session, own: Signature, wanted: Signature) -> View:
    """The session under the port names and in the order of the other side."""
    inputs = _paired(own.inputs, wanted.inputs)
    outputs = _paired(own.outputs, wanted.outputs)
    theirs = {mine.name: replace(port, name=mine.name) for port, mine in inputs}
    given = {mine.name: replace(port, name=mine.name) for port, mine in outputs}
    return View(
        session,
        Signature(
            tuple(theirs[port.name] for port in wanted.inputs),
            tuple(given[port.name] for port in wanted.outputs),
        ),
        {mine.name: port.name for port, mine in inputs},
        {port.name: mine.name for port, mine in outputs},
    )

"""Reads the sides of a comparison: a file, a graph, a torch module or a target, each with its runtime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base import folders
from onnxsmith.base.cached_attributes import cached_property
from onnxsmith.base.problem import problem
from onnxsmith.base.seams.base import alone
from onnxsmith.base.words import listed, pasted
from onnxsmith.exporter import factory
from onnxsmith.graph.files.load import TEXT_SUFFIXES, Source, load_sorting
from onnxsmith.graph.files.sharing import share_weights
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.signature import Port, Signature, signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Preparer, Program, Runtime, Session
from onnxsmith.verification.by_layer.replay import Recording, Replaying
from onnxsmith.verification.by_layer.value_bundle import is_bundle
from onnxsmith.verification.inputs.size_proposals import of_feed
from onnxsmith.verification.session_view import View

_SESSIONS = 3
"""Counts the sessions that a side keeps: of the side, of its probe, and of the conditions that decide its branches."""


@dataclass(eq=False)
class SideSource:
    """One side before it is prepared. `example` are a torch module's example inputs by name. `model` is the graph, if
    the side has one."""

    label: str
    source: Path | ir.Model | Program
    runtime: Runtime
    interface: Signature
    options: Options = field(default_factory=Options)
    torch_model: factory.TorchModel | None = None
    exported: Any = None
    """The exported program, if the side is one."""
    example: Mapping[str, Any] = field(default_factory=dict)
    example_sizes: dict[str, int] | None = None
    model: ir.Model | None = None
    named: bool = True
    """Whether the user named the runtime."""
    is_as_in_file: bool = True
    """Whether `model` takes the inputs that the file `source` takes."""
    notes: tuple[str, ...] = ()

    @cached_property
    def inferred(self) -> ir.Model | None:
        """The graph with inferred shapes."""
        return None if self.model is None else inferred(self.model)[0]

    @cached_property
    def preparer(self) -> Preparer:
        """Prepares the side, whole, cut, or with other weights, in one process."""
        return self.runtime.preparer(keep=_SESSIONS)

    def join(self, other: SideSource) -> None:
        """Makes both sides run in one process, if one runtime runs both graphs. A second process would import the
        runtime again."""
        if self.model is not None and other.model is not None and self.runtime.title == other.runtime.title:
            self.__dict__["preparer"] = other.__dict__["preparer"] = self.runtime.preparer(keep=2 * _SESSIONS)

    @property
    def only_input(self) -> Mapping[str, Any] | None:
        """The only input for which a saved bundle has outputs; None for other sides."""
        return self.source.inputs() if isinstance(self.source, Recording) else None

    def prepare(self) -> Session:
        """Returns a session of the side. It ends when two others were prepared. Raises the runtime's errors."""
        return self.preparer.prepare(self.source, self.options, interface=self.interface, read=self.model)

    def with_options(self, options: Options) -> SideSource:
        """Returns the side with other options, in a process of its own. Known shapes are not inferred again."""
        made = replace(self, options=options)
        if "inferred" in self.__dict__:
            made.__dict__["inferred"] = self.__dict__["inferred"]
        return made

    def close(self) -> None:
        """Ends the side's process."""
        self.preparer.close()


def side(
    value: Any, runtime: str | None, stack: ExitStack, *, in_pieces: bool, beside: SideSource | None = None
) -> SideSource:
    """Reads the side that a text, a path, a graph, a module or `(module, args)` stands for.

    `runtime` is for files that name none themselves. If the other side `beside` is the same file, its model is used.
    With `in_pieces`, all pieces of the side refer to one copy of its large weights, which exists until `stack` ends.
    For a torch module, other threads cannot run or trace torch modules until then, because they may use the same
    module.
    """
    if isinstance(value, SideSource):
        return value
    if isinstance(value, str) and _is_target(value):
        stack.enter_context(alone())
        return _torch_side(factory.load(value), value)
    if factory.is_module(value) or (isinstance(value, tuple) and value and factory.is_module(value[0])):
        stack.enter_context(alone())
        made = factory.as_model(value, "the given module")
        return _torch_side(made, getattr(made.module, "original_name", type(made.module).__qualname__))
    if is_program(value):
        stack.enter_context(alone())
        return _program_side(value)
    if isinstance(value, str | Path) and is_bundle(Path(value)):
        recording = Recording(Path(value))
        return SideSource(Path(value).name, recording, Replaying(), recording.signature)
    name, named = runtime or runtimes.default(), runtime is not None
    if isinstance(value, str | Path):
        text, at, asked = str(value).rpartition("@")
        if at and not Path(str(value)).exists():
            value, name, named = Path(text), asked, True
        path, known = Path(value), runtimes.get(name)
        model = beside.model if beside is not None and beside.source == path else None
        notes: tuple[str, ...] = ()
        if model is None:
            model, notes = _read(path, f"{path.name} on {name}", stack if in_pieces else None)
        source = path if path.suffix == ".onnx" and not notes else model
        return SideSource(
            f"{path.name} on {name}", source, known, signature(model), model=model, named=named, notes=notes
        )
    label = f"the given model on {name}"
    model, notes = _loaded(value, label)
    return SideSource(label, model, runtimes.get(name), signature(model), model=model, named=named, notes=notes)


def on_runtime(side: SideSource, name: str) -> SideSource:
    """Returns the side on another runtime, in a separate process. A torch side is unchanged."""
    if side.model is None:
        return side
    return replace(side, label=f"{side.label.rpartition(' on ')[0]} on {name}", runtime=runtimes.get(name))


def _read(path: Path, label: str, stack: ExitStack | None) -> tuple[ir.Model, tuple[str, ...]]:
    """Reads the model in a file, with notes. With a stack, its large weights are mapped from a copy that exists until
    the stack ends."""
    model, notes = _loaded(path, label)
    if stack is not None:
        share_weights(model, stack.enter_context(folders.temporary()) / "weights")
    return model, notes


def _loaded(source: Source, label: str) -> tuple[ir.Model, tuple[str, ...]]:
    model, was_sorted = load_sorting(source)
    return model, (f"{label}: the nodes were not in an order in which they can run, so they were sorted",) * was_sorted


def _is_target(text: str) -> bool:
    """Whether the text names a factory. `m.onnx@onnxruntime:disable` does not, though it ends like one."""
    on_runtime = Path(text.rpartition("@")[0]).suffix in (".onnx", *TEXT_SUFFIXES)
    return factory.is_target(text) and not on_runtime and not Path(text).exists()


def _torch_side(model: factory.TorchModel, label: str) -> SideSource:
    eager = runtimes.get("torch-eager")  # raises, with installation advice, if torch is missing
    from onnxsmith.exporter.tracing.on_cpu import on_cpu

    here = on_cpu(model)
    notes = tuple(f"{label}: {note}" for note in here.notes[len(model.notes) :])
    title = f"{label} in PyTorch, eager"
    return SideSource(title, _Later(), eager, Signature((), ()), torch_model=here, notes=notes)


def is_program(value: Any) -> bool:
    """Whether the value is a program of torch.export or a `.pt2` file. Does not import torch."""
    if isinstance(value, str | Path):
        return Path(value).suffix == ".pt2"
    kind = type(value)
    return kind.__module__ == "torch.export.exported_program" and kind.__name__ == "ExportedProgram"


def _program_side(value: Any) -> SideSource:
    from onnxsmith.exporter.tracing.exported_program import as_model, read
    from onnxsmith.exporter.tracing.on_cpu import program_on_cpu

    label = Path(value).name if isinstance(value, str | Path) else "the given program"
    exported = program_on_cpu(read(Path(value)) if isinstance(value, str | Path) else value)
    return replace(_torch_side(as_model(exported), label), exported=exported)


class _Later(Program):
    """Stands for a torch program until the dynamic axes of the other side are known."""


def as_programs(a: SideSource, b: SideSource) -> tuple[SideSource, SideSource]:
    """Returns both sides, with torch modules as programs that have the dynamic axes of the other side."""
    return _as_program(a, b.interface), _as_program(b, a.interface)


def _as_program(side: SideSource, other: Signature) -> SideSource:
    """Returns a torch side with the dynamic axes of the other side. Sets the module to evaluation mode, as in an
    export."""
    if side.torch_model is None:
        return side
    from onnxsmith.exporter.inputs import module_program as programs
    from onnxsmith.exporter.module.evaluation import set_evaluating

    if side.exported is None:
        set_evaluating(side.torch_model.module)
        built = programs.build(side.torch_model, {})
    else:
        from onnxsmith.exporter.tracing.exported_program import results

        built = programs.build(side.torch_model, {}, result=results(side.exported))
    program, example = built.program, built.example
    ports = program.signature.inputs
    if len(ports) == len(other.inputs):
        ports = tuple(_opened(mine, theirs) for mine, theirs in zip(ports, other.inputs, strict=True))
    opened = replace(program, signature=replace(program.signature, inputs=ports, ranges=other.ranges))
    return replace(
        side,
        source=opened,
        interface=opened.signature,
        example=example,
        example_sizes=of_feed(opened.signature, example),
    )


def _opened(mine: Port, theirs: Port) -> Port:
    if mine.shape is None or theirs.shape is None or len(mine.shape) != len(theirs.shape):
        return mine
    dims = (b if isinstance(b, str) else a for a, b in zip(mine.shape, theirs.shape, strict=True))
    return replace(mine, shape=tuple(dims))


def check_pairing(a: SideSource, b: SideSource) -> tuple[str, ...]:
    """Pairs ports by name, or by position if only the names differ. Returns notes on pairs by position.

    Raises:
        OnnxsmithError: `verify/interface`, `verify/outputs-differ` if one side has more ports.
    """
    notes = []
    for what in ("inputs", "outputs"):
        ours, theirs = getattr(a.interface, what), getattr(b.interface, what)
        names, others = [port.name for port in ours], [port.name for port in theirs]
        if sorted(names) == sorted(others):
            continue
        if len(names) != len(others):
            first, second = Counter(names), Counter(others)
            missing = sorted(first - second) or sorted(second - first)
            raise problem(
                "verify/outputs-differ" if what == "outputs" else "verify/interface",
                f"{a.label} has {len(names)} {what}, {b.label} has {len(others)}",
                where=f"{'more often' if set(names) == set(others) else 'only'} on one side: {', '.join(missing)}",
                fix=_alike(what, *((a, b) if len(names) > len(others) else (b, a)), missing),
            )
        pairs = ", ".join(f"{x}={y}" for x, y in zip(names, others, strict=True) if x != y)
        notes.append(f"{what} were paired by position: {pairs}")
    return tuple(notes)


def other_order(a: SideSource, b: SideSource) -> tuple[str, ...]:
    """Returns clauses on inputs and outputs that two graphs have in different orders. A program that takes them by
    position then gets other results."""
    told = []
    for what in ("inputs", "outputs") if a.model is not None and b.model is not None else ():
        names, others = ([port.name for port in getattr(side.interface, what)] for side in (a, b))
        moved = [at for at, (one, other) in enumerate(zip(names, others, strict=False)) if one != other]
        if moved and sorted(names) == sorted(others):
            first, second = listed([names[moved[0]]]), listed([others[moved[0]]])
            told.append(f"the {what} are in another order: {what[:-1]} {moved[0] + 1} is {second}, not {first}")
    return tuple(told)


def _alike(what: str, more: SideSource, fewer: SideSource, missing: Sequence[str]) -> str:
    """Returns how two models get as many inputs or outputs, of which one has `more`."""
    files = [pasted(side.source) if isinstance(side.source, Path) else "" for side in (more, fewer)]
    names = [port.name for port in more.interface.outputs]
    kept = {port.name for port in fewer.interface.outputs}
    if what == "outputs" and files[0] and set(missing) < set(names) and kept.isdisjoint(missing):
        dropped = " ".join(f"--drop-output {pasted(name)}" for name in missing)
        return (
            f"drop the outputs that only one model has: `onnxsmith simplify {files[0]} {dropped} -o "
            "part.onnx`, and compare "
            "part.onnx"
        )
    shown = " and ".join(f"`onnxsmith inspect {file}`" for file in files if file)
    return f"compare models that have the same {what}" + (f"; {shown} shows them" if shown else "")


def paired(theirs: Sequence[Port], mine: Sequence[Port]) -> list[tuple[Port, Port]]:
    """Returns pairs of ports of two signatures: by name if all of `theirs` exist in `mine`, else by position."""
    by_name = {port.name: port for port in mine}
    if all(port.name in by_name for port in theirs):
        return [(port, by_name[port.name]) for port in theirs]
    return list(zip(theirs, mine, strict=False))


def renamed(own: Signature, wanted: Signature) -> dict[str, str]:
    """Maps the inputs and outputs of `wanted` to their names in `own`."""
    pairs = [*paired(own.inputs, wanted.inputs), *paired(own.outputs, wanted.outputs)]
    return {mine.name: port.name for port, mine in pairs}


def under(session: Session, own: Signature, wanted: Signature) -> View:
    """Returns the session with the port names and the order of the other side."""
    inputs = paired(own.inputs, wanted.inputs)
    outputs = paired(own.outputs, wanted.outputs)
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

"""`diagnose`: lists everything that prevents a verified export of a torch module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.capture import Axis, Diagnosis, Finding, Weight
from onnxsmith.base.report.parts.written_files import Timing
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.words import several
from onnxsmith.exporter import factory
from onnxsmith.exporter.export_settings import Settings
from onnxsmith.exporter.inputs.dynamic_axes_syntax import Dynamic
from onnxsmith.runtimes import base as runtimes

if TYPE_CHECKING:
    from onnxsmith.exporter.probes.base import Case
    from onnxsmith.exporter.tracing.trace_diagnosis import Traced

_ORDER = list(Weight)


def diagnose(
    model: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    inputs: Sequence[str] = (),
    dynamic: Dynamic = None,
    opset: int | None = None,
) -> Result:
    """Lists everything that prevents a verified export of a torch module. Writes no file.

    The arguments are those of `export`. `diagnose` reads the source of `forward`, runs the module once, traces it with
    all dynamic axes and with each alone, and tries every strategy. The report's part `Diagnosis` holds each finding
    with the user's line, its effect on an export, and code to paste if a fix could be written.

    The verdict is `done` if the module can be exported unchanged, perhaps with notes, and `different` otherwise.

    Raises:
        OnnxsmithError: `export/target-…` and `input/…` if there is no module or no example to diagnose.
    """
    runtimes.get("torch-eager")  # raises a problem that says what to install if torch is missing
    from onnxsmith.exporter.export_run import Job
    from onnxsmith.exporter.inputs.examples import with_inputs
    from onnxsmith.exporter.module.evaluation import evaluating
    from onnxsmith.exporter.tracing.on_cpu import on_cpu
    from onnxsmith.runtimes.torch_eager import Memory

    with Clock() as clock:
        with stage("load"):
            target, torch_model = factory.resolve(model, args, kwargs)
            torch_model = on_cpu(with_inputs(torch_model, inputs))
        with evaluating(torch_model.module) as was_training:
            memory = Memory(torch_model.module)
            try:
                case = _case(Job(target, torch_model, Settings(dynamic, opset), was_training))
                _ask(case)
                axes = tuple(_axes(case)) if case.built is not None else ()
            finally:
                memory.restore()
    findings = tuple(sorted(_once(case.found), key=lambda one: _ORDER.index(one.weight)))
    serious = [one for one in findings if one.weight is not Weight.NOTE]
    part = Diagnosis(target, findings, axes, tuple(_ways(case)))
    count = len(findings) - len(serious)
    notes = f", {several(count, 'note')}" if count else ""
    gaps = "".join(f"; {gap}" for gap in case.gaps)
    return Result(
        Report(
            command="diagnose",
            verdict=Verdict.DIFFERENT if serious else Verdict.DONE,
            headline=f"{target}: {_conclusion(len(serious), case.gaps)}{notes}{gaps}",
            parts=(part, Timing(clock.passed())),
            problems=tuple(one.problem for one in findings),
        )
    )


def _conclusion(count: int, gaps: Sequence[str]) -> str:
    if count:
        return several(count, "problem")
    return "the model can be exported" if gaps else "nothing prevents an export"


def _case(job: Any) -> Case:
    from onnxsmith.exporter.inputs import module_program as programs
    from onnxsmith.exporter.module.dynamic_axes import asked
    from onnxsmith.exporter.module.run_observation import observe
    from onnxsmith.exporter.probes.base import Case
    from onnxsmith.exporter.tracing.frozen_code import suspicions

    built: programs.Built | None = None
    refused: Problem | None = None
    with stage("run eagerly"):
        seen = observe(job.torch_model)
        try:
            built = programs.build(job.torch_model, {})
            axes = asked(job.settings.dynamic, job.torch_model, built).axes
            built = programs.build(job.torch_model, axes) if axes else built
        except OnnxsmithError as error:
            refused = error.problem
    with stage("read the source"):
        found = suspicions(job.torch_model, built, seen)
    return Case(job.torch_model, job, seen, found, built, refused)


def _ask(case: Case) -> None:
    from onnxsmith.base import rooms
    from onnxsmith.exporter.probes.base import Probe

    probes = sorted(rooms.members("onnxsmith.exporter.probes", Probe).values(), key=lambda one: one.rank)
    with stage("capture"):
        for probe in probes:
            case.found += list(probe.look(case))


def _once(found: Sequence[Finding]) -> list[Finding]:
    """Keeps one finding for each problem and line."""
    kept: dict[tuple[str, str, str], Finding] = {}
    for one in found:
        what = "" if one.problem.where else one.problem.what
        kept.setdefault((one.problem.id, one.problem.where, what), one)
    return list(kept.values())


def _axes(case: Case) -> list[Axis]:
    """Lists the outcome for each dynamic axis, with all axes dynamic and with this axis alone.

    States an outcome only if a capture reached the end of forward, or if a line had fixed the axis before."""
    assert case.built is not None
    places = [
        (port.name, axis, dim)
        for port in case.built.program.signature.inputs
        for axis, dim in enumerate(port.shape or ())
        if isinstance(dim, str)
    ]
    together = {
        (port, axis): _DYNAMIC if dim in case.moving else _became(case.traced, port, axis) for port, axis, dim in places
    }
    several = len(case.symbols) > 1 and set(together.values()) != {_DYNAMIC}
    alone = {name: case.trace(frozenset({name})) for name in case.symbols} if several else {}
    return [
        Axis(
            port,
            axis,
            dim,
            together[port, axis],
            _became(alone[dim], port, axis) if alone else together[port, axis],
        )
        for port, axis, dim in places
    ]


_DYNAMIC = "stays dynamic"


def _became(traced: Traced, port: str, axis: int) -> str:
    """Says what a trace shows about an axis that was dynamic in it."""
    frozen = next((one for one in traced.frozen if (one.port, one.axis) == (port, axis)), None)
    if frozen is not None:
        return f"fixed to {frozen.value} at {frozen.line or 'a line of a package'}"
    if traced.reached_end:
        return _DYNAMIC
    return f"not known: the trace stopped{f' at {traced.where}' if traced.where else ''}"


def _ways(case: Case) -> list[tuple[str, str]]:
    return [(way.strategy.title, "agrees with the module" if way.agrees else way.failure) for way in case.ways]

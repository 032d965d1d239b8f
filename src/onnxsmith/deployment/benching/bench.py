"""Runs the command `bench`: measures models on runtimes, and says which model is faster if the difference exceeds the
noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnxsmith.base import folders
from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.limits import refuse_missing
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.base import Part
from onnxsmith.base.report.parts.measurements import Throughput
from onnxsmith.base.report.parts.written_files import written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.words import pasted
from onnxsmith.comparison.outputs import unlike_inputs
from onnxsmith.deployment.benching import baseline
from onnxsmith.deployment.benching import subjects as subject_names
from onnxsmith.deployment.benching.bench_options import SECONDS, Request
from onnxsmith.deployment.benching.machine_load import Watch
from onnxsmith.deployment.benching.measurement_statistics import FLOOR
from onnxsmith.deployment.benching.profiling import profiled, refuse_unreadable
from onnxsmith.deployment.benching.rounds import Pace, measure
from onnxsmith.deployment.benching.subject_preparation import Check, Chosen, Ready, checked, chosen, ready
from onnxsmith.deployment.benching.subjects import Failed
from onnxsmith.deployment.benching.summary import Bench, report
from onnxsmith.deployment.benching.sweep import batch_dimension, swept
from onnxsmith.exporter import factory
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.files.save import save_for_now
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.structure.dim_ranges import Sizes
from onnxsmith.graph.structure.signature import Port
from onnxsmith.verification.inputs import user_inputs

_ONLY_SOME = {"bench/no-profile", "bench/no-threads"}
"""Names the problems that are no failure if other runtimes do not have them: some runtimes have no profiler, or no
threads."""

_PATIENCE = 12.0
"""Sets how many times longer a measurement may take whose figures are kept or compared. A choice: figures of too few
rounds are of no use."""


@identifies("models")
def bench(
    *models: Any,
    subjects: Sequence[str] = (),
    inputs: Mapping[str, Any] | Sequence[str] = (),
    sizes: Sizes | None = None,
    batches: Sequence[int] = (),
    batch_name: str = "",
    threads: Sequence[int] = (),
    profile: bool = False,
    save: str | Path | None = None,
    against: str | Path | None = None,
    allow: float = 0.05,
    any_machine: bool = False,
    seconds: float = SECONDS,
    tolerance: float | None = None,
    seed: int = 0,
) -> Result:
    """Measures how long models take to run and to load, and how much memory they need.

    A model is a path (`m.onnx`, or `m.onnx@openvino` for one runtime), a `ModelProto`, an `ir.Model`, a torch model as
    `file.py:factory` or `.pt2` file, or a torch module as `(module, args)`, which is measured in this process. Each
    model is measured on each of the `subjects` that runs its kind: names of runtimes with options
    (`onnxruntime:basic:threads=1`), `torch`, `torch-compile`. `inputs` are one set of arrays by name, or texts as on
    the command line; missing inputs are generated, with symbolic dimensions at `sizes`.

    All subjects together are measured in turns for `seconds`, warm-ups included, or less if the intervals become narrow
    earlier. With the start of processes, which the table of times names apart, this takes about `seconds` for each
    subject. Every subject is compared with the first: by its outputs on the measured input, with
    `tolerance` as in `compare`, and by the ratio of the times. No subject is called faster if the interval of the ratio
    contains 1, or if the outputs differ. Throughput is measured at each of the `batches` (sizes of the dimension
    `batch_name`, by default the first symbolic first axis) and numbers of `threads`.

    With `profile`, the report says how the time of a run divides into operators, torch modules and kernels, for
    subjects on onnxruntime. `save` writes the figures to a JSON file. `against` compares with such a file: the verdict
    is `different` if a subject is slower by more than `allow` (0.05 is 5%) beyond the noise, and `cannot-tell` if
    machine, versions or inputs have changed, unless `any_machine`. Both need eight rounds, and take up to twelve times
    `seconds` for them if processes start slowly.

    If a subject fails, the other subjects are measured, and the verdict is `failed`.

    Raises:
        OnnxsmithError: the errors of loading a model; `bench/…` if a request does not fit the models; the problem of
            the first subject if none can be measured.
    """
    request = Request(
        subjects=subjects,
        inputs=inputs,
        sizes=user_inputs.sizes(sizes),
        batches=batches,
        batch_name=batch_name,
        threads=threads,
        profile=profile,
        seconds=seconds,
        tolerance=tolerance,
        seed=seed,
    )
    _refuse(models, inputs, save, against)
    named = [str(one) if isinstance(one, str | Path) else "m.onnx" for one in models]
    saved = baseline.read(Path(against), request.command(*named, subjects=True)) if against is not None else None
    with Clock() as clock, ExitStack() as stack:
        with stage("load"):
            setup = _setup(models, request, stack)
        is_kept = save is not None or saved is not None
        done = _measured(setup, request, Pace(seconds, patience=_PATIENCE if is_kept else 1.0))
        parts = list(_more(setup, done, request))
        ended: baseline.Ended = (Verdict.DONE, ())
        if saved is not None and done.measured.tracks:
            part, ended = baseline.against(saved, done, request, allow=allow, any_machine=any_machine)
            parts.append(part)
        if save is not None and done.measured.tracks:
            baseline.save(Path(save), done)
            parts.append(written([Path(save)]))
        return Result(report(done, tuple(parts), clock, ended))


@dataclass(frozen=True)
class Setup:
    """Holds the subjects in the order of the request, the lead among them, the input, and the batch dimension."""

    order: list[Ready]
    lead: Ready
    given: Chosen
    dimension: str
    failed: list[Failed]


def _refuse(models: Sequence[Any], inputs: Any, save: str | Path | None, against: str | Path | None) -> None:
    """Raises for a request that cannot be carried out. Called before anything is measured."""
    if not models:
        raise problem("bench/no-model", "no model was given", fix="`onnxsmith bench m.onnx`")
    if save is None:
        return
    refuse_loss([save], [*models, against, inputs])
    refuse_missing(Path(save).absolute().parent)


def _setup(models: Sequence[Any], request: Request, stack: ExitStack) -> Setup:
    found, failed = subject_names.subjects([_on_disk(one, stack) for one in models], request.subjects)
    runnable, unfit = ready(found, stack) if found else ([], [])
    failed += unfit
    if not runnable:
        raise OnnxsmithError(failed[0].problem)
    if request.profile and not any(one.subject.runtime.profiles for one in runnable):
        refuse_unreadable(runnable[0])  # before anything is measured
    lead = runnable[0]
    for one in list(runnable[1:]):
        are_graphs = lead.side.model is not None and one.side.model is not None  # a module may take any shape
        unlike = unlike_inputs.first_unlike(lead.side.interface, one.side.interface) if are_graphs else None
        if unlike is not None and unlike[0].dtype == unlike[1].dtype:
            failed.append(Failed(one.subject.label, _other_inputs(lead, one, unlike)))
            runnable.remove(one)
    dimension = batch_dimension(lead, request.batch_name) if request.batches else ""
    base = {dimension: request.batches[0], **request.sizes} if dimension else request.sizes
    given = chosen(lead, request.inputs, base, request.seed)
    return Setup(sorted(runnable, key=lambda one: found.index(one.subject)), lead, given, dimension, failed)


def _other_inputs(lead: Ready, one: Ready, unlike: tuple[Port, Port]) -> Problem:
    """Makes the problem of a model that does not take the inputs on which the first is measured."""
    commands = [
        f"`onnxsmith bench {pasted(ready.subject.target)}`"
        for ready in (lead, one)
        if isinstance(ready.subject.target, str | Path)
    ]
    first, own = unlike
    return Problem(
        "run/wrong-shape",
        f"its inputs differ from the inputs of {lead.subject.model}",
        where=f"input {own.name!r}",
        why=f"models have to be compared on the same inputs, but {lead.subject.model} has {first.name} {first}, "
        f"this model has {own.name} {own}",
        fix=f"measure each model in its own run: {' and '.join(commands)}"
        if len(commands) > 1
        else "measure each by itself",
    )


def _measured(setup: Setup, request: Request, pace: Pace) -> Bench:
    """Compares the outputs, ends the processes of this comparison, and measures the subjects."""
    with stage("check"):
        checks = _checks(setup.order, setup.given, request.tolerance)
    watch = Watch()
    with stage("measure"):
        values = setup.given.feed.values
        measured = measure(setup.order, values, pace=pace, seed=request.seed, floor=FLOOR)
    if not measured.tracks and measured.failed:
        raise OnnxsmithError(measured.failed[0].problem)
    seen = watch.seen()
    if measured.tracks and measured.tracks[0].ready is not setup.order[0]:  # the first failed: there is a new first
        with stage("check"):
            checks = _checks([track.ready for track in measured.tracks], setup.given, request.tolerance)
    return Bench(measured, setup.given, checks, [*setup.failed, *measured.failed], seen)


def _checks(order: Sequence[Ready], given: Chosen, tolerance: float | None) -> dict[int, Check]:
    """Compares the outputs of each subject with those of the first subject, then ends the processes of these
    comparisons."""
    first = order[0]
    feed = replace(given.feed, values=first.own(given.feed.values))
    found = {id(one): checked(first, one, feed, tolerance) for one in order[1:]}
    for one in order:
        one.side.close()
    return found


def _more(setup: Setup, done: Bench, request: Request) -> Iterator[Part]:
    """Yields throughput and profiles, as requested. Adds subjects that fail to the failures."""
    if request.batches or request.threads:
        others = _other_batches(setup, request)
        alive = [track.ready for track in done.measured.tracks]
        with stage("sweep"):
            points, lost = swept(alive, others, request.threads, request.seconds / 2, request.seed)
        yield Throughput(setup.dimension, tuple(points), tuple((one.label, one.reason) for one in lost))
        _record(lost, done, enough=bool(points))
    if request.profile:
        with stage("profile"):
            yield from _profiles(done, request.seconds / 4)


def _record(lost: Sequence[Failed], done: Bench, *, enough: bool) -> None:
    """Adds problems of subjects that were not measured to the failures. If only the runtime of such a subject lacks the
    ability, and other runtimes have done it (`enough`), the problems become notes instead."""
    for one in lost:
        if enough and one.problem.id in _ONLY_SOME:
            done.notes.append(f"{one.label}: {one.problem.what}")
        else:
            done.failed.append(one)


def _profiles(done: Bench, seconds: float) -> Iterator[Part]:
    """Yields the profile of each subject that has one."""
    found, lost = [], []
    for track in done.measured.tracks:
        usual = track.medians[-1]
        try:
            found.append(profiled(track.ready, done.given.feed.values, seconds=seconds, usual=usual))
        except OnnxsmithError as error:
            lost.append(Failed.of(f"profile of {track.ready.subject.label}", error))
    _record(lost, done, enough=bool(found))
    yield from found


def _other_batches(setup: Setup, request: Request) -> dict[int, Chosen]:
    """Returns the inputs at each batch size; without batches, the inputs of the benchmark.

    Raises:
        OnnxsmithError: `bench/no-batch` if the inputs are given, because given inputs have one batch size.
    """
    if not request.batches:
        return {1: setup.given}
    if request.inputs:
        raise problem(
            "bench/no-batch",
            "the given inputs have only one batch size",
            fix="leave --input out, so that inputs are generated for each batch size",
        )
    sizes = setup.given.sizes
    return {
        batch: chosen(setup.lead, (), {**sizes, setup.dimension: batch}, request.seed, check=False)
        for batch in request.batches
    }


def _on_disk(model: Any, stack: ExitStack) -> Any:
    """Returns the model. Writes a graph in memory to a file, so that another process can read it."""
    if isinstance(model, str | Path) or factory.is_module(model) or isinstance(model, tuple):
        return model
    if type(model).__module__.split(".")[0] not in ("onnx", "onnx_ir"):
        return model
    path = stack.enter_context(folders.temporary()) / "given.onnx"
    save_for_now(load(model), path)
    return path

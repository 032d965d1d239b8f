"""`compare`: says whether two models compute the same, and where they first differ."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.garbage_collection import no_collection
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.parts.written_files import Timing
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.comparison.outputs import unlike_inputs as unlike
from onnxsmith.comparison.outputs.candidate_state import Recorder
from onnxsmith.comparison.outputs.candidate_state import compared as in_steps
from onnxsmith.comparison.outputs.compare_headline import headline
from onnxsmith.comparison.outputs.comparison_setup import Compared, Section, compared, elsewhere, exact
from onnxsmith.comparison.outputs.folders.layouts import is_folder
from onnxsmith.comparison.outputs.reference_steps import rolled
from onnxsmith.comparison.outputs.same_files import same_files
from onnxsmith.comparison.outputs.sides import SideSource, under
from onnxsmith.comparison.outputs.two_sides import TwoSides, unoptimised
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.structure.dim_ranges import Sizes
from onnxsmith.runtimes.base import Program
from onnxsmith.verification import runtime_choice
from onnxsmith.verification.explore import Explorer
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.inputs.input_files import write_npz
from onnxsmith.verification.inputs.user_inputs import Inputs
from onnxsmith.verification.ladder import climbed
from onnxsmith.verification.run import summary
from onnxsmith.verification.runtime_choice import LACKS, offered
from onnxsmith.verification.verification_verdict import problems, verdict
from onnxsmith.verification.verify import Side

if TYPE_CHECKING:  # modules that only a comparison by layer needs are imported with it
    from onnxsmith.comparison.outputs.folders.compare_folders import Asked
    from onnxsmith.comparison.outputs.layer_stage import Staged
    from onnxsmith.comparison.outputs.single_input_layers import LayerOptions


@identifies("reference", "candidate")
def compare(
    reference: Any,
    candidate: Any,
    *,
    inputs: Inputs = (),
    sizes: Sizes | None = None,
    runtime: str | None = None,
    generate: bool = True,
    seed: int = 0,
    per_layer: bool | LayerOptions = False,
    tolerance: float | None = None,
    worst_input: str | Path | None = None,
    start: Sequence[Any] = (),
    end: Sequence[Any] = (),
    steps: int = 0,
    state: Sequence[str] = (),
    free: Sequence[str] = (),
    thorough: bool = False,
) -> Result:
    """Runs two models on the same inputs and compares every output.

    A side is a path (`m.onnx`, or `m.onnx@reference` to choose its runtime), a `ModelProto`, an `ir.Model`, a torch
    module with inputs as `(module, args)`, a program of torch.export or a `.pt2` file, or a target `file.py:factory`.
    Axes of torch modules are dynamic where the ONNX side's are. `inputs` are arrays by name, texts as on the command
    line, or an iterable with the arrays by name of each input; with `generate` False only these are compared.
    `sizes` are sizes or ranges of symbolic dimensions (`{"batch": 1, "height": (64, 1024)}`). `free` names outputs that
    are free by definition (`sign:vectors`, `order:boxes`), as `Verify` does. `tolerance` is the largest difference
    relative to an output's scale, in place of the bound from rounding. The input
    with the largest difference is written to `worst_input`, an `.npz` that can be given as `inputs` again.

    `start` and `end` are tensors that both models have, by name or as selectors of `edit`: the part between them is cut
    out of both as by the step `extract`, and compared by itself.

    With `per_layer`, every common tensor is compared on that input, and the report names the first operation with an
    error of its own, apart from operations that pass on earlier errors. If several inputs are given, that is done on
    each of them.

    With `steps`, both sides are called that often in a row, each time with the state that the last call returned; the
    inputs are those of the steps. `state` says which output an input gets next (`h=hn`, `past.*=present.*`); by default
    the files' metadata or names do. Every step is compared from the state of the reference, and by layer at the first
    that differs; then the candidate goes the whole way with its own state.

    `candidate` may be a folder of graphs of other tools, or one graph if `reference` is a folder. Then `reference` is
    the folder of the model in transformers, or another folder of graphs. Each graph is compared on tensors of the
    reference's run, then texts of `steps` tokens (by default 8) are generated. The tokenizer and the configuration are
    compared too. Options that choose inputs apply only if the folder has one graph that generates no text.

    Two files with the same bytes compute the same, and are not run if no argument asks for more. If the sides agree,
    faults are planted to see whether the comparison would notice them: as many as take little time beside the runs of
    both sides, with `thorough` all of them.

    If one side's runtime fails, the report has its problem, the verdict `failed`, and the other side's outputs. If the
    layers cannot be compared (`compare/unpaired`), the report has the result for the outputs.

    Raises:
        OnnxsmithError: the errors of loading either side; `compare/no-part` and `edit/…` if a side has no such part;
            `verify/outputs-differ` if the sides have different numbers of inputs or outputs; `compare/state` and
            `compare/step` if there is no such state, or no such step; `compare/number` for a number of steps out of its
            range; `verify/…` and `runtime/…` if no comparison is possible; `compare/folder-…` for a folder that cannot
            be compared.
    """
    if steps < 0:
        raise problem("compare/number", f"{steps} is not a number of calls", fix="give a number from 1: --steps 5")
    if is_folder(candidate) or (is_folder(reference) and isinstance(candidate, str | Path)):
        from onnxsmith.comparison.outputs.folders.compare_folders import compare_folder

        options: dict[str, Any] = {
            "inputs": inputs, "sizes": sizes, "generate": generate, "per_layer": per_layer, "tolerance": tolerance,
            "worst_input": worst_input, "start": start, "end": end, "state": state, "free": free,
        }  # fmt: skip
        return Result(compare_folder(reference, candidate, _of_folders(options, steps, seed, runtime, thorough)))
    asked = (sizes, runtime, seed, per_layer, worst_input, start, end, steps, state, free, thorough)
    is_plain = isinstance(inputs, tuple) and not inputs and generate and tolerance is None and not any(asked)
    with Clock() as clock, ExitStack() as stack:
        with stage("load"), no_collection():
            same = same_files(reference, candidate) if is_plain else None
            if same is not None:
                headline = f"{same.reference} and {same.candidate}: equal byte by byte, nothing was run"
                return Result(Report("compare", Verdict.DONE, (same, Timing(clock.passed())), headline=headline))
            read = compared(
                reference,
                candidate,
                inputs=inputs,
                sizes=sizes,
                runtime=runtime,
                generate=generate,
                seed=seed,
                tolerance=tolerance,
                per_layer=bool(per_layer),
                section=Section(start, end),
                steps=steps,
                state=(state,) if isinstance(state, str) else state,
                free=free,
                thorough=thorough,
                stack=stack,
            )
            refuse_loss([worst_input], [reference, candidate, read.a.model, read.b.model, inputs])
        try:
            return Result(_report(read, clock, per_layer, worst_input))
        except _LackingError as error:
            other, failed = elsewhere(read, error.problem, stack), error.failed
        if failed is None:
            return Result(_report(other, clock, per_layer, worst_input, last=True))
        try:
            with runtime_choice.standard_limit():
                found = _report(other, clock, per_layer, worst_input, last=True)
        except OnnxsmithError as second:
            if not runtime_choice.is_not_judged(second):
                raise
            return Result(_failed(read, runtime_choice.with_other(failed, second.problem), last=False))
        if found.verdict is Verdict.FAILED:
            said = found.problems[0]
            return Result(_failed(read, runtime_choice.with_other(failed, said), last=False))
        return Result(found)


_IN_FOLDERS = {
    "inputs": "--input", "sizes": "--dim", "per_layer": "--per-layer", "worst_input": "--worst-input",
    "start": "--from", "end": "--to", "state": "--state", "free": "--free",
}  # fmt: skip
"""Names the options that have no meaning for graphs that generate text."""


def _of_folders(options: dict[str, Any], steps: int, seed: int, runtime: str | None, thorough: bool) -> Asked:
    """Returns the options of a comparison of folders. A single graph gets all of them, a graph on recorded inputs only
    those that apply to any inputs."""
    from onnxsmith.comparison.outputs.folders.compare_folders import Asked

    common: dict[str, Any] = {"seed": seed, "runtime": runtime, "thorough": thorough}

    def compared_models(a: Any, b: Any, *, inputs: Inputs = (), plain: bool = False) -> Report:
        if plain:
            found = compare(a, b, inputs=inputs, generate=False, tolerance=options["tolerance"], **common)
        else:
            found = compare(a, b, steps=steps, **common, **options)
        return found.report

    given = [name for key, name in _IN_FOLDERS.items() if _is_given(options[key])]
    given += [] if options["generate"] else ["--only-given"]
    return Asked(steps, seed, runtime, tuple(given), compared_models)


def _is_given(value: Any) -> bool:
    """Whether the value of an option is not its default."""
    return not (value is None or value is False or (isinstance(value, Collection) and not len(value)))


def _named(a: SideSource, b: SideSource) -> str:
    """The runtime of the graphs, if both use the same; else empty."""
    names = {side.label.rpartition(" on ")[2] for side in (a, b) if side.model is not None}
    return names.pop() if len(names) == 1 else ""


_FAILS = ("runtime/failed", "runtime/died")
"""Problems of a runtime that may be those of its optimisations."""


class _LackingError(OnnxsmithError):
    """A default runtime lacks a capability for one of the two graphs. If it fails on what the standard allows, `failed`
    is the error of the comparison."""

    def __init__(self, found: Problem, failed: OnnxsmithError | None = None) -> None:
        super().__init__(found)
        self.failed = failed


def _report(
    read: Compared,
    clock: Clock,
    per_layer: bool | LayerOptions,
    worst_input: str | Path | None,
    *,
    last: bool = False,
) -> Report:
    a, b, asked = read.a, read.b, read
    taken: tuple[Part, ...] = ()
    a.join(b)
    for one in (a, b):
        one.preparer.expect()
    try:
        with stage("verify"), a.prepare() as first, b.prepare() as second, ExitStack() as probes:
            sides = Side(a.label, first), Side(b.label, under(second, b.interface, a.interface))
            walk = None if read.calls is None else rolled(first, read.plan, read.calls)
            read = read if walk is None else replace(read, plan=replace(read.plan, given=walk.feeds))
            subject = TwoSides(read)
            part = subject.verified(sides, probes)
            if walk is not None and read.calls is not None:
                met = subject.recorder.met
                made, part = in_steps(walk, met, part, sides[1].session, read.calls.pairs, partial(exact, a))
                taken = (made,)
        part = climbed(subject, part)
        worst, recorder = subject.worst, subject.recorder
    except OnnxsmithError as error:
        if error.problem.id in LACKS and not last and not any(side.named for side in (a, b) if side.model is not None):
            raise _LackingError(error.problem) from error
        plain = unoptimised(asked) if error.problem.id in _FAILS else None
        if plain is not None:
            said = (
                f"the run failed with the runtime's optimisations ({error.problem.why}); compared without the "
                "optimisations"
            )
            try:
                return _report(replace(plain, notes=(*plain.notes, said)), clock, per_layer, worst_input, last=last)
            finally:
                plain.a.close()
                plain.b.close()
        failure = runtime_choice.failure(error)
        if failure is not None and not last and _is_standard(a, b):
            raise _LackingError(failure, error) from error
        return _failed(asked, error, last=last)
    if worst_input is not None and worst:
        write_npz(Path(worst_input), worst[0].values)
    part = replace(part, notes=(*read.notes, *part.notes), untried=(*part.untried, *read.clauses))
    staged = _staged(read, part, worst[0], recorder, per_layer) if per_layer and worst else None
    shown = part if staged is None or staged.outputs is None else staged.outputs
    parts = (shown, *taken, *(staged.parts if staged is not None else ()))
    ended = verdict(part) if staged is None or staged.verdict is None else staged.verdict
    by_layers = staged is not None and staged.verdict is Verdict.DIFFERENT and not part.differs
    found = () if by_layers else tuple(unlike.told(one, a.interface, b.interface) for one in problems(part))
    if not per_layer:
        found = tuple(_with_ways(one, are_graphs=a.model is not None and b.model is not None) for one in found)
    found += staged.problems if staged is not None else ()
    return Report("compare", ended, (*parts, Timing(clock.passed())), found, headline=headline(a, b, part, parts))


def _staged(
    read: Compared, part: Verification, worst: Feed, recorder: Recorder, per_layer: bool | LayerOptions
) -> Staged:
    """Compares the layers on the input of the largest difference."""
    for one in (read.a, read.b):
        one.close()  # their process serves a side of the layers
    from onnxsmith.comparison.outputs.layer_stage import layered
    from onnxsmith.comparison.outputs.single_input_layers import LayerOptions

    return layered(read, part, worst, recorder, LayerOptions() if isinstance(per_layer, bool) else per_layer)


def _is_standard(a: SideSource, b: SideSource) -> bool:
    """Whether the user named no runtime for a graph, and the standard allows all graphs."""
    graphs = [side for side in (a, b) if side.model is not None]
    return not any(side.named for side in graphs) and all(
        runtime_choice.follows_standard(side.model) for side in graphs if side.model is not None
    )


def _with_ways(found: Problem, *, are_graphs: bool) -> Problem:
    """Returns the problem. If numbers differ between two graphs, its fix names the commands that find the place. If the
    check is too weak, its fix names the comparison of the tensors inside, which hide less than the outputs."""
    layers = "`onnxsmith compare REFERENCE CANDIDATE --per-layer`"
    if found.id == "verify/cannot-tell":
        return replace(
            found,
            fix=(
                f"{found.fix}; or {layers} also compares intermediate tensors, which show differences that the "
                "outputs hide"
            ),
        )
    if found.id != "verify/different" or not are_graphs or "no numbers were compared" in found.why:
        return found
    ways = (
        f"{layers} names the first node that adds an error; "
        "`onnxsmith diff REFERENCE CANDIDATE` lists the weights and nodes that differ"
    )
    return replace(found, fix=f"{ways}; {found.fix}")


def _failed(read: Compared, error: OnnxsmithError, *, last: bool) -> Report:
    """The report if a runtime fails: its problem, and the outputs of the side that runs.

    Raises:
        OnnxsmithError: the error, if no side runs, or if it is not one of a runtime.
    """
    a, b = read.a, read.b
    if error.problem.id in LACKS and not last:
        sources = [side.source for side in (a, b) if not isinstance(side.source, Program)]
        error = OnnxsmithError(offered(error.problem, sources, _named(a, b)))  # its fix names another runtime
    told = error.problem.id.startswith("runtime/") and error.problem.id != "runtime/timeout"  # no second wait
    kept = _side_that_runs(read) if told else ()
    if not kept:
        raise error from error.__cause__
    said = f"{a.label} and {b.label}: not compared"
    return Report("compare", Verdict.FAILED, kept, (error.problem,), headline=said)


def _side_that_runs(read: Compared) -> tuple[Part, ...]:
    """The outputs of the side that runs, if the other fails."""
    for one in (read.a, read.b):
        try:
            with one.prepare() as session:
                view = under(session, one.interface, read.a.interface)
                run = next(iter(Explorer(view, read.plan, {}).runs()))
                return (summary(one.label, one.runtime.title, session, run.feed.values, run.outputs),)
        except (OnnxsmithError, StopIteration):
            continue
    return ()

"""Reads and checks the options of a quantisation (data, metric, budget) before anything is computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import first_few, in_place_of, several
from onnxsmith.comparison.outputs.state_names import Fed
from onnxsmith.exporter import factory
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.dim_ranges import Size
from onnxsmith.graph.structure.signature import Signature, signature
from onnxsmith.precision import calibration_data, carried_state
from onnxsmith.precision.calibration_data import Samples
from onnxsmith.precision.data.base import GIVE_DATA, Reading, Sample, in_order
from onnxsmith.precision.scores.agreement import Agreement
from onnxsmith.precision.scores.base import Pairs, Score, is_whole
from onnxsmith.precision.scores.prediction_scores import Top1
from onnxsmith.precision.scoring import Budget, Scored, Scoring, is_finite
from onnxsmith.runtimes.base import Session
from onnxsmith.verification import random_draws
from onnxsmith.verification.explore import Explorer, Plan
from onnxsmith.verification.inputs import size_limits
from onnxsmith.verification.inputs.generate import Generator
from onnxsmith.verification.rounding import roundings
from onnxsmith.verification.value_comparison import is_float

_SHOWN = 5
"""The most samples that a problem names. A choice."""
_LISTED = 20
"""Limits the samples that a fix lists. A choice: the reader has to leave each of them out."""
_GENERATED = 8
"""The number of generated inputs if there is no data. A choice: they measure rounding, not accuracy."""


@dataclass(frozen=True)
class Request:
    """The options of `quantize`, as given."""

    data: Any = None
    calibration: Any = None
    metric: Any = None
    decode: Any = None
    preprocess: Any = None
    budget: str | float = "1%"
    samples: int | None = None
    evaluations: int = 20
    seed: int = 0
    allow_slower: bool = False
    write_unsure: bool = False
    measure_time: bool = True
    sizes: Mapping[str, Size] = field(default_factory=dict)
    target: str | None = None
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Given:
    """The request after reading: the samples to calibrate on, the scoring with the samples to test on, and the
    budget."""

    calibration: Samples
    scoring: Scoring
    budget: Budget
    is_real: bool
    """Whether the samples are the user's, not generated."""
    is_accuracy: bool
    """Whether the score is the user's metric on the user's data."""
    notes: tuple[str, ...] = ()
    """Notes on parts of the data that are not used."""
    is_calibrated: bool = True
    """Whether the samples for calibration are the user's."""


def read(model: ir.Model, request: Request, session: Session) -> Given:
    """Reads the request for a model that runs in `session`.

    Raises:
        OnnxsmithError: `quantize/…`, `export/target-…` for a function that cannot be imported.
    """
    if request.samples is not None and request.samples < 1:
        raise problem("quantize/samples", f"{request.samples} samples measure nothing", fix="give --samples 100")
    if request.evaluations < 1:
        raise problem(
            "quantize/evaluations", f"{request.evaluations} evaluations find nothing", fix="give --evaluations 20"
        )
    refuse_without_data(request)
    budget = Budget.read(request.budget)
    interface = signature(model)
    _refuse_unknown(request.sizes, interface)
    states = carried_state.pairs(model)
    reading = Reading(interface, _function(request.preprocess), frozenset(pair.input for pair in states))
    score = _score(request.metric)
    if budget.outputs:
        score = _of_outputs(score, budget, interface)
    if request.data is None and request.calibration is None:
        made, notes = _generated(model, session, request, states)
        calibration = test = made
    else:
        calibration, test, notes = _divided(model, session, request, reading, states)
    if isinstance(score, Agreement):  # it compares with the given model's outputs, and labels belong to other metrics
        notes += unused_labels(test, session)
        test = _unlabelled(test)
    is_shared = request.data is not None and request.calibration is None
    spent = calibration if is_shared else Samples(lambda: iter(()), "no data")
    scoring = Scoring(test, score, _function(request.decode), request.samples, spent=spent)
    is_real = request.data is not None
    is_calibrated = is_real or request.calibration is not None
    return Given(
        calibration, scoring, budget, is_real, is_real and not isinstance(score, Agreement), notes, is_calibrated
    )


def _of_outputs(score: Score, budget: Budget, interface: Signature) -> Agreement:
    """Returns the score with the budgets of single outputs.

    Raises:
        OnnxsmithError: `quantize/budget` if another metric was asked for, or if there is no such output.
    """
    if not isinstance(score, Agreement):
        raise problem(
            "quantize/budget",
            "only the metric agreement accepts a budget for each output",
            where=f"--metric {score.title}",
            fix="leave --metric out, or give one budget",
        )
    names = [port.name for port in interface.outputs]
    stray = next((name for name in budget.outputs if name not in names), None)
    if stray is not None:
        raise problem("quantize/budget", f"no output is called {stray!r}", fix=in_place_of(stray, names))
    return Agreement(budget.outputs)


def refuse_without_data(request: Request) -> None:
    """Refuses a metric that needs real data if there is none, because generated inputs are noise.

    Raises:
        OnnxsmithError: `quantize/no-data`; `quantize/unknown-metric`.
    """
    score = _score(request.metric)
    if request.data is None and request.calibration is None and score.needs_data:
        raise problem(
            "quantize/no-data",
            "the metric needs data",
            where=f"--metric {request.metric}" if isinstance(request.metric, str) else score.title,
            why="without data, the inputs are generated noise, which the metric cannot score",
            fix=f"give {GIVE_DATA}; or leave out --metric to measure the agreement of the outputs",
        )


def _refuse_unknown(sizes: Mapping[str, Size], interface: Signature) -> None:
    """Refuses a size for a dimension that no input has."""
    dims = (
        *(dim for port in interface.inputs for dim in port.shape or () if isinstance(dim, str)),
        *size_limits.names(interface),
    )
    unknown = [name for name in sizes if name not in dims]
    if unknown:
        raise problem(
            "quantize/unknown-dim",
            f"no symbolic dimension of the inputs is called {unknown[0]!r}",
            fix=f"give one of: {', '.join(dict.fromkeys(dims))}" if dims else "leave --dim out: all sizes are fixed",
        )


def _divided(
    model: ir.Model, session: Session, request: Request, reading: Reading, states: tuple[Fed, ...]
) -> tuple[Samples, Samples, tuple[str, ...]]:
    """Returns the samples for calibration and for the test, and notes."""

    def opened(given: Any) -> tuple[Samples, tuple[str, ...]]:
        found = calibration_data.read(given, reading)
        return carried_state.stepped(model, session, states, found, request.sizes) if states else (found, ())

    data, notes = (None, ()) if request.data is None else opened(request.data)
    if request.calibration is None:
        assert data is not None
        divided = carried_state.divided if carried_state.are_steps(data) else calibration_data.divided
        return *divided(data), notes
    calibration, others = opened(request.calibration)
    limited = Samples(lambda: _first(calibration, calibration_data.MOST), calibration.described)
    if data is None:
        return limited, limited, others
    seen = {calibration_data.digest(one): one.name for one in limited}
    for sample in data:
        twin = seen.get(calibration_data.digest(sample))
        if twin is not None:
            raise problem(
                "quantize/same-data",
                "a test sample is also a calibration sample",
                where=f"{sample.name} = {twin}",
                why="a score on calibration data says nothing about other data",
                fix="give other samples as --calibration; or leave --calibration out, so that every fourth sample "
                "of --data is used",
            )
    return limited, data, notes


def _unlabelled(samples: Samples) -> Samples:
    return Samples(lambda: (replace(one, label=None) for one in samples), samples.described)


def _first(samples: Samples, count: int) -> Iterator[Sample]:
    for index, sample in enumerate(samples):
        if index >= count:
            return
        yield sample


def _generated(
    model: ir.Model, session: Session, request: Request, states: tuple[Fed, ...]
) -> tuple[Samples, tuple[str, ...]]:
    """Returns generated samples, and notes: on the states that they carry, or on samples that were left out because the
    model gives no number on them."""
    interface: Signature = signature(model)
    refused = ""
    if states:
        try:
            steps = carried_state.generated(model, session, states, request.sizes, request.seed)
            if all(is_finite(value) for _, outputs in in_order(steps, session) for value in outputs.values()):
                return steps, (carried_state.note(states, sum(1 for _ in steps)),)
            refused = "an output is not finite when states are carried"
        except OnnxsmithError as error:
            refused = error.problem.what
    generator = Generator.for_model(inferred(model)[0]).under(interface)
    runs = list(Explorer(session, Plan(generator, known=request.sizes, seed=request.seed), roundings(model)).runs())[
        :_GENERATED
    ]
    # Inputs with an empty tensor may give an empty prediction, which has no score.
    full = [run for run in runs if all(np.size(value) for value in run.feed.values.values())] or runs
    # A generated input means nothing. If the model overflows on it, it is no measure of a variant.
    usable = [run for run in full if all(is_finite(value) for value in run.outputs.values())] or full
    left_out = [run.feed.label for run in full if run not in usable]
    samples = [Sample(dict(run.feed.values), None, run.feed.label) for run in usable]
    notes: tuple[str, ...] = (
        (
            f"generated inputs were left out, because the model's outputs on them are not finite: {left_out[0]}"
            + (f" and {len(left_out) - 1} more" if left_out[1:] else ""),
        )
        if left_out
        else ()
    )
    if refused:
        notes += (f"generated states were not carried from step to step: {refused}",)
    return Samples(lambda: iter(samples), "generated inputs"), notes


def refuse_random(model: ir.Model, scoring: Scoring, session: Session) -> None:
    """Refuses a model that gives other outputs when it runs again on the same sample.

    Raises:
        OnnxsmithError: `quantize/random`.
    """
    sample = next(iter(scoring.limited()), None)
    if sample is None:
        return
    first, second = sample.run(session), sample.run(session)
    for name, value in first.items():
        a, b = np.asarray(value), np.asarray(second[name])
        if np.array_equal(a, b, equal_nan=is_float(a)):
            continue
        drawing = [f"{walk.op_name(node)} {walk.node_label(node)}" for node in random_draws.nodes(model)]
        raise problem(
            "quantize/random",
            "the model computes other outputs when it runs again on the same sample",
            where=f"output {name}, {sample.name}",
            why=f"the model draws random numbers: {first_few(drawing, _SHOWN)}"
            if drawing
            else "an operator computes other numbers in each run",
            fix="export the network in evaluation mode, without these operators; a score that changes from run to "
            "run cannot judge a model",
        )


def _function(given: Any) -> Callable[..., Any] | None:
    return factory.function(given) if isinstance(given, str) else given


def _score(given: Any) -> Score:
    """Returns the score that is meant by a name, a function or None."""
    if given is None:
        return Agreement()
    if isinstance(given, Score):
        return given
    known = rooms.members("onnxsmith.precision.scores", Score)
    if isinstance(given, str) and given in known:
        return known[given]
    if isinstance(given, str) and not factory.is_target(given):
        raise problem(
            "quantize/unknown-metric",
            f"no metric is called {given!r}",
            fix=f"give one of: {', '.join(known)}; or file.py:function, a function of the predictions and the labels",
        )
    return Own(factory.function(given) if isinstance(given, str) else given)


class Own(Score):
    """A metric function of the user, which takes the list of predictions and the list of labels and returns a number. A
    larger number is better, unless the function has an attribute `better = "lower"`."""

    expects = "what the function takes"
    reads_first = False
    source = ""
    """The file and the line of the function, if it is known."""

    def __init__(self, function: Callable[[list[Any], list[Any]], float]) -> None:
        self._function = function
        self.title = getattr(function, "__name__", "the metric")  # type: ignore[misc]
        better = getattr(function, "better", "higher")
        if better not in ("higher", "lower"):
            raise problem(
                "quantize/metric",
                f"the metric's attribute `better` is {better!r}",
                where=self.title,
                why='`better` says whether a higher or a lower score is better; without it, "higher" is assumed',
                fix=f'write {self.title}.better = "lower" or "higher"',
            )
        code = getattr(function, "__code__", None)
        self.source = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
        self.better = "lower" if better == "lower" else "higher"  # type: ignore[misc]

    def predicted(self, outputs: Any) -> Any:
        return outputs if len(outputs) > 1 else next(iter(outputs.values()))

    def value(self, pairs: Pairs) -> float:
        found = list(pairs)
        return float(self._function([one for one, _ in found], [label for _, label in found]))


def refuse_worthless(scored: Scored, score: Score, *, is_real: bool = True) -> None:
    """Refuses a score of the given model that is NaN or infinite, or so bad that any model would meet the budget.
    `is_real` says whether the samples are the user's.

    Raises:
        OnnxsmithError: `quantize/metric`.
    """
    value = scored.value
    sign = -1 if score.better == "lower" else 1
    if score.worst is not None and sign * value <= sign * score.worst:
        raise problem(
            "quantize/metric",
            f"the score of the given model is {value:.6g}, as if it were always wrong",
            where=score.title,
            why="with such a score, any other model would meet the budget; the metric expects as a prediction: "
            f"{score.expects}",
            fix="check the labels, --preprocess and --decode on a few samples: `onnxsmith run MODEL --input …` shows "
            "the outputs",
        )
    if not math.isfinite(value):
        raise _no_number(scored, score, is_real=is_real)


def _no_number(scored: Scored, score: Score, *, is_real: bool) -> OnnxsmithError:
    """Makes the problem for a score of the given model that is NaN or infinite. It says which function gave the score,
    for which samples, and whether the outputs of the model are the cause."""
    is_own = isinstance(score, Own)
    giver = f"the metric function {score.title}" if is_own else score.title
    count = len(scored.numberless)
    items = f"{', '.join(scored.numberless[:_SHOWN])}{', …' if count > _SHOWN else ''}"
    alone = f"{giver} returns no number for {count} of {several(scored.samples, 'sample')}, each scored alone: {items}"
    outputs = f"the outputs of the model are finite on all {several(scored.samples, 'sample')}"
    if scored.broken:
        outputs = (
            f"the model returned outputs that are not finite on {scored.broken} of "
            f"{several(scored.samples, 'sample')}, first on {scored.which}"
        )
        if scored.spoiled:
            listed = first_few(scored.spoiled, _SHOWN)
            outputs += f"; the inputs of {several(len(scored.spoiled), 'sample')} contain NaN or infinity: {listed}"
            fix = f"correct these samples, or leave them out of the data: {', '.join(scored.spoiled[:_LISTED])}"
            if len(scored.spoiled) > _LISTED:
                fix += f", and {len(scored.spoiled) - _LISTED} more"
        elif is_real:
            fix = (
                "correct the model, because the inputs of these samples are finite; or leave these samples out of "
                "the data"
            )
        else:
            fix = f"the inputs were generated: give inputs that the model is made for, {GIVE_DATA}"
    elif scored.undecoded:
        listed = ", ".join(scored.undecoded[:_SHOWN])
        outputs += f", but the decoded predictions are not finite on {len(scored.undecoded)} of these samples: {listed}"
        fix = "correct the decoding function; to test it, call it in Python on the outputs of `onnxsmith run`"
    elif is_own:
        fix = (
            f"make {score.title} return a number for these samples; to test it, call it in Python on the outputs of "
            "`onnxsmith run`"
        )
    else:
        fix = "check the labels and --decode on a few samples"
    places = (score.source if isinstance(score, Own) else score.title, alone if count else "")
    return problem(
        "quantize/metric",
        f"{giver} returned {scored.value} for the given model",
        where="; ".join(part for part in places if part),
        why=f"{outputs}; no other score can be compared with {scored.value}; the metric expects as a prediction: "
        f"{score.expects}",
        fix=fix,
    )


# Says that the data has labels which no metric reads, and which metric would.


def unused_labels(samples: Samples, session: Session) -> tuple[str, ...]:
    """Returns a note if the first sample has a label. `session` runs the given model, whose outputs show which metric
    fits."""
    sample = next(iter(samples), None)
    if sample is None or sample.label is None:
        return ()
    label = np.asarray(sample.label)
    metric, when = "", ""
    if label.dtype.kind in "OUS" and label.ndim == 0:
        metric, when = "cer", " as texts"
    elif label.size == 1 and is_whole(label):
        top1, outputs = Top1(), sample.run(session)
        prediction = np.asarray(top1.predicted(outputs))
        is_one = prediction.size == 1 and not top1.unfit(prediction, sample.label, outputs)
        metric, when = ("top1", " as classes") if is_one else ("", "")
    told = f"--metric {metric} uses them{when}" if metric else "a --metric that fits the labels uses them"
    return (
        f"the labels in the data are not used, because the score compares with the outputs of the given model; {told}",
    )

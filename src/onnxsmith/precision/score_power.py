"""Measures the power of a score before a search rests on it: known damage has to move it by more than the budget."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import several
from onnxsmith.precision.calibration_data import digest
from onnxsmith.precision.data.base import GIVE_DATA, in_order
from onnxsmith.precision.quantisation_request import Given
from onnxsmith.precision.scores.agreement import Agreement
from onnxsmith.precision.scoring import Scored
from onnxsmith.runtimes.base import Runtime

_SAMPLES = 256
"""Limits the samples on which outputs are damaged. A choice: their outputs are held in memory."""
_HELD_BYTES = 1 << 28
"""Limits the bytes of these outputs. A choice."""
_WITH_WEIGHTS = 16
"""Limits the samples on which damaged weights are measured at first. If 100% does not move the score there, all samples
are taken. A choice: of 16 decisions a budget of 2% sees no single one."""
_ORDERS = 16
"""Limits the orders in which samples get outputs of others. A choice: a score at chance gets better in half of them."""
_TURNED = 8
"""The most samples of which each gets the outputs of the next one, and so on. More are shuffled, because labels may
repeat in turn."""
_DEVIATIONS = 2.5
"""How many standard deviations the score has to be better than in the mean of the orders. A choice: chance reaches it
once in 160 times."""
_DRAWS = 3
"""How often weights are put off by 100%. A choice: a single draw may hit a decision by luck."""
_SHARES = (1.0, 0.2, 0.05)
"""How far weights are put off, the most first."""
_MOST_BYTES = 1 << 28
"""Limits the bytes of weights that are copied to damage them. A choice."""

_CHANCE = "the outputs of shuffled samples"

Pairs = Sequence[tuple[Mapping[str, Any], Any, str]]
"""Holds the outputs of each sample, its label, and its name."""


@dataclass(frozen=True)
class Power:
    """What moves a score by more than the budget, and what does not."""

    moves: tuple[str, ...]
    blind: tuple[str, ...]
    unsure: str = ""
    """Why the score proves nothing, if the user accepts that; else ""."""
    untried: tuple[str, ...] = ()
    """The damage that was not tried, each with the reason."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Says it in the report."""
        others = f", but not {', '.join(self.blind)}" if self.blind else ""
        said = (f"the score notices planted damage: {', '.join(self.moves)}{others}",) if self.moves else ()
        return (*said, *(f"whether the score notices damage was not tested with {one}" for one in self.untried))


def measured(model: ir.Model, given: Given, before: Scored, runtime: Runtime, *, is_accepted: bool = False) -> Power:
    """Returns the power of the score on the given samples. `is_accepted` says that the user accepts a score without
    power; the result then says why it has none.

    Raises:
        OnnxsmithError: `quantize/blind-score` if known damage does not move the score by more than the budget.
    """
    try:
        return _measured(model, given, before, runtime)
    except OnnxsmithError as error:
        if error.problem.id != "quantize/blind-score" or not is_accepted:
            raise
        return Power((), (), error.problem.what)


def _measured(model: ir.Model, given: Given, before: Scored, runtime: Runtime) -> Power:
    """Returns the power of the score.

    Outputs are damaged in two ways: each sample gets those of another sample, and the mean over the samples. Weights
    are put off by 100, 20 and 5% of their size, up or down at random; of models with more than 256 MiB of weights they
    are not.

    Raises:
        OnnxsmithError: `quantize/blind-score` if outputs of other samples, their mean, or weights off by 100% do not
            move the score by more than the budget.
    """
    _refuse_wrong_unit(given, before)
    with stage("power of the score"), runtime.prepare(model) as session:
        held = list(_held(given, session, _SAMPLES))
    moves: list[str] = []
    blind: list[str] = []
    untried: list[str] = []
    outputs = [one for one, _, _ in held]
    for what, orders in (("outputs of other samples", _of_others(outputs)), ("the mean output", _mean(outputs))):
        if not orders:
            untried.append(f"{what}: {'the sizes of the outputs differ' if len(held) > 1 else 'there is one sample'}")
        else:
            (moves if all(_moves(given, held, one) for one in orders) else blind).append(what)
    if blind:
        raise _blind(given, held, blind[0], before)
    if given.scoring.has_labels and _is_chance(given, held, _of_others(outputs)):
        raise _blind(given, held, _CHANCE, before)
    is_small = _bytes(model) <= _MOST_BYTES
    untried += [] if is_small else ["weights that are off: the model has more than 256 MiB of weights"]
    for share in _SHARES if is_small else ():
        what = f"weights off by {share:.0%}"
        try:
            found = False
            for seed in range(_DRAWS if share == _SHARES[0] else 1):
                other = off(model, share, seed)
                if other is None:
                    break
                with runtime.prepare(other) as session:
                    if seed:
                        found = _leaves(given, before, session)
                    else:
                        few = held[:_WITH_WEIGHTS]
                        found = _moves(given, few, [outputs for outputs, _, _ in _held(given, session, len(few))])
                if found:
                    break
        except OnnxsmithError as error:
            untried.append(f"{what}: {error.problem.what}")
            continue
        if other is None:
            untried.append("weights that are off: the model has no weights of floats")
            break
        if found:
            moves.append(what)
            continue
        blind.append(what)
        if share == _SHARES[0]:
            raise _blind(given, held, what, before)
        break
    return Power(tuple(moves), tuple(blind), untried=tuple(untried))


@dataclass(frozen=True)
class Worst:
    """The scores of the given model, `right`, and of a model that gives each sample the outputs of another sample,
    `wrong`, on the same samples."""

    right: float
    wrong: float

    def is_nearer(self, score: float) -> bool:
        """Whether a score is nearer to that of the wrong outputs than to that of the given model."""
        return not abs(score - self.right) < abs(self.right - self.wrong) / 2


def worst(model: ir.Model, given: Given, runtime: Runtime) -> Worst | None:
    """Returns the scores of right and of wrong outputs; None if they are equal, or if outputs cannot be exchanged,
    because there is one sample, their sizes differ, or the user's functions refuse them."""
    score = given.scoring.score
    with stage("power of the score"), runtime.prepare(model) as session:
        held = list(_held(given, session, _SAMPLES))
    outputs, labels, names = [one for one, _, _ in held], [one for _, one, _ in held], [one for _, _, one in held]
    try:
        with np.errstate(all="ignore"):
            right = float(score.value(_decoded(given, outputs, labels, names)))
            found = [float(score.value(_decoded(given, one, labels, names))) for one in _of_others(outputs)]
    except Exception:  # noqa: BLE001 — the user's functions may raise anything
        return None
    found = [one for one in found if math.isfinite(one)]
    wrong = (max if score.better == "higher" else min)(found, default=right)
    return (
        Worst(right, wrong)
        if math.isfinite(right) and (right > wrong if score.better == "higher" else right < wrong)
        else None
    )


def off(model: ir.Model, share: float, seed: int = 0) -> ir.Model | None:
    """Returns a copy of the model whose weights of floats are off by a share of their size, up or down at random; None
    if it has none. Single numbers stay."""
    made, changed = model.clone(), False
    random = np.random.default_rng(seed)
    for value in list(made.graph.initializers.values()):
        tensor = value.const_value
        if tensor is None or tensor.dtype is None or not tensor.dtype.is_floating_point() or tensor.size < 2:
            continue
        array = tensor.numpy()
        signs = random.integers(0, 2, array.shape) * 2 - 1
        with np.errstate(all="ignore"):
            wrong = np.where(np.isfinite(array), array * (1 + share * signs), array).astype(array.dtype)
        value.const_value = ir.tensor(wrong, name=value.name)
        changed = changed or bool((wrong != array).any())
    return made if changed else None


def _held(given: Given, session: Any, most: int) -> Iterator[tuple[Mapping[str, Any], Any, str]]:
    scoring, nbytes = given.scoring, 0
    for index, (sample, outputs) in enumerate(in_order(itertools.islice(scoring.limited(), most), session)):
        label = sample.label if scoring.has_labels else scoring.label_of(index)
        yield outputs, label, sample.name
        nbytes += sum(np.asarray(value).nbytes for value in outputs.values())
        if nbytes > _HELD_BYTES:
            return


def _moves(given: Given, held: Pairs, damaged: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the damage moves the score on these samples out of the budget."""
    scoring = given.scoring
    names = [name for _, _, name in held]
    labels = [label for _, label, _ in held]
    score = scoring.score
    try:
        with np.errstate(all="ignore"):
            right = float(score.value(_decoded(given, [one for one, _, _ in held], labels, names)))
            wrong = float(score.value(_decoded(given, damaged, labels, names)))
    except Exception:  # noqa: BLE001 — the user's functions may take no such outputs, which is to notice them
        return True
    return not given.budget.allows(right, wrong, score.better)


def _leaves(given: Given, before: Scored, session: Any) -> bool:
    """Whether a damaged model is out of the budget on all samples."""
    try:
        value = given.scoring.of(session).value
    except OnnxsmithError:  # the user's functions may take no such outputs, which is to notice them
        return True
    return not given.budget.allows(before.value, value, given.scoring.score.better)


def _decoded(
    given: Given, outputs: Iterable[Mapping[str, Any]], labels: Sequence[Any], names: Sequence[str]
) -> list[tuple[Any, Any]]:
    decode = given.scoring.decoded
    return [(decode(one, name), label) for one, label, name in zip(outputs, labels, names, strict=True)]


def _is_chance(given: Given, held: Pairs, orders: Sequence[Sequence[Mapping[str, Any]]]) -> bool:
    """Whether the score is not much better than with outputs of other samples, as with labels that do not belong to the
    samples."""
    score, labels, names = given.scoring.score, [one for _, one, _ in held], [one for _, _, one in held]
    try:
        with np.errstate(all="ignore"):
            right = float(score.value(_decoded(given, [one for one, _, _ in held], labels, names)))
            others = [float(score.value(_decoded(given, one, labels, names))) for one in orders]
    except Exception:  # noqa: BLE001 — the user's functions may take no such outputs, which is to notice them
        return False
    finite = [one for one in others if math.isfinite(one)]
    spread = float(np.std(finite)) if len(finite) >= _TURNED else 0.0
    ahead = (right - float(np.mean(finite))) * (1 if score.better == "higher" else -1) if finite else math.inf
    return spread > 0 and ahead < _DEVIATIONS * spread


def _of_others(outputs: Sequence[Mapping[str, Any]]) -> list[Sequence[Mapping[str, Any]]]:
    """Returns, several times, the outputs of another sample for each sample. If the labels do not fit the model, some
    of these score as well as the right ones. Returns none if there is one sample, or if the sizes differ."""
    if not _alike(outputs):
        return []
    count = len(outputs)
    if count <= _TURNED:
        return [[*outputs[by:], *outputs[:by]] for by in range(1, count)]
    random = np.random.default_rng(0)
    return [[outputs[at] for at in random.permutation(count)] for _ in range(_ORDERS)]


def _mean(outputs: Sequence[Mapping[str, Any]]) -> list[Sequence[Mapping[str, Any]]]:
    """Returns the mean over the samples for each output of floats, and the first sample's for others; none if the sizes
    differ."""
    if not _alike(outputs):
        return []
    made = {}
    for name, value in outputs[0].items():
        array = np.asarray(value)
        is_float = array.dtype.kind not in "biuOUS"
        made[name] = (
            np.mean([np.asarray(one[name], np.float64) for one in outputs], axis=0).astype(array.dtype)
            if is_float
            else value
        )
    return [[made] * len(outputs)]


def _alike(outputs: Sequence[Mapping[str, Any]]) -> bool:
    shapes = [{name: np.shape(value) for name, value in one.items()} for one in outputs]
    return len(outputs) > 1 and all(one == shapes[0] for one in shapes)


def _bytes(model: ir.Model) -> int:
    return sum(value.const_value.nbytes for value in model.graph.initializers.values() if value.const_value is not None)


def _refuse_wrong_unit(given: Given, before: Scored) -> None:
    """Refuses a budget that the worst score meets, and a share of a score that is at its cap."""
    score, budget = given.scoring.score, given.budget
    at_cap = score.cap is not None and before.value >= score.cap
    if at_cap and score.cap is not None and not budget.is_share and budget.amount < score.cap - _NEVER:
        raise problem(
            "quantize/blind-score",
            f"a budget of {budget} below the largest possible score of {score.cap:g} requires {score.title} "
            f"{score.cap - budget.amount:g}",
            where=f"{score.title} {before.value:.6g}, budget {budget}",
            why="only equal outputs have the largest score: the labels are the outputs of the given model, and no "
            f"narrow model has more than {_NEVER:g}",
            fix=f"give the difference that is allowed: --budget {score.cap - _GOOD:g}, which requires {_GOOD:g}; or "
            "leave --metric out",
        )
    if at_cap and score.cap is not None and budget.is_share:
        raise problem(
            "quantize/blind-score",
            f"{score.title} has its largest possible value, {score.cap:g}, so a share of the score cannot be a budget",
            where=f"budget {budget}",
            why="only equal outputs have this score; even a good narrow model has a much lower score",
            fix=f"give the difference that is allowed: --budget {score.cap - _GOOD:g}, which requires {_GOOD:g}; or "
            "leave --metric out",
        )
    if score.worst is None:
        return
    if budget.allows(before.value, score.worst, score.better):
        is_meant = not budget.is_share and 0 < budget.amount <= _SHARE_MEANT
        share = f"--budget {budget.amount:g}%" if is_meant else "--budget 1%"
        raise problem(
            "quantize/blind-score",
            f"a budget of {budget} allows even the worst possible score",
            where=f"{score.title} {before.value:.6g}; the worst possible value is {score.worst:g}",
            why="any model would meet it",
            fix=f"give a share of the score: {share}; or --write-unsure, if any score will do",
        )


_SHARE_MEANT = 20.0
"""The largest number that may be meant as a share in percent. A choice."""
_NEVER = 90.0
"""Decibels that no narrow model reaches. A choice: float16 rounds at some 70."""
_GOOD = 40.0
"""Decibels at which two images are hardly told apart. A choice: the quality that image codecs aim at."""


def _blind(given: Given, held: Pairs, what: str, before: Scored) -> OnnxsmithError:
    scoring = given.scoring
    samples = several(len(held), "sample")
    inputs = {digest(one) for one in itertools.islice(scoring.limited(), len(held))}
    labels = [repr(np.asarray(label).tolist()) for _, label, _ in held] if scoring.has_labels else []
    outputs = [one for one, _, _ in held]
    reason = f"with {what}, the score still meets the budget {given.budget}"
    if len(held) > 1 and len(inputs) == 1:
        reason, fix = f"all {samples} are equal", f"give samples that differ: {GIVE_DATA}"
    elif len(held) > 1 and labels and len(set(labels)) == 1:
        reason = f"all {samples} have the label {labels[0][:40]}"
        fix = f"give samples with labels of several classes: {GIVE_DATA}"
    elif len(held) > 1 and all(_same(one, outputs[0]) for one in outputs[1:]):
        reason = f"the outputs of the given model are the same for all {samples}"
        fix = "check the model and --preprocess: `onnxsmith run MODEL --input …` shows the outputs"
    elif scoring.decode is not None and len(held) > 1 and _is_one_prediction(given, held):
        reason = f"--decode gives the same prediction for all {samples}"
        fix = "correct the function; to test it, call it in Python on the outputs of `onnxsmith run`"
    elif scoring.has_labels and what in ("outputs of other samples", _CHANCE):
        reason = f"the score is hardly better than with {what}" if what == _CHANCE else reason
        fix = "check that the labels belong to these samples, and that the metric reads them; or give more samples: "
        fix += GIVE_DATA
        if scoring.score.reads_first and scoring.decode is None and len(outputs[0]) > 1:
            first = next(iter(outputs[0]))
            fix = (
                f"{scoring.score.title} reads the first output, {first}: add --decode to choose another output; or "
                f"{fix}"
            )
    elif not isinstance(scoring.score, Agreement) and not scoring.has_labels:
        fix = "leave --metric out, to measure the agreement of all outputs relative to their spread"
    else:
        fix = f"give a smaller budget, another --metric or more samples: {GIVE_DATA}"
    return problem(
        "quantize/blind-score",
        f"the score cannot distinguish a damaged model from the given model: {reason}",
        where=f"{scoring.score.title} {before.value:.6g}, budget {given.budget}",
        why="any model would meet this budget",
        fix=f"{fix}; or --write-unsure, if any score will do",
    )


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(np.array_equal(np.asarray(one[name]), np.asarray(other[name])) for name in other)


def _is_one_prediction(given: Given, held: Pairs) -> bool:
    texts = {repr(given.scoring.decoded(outputs, name)) for outputs, _, name in held}
    return len(texts) == 1

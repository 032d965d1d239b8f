"""Measures a score of a model on data."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import first_few, several
from onnxsmith.exporter import factory
from onnxsmith.precision.calibration_data import Samples
from onnxsmith.precision.data.base import GIVE_DATA, Sample, in_order
from onnxsmith.precision.scores.base import Score
from onnxsmith.runtimes.base import Session
from onnxsmith.verification.value_comparison import is_float


@dataclass(frozen=True)
class Scored:
    """A model's score, the number of samples, and how many of them gave an output that is not finite."""

    value: float
    samples: int
    broken: int = 0
    which: str = ""
    """The first sample with such an output."""
    numberless: tuple[str, ...] = ()
    """If the score is NaN or infinite: the samples whose score alone is so too."""
    undecoded: tuple[str, ...] = ()
    """If the score is NaN or infinite: the samples whose outputs are finite but whose decoded prediction is not."""
    spoiled: tuple[str, ...] = ()
    """If the score is NaN or infinite: the samples whose inputs are so, with those for calibration."""
    by_output: Mapping[str, float] = field(default_factory=dict)
    """The score of each output, if the score has several."""


@dataclass
class Scoring:
    """Scores models on the same samples. If the data has no labels, the predictions of the first model are the labels;
    the score then says how well other models agree with it."""

    samples: Samples
    score: Score
    decode: Callable[[Mapping[str, Any]], Any] | None = None
    most: int | None = None
    has_labels: bool = True
    spent: Iterable[Any] = ()
    """Has the samples that calibration takes out of the same data."""
    _labels: list[Any] = field(default_factory=list)

    def first(self, session: Session) -> Scored:
        """Scores the given model, with which all others are compared.

        Raises:
            OnnxsmithError: `quantize/no-data`, `quantize/metric`, `quantize/decode`; the runtime's errors.
        """
        found = [(one.name, one.label is None) for one in self._samples()]
        unlabelled = [name for name, is_missing in found if is_missing]
        missing = len(unlabelled)
        if not found:
            raise self._nothing_to_test()
        if 0 < missing < len(found):
            raise problem(
                "quantize/labels",
                f"{missing} of {len(found)} samples have no label",
                where=f"{', '.join(unlabelled[:3])}{', …' if missing > 3 else ''}",
                why=f"the test is {self.samples.described}",
                fix="give a label to each sample, or to none: without labels, the predictions of the float32 model "
                "become the labels",
            )
        self.has_labels = missing == 0
        if not self.has_labels:
            self._labels = [self.score.as_label(one) for one, _ in self._predictions(session, [], is_first=True)]
        scored = self._measured(session, is_first=True)
        if not math.isfinite(scored.value):
            undecoded = tuple(self._undecoded(session)) if self.decode is not None else ()
            spoiled = dict.fromkeys(
                one.name for one in (*self.spent, *self._samples()) if not all(map(is_finite, one.feeds.values()))
            )
            numberless = tuple(self._numberless(session))
            scored = replace(scored, numberless=numberless, undecoded=undecoded, spoiled=tuple(spoiled))
        return scored

    def _nothing_to_test(self) -> OnnxsmithError:
        spent = sum(1 for _ in self.spent)
        return problem(
            "quantize/no-data",
            "there is no sample to test on",
            why=f"the data has {several(spent, 'sample')}; calibration uses one of every four samples" if spent else "",
            fix=f"give {'two samples or more, better a hundred' if spent else 'some'}: {GIVE_DATA}",
        )

    def _undecoded(self, session: Session) -> Iterator[str]:
        """Yields the samples with finite outputs for which the user's `decode` gives a prediction that is not
        finite."""
        for sample, outputs in in_order(self._samples(), session):
            if all(map(is_finite, outputs.values())) and not is_finite(self._decoded(outputs, sample.name)):
                yield sample.name

    def _numberless(self, session: Session) -> Iterator[str]:
        """Yields the samples whose score alone is NaN or infinite. Yields none if the metric fails on a single
        sample."""
        pairs = zip(self._samples(), self._predictions(session, []), strict=True)
        with contextlib.suppress(Exception), np.errstate(all="ignore"):  # the user's metric may raise anything
            yield from (one.name for one, pair in pairs if not math.isfinite(float(self.score.value([pair]))))

    def of(self, session: Session) -> Scored:
        """Scores a model."""
        return self._measured(session)

    def _measured(self, session: Session, *, is_first: bool = False) -> Scored:
        broken: list[str] = []
        count = 0

        def counted() -> Iterator[tuple[Any, Any]]:
            nonlocal count
            for pair in self._predictions(session, broken, is_first=is_first):
                count += 1
                yield pair

        try:
            with np.errstate(all="ignore"):  # NaN and infinity are detected in the score instead
                value = float(self.score.value(counted()))
        except OnnxsmithError:
            raise
        except Exception as error:
            raise problem(
                "quantize/metric",
                "the metric failed",
                where=factory.user_line(error),
                why=f"{type(error).__name__}: {error}; a prediction is {self.score.expects}",
                fix=("correct the function at this line; or " if factory.user_line(error) else "")
                + "give --decode file.py:function that converts the outputs to the form that the metric needs",
            ) from error
        first = broken[0] if broken else ""
        return Scored(value, count, len(broken), first, by_output=dict(self.score.by_output()))

    def limited(self) -> Iterator[Sample]:
        """Yields the samples that are scored."""
        return self._samples()

    def label_of(self, index: int) -> Any:
        """Returns the label that the given model made of a sample."""
        return self._labels[index]

    def decoded(self, outputs: Mapping[str, Any], name: str) -> Any:
        """Returns the prediction from the outputs of a sample."""
        return self._decoded(outputs, name)

    def _samples(self) -> Iterator[Any]:
        for index, sample in enumerate(self.samples):
            if self.most is not None and index >= self.most:
                return
            yield sample

    def _predictions(self, session: Session, broken: list[str], *, is_first: bool = False) -> Iterator[tuple[Any, Any]]:
        for index, (sample, outputs) in enumerate(in_order(self._samples(), session)):
            if not all(is_finite(value) for value in outputs.values()):
                broken.append(sample.name)
            label = sample.label if not self._labels else self._labels[index]
            prediction = self._decoded(outputs, sample.name)
            if is_first:
                self._refuse(sample, prediction, label, outputs)
            yield prediction, label

    def _refuse(self, sample: Sample, prediction: Any, label: Any, outputs: Mapping[str, Any]) -> None:
        """Refuses a sample with an empty prediction, and a label that cannot belong to a prediction."""
        if self.score.reads_first and isinstance(prediction, np.ndarray) and not prediction.size:
            shapes = (f"{name} {list(np.shape(value))}" for name, value in sample.feeds.items())
            raise problem(
                "quantize/data",
                "a sample has an empty prediction, which has no score",
                where=sample.name,
                why=f"its inputs are {', '.join(shapes)}",
                fix="leave the sample out",
            )
        if not self.has_labels:
            return
        unfit = self.score.unfit(prediction, label, outputs if self.decode is None else None)
        if unfit:
            raise problem(
                "quantize/labels",
                f"the label {unfit}",
                where=sample.name,
                why=f"a prediction is {self.score.expects}",
                fix=self._fix(label),
            )

    def _fix(self, label: Any) -> str:
        """Says what to do if a label does not fit the predictions."""
        found = np.asarray(label)
        if not self.score.needs_data and found.size == 1 and found.dtype.kind in "biufOUS":  # one class, not a vector
            return (
                "leave --metric out, to compare with the outputs of the given model without labels; or give "
                "--metric top1, if the labels are classes"
            )
        return (
            "correct the labels; or give --decode file.py:function, to make predictions of the same form as the labels"
        )

    def _decoded(self, outputs: Mapping[str, Any], name: str) -> Any:
        if self.decode is None:
            return self.score.predicted(outputs)
        try:
            return self.decode(outputs)
        except Exception as error:
            raise problem(
                "quantize/decode",
                "the function that decodes the outputs failed",
                where=factory.user_line(error) or name,
                why=f"{type(error).__name__}: {error}",
                fix=f"correct this function; its argument maps names of outputs to arrays: {_listed(outputs)}; or "
                "leave --decode out",
            ) from error


def _listed(outputs: Mapping[str, Any]) -> str:
    """Lists outputs with their dtypes and shapes."""
    shown = [
        f"{name} {value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else name
        for name, value in outputs.items()
    ]
    return first_few(shown, _SHOWN)


_SHOWN = 4
"""Limits the outputs that an error lists. A choice: one line."""


def is_finite(value: Any) -> bool:
    """Whether a value has no NaN and no infinity."""
    return not (isinstance(value, np.ndarray) and is_float(value)) or bool(np.isfinite(value).all())


@dataclass(frozen=True)
class Budget:
    """How much worse a score may become: a share of the float32 model's score, or a number."""

    amount: float
    is_share: bool
    outputs: Mapping[str, float] = field(default_factory=dict)
    """What the error of an output counts, by name, if it has a budget of its own."""
    said: str = ""
    """The budgets of outputs as they were given."""

    @staticmethod
    def read(text: str | float) -> Budget:
        """Reads `0.5%`, a number, or `1%,h=5%`: shares for outputs, and 1% for all others if no share has no name.

        Raises:
            OnnxsmithError: `quantize/budget`.
        """
        said = str(text).strip()
        if "=" in said:
            return Budget._by_output(said)
        try:
            amount = float(said.removesuffix("%"))
        except ValueError:
            amount = math.nan
        if not (math.isfinite(amount) and amount >= 0):
            raise problem(
                "quantize/budget",
                f"{said!r} is no budget",
                fix="give a share of the float32 model's score, --budget 0.5%, or a difference, --budget 0.01",
            )
        return Budget(amount / 100, True) if said.endswith("%") else Budget(amount, False)

    @staticmethod
    def _by_output(said: str) -> Budget:
        own: dict[str, float] = {}
        rest = Budget(0.01, True)
        for part in said.split(","):
            name, _, amount = part.rpartition("=")
            one = Budget.read(amount)
            if not one.is_share or not 0 < one.amount < 1:
                raise problem(
                    "quantize/budget",
                    f"{part.strip()!r} is not a budget of an output",
                    why="the agreement of an output is a share of its variation",
                    fix="give a share between 0 and 100%: --budget y=1%,h=5%",
                )
            if name.strip():
                own[name.strip()] = one.amount
            else:
                rest = one
        return Budget(rest.amount, True, {name: rest.amount / amount for name, amount in own.items()}, said)

    def bound(self, before: float, better: str) -> float:
        """Returns the worst score that is allowed."""
        room = abs(before) * self.amount if self.is_share else self.amount
        return before - room if better == "higher" else before + room

    def wider(self, before: float, after: float, better: str) -> str:
        """Returns the advice to give the least budget of this kind, in two digits, that a score meets."""
        lost = before - after if better == "higher" else after - before
        if not (math.isfinite(lost) and lost > 0):
            return "give a wider --budget"
        is_share = self.is_share and before != 0
        amount = 100 * lost / abs(before) if is_share else lost
        digits = 1 - math.floor(math.log10(amount))
        shown = math.ceil(amount * 10**digits) / 10**digits
        return f"widen the budget: --budget {shown:.{max(digits, 0)}f}{'%' if is_share else ''}"

    def allows(self, before: float, after: float, better: str) -> bool:
        """Whether a score is within the budget; never for NaN."""
        bound = self.bound(before, better)
        return after >= bound if better == "higher" else after <= bound

    def __str__(self) -> str:
        if self.said:
            return self.said
        return f"{self.amount:.4g}" if not self.is_share else f"{self.amount * 100:.4g}%"

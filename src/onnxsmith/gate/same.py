"""Says whether two sides give the same answers: models and modules as `compare` does, predict functions by what they
return."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.answers import AnswerDifference, Answers
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import several
from onnxsmith.gate.answer_comparison import differences
from onnxsmith.gate.answers.base import OVERLAP, Counts, Difference, Limits
from onnxsmith.gate.predict_function import Predict, call, is_function, is_module, named, of_side

_MOST = 100
"""The most differences that a report lists. A choice: the first ones tell the kind."""


def same(
    reference: Any,
    candidate: Any,
    *,
    inputs: Any = (),
    tolerance: float | None = None,
    overlap: float = OVERLAP,
    **options: Any,
) -> Report:
    """Compares two sides on the same inputs.

    If one side is a predict function, both are called on each of `inputs`: a tuple is the positional arguments of a
    call, a mapping its named ones if the function has such parameters, anything else its only argument. Answers are
    compared by what they are: arrays relative to their largest magnitude, boxes by intersection over union of at least
    `overlap`, scores by name and rank, texts and all else by equality. `tolerance` replaces the limits of arrays and
    scores.

    Other sides are those of `compare`, which is called with `inputs`, `tolerance` and `options`. A torch module takes
    the first of `inputs` as its example.

    Raises:
        OnnxsmithError: `gate/no-inputs` for predict functions without inputs, `gate/option` for an option that predict
            functions do not take; the errors of `compare`.
    """
    if not is_function(reference) and not is_function(candidate):
        return _of_models(reference, candidate, inputs, tolerance, options)
    if options:
        raise problem(
            "gate/option",
            f"predict functions take no option {next(iter(options))!r}",
            why="it is about the inputs that are generated for a model, or about its runs",
            fix="leave it out, or compare the model files themselves",
        )
    given = list(inputs.items()) if isinstance(inputs, Mapping) else list(enumerate(inputs, 1))
    if not given:
        raise problem(
            "gate/no-inputs",
            "there are no inputs to call the predict functions on",
            where=f"{named(reference)} and {named(candidate)}",
            why="inputs of a whole pipeline cannot be generated: only its author knows what it takes",
            fix="give some, each as the function takes it: inputs=[picture_1, picture_2]",
        )
    with ExitStack() as stack:
        functions = of_side(reference, stack), of_side(candidate, stack)
        names = named(reference), named(candidate)
        if names[0] == names[1]:
            names = f"{names[0]} (the first)", f"{names[1]} (the second)"
        return _Calls(names, functions, Limits(tolerance, overlap)).report(given)


def _of_models(
    reference: Any, candidate: Any, inputs: Any, tolerance: float | None, options: Mapping[str, Any]
) -> Report:
    from onnxsmith.comparison.outputs.compare import compare

    sides = []
    for side in (reference, candidate):
        if is_module(side):
            if not isinstance(inputs, Sequence) or not inputs or isinstance(inputs, str):
                raise problem(
                    "gate/no-inputs",
                    "a torch module needs an example of its inputs",
                    where=named(side),
                    fix="give one: inputs=[(torch.rand(1, 3, 224, 224),)]",
                )
            side = (side, inputs[0] if isinstance(inputs[0], tuple) else (inputs[0],))
        sides.append(side)
    more = {} if any(map(is_module, (reference, candidate))) else {"inputs": inputs}
    return compare(sides[0], sides[1], tolerance=tolerance, **more, **options).report


@dataclass(frozen=True)
class _Calls:
    """Calls both functions and compares their answers."""

    names: tuple[str, str]
    functions: tuple[Predict, Predict]
    limits: Limits

    def report(self, given: Iterable[tuple[Any, Any]]) -> Report:
        counts = Counts()
        rows: list[AnswerDifference] = []
        problems: list[Problem] = []
        inputs = list(given)
        for number, (label, one) in enumerate(inputs):
            text = label if isinstance(label, str) else f"input {label}"
            try:
                answers = [self._answer(side, one, text) for side in (0, 1)]
                again = [self._answer(side, one, text) for side in (0, 1)] if number == 0 else answers
            except OnnxsmithError as error:
                problems.append(error.problem)
                continue
            moved = [list(differences(x, y, self.limits, Counts())) for x, y in zip(answers, again, strict=True)]
            problems += [self._unsteady(side, text, found[0]) for side, found in enumerate(moved) if found]
            found = differences(answers[0], answers[1], self.limits, counts)
            rows += [AnswerDifference(text, one.at, one.kind, one.what) for one in found]
        part = Answers(*self.names, len(inputs), counts.compared, counts.largest, tuple(rows[:_MOST]))
        if rows and not any(one.id == "gate/unsteady" for one in problems):
            problems.insert(0, self._different(rows))
        elif not problems and not counts.compared:
            problems.append(self._empty(len(inputs)))
        doubtful = {"gate/unsteady", "gate/empty-answers"}
        verdict = Verdict.DONE
        if problems:
            only_doubts = {one.id for one in problems} <= doubtful
            verdict = Verdict.CANNOT_TELL if only_doubts else Verdict.DIFFERENT
        said = {Verdict.DONE: "the same answers to", Verdict.DIFFERENT: "DIFFERENT answers to"}
        words = said.get(verdict, "CANNOT TELL on")
        headline = f"{self.names[0]} and {self.names[1]}: {words} {several(len(inputs), 'input')}"
        return Report("compare", verdict, (part,), tuple(problems), headline=headline)

    def _answer(self, side: int, given: Any, label: str) -> Any:
        try:
            return call(self.functions[side], given)
        except Exception as error:  # the user's code may raise anything
            frame = traceback.extract_tb(error.__traceback__)[-1]
            raise problem(
                "gate/raised",
                f"{self.names[side]} raised {type(error).__name__}: {error}",
                where=f"{label}, at {Path(frame.filename).name}:{frame.lineno}",
                why="the other function is not to blame: each is called on its own copy of the input",
                fix="call it on this input alone to see the whole trace",
            ) from error

    def _different(self, rows: Sequence[AnswerDifference]) -> Problem:
        first = rows[0]
        kinds = ", ".join(dict.fromkeys(one.kind for one in rows))
        return Problem(
            "gate/answers-differ",
            f"{self.names[0]} and {self.names[1]} give different answers",
            where=f"{first.input}, {first.at or 'the answer'}",
            why=f"{first.what}; {several(len(rows), 'difference')} in all ({kinds})",
            fix=_FIXES.get(first.kind, "look at both answers to this input: the place above is where they part"),
        )

    def _unsteady(self, side: int, label: str, found: Difference) -> Problem:
        return Problem(
            "gate/unsteady",
            f"{self.names[side]} gives two answers to one input",
            where=f"{label}, {found.at or 'the answer'}",
            why=f"called twice: {found.what}",
            fix="fix its seed, put modules into evaluation mode, and let it keep no state from call to call",
        )

    def _empty(self, inputs: int) -> Problem:
        return Problem(
            "gate/empty-answers",
            "nothing was compared: every answer is empty",
            where=several(inputs, "input"),
            why="two functions that find nothing agree, whatever they compute",
            fix="give inputs with an answer that is not empty",
        )


_FIXES = {
    "count": "compare what comes before the last step, such as the boxes before non-maximum suppression",
    "shape": "compare the inputs of both models first: the pre-processing may differ",
    "numbers": "compare what comes before it: the inputs of the models, and the models alone (`onnxsmith compare`)",
    "text": "compare what the text is made of: tokens, scores, or the text that goes in",
}
"""Maps a kind of difference to what to look at next."""

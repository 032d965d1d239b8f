"""Says whether two sides give the same answers: models and modules as `compare` does, predict functions by what they
return."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.answers import AnswerDifference, Answers
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import several
from onnxsmith.gate import answer_power, given_inputs
from onnxsmith.gate.answer_comparison import differences
from onnxsmith.gate.answers.base import NO_MEASURE, OVERLAP, Counts, Difference, Limits
from onnxsmith.gate.predict_function import Predict, call, is_function, is_module, named, of_side

_MOST = 100
"""The most differences that a report lists. A choice: the first ones tell the kind."""
_DOUBTS = {"gate/unsteady", "gate/empty-answers", "gate/constant-answers", "gate/no-measure"}
"""Names the problems with which nothing can be told."""
_ONE_INPUT = (
    "with a single input, nothing shows that the answers depend on the input: give two inputs with different answers"
)


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
    call, a mapping its named ones if the function has such parameters, anything else its only argument. An array or
    another object that is no collection is one input, and so is a mapping from parameters. Answers are
    compared by what they are: arrays relative to their largest magnitude, boxes by intersection over union of at least
    `overlap`, scores by name and rank, texts and all else by equality. `tolerance` replaces the limits of arrays and
    scores.

    Other sides are those of `compare`, which is called with `inputs`, `tolerance` and `options`. A torch module takes
    the first of `inputs` as its example.

    If every answer is the same whatever the input, the comparison could not have failed: the verdict is `cannot-tell`.

    Raises:
        OnnxsmithError: `gate/no-inputs` for predict functions without inputs, `gate/option` for an option that predict
            functions or models do not take; the errors of `compare`.
    """
    if not is_function(reference) and not is_function(candidate):
        return _of_models(reference, candidate, inputs, tolerance, options)
    if options:
        raise problem(
            "gate/option",
            f"predict functions do not accept the option {next(iter(options))!r}",
            why="this option is about generated inputs or runs of a model",
            fix="leave this option out, or compare the model files themselves",
        )
    given = given_inputs.labelled(inputs, [one for one in (reference, candidate) if is_function(one)])
    if not given:
        raise problem(
            "gate/no-inputs",
            "there are no inputs to call the predict functions on",
            where=f"{named(reference)} and {named(candidate)}",
            why="inputs of a whole pipeline cannot be generated, because only its author knows suitable inputs",
            fix="give inputs in the form that the function accepts: inputs=[picture_1, picture_2]",
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

    unknown = next((name for name in options if name not in inspect.signature(compare).parameters), None)
    if unknown is not None:
        raise problem(
            "gate/option",
            f"there is no option {unknown!r}",
            why="for two models, the options are those of `onnxsmith.compare`, and `inputs` and `tolerance`",
            fix="leave the option out, or correct its name",
        )
    sides = []
    for side in (reference, candidate):
        if is_module(side):
            args = given_inputs.example(side, inputs)
            if args is None:
                raise problem(
                    "gate/no-inputs",
                    "a torch module needs an example of its inputs",
                    where=named(side),
                    fix="give an example: inputs=[(torch.rand(1, 3, 224, 224),)]",
                )
            side = (side, args)
        sides.append(side)
    more = {} if any(map(is_module, (reference, candidate))) else {"inputs": inputs}
    return compare(sides[0], sides[1], tolerance=tolerance, **more, **options).report


@dataclass(frozen=True)
class _Calls:
    """Calls both functions and compares their answers."""

    names: tuple[str, str]
    functions: tuple[Predict, Predict]
    limits: Limits

    def report(self, inputs: Sequence[tuple[str, Any]]) -> Report:
        """Calls both functions on each input, and returns the report."""
        counts = Counts()
        rows: list[AnswerDifference] = []
        how = ""
        problems: list[Problem] = []
        first: list[Any] = []
        equal = 0
        for number, (text, one) in enumerate(inputs):
            try:
                answers = [self._answer(side, one, text) for side in (0, 1)]
                again = [self._answer(side, one, text) for side in (0, 1)] if number == 0 else answers
            except OnnxsmithError as error:
                problems.append(error.problem)
                continue
            moved = [
                [one for one in differences(x, y, self.limits, Counts()) if one.kind != NO_MEASURE]
                for x, y in zip(answers, again, strict=True)
            ]
            problems += [self._unsteady(side, text, found[0]) for side, found in enumerate(moved) if found]
            found = list(differences(answers[0], answers[1], self.limits, counts))
            how = how if rows or not found else found[0].how
            rows += [AnswerDifference(text, one.at, one.kind, one.what) for one in found]
            first = first or [answer_power.copied(answers[0])]
            equal += answer_power.are_equal(first[0], answers[0])
        part = Answers(*self.names, len(inputs), counts.compared, counts.largest, tuple(rows[:_MOST]))
        if rows and not any(one.id == "gate/unsteady" for one in problems):
            is_unknown = all(one.kind == NO_MEASURE for one in rows)
            problems.insert(0, self._no_measure(rows[0]) if is_unknown else self._different(rows, how))
        elif not problems and not counts.compared:
            problems.append(self._empty(len(inputs)))
        elif not problems and (
            equal == len(inputs) > 1
            or (len(inputs) == 1 and answer_power.is_constant(self.functions[0], inputs[0][1], first[0]))
        ):
            problems.append(self._constant(len(inputs)))
        verdict = Verdict.DONE
        if problems:
            verdict = Verdict.CANNOT_TELL if {one.id for one in problems} <= _DOUBTS else Verdict.DIFFERENT
        said = {Verdict.DONE: "the same answers to", Verdict.DIFFERENT: "DIFFERENT answers to"}
        words = said.get(verdict, "CANNOT TELL on")
        headline = f"{self.names[0]} and {self.names[1]}: {words} {several(len(inputs), 'input')}"
        notes = [_ONE_INPUT] if len(inputs) == 1 and first and not answer_power.has_floats(first[0]) else []
        return Report("compare", verdict, (part,), tuple(problems), notes=tuple(notes), headline=headline)

    def _answer(self, side: int, given: Any, label: str) -> Any:
        try:
            return call(self.functions[side], given)
        except Exception as error:  # the user's code may raise anything
            frame = traceback.extract_tb(error.__traceback__)[-1]
            raise problem(
                "gate/raised",
                f"{self.names[side]} raised {type(error).__name__}: {error}",
                where=f"{label}, at {Path(frame.filename).name}:{frame.lineno}",
                why="the other function is not the cause, because each function gets its own copy of the input",
                fix="call this function on this input alone to see the whole traceback",
            ) from error

    def _different(self, rows: Sequence[AnswerDifference], how: str) -> Problem:
        first = rows[0]
        paired = f"; {how}" if how else ""
        kinds = ", ".join(dict.fromkeys(one.kind for one in rows))
        return Problem(
            "gate/answers-differ",
            f"{self.names[0]} and {self.names[1]} give different answers",
            where=f"{first.input}, {first.at or 'the answer'}",
            why=f"{first.what}; {several(len(rows), 'difference')} in all ({kinds}){paired}",
            fix="; or ".join(filter(None, (_FIRST.get(first.kind), _STAGES, _STEPS))),
        )

    def _no_measure(self, first: AnswerDifference) -> Problem:
        return Problem(
            "gate/no-measure",
            "answers of this type cannot be compared",
            where=f"{first.input}, {first.at or 'the answer'}",
            why=first.what,
            fix="let both functions return arrays, numbers, texts, or lists, mappings and dataclasses of these",
        )

    def _unsteady(self, side: int, label: str, found: Difference) -> Problem:
        return Problem(
            "gate/unsteady",
            f"{self.names[side]} gives different answers to the same input",
            where=f"{label}, {found.at or 'the answer'}",
            why=f"called twice: {found.what}",
            fix="fix the seed, put modules into evaluation mode, and keep no state between calls",
        )

    def _empty(self, inputs: int) -> Problem:
        return Problem(
            "gate/empty-answers",
            "nothing was compared: every answer is empty",
            where=several(inputs, "input"),
            why="two functions that find nothing agree, whatever they compute",
            fix="give inputs with an answer that is not empty",
        )

    def _constant(self, inputs: int) -> Problem:
        return Problem(
            "gate/constant-answers",
            "the answers do not depend on the inputs",
            where=several(inputs, "input"),
            why="every answer is the same, so even two functions that ignore their inputs would agree"
            if inputs > 1
            else "the answer is the same for changed copies of the input, or all its numbers are 0",
            fix="give inputs with different answers; or let the functions return the values before the last step, "
            "such as the scores before a threshold",
        )


_STAGES = (
    "compare the stages one by one: both pre-processings on this input, both models on one tensor, both "
    "post-processings on one output. The cause is in the first stage that differs"
)
_STEPS = (
    "if this is already a single stage, return a mapping with the values after each step. The first key that "
    "differs names the step"
)
_FIRST = {
    "count": "look at the last step first: its thresholds, and how it drops entries",
    "shape": "look at the sizes and the order of the axes first",
    "dtype": "look first for a step that computes in another dtype, or casts in another place",
    "text": "compare first the tokens of the text, or their scores",
    "keys": "let both return the same keys first",
    "order": "look first at how the lists are sorted",
}
"""Maps a kind of difference to what to look at before the stages."""

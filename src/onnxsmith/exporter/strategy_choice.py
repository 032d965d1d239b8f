"""Decides which export strategy is tried next, and which graph an export takes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.parts.verification import REFUSES
from onnxsmith.base.words import in_place_of
from onnxsmith.exporter.foreseen_errors import foreseen
from onnxsmith.exporter.inputs.module_program import Built
from onnxsmith.exporter.module import translation_trial
from onnxsmith.exporter.operator_scan import OperatorScan
from onnxsmith.exporter.strategies.base import Strategy
from onnxsmith.exporter.strategy_run import Made, Maker, option
from onnxsmith.exporter.tracing.frozen_axes import FrozenAxisError
from onnxsmith.exporter.tracing.size_branches import SizeBranch
from onnxsmith.exporter.translating import missing_operators
from onnxsmith.exporter.translating.missing_operators import UntranslatedError
from onnxsmith.exporter.translating.register import registered
from onnxsmith.verification.runtime_choice import FAILS


def strategies(asked: str | None) -> list[Strategy]:
    """Returns all strategies in the order in which they are tried, or only the requested one.

    Raises:
        OnnxsmithError: `export/unknown-strategy`.
    """
    members = rooms.members("onnxsmith.exporter.strategies", Strategy)
    known = dict(sorted(members.items(), key=lambda item: item[1].rank))
    if asked is None:
        return list(known.values())
    if asked not in known:
        raise problem("export/unknown-strategy", f"there is no strategy {asked!r}", fix=in_place_of(asked, known))
    return [known[asked]]


def tried(maker: Maker, built: Built, output: str | Path | BinaryIO | None, *, as_it_is: bool = False) -> Iterator[Try]:
    """Tries the strategies in order, up to the first whose graph agrees with the module. With `as_it_is`, skips the
    strategies that replace lines of the module."""
    settings = maker.settings
    before: list[Problem] = []
    scan = OperatorScan(built, alone=settings.strategy is not None)
    order = strategies(settings.strategy)
    for strategy in order:
        if settings.strategy is None and (scan.rules_out(strategy) or not strategy.is_worth_it(before)):
            continue
        if as_it_is and not strategy.as_it_is:
            continue
        try:
            # A strategy that fixes values silently is only tried if the verification can find such values.
            if settings.translations and not strategy.takes_translations:
                raise _ignores_translations(strategy)
            if settings.strategy is None and not (strategy.follows_sizes or settings.verify):
                raise _needs_verification(strategy)
            with foreseen():
                made = maker.make(strategy, built, output)
        except OnnxsmithError as error:
            error = _with_plugin(error)
            if error.problem.id.startswith("save/"):  # a problem of the disk: another strategy would meet it too
                raise
            error = missing_operators.with_code(scan.instead_of(error, is_first=strategy is order[0]), maker.target)
            before.append(error.problem)
            before += _of_branches(error.branches if isinstance(error, FrozenAxisError) else ())
            yield Try(strategy, error=error)
            continue
        if made.other_path is not None:
            before.append(made.other_path)
        agrees = not (made.verification.differs and settings.verify)
        if not agrees:
            made = replace(made, trials=translation_trial.tried(made.graph.registered, built.program, built.example))
            scan.wrong(made.trials)
        before += [] if agrees else [*_of_branches(made.graph.branches), *_of_counts(made.graph.counted)]
        yield Try(strategy, made, agrees=agrees)
        if agrees:
            return


def first_that_agrees(maker: Maker, built: Built, output: str | Path | BinaryIO | None) -> tuple[Made, tuple[str, ...]]:
    """Returns the result of the first strategy whose graph agrees with the module, and why earlier strategies failed.
    If no graph agrees, returns the first strategy's graph, which differs. If it has none, raises its problem with a few
    words on each other failure; the exception's notes hold these in full."""
    tries = list(tried(maker, built, output))
    failures = tuple(f"{one.strategy.title}: {one.failure}" for one in tries)
    last, first = tries[-1], tries[0]
    if last.agrees:
        assert last.made is not None
        return last.made, failures[:-1]
    by_standard = _by_standard(maker, built, output, tries)
    if by_standard is not None:
        return by_standard, failures[1:]
    if first.made is not None:
        return first.made, failures[1:]
    assert first.error is not None
    untranslated = next((one.error for one in tries if isinstance(one.error, UntranslatedError)), None)
    if untranslated is not None:
        raise untranslated
    if isinstance(first.error, FrozenAxisError) or len(tries) == 1:
        raise first.error
    said = _of_furthest(first.error.problem, tries)
    accepted = _accepted(said, tries, maker, built)
    same = (said, first.error.problem)  # what is said says more about the same line than the first strategy did
    others = [
        at
        for at, one in enumerate(tries)
        if one is not accepted and (one.error is None or one.error.problem not in same)
    ]
    brief = "; ".join(f"{tries[at].strategy.title}: {tries[at].brief}" for at in others)
    why = said.why + (f" (tried as well: {brief})" if others else "")
    fix, helped = said.fix, said.tried
    if accepted is not None:  # it was tried and agrees: the message does not list it among what failed
        offered = option(accepted.strategy)
        fix = f"{fix}; or, if every input selects two elements or more there, {offered}"
        helped = (*helped, offered) if maker.settings.verify else helped
    if any(one.error is not None and one.error.problem.id == "export/unverified-trace" for one in tries):
        fix = (
            f"{fix}; or leave --no-verify out: onnxsmith then also tries a TorchScript trace, and compares it with "
            "the module"
        )
    raised = OnnxsmithError(replace(said, why=why, fix=fix, tried=helped))
    for at in others:
        raised.add_note(failures[at])
    raise raised


def _of_furthest(said: Problem, tries: Sequence[Try]) -> Problem:
    """Returns the problem of a strategy that went on where `said` stopped the first one, and found another reason at
    the same line; else `said`."""
    later = [one.error.problem for one in tries[1:] if one.error is not None]
    return next((one for one in later if (one.id, one.where) == (said.id, said.where) and one != said), said)


def _by_standard(maker: Maker, built: Built, output: str | Path | BinaryIO | None, tries: Sequence[Try]) -> Made | None:
    """Returns the graph of the first strategy whose graph the usual runtime refuses or fails on, if the reference
    evaluator finds that it agrees with the module; else None. No strategy has made a graph that runs."""
    settings = maker.settings
    if settings.verify is None or settings.verify.runtime is not None:
        return None
    one = next((one for one in tries if one.fails_to_run), None)
    if one is None:
        return None
    try:
        with foreseen():
            made = replace(maker, by_standard=True).make(one.strategy, built, output)
    except OnnxsmithError as error:
        if error.problem.id.startswith("save/"):
            raise
        return None
    return None if made.verification.differs or made.other_path is not None else made


@dataclass(frozen=True)
class Try:
    """A strategy with its result `made`, or with the error that stopped it. `agrees` says whether the result agrees
    with the module."""

    strategy: Strategy
    made: Made | None = None
    error: OnnxsmithError | None = None
    agrees: bool = False

    @property
    def fails_to_run(self) -> bool:
        """Whether the runtime refuses the graph, or fails on an input that the module takes."""
        if self.error is not None:
            return self.error.problem.id in FAILS
        outputs = self.made.verification.outputs if self.made is not None else ()
        return any(one.reason.startswith(REFUSES) for one in outputs)

    @property
    def failure(self) -> str:
        """Says in one line why the strategy made no graph that agrees with the module."""
        if self.made is not None and self.made.other_path is not None:
            return self.made.other_path.what
        if self.made is not None and self.made.has_wrong_translation:
            return "; ".join(str(one) for one in self.made.trials if one.difference)
        if self.error is None:
            return "its graph computes other results than the module"
        found = self.error.problem
        at = f" ({found.where})" if found.id == "export/frozen-axis" and found.where else ""
        return f"{found.what}{at}: {found.why}".removesuffix(": ")

    @property
    def brief(self) -> str:
        """Says the failure in a few words: what happened, or the first clause of the cause if that says more."""
        said = self.failure
        if self.error is not None:
            found = self.error.problem
            said = found.why if found.why and found.id in _GENERAL else found.what
        clause = _CLAUSE.split(_KIND.sub("", said), 1)[0]
        return textwrap.shorten(clause, _BRIEF, placeholder=" …")


_GENERAL = {"export/capture-failed", "export/translation-failed"}
"""Names problems whose `why` says more than their `what`."""
_BRIEF = 100
"""Limits the characters of a failure in a list of failures. A choice: about a line of a terminal."""
_KIND = re.compile(r"^\w+(Error|Exception): ")
_CLAUSE = re.compile(r"\. |: File |; |\n")


def _needs_verification(strategy: Strategy) -> OnnxsmithError:
    return problem(
        "export/unverified-trace",
        f"{strategy.title} is not tried without verification",
        why="this strategy turns values of the example into constants, and only the verification at other values "
        "and sizes finds such constants",
        fix=f"leave --no-verify out; or choose this strategy: {option(strategy)}",
    )


def _accepted(said: Problem, tries: Sequence[Try], maker: Maker, built: Built) -> Try | None:
    """Returns the try whose strategy the user may accept, if a branch asks whether a selection is empty: the line may
    lie in a library. The strategy takes one side, and was refused for that alone: its graph is compared with the module
    first, and if it differs, nothing is offered."""
    refused = (one for one in tries if one.error and one.error.problem.id == "export/fixed-by-the-example")
    found = next(refused, None)
    if said.id != "forward/branch-on-data" or found is None or not option(found.strategy).endswith("torch-selected"):
        return None
    settings = replace(maker.settings, strategy=option(found.strategy).rpartition(" ")[2])
    try:
        with foreseen():
            made = replace(maker, settings=settings).make(found.strategy, built, None)
    except OnnxsmithError:
        return None
    return None if made.verification.differs and settings.verify else found


def _of_branches(branches: Sequence[SizeBranch]) -> Iterator[Problem]:
    """Yields a problem for the first of `branches`, the branches on sizes of which the graph has one side."""
    for branch in branches[:1]:
        yield Problem("forward/size-compared", "a branch depends on a dynamic size", where=branch.line)


def _of_counts(lines: Sequence[str]) -> Iterator[Problem]:
    """Yields a problem for the first line at which a number that follows from sizes became a constant."""
    for line in lines[:1]:
        yield Problem("forward/loop-over-blocks", "a number that follows from a size became a constant", where=line)


def _with_plugin(error: OnnxsmithError) -> OnnxsmithError:
    """Returns the error. If no runtime knows a node that a user's translation wrote, adds how to verify that node."""
    if error.problem.id != "runtime/unknown-operator" or not any(one.writers for one in registered()):
        return error
    return error.at(
        "",
        'register a translation in PyTorch\'s operators with deliver="plugin": the file then has the custom node, '
        "and onnxsmith compares the translation with the module",
    )


def _ignores_translations(strategy: Strategy) -> OnnxsmithError:
    return problem(
        "export/unknown-strategy",
        f"{strategy.title} supports no translations of operators",
        where="custom_translation_table",
        fix="leave out the argument strategy, or leave out the table",
    )

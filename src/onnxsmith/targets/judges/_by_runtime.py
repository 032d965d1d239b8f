"""Asks targets that run models through a member of `onnxsmith.runtimes`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import metadata
from typing import ClassVar

import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.parts.target_checks import Stage
from onnxsmith.runtimes.base import Feeds, Options, Preparer, Runtime, Session
from onnxsmith.targets.judges.base import Answer, Judge, Refusal, Target, refusal


class RuntimeTarget(Target):
    """Asks the runtime of the class variable `runtime`, at each optimisation level of `levels`."""

    levels: ClassVar[tuple[str, ...]] = ("",)
    """Lists the optimisation levels that a model has to pass; "" is the default level."""
    told: ClassVar[tuple[str, ...]] = ()
    """Names the changes that the runtime makes before it asks its library."""

    @property
    def _runtime(self) -> Runtime:
        assert self.runtime is not None
        return rooms.members("onnxsmith.runtimes", Runtime)[self.runtime]

    def missing(self) -> Problem | None:
        return self._runtime.missing()

    def version(self) -> str:
        package = self._runtime.package
        return metadata.version(package) if package is not None else ""

    @contextmanager
    def judging(self) -> Iterator[Judge]:
        with self._runtime.preparer(keep=1) as preparer:
            yield RuntimeJudge(preparer, self.levels, self.told)


class RuntimeJudge(Judge):
    """Asks a runtime by preparing and running models."""

    def __init__(self, preparer: Preparer, levels: tuple[str, ...] = ("",), told: tuple[str, ...] = ()) -> None:
        self._preparer, self._levels, self._told = preparer, levels, told

    def ask(self, model: ir.Model, feeds: Feeds | None = None) -> Answer:
        reached, symbols = Stage.BUILT, None
        for level in self._levels:
            options = Options(optimization=level) if level else Options()
            said = f"at the optimisation level {level}: " if level else ""
            try:
                session = self._preparer.prepare(model, options)
            except OnnxsmithError as error:
                return Answer(Stage.NOT_TRIED, _told(error, Stage.NOT_TRIED, said))
            if feeds is None:
                reached = reached if session.is_built else Stage.PARSED  # built only in a run, for its sizes
                continue
            try:
                session.run(feeds)
            except OnnxsmithError as error:
                return Answer(Stage.BUILT, _told(error, Stage.BUILT, said))
            reached = Stage.RAN
            if not session.is_built and _shapes(session) != "sizes":  # "sizes": an output is a dimension
                symbols = Refusal(said + _why_sized(session), Stage.NOT_TRIED)
        return Answer(reached, notes=self._told, symbols=symbols)


def _told(error: OnnxsmithError, stage: Stage, said: str) -> Refusal:
    found = refusal(error, stage)
    return replace(found, why=said + found.why)


def _shapes(session: Session) -> str:
    """Returns how the session ran, if its runtime says so: with symbols, or at fixed sizes with the reason."""
    return str(getattr(session, "head", {}).get("shapes", ""))


def _why_sized(session: Session) -> str:
    return _shapes(session).partition(": ")[2] or "the runtime does not accept the model's symbolic dimensions"

"""One child process that prepares one model after another: starting it takes longer than most small models do."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.model.load import load
from onnxsmith.model.signature import Signature, signature
from onnxsmith.problem import OnnxsmithError, problem
from onnxsmith.runtimes import _feeds
from onnxsmith.runtimes._child import Child
from onnxsmith.runtimes._process import preparation
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Preparer, Session, Source, on_disk, onnx_source

_START_LIMIT = 120.0
"""Seconds for the child to import its library, which no model is to blame for."""
_GONE = {"runtime/died", "runtime/timeout"}


class Isolated(Preparer):
    """Serves from `module`, whose function `main` calls `serve`. After a crash or a timeout the child is started
    again."""

    def __init__(self, module: str, what: str) -> None:
        self._module, self._what = module, what
        self._child: Child | None = None
        self._spare: Child | None = None
        self._file = contextlib.ExitStack()
        self._lost = False
        self.turn = 0
        """How often a model was prepared; a session belongs to one turn."""

    def prepare(self, source: Source, options: Options | None = None, *, interface: Signature | None = None) -> Session:
        options = options or Options()
        model: Path | ir.Model = onnx_source(source)
        self._file.close()
        path, weights = self._file.enter_context(on_disk(model))
        self.turn += 1
        ports = interface or signature(load(model))
        self.start()
        head, _ = self.ask(preparation(path, weights, options), time_limit=options.time_limit)
        return _Turn(self, ports, str(head.get("provider", "")), options.time_limit)

    def start(self) -> None:
        """Starts the child where there is none, and waits until it has imported what it needs."""
        if self._child is None:
            replaced = self._spare is not None or self._lost
            self._child, self._spare = self._spare or self._started(), None
            if replaced:  # one that was lost is followed by more: the next imports while this one works
                self._spare = self._started()
            self.ask({"do": "about"}, time_limit=_START_LIMIT)

    def _started(self) -> Child:
        return Child(self._module, "main", what=self._what)

    def ask(
        self, request: dict[str, Any], feeds: Feeds | None = None, *, time_limit: float | None = None
    ) -> tuple[dict[str, Any], Outputs]:
        """The child's answer. A child that died is gone, and the next `prepare` starts another."""
        if self._child is None:
            raise problem("runtime/closed", f"the session with {self._what} is closed", fix="prepare the model again")
        try:
            return self._child.ask(request, dict(feeds or {}), time_limit=time_limit)
        except OnnxsmithError as error:
            if error.problem.id in _GONE:
                self._drop()
                self._lost = True
            raise
        except BaseException:
            self._drop()
            raise

    def run(self, turn: int, feeds: Feeds, time_limit: float | None) -> Outputs:
        """What the model of that turn answers."""
        if turn != self.turn:
            raise problem("runtime/closed", "another model was prepared since", fix="prepare the model again")
        return self.ask({"do": "run"}, feeds, time_limit=time_limit)[1]

    def _drop(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def close(self) -> None:
        self._drop()
        if self._spare is not None:
            self._spare.close()
            self._spare = None
        self._file.close()


class _Turn(Session):
    """A session that lives until the next model is prepared, or the child is gone."""

    def __init__(self, isolated: Isolated, interface: Signature, provider: str, time_limit: float | None) -> None:
        self._isolated, self._turn, self._time_limit = isolated, isolated.turn, time_limit
        self.signature, self.provider = interface, provider

    def run(self, feeds: Feeds) -> Outputs:
        _feeds.check(feeds, self.signature)
        return self._isolated.run(self._turn, feeds, self._time_limit)

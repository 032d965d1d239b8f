"""Runtimes that live in a child process: one that prepares one model after another, because starting it takes longer
than most small models do, or one for a single model."""

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
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Preparer, Session, Source, on_disk, onnx_source

_START_LIMIT = 120.0
"""Seconds for the child to import its library, which no model is to blame for."""
_GONE = {"runtime/died", "runtime/timeout"}


class Isolated(Preparer):
    """Serves from `module`, whose function `main` calls `serve`; after a crash or a timeout the child is started again.

    Its `prepare` request gets the fields of `Options` and `path`, and `weights`, the folder of external data that lies
    elsewhere, where the runtime can read it there (`refers`).
    """

    def __init__(self, module: str, what: str, *, refers: bool = True) -> None:
        self._module, self._what, self._refers = module, what, refers
        self._child: Child | None = None
        self._spare: Child | None = None
        self._file = contextlib.ExitStack()
        self._request: dict[str, Any] = {}
        self._lost = False
        self.turn = 0
        """How often a model was prepared; a session belongs to one turn."""

    def prepare(self, source: Source, options: Options | None = None, *, interface: Signature | None = None) -> Session:
        return self.turned(source, options or Options(), interface)

    def turned(self, source: Source, options: Options, interface: Signature | None = None) -> Turn:
        """The session of the next turn, which ends the one before."""
        model: Path | ir.Model = onnx_source(source)
        ports = interface or signature(load(model))
        self.check(ports)
        self._file.close()
        path, weights = self._file.enter_context(on_disk(model, refer=self._refers))
        self.turn += 1
        self._request = {
            "do": "prepare",
            "path": str(path.absolute()),
            "weights": None if weights is None else str(weights),
            "provider": options.provider,
            "optimization": options.optimization,
            "threads": options.threads,
        }
        return self.session(ports, self.begin(options.time_limit), options.time_limit)

    def alone(self, source: Source, options: Options) -> Session:
        """A session with the only model that this is for; the child ends with it."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.close)
            made = self.turned(source, options)
            stack.pop_all()
        made.stay_alone()
        return made

    def check(self, interface: Signature) -> None:
        """Raises for a model that the runtime is not to be asked to take."""

    def session(self, interface: Signature, head: dict[str, Any], time_limit: float | None) -> Turn:
        """The session of this turn."""
        return Turn(self, interface, head, time_limit)

    def begin(self, time_limit: float | None) -> dict[str, Any]:
        """What the child answers to the model of this turn, on a child that is there."""
        self.start()
        return self.ask(self._request, time_limit=time_limit)[0]

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
        """The child's answer. A child that died is gone."""
        assert self._child is not None
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
            raise problem(
                "runtime/closed",
                f"the session with {self._what} is closed, or another model was prepared since",
                fix="prepare the model again",
            )
        if self._child is None:
            self.begin(time_limit)
        return self.ask({"do": "run"}, feeds, time_limit=time_limit)[1]

    def _drop(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def close(self) -> None:
        self.turn += 1
        self._drop()
        if self._spare is not None:
            self._spare.close()
            self._spare = None
        self._file.close()


class Turn(Session):
    """A session that lives until the next model is prepared. After a crash or a timeout the next run starts another
    child and prepares the model again: what one input does to a runtime says nothing of others. `head` is what the
    child said of the model."""

    def __init__(
        self, isolated: Isolated, interface: Signature, head: dict[str, Any], time_limit: float | None
    ) -> None:
        self.isolated, self.time_limit, self.head = isolated, time_limit, head
        self.signature, self.provider = interface, str(head.get("provider", ""))
        self._turn = isolated.turn
        self._alone = False

    @property
    def nodes_by_provider(self) -> dict[str, int]:
        """How many nodes each execution provider runs, where the runtime says so."""
        return dict(self.head.get("nodes", {}))

    def run(self, feeds: Feeds) -> Outputs:
        _feeds.check(feeds, self.signature)
        return self.isolated.run(self._turn, feeds, self.time_limit)

    def close(self) -> None:
        if self._alone:
            self.isolated.close()

    def stay_alone(self) -> None:
        """The child is for this model only, and ends with the session."""
        self._alone = True

"""Runs runtimes in a child process. A preparer serves many models with one process, because starting a process takes
longer than running most small models. A session may also have a process of its own."""

from __future__ import annotations

import contextlib
import itertools
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import named_data
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import Signature, signature
from onnxsmith.runtimes import _call_limits, _feeds, _idle
from onnxsmith.runtimes import _timing as timing
from onnxsmith.runtimes._child import Child
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Preparer, Session, Source, on_disk, onnx_source

_START_LIMIT = 120.0
"""Limits the seconds that the child takes to import its library. A choice: no model is to blame for a slow import."""
_GONE = {"runtime/died", "runtime/timeout", "runtime/memory"}
"""Names the errors after which the child is replaced. A process that ran out of memory may be in any state."""
_PERHAPS_ANOTHERS = {"runtime/died", "runtime/memory"}
"""Names the errors that another session in the process may have caused. A lack of memory may also come from earlier
inputs of the same session."""


class Isolated(Preparer):
    """Serves from `module`, whose function `main` calls `serve`. After a crash or a timeout the child is restarted.

    The `prepare` request contains the fields of `Options`, the `session`'s number and `path`. If the runtime can read
    external data in another folder (`refers`), `weights` names this folder. The child holds the sessions of `keep`
    models, one for each requested optimisation level of `levels`.
    """

    slowness: ClassVar[float] = 1.0
    """Says how many times longer the runtime may take than a runtime with native kernels."""

    def __init__(
        self, module: str, what: str, *, refers: bool = True, keep: int = 1, levels: tuple[str, ...] = ()
    ) -> None:
        self.what, self.levels = what, levels
        self._module, self._refers, self._keep = module, refers, keep
        self._child: Child | None = None
        self._spare: Child | None = None
        self._lost = self._met = False
        self._numbers = itertools.count(1)
        self._kept: list[Turn] = []
        self._resident: dict[int, int] = {}
        """Maps the sessions that the child holds to the number of their runs."""
        self._released: list[int] = []
        """Lists the sessions that the child drops with the next request."""

    def prepare(
        self,
        source: Source,
        options: Options | None = None,
        *,
        interface: Signature | None = None,
        read: ir.Model | None = None,
    ) -> Session:
        return self.turned(source, options or Options(), interface, read)

    def turned(
        self, source: Source, options: Options, interface: Signature | None = None, read: ir.Model | None = None
    ) -> Turn:
        """Returns a session for the model. Ends the oldest session if there are more than `keep`."""
        model: Path | ir.Model = onnx_source(source)
        # A file whose interface is known is not read here: the runtime reads it.
        if read is None and not (interface is not None and isinstance(model, Path)):
            read = load(model)
        ports = signature(read) if interface is None and read is not None else interface
        assert ports is not None
        return self.begun(
            on_disk(model, refer=self._refers), ports, options, weight_of(model if read is None else read)
        )

    def begun(
        self,
        files: AbstractContextManager[tuple[Path, Path | None]],
        interface: Signature,
        options: Options,
        weight: int,
    ) -> Turn:
        """Returns a session for the model in `files`, which holds its path and the folder of its weights."""
        self.check(interface)
        while len(self._kept) >= self._keep:  # frees their memory before the next model needs it
            self._kept[0].end()
        with contextlib.ExitStack() as file:
            path, weights = file.enter_context(files)
            made = self.session(interface, _request(path, weights, options, self.what), options, weight)
            made.begin()
            made.file = file.pop_all()
        self._kept.append(made)
        return made

    def alone(self, source: Source, options: Options) -> Session:
        """Returns a session for the only model of this preparer. Closing the session ends the child."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.close)
            made = self.turned(source, options)
            stack.pop_all()
        made.stay_alone()
        return made

    def check(self, interface: Signature) -> None:
        """Raises if the runtime must not be asked to run the model."""

    def session(self, interface: Signature, request: dict[str, Any], options: Options, weight: int) -> Turn:
        """Returns the session of a model with `weight` bytes of weights; `request` prepares it."""
        return Turn(self, interface, request, options, weight)

    def number(self) -> int:
        """Returns a new session number."""
        return next(self._numbers)

    def begin(self, request: dict[str, Any], time_limit: float) -> dict[str, Any]:
        """Starts the child if there is none, and returns its answer to a request that prepares a session."""
        self.start()
        number = request["session"]
        try:
            head, _ = self.ask(request, time_limit=time_limit)
        except OnnxsmithError as error:
            if not self._may_be_anothers(error, number):
                raise
            self.start()
            head, _ = self.ask(request, time_limit=time_limit)
        self._resident[number] = 0
        return head

    def run(self, request: dict[str, Any], asked: dict[str, Any], feeds: Feeds, time_limit: float) -> Outputs:
        """Runs the session that `request` prepares, and returns its answer to `asked`. If the process dies while it
        holds other sessions too, another session may be the cause. The question is then asked again in a new
        process."""
        number = request["session"]
        if self._child is None or number not in self._resident:
            self.begin(request, time_limit)
        asked = {"do": "run", "session": number, **asked}
        try:
            answer = self.ask(asked, feeds, time_limit=time_limit)[1]
        except OnnxsmithError as error:
            if not self._may_be_anothers(error, number):
                raise
            self.begin(request, time_limit)
            answer = self.ask(asked, feeds, time_limit=time_limit)[1]
        self._resident[number] += 1
        return answer

    def _may_be_anothers(self, error: OnnxsmithError, number: int) -> bool:
        """Whether the child is gone and held more than the numbered session needs: other sessions, or memory from
        earlier inputs of the same session. Forgets the child's sessions."""
        if error.problem.id not in _GONE:
            return False
        resident, self._resident, self._released = self._resident, {}, []
        grown = error.problem.id == "runtime/memory" and resident.get(number, 0) > 0
        return error.problem.id in _PERHAPS_ANOTHERS and (grown or bool(resident.keys() - {number}))

    def forget(self, turn: Turn, numbers: list[int]) -> None:
        """Makes the child drop these sessions with the next request."""
        self._released += [number for number in numbers if self._resident.pop(number, None) is not None]
        if turn in self._kept:
            self._kept.remove(turn)

    def start(self) -> int:
        """Starts the child if there is none, and waits until it has imported its library. Returns its process id."""
        self.expect()
        if not self._met:
            self.ask({"do": "about"}, time_limit=_START_LIMIT)
            self._met = True
        assert self._child is not None
        return self._child.pid

    def expect(self) -> None:
        if self._child is None:
            self._resident, self._released, self._met = {}, [], False
            replaced = self._spare is not None or self._lost
            self._child, self._spare = self._spare or self._started(), None
            if replaced:  # after a crash more may follow: the next child imports its library while this one works
                self._spare = self._started()

    def _started(self) -> Child:
        return _idle.started(self._module, self.what)

    def ask(
        self, request: dict[str, Any], feeds: Feeds | None = None, *, time_limit: float | None = None
    ) -> tuple[dict[str, Any], Outputs]:
        """Returns the child's answer. Forgets the child if it has died."""
        assert self._child is not None
        released, self._released = self._released, []
        try:
            return self._child.ask({**request, "release": released}, dict(feeds or {}), time_limit=time_limit)
        except OnnxsmithError as error:
            if error.problem.id in _GONE:
                self._drop()
                self._lost = True
            raise
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def close(self) -> None:
        while self._kept:
            self._kept[0].end()
        for child in (self._child, self._spare):
            if child is not None:
                _idle.retire(child, self._module, [*self._resident, *self._released])
        self._child = self._spare = None


def weight_of(model: Path | ir.Model) -> int:
    """Returns the bytes of a model's weights, or of the files of a model that was not read."""
    if isinstance(model, Path):
        files = (model, *(model.parent / name for name in named_data(model)))
        return sum(file.stat().st_size for file in files if file.is_file())
    return sum(tensor.nbytes for tensor in walk.initializer_tensors(model))


def _request(path: Path, weights: Path | None, options: Options, what: str) -> dict[str, Any]:
    return {
        "do": "prepare",
        "of": what,
        "path": str(path.absolute()),
        "weights": None if weights is None else str(weights),
        "provider": options.provider,
        "optimization": options.optimization,
        "in_order": options.in_order,
        "unsaturated": options.unsaturated,
        "threads": options.threads,
        "exact": options.exact,
        "repeated": options.repeated,
    }


def _bytes(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_bytes, value))
    return int(getattr(value, "nbytes", 0))


class Turn(Session):
    """Holds a session that lives until it is closed, or until its preparer prepares others. After a crash or a timeout,
    the next run starts a new child and prepares the model again, because one bad input says nothing about other inputs.
    `head` holds the child's facts about the model."""

    def __init__(
        self, isolated: Isolated, interface: Signature, request: dict[str, Any], options: Options, weight: int
    ) -> None:
        self.isolated, self.options, self.signature, self.weight = isolated, options, interface, weight
        self.time_limit = options.time_limit
        """Limits the seconds of the next runs; may be changed between two runs."""
        self.head: dict[str, Any] = {}
        self.file = contextlib.ExitStack()
        """Holds the session's files on disk."""
        self._request = {**request, "session": isolated.number(), "memory": self._memory()}
        self._levels: dict[str, Turn] = {}
        self._over = False
        self._alone = False

    def begin(self) -> None:
        """Prepares the model. Raises the runtime's errors."""
        self.head = self.isolated.begin(self._request, self._seconds())
        self.provider = str(self.head.get("provider", ""))

    @property
    def nodes_by_provider(self) -> dict[str, int]:
        """Returns the number of nodes that each execution provider runs; empty if the runtime does not report this
        number."""
        return dict(self.head.get("nodes", {}))

    def run(self, feeds: Feeds) -> Outputs:
        self._check_open()
        feeds = _feeds.with_maps(feeds, self.signature)
        _feeds.check(feeds, self.signature)
        fed = _bytes(list(feeds.values()))
        asked = {"memory": self._memory(fed), "of": self.isolated.what}
        with _feeds.explained(feeds, self.signature):
            return self.isolated.run(self._request, asked, feeds, self._seconds(fed))

    def timer(self, feeds: Feeds) -> timing.Timer:
        """Returns a timer in the child, which gets the feeds once. If the child cannot time, the timer runs in this
        process."""
        if not self.head.get("times"):
            return super().timer(feeds)
        self._check_open()
        feeds = _feeds.with_maps(feeds, self.signature)
        _feeds.check(feeds, self.signature)
        fed = _bytes(list(feeds.values()))
        with _feeds.explained(feeds, self.signature):
            head = self.ask({"do": "hold"}, feeds)
        where = f"in the runtime's process, around {head.get('around', 'its run call')}"
        return timing.asked(lambda request: self.ask(request, fed=fed), where)

    def ask(self, request: dict[str, Any], feeds: Feeds | None = None, *, fed: int = 0) -> dict[str, Any]:
        """Returns the child's answer to another request on this session. `fed` is the number of bytes of inputs that
        the child holds in addition to `feeds`."""
        self._check_open()
        fed += _bytes(list((feeds or {}).values()))
        common = {**self._request, "memory": self._memory(fed)}
        return self.isolated.ask({**common, **request}, feeds, time_limit=self._seconds(fed))[0]

    def _check_open(self) -> None:
        if self._over:
            raise problem(
                "runtime/closed",
                f"the session with {self.isolated.what} is closed, or another model was prepared after it",
                fix="make every call inside the session's with block, or prepare the model again",
            )

    def _memory(self, fed: int = 0) -> int:
        asked = self.options.memory_limit if self.options.provider == "cpu" else 0
        return _call_limits.memory(asked, model=self.weight, feeds=fed)

    def _seconds(self, fed: int = 0) -> float:
        slowness = self.isolated.slowness
        limit = _call_limits.seconds(self.time_limit, model=self.weight, feeds=fed, slowness=slowness)
        return _call_limits.left(limit)

    def at(self, level: str) -> Session:
        if level == self.options.optimization or level not in self.isolated.levels:
            return self
        if level not in self._levels:
            options = replace(self.options, optimization=level)
            request = {**self._request, "optimization": level}
            made = self.isolated.session(self.signature, request, options, self.weight)
            made.begin()
            self._levels[level] = made
        return self._levels[level]

    def end(self) -> None:
        """Frees the session's memory in the child and its files on disk."""
        self._over = True
        for other in self._levels.values():
            other.end()
        self.isolated.forget(self, [self._request["session"]])
        self.file.close()

    def close(self) -> None:
        self.end()
        if self._alone:
            self.isolated.close()

    def stay_alone(self) -> None:
        """Makes the child end with this session."""
        self._alone = True

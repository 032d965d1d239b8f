"""Sessions of runtimes that live in a child process."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, ClassVar

import onnx_ir as ir

from onnxsmith.model.load import load
from onnxsmith.model.signature import signature
from onnxsmith.problem import OnnxsmithError
from onnxsmith.runtimes import _feeds
from onnxsmith.runtimes._child import Child
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Session, on_disk


def preparation(path: Path, weights: Path | None, options: Options) -> dict[str, Any]:
    """What a child is asked to prepare."""
    return {
        "do": "prepare",
        "path": str(path.absolute()),
        "weights": None if weights is None else str(weights),
        "provider": options.provider,
        "optimization": options.optimization,
        "threads": options.threads,
    }


class ChildSession(Session):
    """After a crash the next run starts the child again: what one input does to a runtime says nothing of others.

    `host` is the module that the child runs; its `prepare` request gets the fields of `Options` and `path`, and
    `weights`, the folder of external data that lies elsewhere, where the runtime can read it there (`refers`). What it
    answers is `head`.
    """

    host: ClassVar[str]
    what: ClassVar[str]
    refers: ClassVar[bool] = True

    def __init__(self, source: Path | ir.Model, options: Options) -> None:
        self._options = options
        self.signature = signature(load(source))
        self._check()
        self._stack = contextlib.ExitStack()
        self._crashed = False
        with contextlib.ExitStack() as stack:
            self._path, self._weights = stack.enter_context(on_disk(source, refer=self.refers))
            stack.callback(lambda: self._child.close())
            self.head = self._start()
            self._stack = stack.pop_all()
        self.provider = self.head["provider"]

    def _check(self) -> None:
        """Raises for a model that the runtime is not to be asked to take."""

    def _start(self) -> dict[str, Any]:
        self._child = Child(self.host, "main", what=self.what)
        request = preparation(self._path, self._weights, self._options)
        head, _ = self._child.ask(request, time_limit=self._options.time_limit)
        self._crashed = False
        return head

    def run(self, feeds: Feeds) -> Outputs:
        _feeds.check(feeds, self.signature)
        if self._crashed:
            self._child.close()
            self._start()
        try:
            _, outputs = self._child.ask({"do": "run"}, dict(feeds), time_limit=self._options.time_limit)
        except OnnxsmithError as error:
            self._crashed = error.problem.id == "runtime/died"
            raise
        return outputs

    def close(self) -> None:
        self._stack.close()

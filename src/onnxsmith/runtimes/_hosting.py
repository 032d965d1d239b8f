"""Serves sessions by number in a runtime's child process, so that one process may hold several sessions."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from onnxsmith.runtimes._timing import measured
from onnxsmith.runtimes.base import Outputs, Value

Held = TypeVar("Held")


class Hosting(ABC, Generic[Held]):
    """Answers requests. `Held` is the prepared model that the runtime can run.

    `prepare` and `run` name a `session` by its number. `release`, in any request, lists sessions that are dropped
    first. `hold` keeps inputs for a session, so that they are sent only once. `time` runs the session on these inputs
    and answers with nanoseconds.
    """

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._calls: dict[int, Callable[[], object]] = {}
        """Maps each session that is timed to a function that runs the session on the held inputs."""

    def __call__(self, request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
        """Answers one request."""
        for number in request.get("release", ()):
            self._held.pop(number, None)
            self._calls.pop(number, None)
        match request["do"]:
            case "about":
                return self.about(), {}
            case "prepare":
                begin = time.perf_counter()
                held, head = self.prepare(request)
                self._held[request["session"]] = held
                return {"times": True, **head, "seconds": time.perf_counter() - begin}, {}
            case "run":
                return {}, self.run(self._held[request["session"]], values)
            case "hold":
                held = self._held[request["session"]]
                self._calls[request["session"]] = self.call(held, values)
                return {"around": self.around(held, values)}, {}
            case "time":
                call = self._calls[request["session"]]
                runs, inner, budget = request["runs"], request["inner"], request["budget"]
                return {"ns": measured(call, runs=runs, inner=inner, budget=budget)}, {}
            case _:
                return self.more(request, values)

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """Returns facts about the library. When the answer comes, the library has been imported."""

    @abstractmethod
    def prepare(self, request: dict[str, Any]) -> tuple[Held, dict[str, Any]]:
        """Returns a session for the model at `path`, and facts about it for the caller."""

    @abstractmethod
    def run(self, held: Held, values: dict[str, Value]) -> Outputs:
        """Returns the model's outputs."""

    def call(self, held: Held, values: dict[str, Value]) -> Callable[[], object]:
        """Returns the function that `time` measures. The function runs the model on these inputs, with as little code
        as possible around the runtime's own call."""
        return lambda: self.run(held, values)

    def around(self, held: Held, values: dict[str, Value]) -> str:
        """Returns a description of the call that `time` measures, for the report."""
        return "its run call"

    def more(self, request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
        """Answers requests that only this runtime knows."""
        raise ValueError(f"unknown request {request['do']!r}")

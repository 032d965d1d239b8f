"""Serves sessions by number in a runtime's child process, so that one process may hold several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from onnxsmith.runtimes.base import Outputs, Value

Held = TypeVar("Held")


class Hosting(ABC, Generic[Held]):
    """Answers requests. `Held` is the prepared model that the runtime can run.

    `prepare` and `run` name a `session` by its number. `release`, in any request, lists sessions that are dropped
    first.
    """

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}

    def __call__(self, request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
        """Answers one request."""
        for number in request.get("release", ()):
            self._held.pop(number, None)
        match request["do"]:
            case "about":
                return self.about(), {}
            case "prepare":
                held, head = self.prepare(request)
                self._held[request["session"]] = held
                return head, {}
            case "run":
                return {}, self.run(self._held[request["session"]], values)
            case _:
                return self.more(request, values)

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """Facts on the library; when this is answered, the library is imported."""

    @abstractmethod
    def prepare(self, request: dict[str, Any]) -> tuple[Held, dict[str, Any]]:
        """A session for the model at `path`, and the facts on it that the caller gets."""

    @abstractmethod
    def run(self, held: Held, values: dict[str, Value]) -> Outputs:
        """The model's outputs."""

    def more(self, request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
        """Answers requests that only one runtime knows."""
        raise ValueError(f"unknown request {request['do']!r}")

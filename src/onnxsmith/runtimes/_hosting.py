"""What every child process of a runtime serves: sessions by number, so that one process may hold several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from onnxsmith.runtimes.base import Outputs, Value

Held = TypeVar("Held")


class Hosting(ABC, Generic[Held]):
    """Answers requests. `Held` is what the runtime needs to run a model that it has prepared.

    `prepare` and `run` name a `session` by its number; `release`, in any request, lists those that are let go of first.
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
        """What the library says of itself; its import is done when this is answered."""

    @abstractmethod
    def prepare(self, request: dict[str, Any]) -> tuple[Held, dict[str, Any]]:
        """A session for the model at `path`, and what the caller is told of it."""

    @abstractmethod
    def run(self, held: Held, values: dict[str, Value]) -> Outputs:
        """What the model answers."""

    def more(self, request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
        """Answers what one runtime alone is asked."""
        raise ValueError(f"unknown request {request['do']!r}")

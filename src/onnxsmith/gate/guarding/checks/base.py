"""The base class of the checks of a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.gate.guarding.guarded_file import GuardedFile


class Check(ABC):
    """A check of a file. It reads the file, and runs no model."""

    @abstractmethod
    def problems(self, file: GuardedFile) -> Iterator[Problem]:
        """Yields what is wrong with the file. `where` of a problem begins with the path of the file."""

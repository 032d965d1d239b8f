"""Defines the base class of steps.

A step is a frozen dataclass. The fields of a step are the arguments in Python and the keys in a patch file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from onnxsmith.editor.edited_model import Work


class Step(ABC):
    """Makes one change of a model. A subclass is a frozen dataclass whose docstring explains its fields."""

    first: ClassVar[tuple[str, ...]] = ()
    """Lists the fields that Python code may give without their names, in this order."""

    @abstractmethod
    def apply(self, work: Work) -> str:
        """Changes `work.model` and returns one line about the change for the report.

        Raises:
            OnnxsmithError: `edit/…`. After an error the model is not used any more, so a half-done change does no harm.
        """

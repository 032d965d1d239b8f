"""`onnxsmith strip MODEL -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.commands._editing import Editing, step
from onnxsmith.options import option

if TYPE_CHECKING:
    from onnxsmith.editing.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Strip(Editing):
    """Remove doc strings, provenance, metadata or declared shapes."""

    name = "strip"

    what: tuple[str, ...] = option(
        "docs, provenance, metadata or shapes; repeatable; default: docs and provenance", default=(), metavar="KIND"
    )

    def steps(self) -> Iterable[Step]:
        yield step("strip", what=list(self.what))

"""`onnxsmith strip MODEL -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.base.options import option
from onnxsmith.cli.commands._edit_options import Editing, step

if TYPE_CHECKING:
    from onnxsmith.editor.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Strip(Editing):
    """Remove doc strings, provenance, metadata or declared shapes."""

    name = "strip"

    what: tuple[str, ...] = option(
        "docs, provenance, metadata or shapes; repeatable; default: docs and provenance", default=(), metavar="KIND"
    )

    def steps(self) -> Iterable[Step]:
        yield step("strip", what=list(self.what))

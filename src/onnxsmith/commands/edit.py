"""`onnxsmith edit MODEL PATCH -o FILE`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.commands._editing import Editing
from onnxsmith.options import argument

if TYPE_CHECKING:
    from onnxsmith.editing.steps.base import Step


@dataclass(frozen=True, kw_only=True)
class Edit(Editing):
    """Apply the steps of a patch file to a model, all or none.

    Compares what no step changes on purpose with the original. Writes the file if that is equal and the model runs.
    `onnxsmith explain edit/steps` lists the steps.
    """

    name = "edit"

    patch: str = argument("the patch file, TOML with [[step]] tables", metavar="PATCH")

    def steps(self) -> Iterable[Step]:
        from onnxsmith.editing import patch

        return patch.read(self.patch)

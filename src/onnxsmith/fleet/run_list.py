"""A run: which cell of which plan has which key. Rows belong to keys, so that runs share them."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from onnxsmith.base import user_files
from onnxsmith.fleet.cells import Cell
from onnxsmith.fleet.plan import Plan
from onnxsmith.fleet.row import refuse_key, typed
from onnxsmith.fleet.store_problems import damaged

Place = tuple[str, str, str]
"""A model, a setting and an environment, by their names."""


@dataclass(frozen=True)
class Run:
    """A named run. `cells` maps each place of the table to the key of its row. `at` is the time of its start in UTC;
    `plan` is the text of the plan."""

    name: str
    plan_name: str
    plan: str
    at: str
    cells: dict[Place, str]

    @classmethod
    def of(cls, name: str, plan: Plan, cells: Sequence[Cell]) -> Self:
        """Returns a run of a plan that begins now."""
        at = datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="microseconds")
        return cls(name, plan.name, plan.text, at, {cell.place: cell.key for cell in cells})

    def digest(self) -> str:
        """Returns a digest of the cells, which tells whether two runs are about the same."""
        return hashlib.sha256(
            json.dumps(sorted([*place, key] for place, key in self.cells.items())).encode()
        ).hexdigest()

    def to_json(self) -> str:
        """Returns the run as JSON."""
        cells = [[*place, key] for place, key in self.cells.items()]
        return json.dumps(
            {"name": self.name, "plan_name": self.plan_name, "plan": self.plan, "at": self.at, "cells": cells}
        )

    @classmethod
    def from_json(cls, text: str, where: str) -> Self:
        """Reads what `to_json` wrote.

        Raises:
            OnnxsmithError: `fleet/store` if the text is no run.
        """
        try:
            data = user_files.parse_json(text)
            cells = {(model, setting, environment): key for model, setting, environment, key in data.pop("cells")}
            run = typed(cls, {**data, "cells": cells})
            run.name.encode()  # half of a character cannot be the name of a file
            for key in run.cells.values():
                refuse_key(key)
            return run
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise damaged(where, str(error)) from error

"""Fixes of problems of the page of a fleet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixes.harness import Case, Content, helps, parameters
from tests.fleet import made_up

PLACE = ("a.onnx", "fast", "here")


def a_store(path: Path) -> None:
    """Writes a store of a run whose only cell is done."""
    made_up.store(path, {"first": {PLACE: made_up.row(PLACE)}})


FILES: dict[str, Content] = {"rows.sqlite": a_store}
CASES = [
    Case(
        "fleet/page",
        "onnxsmith fleet show rows.sqlite --page m.html",
        {**FILES, "m-cells/thesis.txt": "kept"},
        name="a folder of somebody else",
    ),
    Case(
        "fleet/page",
        "onnxsmith fleet show rows.sqlite --page m.html",
        {**FILES, "m.html/thesis.txt": "kept"},
        name="a folder in place of the page",
    ),
    Case(
        "fleet/page",
        "onnxsmith fleet show rows.sqlite --every-cell",
        FILES,
        name="no page",
    ),
]


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case, tmp_path: Path) -> None:
    helps(one, tmp_path)

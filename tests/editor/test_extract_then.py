"""Steps behind `extract` in the same edit: the part is compared under the names that it has at the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import onnxsmith
from tests.editor.models import saved

TEXT = """<ir_version: 10, opset_import: ["": 20]>
g (float[n,4] x) => (float[n,4] z) { y = Relu(x) z = Neg(y) }"""


@pytest.mark.parametrize(
    ("then", "left"),
    [
        (lambda model: model.rename("y", "positive"), ["positive", "z"]),
        (lambda model: model.drop_output("y"), ["z"]),
    ],
    ids=["rename", "drop_output"],
)
def test_an_output_of_the_part_is_renamed_or_dropped(
    then: Callable[[Any], None], left: list[str], tmp_path: Path
) -> None:
    with onnxsmith.edit(saved(TEXT, tmp_path)) as model:
        model.extract("x", ["y", "z"])
        then(model)
    assert model.result is not None
    assert "verified on" in model.result.report.headline
    assert model.result.model is not None
    assert [value.name for value in model.result.model.graph.outputs] == left

"""Refusals of edits: they name the true reason, and what they propose works when it is pasted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import onnxsmith
from onnxsmith.problem import Problem
from tests.editing.models import saved

BROKEN = """<ir_version: 10, opset_import: ["": 21]>
g (float[3] x) => (float[1] y) <int64[1] at = {7}> { a = Relu(x) y = Gather(a, at) }"""
NOWHERE = """<ir_version: 10, opset_import: ["": 21]>
g (string[3] x) => (string[n] y) { a = Identity(x)
  y = StringNormalizer<case_change_action = "LOWER", locale = "no_WHERE">(a)
}"""


def refusal(path: Path, change: Any) -> Problem:
    """The problem of an edit; the file is as it was."""
    before = path.read_bytes()
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(path) as m:
        change(m)
    assert path.read_bytes() == before
    return caught.value.problem


@pytest.mark.parametrize(
    ("text", "change"),
    [
        (BROKEN, lambda m: m.expose("a")),
        (BROKEN, lambda m: m.insert("Neg", after="a")),
        (NOWHERE, lambda m: m.expose("a")),
        (NOWHERE, lambda m: m.rename("a", "b")),
    ],
)
def test_a_model_that_did_not_run_before_is_not_the_steps_fault(text: str, change: Any, tmp_path: Path) -> None:
    path = saved(text, tmp_path)
    found = refusal(path, change)
    assert found.id == "edit/original-does-not-run"
    assert "correct the step" not in found.fix
    with onnxsmith.edit(path, verify=False) as m:
        change(m)
    assert m.result is not None
    assert "NOT VERIFIED" in m.result.report.headline

"""A step with a value of a wrong type is refused as `edit/step-argument` or `edit/selector`, whatever the value is."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.patch import kinds, make
from onnxsmith.graph.files.text import from_text

TEXT = """<ir_version: 10, opset_import: ["": 20]>
g (float[n,3] x) => (float[n,3] y) <float[3] w = {1,2,3}> { [first] a = Relu(x) [second] y = Mul(a, w) }"""
VALID = {
    "tensor": "a", "node": "first", "input": "x", "output": "y", "op": "Neg", "after": "a", "before": "second",
    "to": "b", "value": 1.0, "find": "Relu(x)", "by": "Neg(x)", "attributes": {}, "dims": ["n=2"],
}  # fmt: skip
WRONG = (
    5, -1, 2**70, 1.5, float("nan"), True, "", "((((", [], {}, [[]], [1], ["a", 1], {"a": 1}, {"name": 5}, {"op": 5},
    {"producer": ["x"]}, {"a": {"b": {}}}, [{}], datetime.datetime(1979, 5, 27), datetime.time(1),
)  # fmt: skip
FIELDS = [
    (name.replace("_", "-"), field.name)
    for name, kind in kinds().items()
    for field in dataclasses.fields(kind)  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_a_value_of_any_type_is_taken_or_refused(name: str, field: str) -> None:
    needed = {one.name for one in dataclasses.fields(kinds()[name.replace("-", "_")])}  # type: ignore[arg-type]
    for value in WRONG:
        fields: dict[str, Any] = {key: one for key, one in VALID.items() if key in needed} | {field.rstrip("_"): value}
        try:
            make(name, (), fields, "a patch").apply(Work(from_text(TEXT)))
        except OnnxsmithError as refusal:
            assert refusal.problem.fix, (value, refusal)


def test_the_refusal_says_what_the_field_takes() -> None:
    with pytest.raises(OnnxsmithError) as refused:
        make("set-dim", (), {"dims": datetime.time(1)}, "p.toml, step 1")
    assert refused.value.problem.id == "edit/step-argument"
    assert refused.value.problem.what == "dims of set-dim is a text or a list, not '01:00:00'"

"""`constant` changes single elements, and takes constants of other models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from tests.editor.models import NET, saved

TABLE = NET.replace("bias = {1,2,3,4}", "bias = {1,2,3,4}, float[2,4] table = {0,0,0,0,0,0,0,0}").replace(
    "z = Sigmoid(a)", "t = MatMul(table, bias) z = Sigmoid(a)"
)


def changed(folder: Path, text: str = NET, name: str = "bias", **fields: Any) -> np.ndarray[Any, Any]:
    with onnxsmith.edit(saved(text, folder), folder / "out.onnx", keep_unused=True) as m:
        m.constant(name, **fields)
        return np.asarray(m.tensor(name).constant)


@pytest.mark.parametrize(
    ("fields", "now"),
    [
        ({"at": [[0], [3]], "value": [0.5, -0.5]}, [0.5, 2, 3, -0.5]),
        ({"at": [1, 2], "value": 7}, [1, 7, 7, 4]),
        ({"at": [[-1]], "value": np.array([9], np.float32)}, [1, 2, 3, 9]),
    ],
)
def test_a_few_elements_are_changed(fields: dict[str, Any], now: list[float], tmp_path: Path) -> None:
    assert changed(tmp_path, **fields).tolist() == now


def test_a_place_has_an_index_for_each_axis(tmp_path: Path) -> None:
    made = changed(tmp_path, TABLE, "table", at=[[0, 1], [1, 3]], value=[5, 6])
    assert made.tolist() == [[0, 5, 0, 0], [0, 0, 0, 6]]


@pytest.mark.parametrize(
    "fields",
    [
        {"at": [[4]], "value": 1},
        {"at": [[0, 1]], "value": 1},
        {"at": [[0.5]], "value": 1},
        {"at": [[0], [0]], "value": [1, 2]},
        {"at": [[0], [1], [2]], "value": [1, 2]},
        {"at": [], "value": 1},
        {"at": 3, "value": 1},
    ],
)
def test_places_that_do_not_fit_are_refused(fields: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(OnnxsmithError) as raised:
        changed(tmp_path, **fields)
    assert raised.value.problem.id == "edit/step-argument"
    assert "at = [[0, 3], [1, 2]]" in raised.value.problem.fix


def test_a_constant_of_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    saved(NET.replace("{1,2,3,4}", "{8,7,6,5}"), other)
    assert changed(tmp_path, value={"file": "other/model.onnx", "tensor": "bias"}).tolist() == [8, 7, 6, 5]
    with pytest.raises(OnnxsmithError) as raised:
        changed(tmp_path, value={"file": "other/model.onnx", "tensor": "bais"})
    assert raised.value.problem.id == "edit/patch-file"
    assert raised.value.problem.fix == "write tensor = 'bias'"

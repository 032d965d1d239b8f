"""The step `metadata`: texts of the model, the graph, nodes and tensors, which a file keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from tests.conftest import Refused
from tests.editor.models import LOOP, NET

TYPED = {"names": ["cat", "Hündin"], "mean": [0.5, 1], "classes": {"0": "cat"}, "scale": 0.25, "flipped": True}


def edited(text: str, folder: Path, **fields: Any) -> ir.Model:
    """The model that a file has after one step."""
    onnxsmith.save(from_text(text), folder / "m.onnx")
    with onnxsmith.edit(folder / "m.onnx") as m:
        m.metadata(**fields)
    assert m.result is not None
    assert m.result.report.verdict.exit_code == 0
    return onnxsmith.load(folder / "m.onnx")


def value(model: ir.Model, name: str) -> ir.Value:
    return next(one for one in walk.values(model) if one.name == name)


PLACES: dict[str, tuple[dict[str, Any], Callable[[ir.Model], Any]]] = {
    "model": ({}, lambda model: model),
    "graph": ({"graph": True}, lambda model: model.graph),
    "node": ({"node": "add"}, lambda model: next(node for node in model.graph if node.name == "add")),
    **{name: ({"tensor": name}, lambda model, name=name: value(model, name)) for name in ("x", "a", "bias", "y")},
}


@pytest.mark.parametrize("place", PLACES)
def test_each_place_keeps_its_metadata(place: str, tmp_path: Path) -> None:
    where, found = PLACES[place]
    model = edited(NET, tmp_path, set={"unit": "m/s"}, **where)
    assert found(model).metadata_props["unit"] == "m/s"
    others = [found(model) for name, (_, found) in PLACES.items() if name != place]
    assert not any("unit" in one.metadata_props for one in others)
    differences = onnxsmith.diff(from_text(NET), model, ignore=["shapes"]).report.headline
    assert differences.endswith(": 1 metadata change")


def test_values_are_texts_or_json(tmp_path: Path) -> None:
    model = edited(NET, tmp_path, set={"author": "[me", **TYPED})
    assert model.metadata_props.pop("author") == "[me"
    assert {key: json.loads(text) for key, text in model.metadata_props.items()} == TYPED


def test_a_tensor_of_a_body(tmp_path: Path) -> None:
    model = edited(LOOP, tmp_path, set={"unit": "m"}, tensor="inner")
    assert value(model, "inner").metadata_props == {"unit": "m"}
    assert value(model, "inner").dtype == ir.DataType.FLOAT


def test_keys_are_removed(tmp_path: Path) -> None:
    onnxsmith.save(from_text(NET), tmp_path / "m.onnx")
    with onnxsmith.edit(tmp_path / "m.onnx") as m:
        m.metadata({"train_epochs": 3, "train_data": "x", "names": ["a"], "author": "me"})
        m.metadata({"names": ["b"]}, remove=["train_*", "names"])
        m.metadata({"unit": "m"}, tensor=["x", "a"])
        m.metadata(remove="unit", tensor="a")
    model = onnxsmith.load(tmp_path / "m.onnx")
    assert model.metadata_props == {"author": "me", "names": '["b"]'}
    assert (dict(value(model, "x").metadata_props), dict(value(model, "a").metadata_props)) == ({"unit": "m"}, {})


def test_an_old_file_is_noted(tmp_path: Path) -> None:
    onnxsmith.save(from_text(NET.replace("ir_version: 10", "ir_version: 8")), tmp_path / "m.onnx")
    with onnxsmith.edit(tmp_path / "m.onnx") as m:
        m.metadata({"unit": "m"}, tensor="x")
    assert m.result is not None
    edits = next(part for part in m.result.report.parts if isinstance(part, Edits))
    assert edits.notes == ("in IR version 8 only the model has metadata; readers may ignore that of 1 tensor",)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "edit/step-argument"),
    "two places": ({"set": {"a": "b"}, "graph": True, "node": "add"}, "edit/step-argument"),
    "not a number": ({"set": {"a": float("nan")}}, "edit/step-argument"),
    "an object": ({"set": {"a": object()}}, "edit/step-argument"),
    "half of a character": ({"set": {"a": "\ud800"}}, "edit/step-argument"),
    "an empty key": ({"set": {"": "x"}}, "edit/step-argument"),
    "a key of onnxsmith": ({"set": {"onnxsmith.free": "[]"}}, "edit/step-argument"),
    "no such key": ({"remove": "author"}, "edit/no-match"),
    "no such node": ({"set": {"a": "b"}, "node": "none"}, "edit/no-match"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_are_refused(name: str, tmp_path: Path, refused: Refused) -> None:
    fields, problem = WRONG[name]
    onnxsmith.save(from_text(NET), tmp_path / "m.onnx")
    before = (tmp_path / "m.onnx").read_bytes()
    with refused(problem), onnxsmith.edit(tmp_path / "m.onnx") as m:
        m.metadata(**fields)
    assert (tmp_path / "m.onnx").read_bytes() == before

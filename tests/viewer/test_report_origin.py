"""Reports of this model, of another with the same names, of other weights, and of no known model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.written_files import View
from onnxsmith.base.result import Result
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.view import view
from tests.viewer.models import HEAD
from tests.viewer.test_view import scene_in

BODY = "[first] a = Relu(x)\n[second] b = Identity(a)\n[third] y = {last}(b)"


def model(path: Path, last: str = "Neg") -> Path:
    save(from_text(HEAD + f"g (float[3] x) => (float[3] y) {{ {BODY.format(last=last)} }}"), path)
    return path


def weighted(folder: Path, number: int) -> Path:
    folder.mkdir()
    numbers = ",".join(["1"] * 299 + [str(number)])
    text = f"g (float[300] x) => (float[300] y) <float[300] w = {{{numbers}}}> {{ [add] y = Add(x, w) }}"
    save(from_text(HEAD + text), folder / "m.onnx", external_data=True)
    return folder / "m.onnx"


def dumped(path: Path) -> Report:
    return onnxsmith.dump(path, runtime="reference").report


def warnings(result: Result) -> list[str]:
    found: list[str] = scene_in(result.page)["warnings"]
    return found


def origins(result: Result) -> list[str]:
    return list(result.report.part(View).origins.values())


def test_a_report_of_the_model(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx")
    result = view(path, reports=[dumped(path)])
    assert warnings(result) == []
    assert origins(result) == ["of this model"]
    assert result.report.headline == "m.onnx: 3 nodes"


def test_a_report_of_another_model_with_names_of_this(tmp_path: Path) -> None:
    path, other = model(tmp_path / "m.onnx"), model(tmp_path / "old.onnx", last="Abs")
    report = dumped(other)
    (tmp_path / "old.json").write_text(report.to_json(), encoding="utf-8")
    result = view(path, reports=[tmp_path / "old.json"])
    (said,) = warnings(result)
    assert said == (
        f"{tmp_path / 'old.json'}: the report is of another model "
        f"(hash {report.models[0].sha256[:12]}, named {other}); 3 of 3 names match"
    )
    assert result.report.headline == f"m.onnx: 3 nodes; {said}"
    assert origins(result) == ["of another model"]
    assert all(layer["from"].endswith(", of another model") for layer in scene_in(result.page)["overlays"])


def test_a_report_of_which_nothing_matches(tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    save(from_text(HEAD + "g (float[3] q) => (float[3] z) { z = Relu(q) }"), other)
    with pytest.raises(OnnxsmithError) as caught:
        view(model(tmp_path / "m.onnx"), reports=[dumped(other)])
    assert caught.value.problem.id == "view/other-model"
    assert "named " in caught.value.problem.why
    assert str(other) in caught.value.problem.why


def test_a_report_of_another_model_with_few_names_of_this(tmp_path: Path) -> None:
    """Two networks of one library share some names, which would colour nodes that have nothing to do with them."""
    other = tmp_path / "other.onnx"
    save(from_text(HEAD + "g (float[3] x) => (float[3] d) { a = Neg(x) p = Abs(a) q = Sin(p) d = Exp(q) }"), other)
    report = dumped(other)
    with pytest.raises(OnnxsmithError) as caught:
        view(model(tmp_path / "m.onnx"), reports=[report])
    assert caught.value.problem.id == "view/other-model"
    assert caught.value.problem.what.endswith("only 1 of its 4 names are nodes of this model")


def test_a_comparison_is_laid_over_the_candidate(tmp_path: Path) -> None:
    """Both models have all the names and both hashes; the figures are those of the candidate's nodes."""
    old, new = model(tmp_path / "old.onnx"), model(tmp_path / "new.onnx", last="Abs")
    for reference, candidate, at in ((old, new, 1), (new, old, 0)):
        report = onnxsmith.compare(reference, candidate, per_layer=True, runtime="reference").report
        scene = scene_in(view(old, new, reports=[report]).page)
        assert {layer["model"] for layer in scene["overlays"]} == {at}


def test_a_comparison_of_files_of_one_name_is_laid_over_the_newer(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    old, new = model(tmp_path / "old/m.onnx"), model(tmp_path / "new/m.onnx", last="Abs")
    report = onnxsmith.compare(old, new, per_layer=True, runtime="reference").report
    assert {layer["model"] for layer in scene_in(view(old, new, reports=[report]).page)["overlays"]} == {1}


def test_a_report_of_other_weights(tmp_path: Path) -> None:
    path, other = weighted(tmp_path / "a", 1), weighted(tmp_path / "b", 2)
    assert warnings(view(path, reports=[dumped(path)])) == []
    result = view(path, reports=[dumped(other)])
    assert origins(result) == ["of this graph with other weights"]
    assert "1 of 1 names match" in warnings(result)[0]


def test_both_sides_of_a_step(tmp_path: Path) -> None:
    before = model(tmp_path / "m.onnx")
    report = onnxsmith.simplify(before, tmp_path / "new.onnx", verify=False).report
    for path in (before, tmp_path / "new.onnx"):
        assert origins(view(path, reports=[dumped(path)])) == ["of this model"]
    assert [one.role for one in report.models] == ["read", "written"]
    assert origins(view(before, reports=[report])) == ["of this model"]


def test_a_model_that_was_simplified_in_place(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    save(from_text(HEAD + "g (float[3] x) => (float[3] y) { [a] t = Relu(x)\n[b] s = Relu(t)\n[c] y = Neg(s) }"), path)
    report = onnxsmith.simplify(path, path, verify=False).report
    told = json.loads(report.to_json())["models"]
    assert [one["role"] for one in told] == ["read", "written"]
    assert told[0]["sha256"] != told[1]["sha256"]


def test_both_sides_of_a_comparison(tmp_path: Path) -> None:
    one, other = model(tmp_path / "a.onnx"), model(tmp_path / "b.onnx", last="Abs")
    report = onnxsmith.compare(one, other, per_layer=True, runtime="reference").report
    for path in (one, other):
        assert origins(view(path, reports=[report])) == ["of this model"]


def test_two_models_get_the_report_of_their_own_file(tmp_path: Path) -> None:
    one, other = model(tmp_path / "a.onnx"), model(tmp_path / "b.onnx", last="Abs")
    scene = scene_in(view(one, other, reports=[dumped(other)]).page)
    assert {layer["model"] for layer in scene["overlays"]} == {1}
    assert scene["warnings"] == []


def test_an_old_report_has_no_hash(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx")
    data = dumped(path).to_dict()
    del data["models"]
    (tmp_path / "old.json").write_text(json.dumps(data), encoding="utf-8")
    result = view(path, reports=[tmp_path / "old.json", dumped(path)])
    assert origins(result) == ["no hash", "of this model"]
    assert warnings(result) == []
    assert "1 no hash, 1 of this model" in str(list(result.report.part(View).blocks()))


def test_a_model_in_memory_has_no_hash(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx")
    assert origins(view(onnxsmith.load(path), reports=[dumped(path)])) == ["no hash"]

"""Recorded edits: a patch file with its arrays does the same again, and nothing is left of an edit that fails."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.editor import patch
from onnxsmith.editor.edit import Edit
from onnxsmith.editor.patch import Arrays, loaded
from onnxsmith.editor.steps.constant_values import Constant
from onnxsmith.editor.steps.nodes import Set
from tests.conftest import Refused
from tests.editor.models import NET, saved

LARGE = """<ir_version: 10, opset_import: ["": 21]>
g (float[n,300] x, string[300] t) => (float[n,300] y, float[n,300] z, bool[300] same)
  <float[300] w, bfloat16[300] h, string[300] texts>
{
  y = Mul(x, w)
  wide = Cast<to = 1>(h)
  z = Add(x, wide)
  same = Equal(t, texts)
}"""


def large(folder: Path) -> Path:
    text = LARGE.replace("float[300] w", f"float[300] w = {{{', '.join(['1'] * 300)}}}")
    text = text.replace("bfloat16[300] h", f"bfloat16[300] h = {{{', '.join(['16256'] * 300)}}}")
    quoted = ", ".join(['"a"'] * 300)
    return saved(text.replace("string[300] texts", f"string[300] texts = {{{quoted}}}"), folder)


def change(m: Edit) -> None:
    m.constant("w", np.arange(300, dtype=np.float32))
    m.constant("h", np.arange(300).astype(ml_dtypes.bfloat16))
    m.constant("texts", np.array([f"word {i}" for i in range(300)]))


def test_large_arrays_lie_beside_the_patch(tmp_path: Path) -> None:
    path, notes = large(tmp_path), tmp_path / "p.toml"
    with onnxsmith.edit(path, tmp_path / "one.onnx", write_patch=notes) as m:
        change(m)
    assert m.result is not None
    files = ["p.constant_value.npy", "p.constant_value_2.npy", "p.constant_value_3.npy"]
    assert all(name in str(m.result.report.parts[0].notes) for name in files)  # type: ignore[attr-defined]
    assert [one["value"]["file"] for one in tomllib.loads(notes.read_text())["step"]] == files
    with onnxsmith.edit(path, tmp_path / "two.onnx") as again:
        again.apply(notes)
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()


def test_nothing_is_recorded_of_an_edit_that_fails(tmp_path: Path) -> None:
    path = large(tmp_path)
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}

    def fail(m: Edit) -> None:
        change(m)
        m.insert("Gather", after="y", operands=[np.array([999], np.int64)])  # passes the checker, does not run

    with pytest.raises(OnnxsmithError), onnxsmith.edit(path, write_patch=tmp_path / "p.toml") as m:
        fail(m)
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_a_record_that_cannot_be_written_leaves_the_model(tmp_path: Path) -> None:
    path = large(tmp_path)
    before = path.read_bytes()
    with (
        pytest.raises(OnnxsmithError, match="save/no-folder"),
        onnxsmith.edit(path, write_patch=tmp_path / "no/p.toml") as m,
    ):
        change(m)
    assert path.read_bytes() == before


def test_python_reads_arrays_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("bias.npy", np.zeros(4, np.float32))
    path = saved(NET, tmp_path)
    with onnxsmith.edit(path) as m:
        m.constant("bias", {"file": "bias.npy"})
        m.wire("product", "B", tensor={"array": [1, 2, 3, 4], "dtype": "float32"})
    ones = np.ones((1, 4), np.float32)
    assert np.array_equal(onnxsmith.run(path, {"x": ones}).outputs["y"], [[1, 2, 3, 4]])


@pytest.mark.parametrize("content", [None, b"", b"no array"])
def test_a_file_that_holds_no_array(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "a.npy"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(OnnxsmithError, match="edit/patch-file"), onnxsmith.edit(saved(NET, tmp_path)) as m:
        m.constant("bias", {"file": str(file)})


def test_a_small_array_of_texts_is_read_again(tmp_path: Path) -> None:
    path, notes = large(tmp_path), tmp_path / "p.toml"
    with onnxsmith.edit(path, tmp_path / "one.onnx", write_patch=notes) as m:
        m.wire({"op": "Equal"}, 1, np.array(["a"]))
    with onnxsmith.edit(path, tmp_path / "two.onnx") as again:
        again.apply(notes)
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()


def test_an_array_in_a_table_is_read_again() -> None:
    value = np.array([[1.5]], np.float16)
    said = patch.table("set", Set("node", {"value": value}), Arrays("p"))
    found = loaded(said["attributes"], Path())["value"]
    assert found.dtype == value.dtype
    assert np.array_equal(found, value)


@pytest.mark.parametrize("given", [object(), np.array([object()]), np.array([b"a"])])
def test_what_a_patch_cannot_say(given: Any, tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    with (
        pytest.raises(OnnxsmithError, match="edit/not-recorded"),
        onnxsmith.edit(path, write_patch=tmp_path / "p.toml") as m,
    ):
        m.apply([Constant("bias", given)])


def test_the_old_name_of_the_parameter_still_works(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    with pytest.warns(DeprecationWarning, match="write_patch"):
        m = onnxsmith.edit(path, tmp_path / "one.onnx", record=tmp_path / "p.toml")
    with m:
        m.rename(tensor="y", to="image")
    assert "rename" in (tmp_path / "p.toml").read_text()


@pytest.mark.parametrize("file", ["../bias.npy", "sub/../../bias.npy", "{folder}/bias.npy"])
def test_a_patch_reads_no_file_outside_of_its_folder(tmp_path: Path, file: str, refused: Refused) -> None:
    np.save(tmp_path / "bias.npy", np.zeros(4, np.float32))
    patches = tmp_path / "patches"
    (patches / "sub").mkdir(parents=True)
    named = file.format(folder=tmp_path)
    (patches / "p.toml").write_text(f'[[step]]\ndo = "constant"\ntensor = "bias"\nvalue = {{ file = "{named}" }}\n')
    with refused("edit/outside"):
        patch.read(patches / "p.toml")
    (patches / "p.toml").write_text(
        f'[[step]]\ndo = "constant"\ntensor = "bias"\nvalue = {{ file = "{named}", tensor = "b" }}\n'
    )
    with refused("edit/outside"):
        patch.read(patches / "p.toml")
    np.save(patches / "sub" / "bias.npy", np.zeros(4, np.float32))
    (patches / "p.toml").write_text('[[step]]\ndo = "constant"\ntensor = "bias"\nvalue = { file = "sub/bias.npy" }\n')
    assert len(patch.read(patches / "p.toml")) == 1

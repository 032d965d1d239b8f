"""What a person types for an input is understood, or refused with what to type."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.verification.inputs.spec import InputSpec, parse
from tests.conftest import Refused


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("x=float32[1,1,224,224]", InputSpec("x", "float", (1, 1, 224, 224))),
        ("x = float32[1, 2]", InputSpec("x", "float", (1, 2))),
        ("float32[2]", InputSpec("", "float", (2,))),
        ("x=float32[]", InputSpec("x", "float", ())),
        ("x=float32[0]", InputSpec("x", "float", (0,))),
        ("x=fp16[1]", InputSpec("x", "float16", (1,))),
        ("x=half[1]", InputSpec("x", "float16", (1,))),
        ("x=bf16[1]", InputSpec("x", "bfloat16", (1,))),
        ("x=double[1]", InputSpec("x", "double", (1,))),
        ("x=long[1]", InputSpec("x", "int64", (1,))),
        ("x=bool[1]", InputSpec("x", "bool", (1,))),
        ("x=string[3]", InputSpec("x", "string", (3,))),
        ("/encoder/x:0=int64[3]", InputSpec("/encoder/x:0", "int64", (3,))),
    ],
)
def test_a_shaped_dtype_is_read(text: str, spec: InputSpec) -> None:
    assert parse(text) == spec


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with some files in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lr=0.1").mkdir()
    for name in ("a.npz", "photo one.png", "lr=0.1/a.npz", "x=y.npz", "float32[2]"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("text", "name", "path"),
    [
        ("a.npz", "", "a.npz"),
        ("x=a.npz", "x", "a.npz"),
        ("x=photo one.png", "x", "photo one.png"),
        ("x=lr=0.1/a.npz", "x", "lr=0.1/a.npz"),
        ("lr=0.1/a.npz", "", "lr=0.1/a.npz"),
        ("x=y.npz", "", "x=y.npz"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_file_is_read(text: str, name: str, path: str) -> None:
    assert parse(text) == InputSpec(name, path=Path(path))


def test_a_path_from_home_is_expanded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    assert parse("x=~/a.npz") == InputSpec("x", path=folder / "a.npz")


@pytest.mark.usefixtures("folder")
def test_a_shaped_dtype_is_not_taken_for_a_file_of_that_name() -> None:
    assert parse("float32[2]").shape == (2,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "=",
        "x=",
        "x=.",
        "lr=0.1",
        "nobody.npz",
        "x=nobody.npz",
        "x=float32",
        "x=float32[1,]",
        "x=float32[,]",
        "x=float32[n]",
        "x=float32[1.5]",
        "x=float32[-1]",
        "x=float33[1]",
        "x=FLOAT[1]",
        "x=float32[1][2]",
        "x=~nobody_has_this_name/a.npz",
        "x=a\0.npz",
        "x=" + "a" * 5000,
        "x=float32[" + "9" * 5000 + "]",
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_is_neither_is_refused(text: str, refused: Refused) -> None:
    with refused("input/syntax") as refusal:
        parse(text)
    assert refusal.problem.fix


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text)
    except OnnxsmithError as error:
        assert error.problem.id == "input/syntax"  # noqa: PT017


@given(st.from_regex(r"[a-z]{0,3}=?(float32|int64|[a-z]{1,9})\[[-0-9, ]*\]", fullmatch=True))
def test_anything_like_a_shaped_dtype_is_read_or_refused(text: str) -> None:
    try:
        assert parse(text).shape is not None
    except OnnxsmithError as error:
        assert error.problem.id == "input/syntax"  # noqa: PT017

"""A keep-list reads as it was written, whatever the names are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxsmith.precision import keep_list
from onnxsmith.precision.keep_list_output import with_text
from tests.conftest import Refused

NAMES = ["/norm/Pow", "-> y", "# 1", '"quoted"', " spaced ", "two\nlines", "tab\t", "\u2028", "déjà", "", "x" * 300]
NAMES += ["weights-alone: a", "weights-alone: # 1"]


@pytest.mark.parametrize("as_json", [False, True])
@given(names=st.lists(st.text() | st.sampled_from(NAMES)))
def test_names_come_back(names: list[str], as_json: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    names = [name.encode("utf-8", "ignore").decode() for name in names]
    path = tmp_path_factory.mktemp("keep") / ("keep.json" if as_json else "keep.txt")
    path.write_text(keep_list.text(names, "float16", as_json=as_json), encoding="utf-8")
    assert keep_list.read(path) == tuple(names)


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.json", "[]"), ("b.json", "{"), ("c.json", '{"keep": "x"}'), ("d.json", '{"keep": [1]}'), ("e.txt", '"open')],
)
def test_what_is_no_list_is_refused(name: str, content: str, tmp_path: Path, refused: Refused) -> None:
    (tmp_path / name).write_text(content)
    with refused("bisect/keep-list"):
        keep_list.read(tmp_path / name)


def test_bytes_and_nothing_are_refused(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe\x00")
    with refused("bisect/keep-list"):
        keep_list.read(tmp_path / "a.txt")
    with refused("input/unreadable") as refusal:
        keep_list.read(tmp_path / "missing.txt")
    assert "no such keep-list" in refusal.problem.what


def test_a_list_that_cannot_be_written_stops_the_model(tmp_path: Path, refused: Refused) -> None:
    ran = False
    with refused("save/no-folder"), with_text(tmp_path / "no" / "keep.txt", "text"):
        ran = True
    assert not ran


def test_a_model_that_cannot_be_written_leaves_the_old_list(tmp_path: Path) -> None:
    path = tmp_path / "keep.txt"
    path.write_text("old", encoding="utf-8")

    def fail() -> None:
        assert path.read_text(encoding="utf-8") == "old"
        raise RuntimeError

    with pytest.raises(RuntimeError), with_text(path, "new"):
        fail()
    assert path.read_text(encoding="utf-8") == "old"
    with with_text(path, "new") as files:
        assert files == [path]
    assert path.read_text(encoding="utf-8") == "new"
    with with_text(None, "new") as files:
        assert files == []

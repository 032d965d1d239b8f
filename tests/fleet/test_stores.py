"""Stores: one contract for SQLite files, folders, and folders of fsspec."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from onnxsmith.fleet.row import Outcome, Row, StepResult, Summary
from onnxsmith.fleet.run_list import Run
from onnxsmith.fleet.stores import folder, sqlite
from onnxsmith.fleet.stores.base import Store, closing, opened
from tests.conftest import Refused

ROOT = Path(__file__).parents[2]
STEP = StepResult(
    "check",
    ("onnxsmith", "check", "ä.onnx"),
    Outcome.DIFFERENT,
    "two\nlines",
    0.5,
    "a/b",
    {"verdict": "different"},
    "s",
)
ROW = Row(
    key="ab" * 16,
    model="größe 模型.onnx",
    setting="s",
    environment="here",
    outcome=Outcome.DIFFERENT,
    headline="two\nlines",
    problem="a/b",
    seconds=1.25,
    at="2026-01-01T00:00:00+00:00",
    machine="m",
    versions={"onnx": "1"},
    files={"out/a.onnx": "00"},
    steps=(STEP,),
)
RUN = Run(
    "nightly: 1/2 ä", "p", "models = []", "2026-01-01T00:00:00+00:00", {("a", "s", "here"): "1a", ("b", "s", "e"): "2b"}
)


@pytest.fixture(params=["sqlite", "folder", "file://", "memory://"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a store that is not there yet."""
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    with closing():
        yield {
            "sqlite": str(tmp_path / "new" / "s.sqlite"),
            "folder": f"{tmp_path}/new/s/",
            "file://": f"file://{tmp_path}/new/s",
            "memory://": "memory://new/s",
        }[request.param]


@pytest.fixture
def store(address: str) -> Store:
    return opened(address)


@pytest.fixture
def rooted(tmp_path: Path) -> Iterator[Path]:
    """A folder, in a block that closes stores."""
    with closing():
        yield tmp_path


def anew(address: str) -> Store:
    """The store as another process sees it."""
    return sqlite.SqliteStore(address) if address.endswith(".sqlite") else folder.FolderStore(address)


def numbered(number: int) -> Row:
    return replace(ROW, key=f"{number:032x}", outcome=list(Outcome)[number % len(Outcome)])


def test_a_new_store_is_empty(store: Store) -> None:
    assert (store.keys(), store.summaries(["ab"]), store.run_names()) == (set(), {}, [])
    assert (store.row("ab"), store.run("x")) == (None, None)


def test_a_row_comes_back(store: Store, address: str) -> None:
    store.put(ROW)
    for one in (store, anew(address)):
        assert one.row(ROW.key) == ROW
        assert one.keys() == {ROW.key}
        (summary,) = one.summaries([ROW.key, "00"]).values()
        assert (summary.key, summary.outcome, summary.problem, summary.seconds) == (
            ROW.key, Outcome.DIFFERENT, "a/b", 1.25,
        )  # fmt: skip
        assert summary.headline.split() == ["two", "lines"]
        one.close()
    assert Summary.of(ROW).headline == ROW.headline


def test_the_last_row_of_a_key_wins(store: Store) -> None:
    store.put(ROW)
    store.put(replace(ROW, outcome=Outcome.DONE))
    assert store.keys() == {ROW.key}
    assert store.summaries([ROW.key])[ROW.key].outcome is Outcome.DONE


@pytest.mark.parametrize("count", [5, 20, 700])
def test_many_rows(rooted: Path, count: int) -> None:
    """Stores ask in other ways for few keys and for many."""
    for address in (str(rooted / "s.sqlite"), f"{rooted}/s/"):
        store = opened(address)
        for number in range(count):
            store.put(numbered(number))
        wanted = [f"{number:032x}" for number in range(0, 2 * count, 2)]
        there = {key for key in wanted if int(key, 16) < count}
        summaries = store.summaries(wanted)
        assert summaries.keys() == there
        assert all(summary.outcome is numbered(int(key, 16)).outcome for key, summary in summaries.items())
        assert len(store.keys()) == count


def test_names_that_are_no_text(store: Store) -> None:
    odd = replace(ROW, model="m\udcff.onnx", headline="m\udcff.onnx: failed")
    store.put(odd)
    kept = store.row(odd.key)
    assert kept is not None
    assert kept.model == odd.model
    assert "onnx: failed" in store.summaries([odd.key])[odd.key].headline


def test_runs(store: Store) -> None:
    store.put_run(RUN)
    assert store.run(RUN.name) == RUN
    later = replace(RUN, name="later", at="2026-01-02T00:00:00+00:00")
    store.put_run(later)
    store.put_run(replace(RUN, name="earlier", at="2025-01-01T00:00:00+00:00"))
    assert store.run_names() == ["earlier", RUN.name, "later"]
    store.put_run(replace(later, cells={}))
    assert store.run_names() == ["earlier", RUN.name, "later"]
    assert store.run("later") == replace(later, cells={})
    assert store.run("nothing") is None
    assert store.keys() == set()


def test_runs_with_equal_cells() -> None:
    turned = replace(RUN, name="x", at="y", cells=dict(reversed(RUN.cells.items())))
    assert turned.digest() == RUN.digest()
    assert replace(RUN, cells={**RUN.cells, ("c", "s", "e"): "k3"}).digest() != RUN.digest()


def test_a_store_is_opened_once(address: str) -> None:
    with closing():
        assert opened(address) is opened(address)
        first = opened(address)
    assert opened(address) is not first


WRITER = f"""
import sys
from dataclasses import replace
from onnxsmith.fleet.row import Row
from onnxsmith.fleet.stores.base import closing, opened
row = Row.from_json({ROW.to_json()!r})
with closing():
    for number in range(int(sys.argv[2]), 60, 2):
        opened(sys.argv[1]).put(replace(row, key=f"{{number:032x}}"))
        opened(sys.argv[1]).put(row)
"""


@pytest.mark.parametrize("name", ["s.sqlite", "s/"])
def test_two_processes_write_at_once(rooted: Path, name: str) -> None:
    address, paths = f"{rooted}/{name}", os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, address, str(first)], env={**os.environ, "PYTHONPATH": paths})
        for first in (0, 1)
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert opened(address).keys() == {f"{number:032x}" for number in range(60)} | {ROW.key}
    assert not list(rooted.rglob("s/rows/**/.*"))


# Stores that cannot be used


@pytest.mark.parametrize("address", ["folder", "file://", "memory://"], indirect=True)
def test_a_folder_of_a_later_version(store: Store, address: str, refused: Refused) -> None:
    store._files.write("store.json", b'{"format": 2}')  # type: ignore[attr-defined]
    with refused("fleet/store") as refusal:
        anew(address)
    assert "format 2" in refusal.problem.why


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": "x"}', b'{"format": 0}', b'{"form": 1}'])
def test_a_damaged_folder(rooted: Path, refused: Refused, content: bytes) -> None:
    opened(f"{rooted}/s/")
    (rooted / "s" / "store.json").write_bytes(content)
    with refused("fleet/store") as refusal:
        anew(f"{rooted}/s/")
    assert refusal.problem.what == "the store is damaged"


WRITTEN = ROW.to_json().encode()
HEAD = json.dumps([ROW.key, "done", "", "", 1]).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"garbage",
        b"[1]\n{}\n",
        b'["k", "banana", "", "", 1]\n{"format": 9}\n',
        HEAD + b"\n" + WRITTEN[:200],
        HEAD.replace(b"ab", b"cd") + b"\n" + WRITTEN.replace(ROW.key.encode(), b"cd" * 16) + b"\n",
    ],
)
@pytest.mark.parametrize("address", ["folder", "file://", "memory://"], indirect=True)
def test_a_damaged_row_of_a_folder(store: Store, address: str, content: bytes) -> None:
    """It counts as absent, is named, and can be put again."""
    store.put(ROW)
    name = f"rows/ab/{ROW.key}.json"
    store._files.write(name, content)  # type: ignore[attr-defined]
    for read in (lambda one: one.row(ROW.key), lambda one: one.summaries([ROW.key]) or None):
        one = anew(address)
        assert read(one) is None
        assert [*one.damaged] == [f"{address.rstrip('/')}/{name}"]
    store.put(ROW)
    assert store.row(ROW.key) == ROW


def test_a_damaged_run_of_a_folder(rooted: Path, refused: Refused) -> None:
    """It hides no other run; who asks for it is told."""
    store = opened(f"{rooted}/s/")
    store.put_run(RUN)
    (file,) = (rooted / "s" / "runs").iterdir()
    store.put_run(replace(RUN, name="other"))
    for content in (b"{", b"\xff", b"3", b'{"cells": [["a"]]}'):
        file.write_bytes(content)
        with refused("fleet/store") as refusal:
            store.run(RUN.name)
        assert refusal.problem.where.endswith(file.name)
        assert "move the file away: `mv " in refusal.problem.fix
        assert store.run_names() == ["other"]
        assert any(where.endswith(file.name) for where in store.damaged)


def test_a_folder_that_is_only_read_gets_no_file(rooted: Path) -> None:
    (rooted / "photos").mkdir()
    assert opened(f"{rooted}/photos").run_names() == []
    assert list((rooted / "photos").iterdir()) == []


def unwritable(*folders: Path) -> Any:
    """Plays a system that lets nobody write to the folders and the files in them."""
    real = os.access

    def access(path: Any, mode: int) -> bool:
        return real(path, mode) and not (mode & os.W_OK and {*folders} & {Path(path), *Path(path).parents})

    return access


@pytest.mark.parametrize("is_written_now", [False, True])
def test_a_database_in_a_folder_that_takes_no_file(
    rooted: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch, is_written_now: bool
) -> None:
    """Its rows are read, also those that another process has written a moment ago; nothing is added to the folder."""
    writer = sqlite.SqliteStore(str(rooted / "s.sqlite"))
    writer.put(ROW)
    writer.put_run(RUN)
    if not is_written_now:
        writer.close()
    before = sorted(rooted.iterdir())
    monkeypatch.setattr(os, "access", unwritable(rooted))
    store = opened(str(rooted / "s.sqlite"))
    assert store.row(ROW.key) == ROW
    assert store.run_names() == [RUN.name]
    assert sorted(rooted.iterdir()) == before
    with refused("fleet/store-refused") as refusal:
        store.put(numbered(1))
    assert str(rooted) not in refusal.problem.fix
    writer.close()


def test_a_log_whose_folder_takes_no_index(rooted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file and its log are copied: the rows in the log are rows."""
    writer = sqlite.SqliteStore(str(rooted / "s.sqlite"))
    writer.put(ROW)
    real = sqlite3.connect

    def connect(address: str, *words: Any, **how: Any) -> sqlite3.Connection:
        if "mode=ro" in address:
            raise sqlite3.OperationalError("unable to open database file")
        return real(address, *words, **how)

    monkeypatch.setattr(os, "access", unwritable(rooted))
    monkeypatch.setattr(sqlite3, "connect", connect)
    assert opened(str(rooted / "s.sqlite")).row(ROW.key) == ROW
    writer.close()


def test_a_half_written_file_is_no_row(rooted: Path) -> None:
    store = opened(f"{rooted}/s/")
    (rooted / "s" / "rows" / "ab").mkdir(parents=True)
    (rooted / "s" / "rows" / "ab" / f".{ROW.key}.json.1.0000").write_text("{")
    assert store.keys() == set()


def test_a_database_of_a_later_version(rooted: Path, refused: Refused) -> None:
    address = str(rooted / "s.sqlite")
    opened(address)
    with sqlite3.connect(address) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    with refused("fleet/store") as refusal:
        anew(address)
    assert "format 2" in refusal.problem.why


@pytest.mark.parametrize("version", [0, -1])
def test_a_database_whose_format_is_damaged(rooted: Path, refused: Refused, version: int) -> None:
    address = str(rooted / "s.sqlite")
    opened(address)
    with sqlite3.connect(address) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with refused("fleet/store") as refusal:
        anew(address)
    assert refusal.problem.what == "the store is damaged"
    with sqlite3.connect(address) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)


@pytest.mark.parametrize(
    ("content", "fix"),
    [
        (b"steps = ['check']\n" * 500, "give another path"),
        (b"SQLite format 3\x00" + b"\xff" * 5000, "restore it from a copy"),
    ],
)
def test_a_file_that_is_no_database(rooted: Path, refused: Refused, content: bytes, fix: str) -> None:
    """A plan or a model that was given by mistake is not to be moved away."""
    (rooted / "s.sqlite").write_bytes(content)
    with refused("fleet/store") as refusal:
        opened(str(rooted / "s.sqlite"))
    assert "version" not in refusal.problem.fix
    assert fix in refusal.problem.fix
    assert (rooted / "s.sqlite").read_bytes() == content


@pytest.mark.parametrize(
    "table",
    [
        "cookies (name TEXT)",
        "rows (id INT)",
        "runs (id INT); PRAGMA user_version = 1",
        "a (b); PRAGMA user_version = 7",
    ],
)
def test_the_database_of_another_program(rooted: Path, refused: Refused, table: str) -> None:
    with sqlite3.connect(rooted / "s.sqlite") as connection:
        connection.executescript(f"CREATE TABLE {table}")
    connection.close()
    before = (rooted / "s.sqlite").read_bytes()
    with refused("fleet/store") as refusal:
        opened(str(rooted / "s.sqlite"))
    assert refusal.problem.what == "the file is not a store of onnxsmith"
    assert "another path" in refusal.problem.fix
    assert (rooted / "s.sqlite").read_bytes() == before


def test_damaged_rows_of_a_database(rooted: Path, refused: Refused) -> None:
    store = opened(str(rooted / "s.sqlite"))
    store.put(ROW)
    store.put_run(RUN)
    with sqlite3.connect(rooted / "s.sqlite") as connection:
        connection.execute("UPDATE rows SET row = ?, outcome = 'banana'", [b"garbage"])
        connection.execute("UPDATE runs SET run = ?", [b"garbage"])
    connection.close()
    assert (store.row(ROW.key), store.summaries([ROW.key])) == (None, {})
    assert [*store.damaged] == [f"{store.address}, key {ROW.key}"]
    with refused("fleet/store"):
        store.run(RUN.name)


ROW_TEXT = ROW.to_json()
DAMAGED_ROWS = {
    "nothing": None,
    "a text": ROW_TEXT,
    "no zlib": b"\0",
    "no end": zlib.compress(ROW_TEXT.encode())[:-9],
    "another key": zlib.compress(ROW_TEXT.replace(ROW.key, "cd" * 16).encode()),
    "another outcome": zlib.compress(ROW_TEXT.replace('"outcome":"', '"outcome":"x', 1).encode()),
    "a gigabyte": zlib.compress(bytes(1 << 27)),
}


@pytest.mark.parametrize("name", DAMAGED_ROWS)
def test_a_damaged_row_of_a_database_has_no_summary(rooted: Path, name: str) -> None:
    """The columns beside it still say that the cell is done."""
    store = opened(str(rooted / "s.sqlite"))
    store.put(ROW)
    assert [*store.summaries([ROW.key])] == [ROW.key]
    with sqlite3.connect(rooted / "s.sqlite") as connection:
        connection.execute("UPDATE rows SET row = ?", [DAMAGED_ROWS[name]])
    connection.close()
    assert (store.row(ROW.key), store.summaries([ROW.key])) == (None, {})
    assert [*store.damaged] == [f"{store.address}, key {ROW.key}"]


@pytest.mark.parametrize("key", ["../../x", "/tmp/x", "..", "a.b", "ABC", "", "ab\n"])
def test_a_key_that_is_a_path_is_refused(key: str, refused: Refused) -> None:
    with pytest.raises(ValueError, match="is no key of a row"):
        Row.from_json(replace(ROW, key=key).to_json())
    with refused("fleet/store"):
        Run.from_json(replace(RUN, cells={("a", "s", "e"): key}).to_json(), "s.sqlite")


@pytest.mark.parametrize("key", ["../../x", "..", "/x"])
def test_a_key_stays_in_its_folder(rooted: Path, key: str) -> None:
    (rooted / "x.json").write_text("{}")
    store = opened(f"{rooted}/s/")
    store.put(replace(ROW, key=key))
    (written,) = (rooted / "s" / "rows").rglob("*.json")
    assert written.resolve().is_relative_to((rooted / "s" / "rows").resolve())
    assert (rooted / "x.json").read_text() == "{}"


@pytest.mark.parametrize("address", ["sqlite", "folder", "file://", "memory://"], indirect=True)
def test_a_run_whose_name_begins_with_a_dot(store: Store) -> None:
    store.put_run(replace(RUN, name=".nightly"))
    assert store.run_names() == [".nightly"]
    assert store.run(".nightly") == replace(RUN, name=".nightly")


def test_a_run_without_a_name(rooted: Path, refused: Refused) -> None:
    address = str(rooted / "s.sqlite")
    opened(address).put_run(RUN)
    with sqlite3.connect(address) as connection:
        connection.execute("UPDATE runs SET name = NULL")
    connection.close()
    with refused("fleet/store"):
        anew(address).run_names()


def test_rows_of_a_later_version() -> None:
    for text in (ROW.to_json().replace('"format":1', '"format":2'), "", "[]", '{"format": 1}', "{}"):
        with pytest.raises(ValueError, match=r"\S"):
            Row.from_json(text)
    assert json.loads(ROW.to_json())["format"] == 1


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def denied(*_: object, **__: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")


@pytest.mark.parametrize(("failing", "id_"), [(full, "fleet/store-full"), (denied, "fleet/store-refused")])
@pytest.mark.parametrize("address", ["folder", "file://", "memory://"], indirect=True)
def test_a_folder_that_takes_no_more(
    store: Store, refused: Refused, monkeypatch: pytest.MonkeyPatch, failing: object, id_: str
) -> None:
    store.put(ROW)
    monkeypatch.setattr(Path, "write_bytes", failing)
    monkeypatch.setattr(MemoryFileSystem, "pipe_file", failing)
    monkeypatch.setattr(LocalFileSystem, "pipe_file", failing)
    with refused(id_):
        store.put(numbered(1))
    with refused(id_):
        store.put_run(RUN)
    assert store.keys() == {ROW.key}


def test_a_full_database(rooted: Path, refused: Refused) -> None:
    store = opened(str(rooted / "s.sqlite"))
    store.put(ROW)
    (pages,) = store._database.execute("PRAGMA page_count").fetchone()  # type: ignore[attr-defined]
    store._database.execute(f"PRAGMA max_page_count = {pages}")  # type: ignore[attr-defined]
    with refused("fleet/store-full"):
        store.put(replace(numbered(1), headline=os.urandom(9000).hex()))
    assert store.row(ROW.key) == ROW


def test_a_database_that_cannot_be_written(rooted: Path, refused: Refused) -> None:
    store = opened(str(rooted / "s.sqlite"))
    store.put(ROW)
    store._database.execute("PRAGMA query_only = 1")  # type: ignore[attr-defined]
    with refused("fleet/store-refused"):
        store.put(numbered(1))
    assert store.row(ROW.key) == ROW


@pytest.mark.parametrize("name", ["file/s.sqlite", "file/s/"])
def test_a_folder_that_cannot_be_made(rooted: Path, refused: Refused, name: str) -> None:
    (rooted / "file").touch()
    with refused("fleet/store-refused"):
        opened(f"{rooted}/{name}")


def test_a_store_with_a_view_is_refused(rooted: Path, refused: Refused) -> None:
    """A view may be a question without an end."""
    address = str(rooted / "s.sqlite")
    opened(address)
    with sqlite3.connect(address) as connection:
        connection.executescript("ALTER TABLE runs RENAME TO r; CREATE VIEW runs AS SELECT name, at, run FROM r")
    connection.close()
    with refused("fleet/store") as refusal:
        anew(address)
    assert refusal.problem.what == "the file is not a store of onnxsmith"


def test_an_empty_file_is_not_made_a_store_by_reading(rooted: Path, refused: Refused) -> None:
    from onnxsmith.fleet import tables

    (rooted / "notes.txt").write_bytes(b"")
    with refused("fleet/no-run"):
        tables.refuse_missing(str(rooted / "notes.txt"))


def test_half_of_a_character_is_no_name(refused: Refused) -> None:
    with refused("fleet/store"):
        Run.from_json(replace(RUN, name="\ud800").to_json(), "s")

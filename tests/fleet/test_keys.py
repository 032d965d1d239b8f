"""The key of a cell follows from all that may change its result, and from nothing else. Shards follow from keys."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import onnxsmith
from onnxsmith.fleet import cells, digests, environments, shards
from onnxsmith.graph.files import digest
from tests.conftest import Refused
from tests.fleets import cells_of, keys, models, plan

PLAN = """models = ["a.onnx", "b.onnx", { source = "nets.py:build", depends = ["w.pt"] }]
steps = ["export", "simplify", "run"]
time_limit = 60
[options]
run = "--input x=x.npy --data folder"
[settings.one]
[settings.two]
simplify = "--seed 1"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A plan of two files, one with external data, and a factory with a helper, weights, and files in options."""
    models(tmp_path, "a.onnx", "b.onnx")
    model = onnx.load(tmp_path / "b.onnx")
    tensor = numpy_helper.from_array(np.arange(4, dtype=np.float32), "w")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="b.bin")
    model.graph.initializer.append(tensor)
    (tmp_path / "b.onnx").write_bytes(model.SerializeToString())
    for name in ("b.bin", "nets.py", "helper.py", "w.pt", "x.npy", "folder/0.npy"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"0123456789abcdef")
    return plan(tmp_path, PLAN)


def changed(path: Path, change: Callable[[], object]) -> set[tuple[str, str, str]]:
    """The places of the cells whose keys a change changes."""
    before = keys(path)
    change()
    after = keys(path)
    assert before.keys() == after.keys()
    return {place for place in before if before[place] != after[place]}


def with_one_byte_changed(file: Path) -> Callable[[], object]:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    return lambda: file.write_bytes(content)


@pytest.mark.parametrize(
    ("file", "of"),
    [
        ("a.onnx", {"a.onnx"}),
        ("b.onnx", {"b.onnx"}),
        ("b.bin", {"b.onnx"}),
        ("nets.py", {"nets.py:build"}),
        ("helper.py", {"nets.py:build"}),
        ("w.pt", {"nets.py:build"}),
        ("x.npy", {"a.onnx", "b.onnx", "nets.py:build"}),
        ("folder/0.npy", {"a.onnx", "b.onnx", "nets.py:build"}),
    ],
)
def test_a_changed_byte(path: Path, file: str, of: set[str]) -> None:
    places = changed(path, with_one_byte_changed(path.parent / file))
    assert places == {(model, setting, "here") for model in of for setting in ("one", "two")}


def test_a_changed_byte_under_the_time_of_before(path: Path) -> None:
    """A program may set the time of a file back. The cache of digests is not deceived."""
    file, long_ago = path.parent / "x.npy", time.time() - 1000
    os.utime(file, (long_ago, long_ago))
    keys(path)
    change = with_one_byte_changed(file)
    assert changed(path, lambda: (change(), os.utime(file, (long_ago, long_ago))))


@pytest.mark.parametrize(
    ("old", "new", "of"),
    [
        ("--seed 1", "--seed 2", {("a.onnx", "two"), ("b.onnx", "two"), ("nets.py:build", "two")}),
        ('"export", ', "", {("nets.py:build", "one"), ("nets.py:build", "two")}),
        ("time_limit = 60", "time_limit = 61", 6),
        ("time_limit = 60", 'time_limit = 60\nmemory_limit = "1GB"', 6),
        ("time_limit = 60", 'time_limit = 60\nkeep = "out"', 6),
        ("--input x=x.npy", "--input z=x.npy", 6),
        ("time_limit = 60", 'time_limit = 60\nworkers = 3\nname = "other"\nstore = "s/"  # a comment', set()),
        (
            '"a.onnx", "b.onnx", { source = "nets.py:build", depends = ["w.pt"] }',
            '{ source = "nets.py:build", depends = ["w.pt"] }, "*.onnx"',
            set(),
        ),
        ("[settings.one]\n[settings.two]\nsimplify = ", "[settings.two]\nsimplify = ", None),
    ],
)
def test_a_changed_plan(path: Path, old: str, new: str, of: set[tuple[str, str]] | int | None) -> None:
    """Options, steps and limits belong to the key; names, the store, the workers and the order do not."""
    assert old in PLAN
    before = keys(path)
    plan(path.parent, PLAN.replace(old, new))
    after = keys(path)
    places = {place[:2] for place in after if before[place] != after[place]}
    assert len(places) == of if isinstance(of, int) else places == (of or set())


def test_files_that_do_not_belong_to_a_model(path: Path) -> None:
    def change() -> None:
        models(path.parent, "c.onnx")
        (path.parent / "notes.txt").write_text("")
        (path.parent / "fleet.sqlite").write_text("")
        os.utime(path.parent / "a.onnx")

    assert not changed(path, change)


def test_another_version(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = environments.versions_of(sys.executable)
    newer = {**versions, "onnxruntime": "99.0"}
    assert len(changed(path, lambda: monkeypatch.setattr(environments, "versions_of", lambda python: newer))) == 6


def test_another_version_of_onnxsmith(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(changed(path, lambda: monkeypatch.setattr(environments, "_source", lambda: "2.0"))) == 6


def test_the_version_of_a_checkout_follows_from_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module.py").write_text("a = 1")
    monkeypatch.setattr(onnxsmith, "__file__", str(tmp_path / "__init__.py"))
    source = environments._source.__wrapped__
    before = source()
    (tmp_path / "module.py").write_text("a = 2")
    assert source() != before


def test_other_requirements(path: Path) -> None:
    environment = '[environments.new]\nrequirements = ["onnxruntime==1.31.0", "numpy"]'
    plan(path.parent, f"{PLAN}{environment}")
    before = keys(path)
    plan(path.parent, f"{PLAN}{environment.replace('1.31', '1.32')}")
    assert not set(before.values()) & set(keys(path).values())
    plan(path.parent, f'{PLAN}[environments.new]\nrequirements = ["numpy", "onnxruntime==1.31.0"]')
    assert keys(path) == before


# Digests are remembered


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file that did not change lately."""
    (tmp_path / "old").write_bytes(b"content")
    return tmp_path / "old"


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files whose digests are computed. No file is young."""
    names: list[str] = []
    real = digest.sha256

    def sha256(path: Path) -> str:
        names.append(path.name)
        return real(path)

    monkeypatch.setattr(digest, "sha256", sha256)
    monkeypatch.setattr(digests, "_YOUNG", -1e9)
    return names


def digest_of(file: Path) -> str:
    with digests.remembered() as known:
        return known.file(file)


def test_an_unchanged_file_is_read_once(old: Path, computed: list[str]) -> None:
    assert digest_of(old) == digest_of(old)
    assert computed == ["old"]


def test_a_file_that_changed_a_moment_ago_is_read_again(
    old: Path, computed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "_YOUNG", 1e9)
    assert digest_of(old) == digest_of(old)
    assert computed == ["old", "old"]


def damage(cache: Path) -> None:
    (cache / "onnxsmith" / "file-digests.sqlite").write_bytes(b"no database" * 1000)


def lacking_a_column(cache: Path) -> None:
    with sqlite3.connect(cache / "onnxsmith" / "file-digests.sqlite") as connection:
        connection.execute("DROP TABLE digests")
        connection.execute("CREATE TABLE digests (path TEXT)")
        connection.execute("INSERT INTO digests VALUES ('x')")
    connection.close()


@pytest.mark.parametrize("damaging", [damage, lacking_a_column])
def test_a_damaged_cache_is_not_used(
    old: Path, computed: list[str], own_cache: Path, damaging: Callable[[Path], None]
) -> None:
    before = digest_of(old)
    damaging(own_cache)
    assert digest_of(old) == before
    assert computed == ["old", "old"]


def test_a_cache_folder_that_cannot_be_made(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest_of(old)
    monkeypatch.setenv("XDG_CACHE_HOME", str(old))
    assert digest_of(old) == before


def test_a_file_that_went_away(path: Path, refused: Refused) -> None:
    (path.parent / "w.pt").unlink()
    with refused("fleet/model-unreadable") as refusal:
        keys(path)
    assert refusal.problem.where == str(path.parent / "w.pt")


def test_a_file_that_is_no_model_is_a_cell(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"location garbage")
    assert len(cells_of(plan(tmp_path))) == 1


# Shards


@pytest.mark.parametrize("count", [1, 2, 3, 7, 30])
def test_shards_are_disjoint_and_complete(path: Path, count: int) -> None:
    everything = cells_of(path)
    parts = [cells.shard(everything, number, count) for number in range(1, count + 1)]
    assert Counter(cell.place for part in parts for cell in part) == Counter(cell.place for cell in everything)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_the_order_of_the_plan_does_not_change_shards(path: Path) -> None:
    everything = cells_of(path)
    assert {cell.key for cell in cells.shard(everything, 2, 3)} == {
        cell.key for cell in cells.shard(everything[::-1], 2, 3)
    }


def test_equal_cells_are_in_one_shard(tmp_path: Path) -> None:
    models(tmp_path, "a.onnx", "b.onnx")
    path = plan(tmp_path, 'models = ["*.onnx"]\nsteps = ["check"]\n[settings.one]\n[settings.same]\n')
    parts = [cells.shard(cells_of(path), number, 2) for number in (1, 2)]
    assert [[cell.setting for cell in part] for part in parts] == [["one", "same"]] * 2


@pytest.mark.parametrize(("text", "part"), [("", None), ("3/20", (3, 20)), (" 1/1 ", (1, 1))])
def test_a_shard_is_read(text: str, part: tuple[int, int] | None) -> None:
    assert shards.read(text) == part


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/0", "a/b", "-1/4", "1/4/2"])
def test_a_part_that_is_none(text: str, refused: Refused) -> None:
    with refused("fleet/plan"):
        shards.read(text)

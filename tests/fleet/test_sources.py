"""What a model of a plan can be: files and patterns, factories, folders of transformers, fsspec addresses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from onnxsmith.fleet import plan_reader
from onnxsmith.fleet.cells import models as models_of
from onnxsmith.fleet.sources import address, factory
from onnxsmith.fleet.sources.base import Model
from tests.conftest import Refused
from tests.fleets import cells_of, keys, models, plan

STEPS = 'steps = ["inspect"]\n'


def named(folder: Path, entries: str, more: str = "") -> list[Model]:
    path = plan(folder, f"models = {entries}\n{more}\n{STEPS}")
    return [model for model, _ in models_of(plan_reader.read(path))]


def names(folder: Path, entries: str, more: str = "") -> list[str]:
    return [model.name for model in named(folder, entries, more)]


# Files


def test_patterns(tmp_path: Path) -> None:
    models(tmp_path, "b.onnx", "a.onnx", "deep/er/c.onnx")
    (tmp_path / "folder.onnx").mkdir()
    assert names(tmp_path, '["*.onnx"]') == ["a.onnx", "b.onnx"]
    assert names(tmp_path, '["**/*.onnx"]') == ["a.onnx", "b.onnx", "deep/er/c.onnx"]
    assert names(tmp_path, '["b.onnx", "[ac].onnx"]') == ["b.onnx", "a.onnx"]


def test_absolute_paths_and_those_above_the_plan(tmp_path: Path) -> None:
    models(tmp_path, "a.onnx", "plans/b.onnx")
    here = tmp_path / "plans"
    assert [model.argument for model in named(here, f"['{tmp_path}/*.onnx', '../a.onnx', 'b.onnx']")] == [
        f"{tmp_path}/a.onnx",
        "../a.onnx",
        "b.onnx",
    ]


@pytest.mark.parametrize("name", ["two words.onnx", "größe.onnx", "模型.onnx", "a[1].onnx", "-o.onnx", "it's.onnx"])
def test_odd_names(tmp_path: Path, name: str) -> None:
    models(tmp_path, name)
    (model,) = named(tmp_path, f'["{name}"]')
    assert (model.name, model.files) == (name, (name,))
    (cell,) = cells_of(tmp_path / "p.toml")
    assert cell.key == keys(tmp_path / "p.toml")[name, "default", "here"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is text")
def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    models(tmp_path, "a.onnx")
    (tmp_path / "a.onnx").rename(tmp_path / "m\udcff.onnx")
    plan(tmp_path, f'models = ["*.onnx"]\n{STEPS}')
    (tmp_path / "old").touch()
    assert keys(tmp_path / "p.toml") == keys(tmp_path / "p.toml")


def test_exclude(tmp_path: Path) -> None:
    models(tmp_path, "a.onnx", "b.onnx", "old/c.onnx", "old/d.onnx")
    assert names(tmp_path, '["**/*.onnx"]', 'exclude = ["old/*", "b.onnx"]') == ["a.onnx"]
    assert names(tmp_path, '["*.onnx", "!a.onnx"]') == ["b.onnx"]


def test_all_are_excluded(tmp_path: Path, refused: Refused) -> None:
    models(tmp_path, "a.onnx")
    with refused("fleet/no-models"):
        names(tmp_path, '["a.onnx"]', 'exclude = "*"')


def test_a_model_of_two_entries_counts_once(tmp_path: Path) -> None:
    models(tmp_path, "a.onnx", "b.onnx")
    assert names(tmp_path, '["*.onnx", { source = "a.onnx", name = "first" }]') == ["first", "b.onnx"]


def test_two_models_of_one_name(tmp_path: Path, refused: Refused) -> None:
    models(tmp_path, "a.onnx", "b.onnx")
    with refused("fleet/plan") as refusal:
        names(tmp_path, '["a.onnx", { source = "b.onnx", name = "a.onnx" }]')
    assert "two models are called 'a.onnx'" in refusal.problem.what


def test_one_name_for_two_models(tmp_path: Path, refused: Refused) -> None:
    models(tmp_path, "a.onnx", "b.onnx")
    with refused("fleet/plan") as refusal:
        names(tmp_path, '[\n{ source = "*.onnx", name = "a" }]')
    assert "2 models cannot all be called 'a'" in refusal.problem.what
    assert "a.onnx, b.onnx" in refusal.problem.why
    assert refusal.problem.where.endswith("line 2")


@pytest.mark.parametrize("entry", ["gone.onnx", "gone/*.onnx", "gone.py:build", "gone/"])
def test_a_model_that_is_not_there(tmp_path: Path, refused: Refused, entry: str) -> None:
    models(tmp_path, "a.onnx")
    with refused("fleet/no-models") as refusal:
        names(tmp_path, f'[\n"a.onnx",\n"{entry}"]')
    assert entry in refusal.problem.what
    assert refusal.problem.where.endswith("line 3")


def test_a_setting_that_is_not_there(tmp_path: Path, refused: Refused) -> None:
    models(tmp_path, "a.onnx")
    with refused("fleet/plan") as refusal:
        names(tmp_path, '[{ source = "a.onnx", settings = ["defalt"] }]')
    assert refusal.problem.fix.startswith("write default in place of defalt")


# Factories


def test_a_factory_in_the_folder_of_the_plan(tmp_path: Path) -> None:
    (tmp_path / "nets.py").touch()
    (tmp_path / "lib" / "deep").mkdir(parents=True)
    for name in ("lib/layers.py", "lib/deep/more.py", "lib/notes.txt"):
        (tmp_path / name).touch()
    for folder in (".hidden", "__pycache__", "node_modules", "env"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "left_out.py").touch()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "lib" / "up").symlink_to(tmp_path, target_is_directory=True)
    (model,) = named(tmp_path, '["nets.py:build"]')
    assert (model.name, model.argument, model.is_file) == ("nets.py:build", "nets.py:build", False)
    assert set(model.files) == {"nets.py", "lib/layers.py", "lib/deep/more.py"}


def test_a_factory_in_a_linked_folder(tmp_path: Path) -> None:
    models(tmp_path / "plans", "unused.onnx")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "layers.py").touch()
    (tmp_path / "plans" / "nets.py").touch()
    (tmp_path / "plans" / "shared").symlink_to(tmp_path / "shared", target_is_directory=True)
    (model,) = named(tmp_path / "plans", '["nets.py:build"]')
    assert set(model.files) == {"nets.py", "shared/layers.py"}


@pytest.mark.parametrize("place", ["package.nets", "package"])
def test_a_factory_in_a_package_of_the_folder(tmp_path: Path, place: str) -> None:
    (tmp_path / "package").mkdir()
    for name in ("__init__.py", "nets.py"):
        (tmp_path / "package" / name).touch()
    (model,) = named(tmp_path, f'["{place}:build"]')
    assert set(model.files) == {"package/__init__.py", "package/nets.py"}


def test_a_factory_by_an_absolute_path(tmp_path: Path) -> None:
    """Its files lie outside of the plan's folder, and belong to the model all the same."""
    (tmp_path / "code").mkdir()
    (tmp_path / "plans").mkdir()
    helper = tmp_path / "code" / "helper.py"
    for file in (helper, tmp_path / "code" / "nets.py"):
        file.write_text("# first")
    path = plan(tmp_path / "plans", f'models = ["{tmp_path}/code/nets.py:build", "../code/nets.py:build"]\n{STEPS}')
    before = keys(path)
    helper.write_text("# other")
    assert not set(before.values()) & set(keys(path).values())


def test_a_factory_of_an_installed_package(tmp_path: Path) -> None:
    (model,) = named(tmp_path, '["torchvision.models:resnet18"]')
    assert (model.files, model.stamp) == ((), "torchvision.models:resnet18")


def test_too_many_files_beside_a_factory(tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "_MOST_FILES", 2)
    for name in ("nets.py", "a.py", "b.py"):
        (tmp_path / name).touch()
    with refused("fleet/plan") as refusal:
        names(tmp_path, '["nets.py:build"]')
    assert "too many Python files" in refusal.problem.what


# Folders of transformers


@pytest.mark.parametrize("place", ["", "/.hidden/deep"])
def test_a_folder_of_transformers(tmp_path: Path, place: str) -> None:
    here = Path(f"{tmp_path}{place}")
    (here / "bert" / "part").mkdir(parents=True)
    (here / "bert" / ".cache").mkdir()
    for name in ("config.json", "part/weights.bin", ".cache/lock"):
        (here / "bert" / name).write_text("{}")
    for entry in ("bert", "./bert/", f"{here}/bert"):
        (model,) = named(here, f'["{entry}"]')
        assert (model.is_file, model.options) == (False, ("--transformers",))
        assert [(here / name).relative_to(here / "bert").as_posix() for name in model.files] == [
            "config.json",
            "part/weights.bin",
        ]


# Addresses of fsspec


@pytest.fixture
def memory() -> MemoryFileSystem:
    system = MemoryFileSystem()
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    return system


def test_files_in_memory(tmp_path: Path, memory: MemoryFileSystem) -> None:
    models(tmp_path, "a.onnx")
    for name in ("a", "b"):
        memory.pipe_file(f"/models/{name}.onnx", (tmp_path / "a.onnx").read_bytes())
    first, second = named(tmp_path, '["memory://models/*.onnx"]')
    assert (first.name, first.argument, first.is_file) == ("memory:///models/a.onnx", "a.onnx", True)
    assert first.stamp != second.stamp
    memory.pipe_file("/models/a.onnx", b"other")
    changed, same = named(tmp_path, '["memory://models/*.onnx"]')
    assert (changed.stamp != first.stamp, same.stamp == second.stamp) == (True, True)
    assert [model.name for model in named(tmp_path, '["memory://models/b.onnx"]')] == ["memory:///models/b.onnx"]


def test_files_of_one_name_in_two_folders(tmp_path: Path, memory: MemoryFileSystem) -> None:
    models(tmp_path, "a.onnx")
    for folder in ("x", "y", "z"):
        memory.pipe_file(f"/{folder}/a.onnx", b"model")
    entries = '["a.onnx", "memory://x/a.onnx", "memory://y/a.onnx", "memory://z/a.onnx"]'
    assert names(tmp_path, entries, 'exclude = "*/z/*"') == ["a.onnx", "memory:///x/a.onnx", "memory:///y/a.onnx"]


def test_files_of_this_machine_by_address(tmp_path: Path) -> None:
    models(tmp_path, "two words.onnx")
    before = named(tmp_path, f'["file://{tmp_path}/*.onnx"]')
    assert [model.name for model in before] == [f"file://{tmp_path}/two words.onnx"]
    with (tmp_path / "two words.onnx").open("ab") as file:
        file.write(b" ")
    assert named(tmp_path, f'["file://{tmp_path}/two words.onnx"]')[0].stamp != before[0].stamp


def test_a_file_is_fetched_with_its_data(tmp_path: Path, memory: MemoryFileSystem) -> None:
    for name in ("m.onnx", "m.onnx.data", "other.onnx"):
        memory.pipe_file(f"/models/{name}", name.encode())
    target = Path(address.fetched("memory://models/m.onnx", tmp_path / "source"))
    assert target.read_text() == "m.onnx"
    assert (target.parent / "m.onnx.data").read_text() == "m.onnx.data"
    assert sorted(path.name for path in target.parent.iterdir()) == ["m.onnx", "m.onnx.data"]


def test_an_address_that_is_not_there(tmp_path: Path, memory: MemoryFileSystem, refused: Refused) -> None:
    with refused("fleet/no-models"):
        names(tmp_path, '["memory://nowhere/*.onnx"]')
    with refused("fleet/no-models"):
        names(tmp_path, '["memory://nowhere/a.onnx"]')
    with refused("fleet/unreachable"):
        address.fetched("memory://nowhere/a.onnx", tmp_path / "source")


def test_an_address_of_an_unknown_system(tmp_path: Path, refused: Refused) -> None:
    with refused("fleet/unreachable"):
        names(tmp_path, '["nosuch://a.onnx"]')


def test_without_fsspec(tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with refused("fleet/fsspec"):
        names(tmp_path, '["memory://models/a.onnx"]')


def test_without_the_package_of_a_system(tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with refused("fleet/fsspec") as refusal:
        names(tmp_path, '["s3://bucket/a.onnx"]')
    assert "s3fs" in refusal.problem.why


@pytest.mark.parametrize(
    ("files", "source", "what", "fix"),
    [
        (["nets/a.onnx"], "nets", "'nets' is a folder", 'models = ["nets/*.onnx"]'),
        (["nets/deep/a.onnx"], "nets/", "'nets/' is a folder", 'models = ["nets/**/*.onnx"]'),
        (
            ["nets/bert/config.json"],
            "nets",
            "'nets' is a folder",
            "name the folders of transformers models in this folder: nets/bert",
        ),
        (["nets/a.txt"], "nets", "'nets' is a folder", 'models = ["nets/*'),
        (["nets/resnet.onnx"], "nets/resnett.onnx", "no model is called", "write nets/resnet.onnx in place of"),
        (["net.py"], "net.py", "'net.py' is no model", "net.py:build"),
        ([], "gone/*.onnx", "no model is called", "correct the path"),
    ],
)
def test_what_to_write_in_place_of_an_entry_without_models(
    tmp_path: Path, refused: Refused, files: list[str], source: str, what: str, fix: str
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    with refused("fleet/no-models") as refusal:
        cells_of(plan(tmp_path, f'models = ["{source}"]\nsteps = ["check"]'))
    assert what in refusal.problem.what
    assert fix in refusal.problem.fix

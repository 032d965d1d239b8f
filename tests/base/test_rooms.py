"""A room's members are its files and its entry points; what does not fit is an error."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType

import pytest

from onnxsmith.base import rooms
from tests.conftest import Refused

Build = Callable[[dict[str, str]], str]
BASE = "class Lamp: ...\n"
MEMBER = "from {room}.base import Lamp\nclass {name}(Lamp): ...\n"


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Build]:
    """Makes a package from path → source and gives its name; `{room}` in a source is that name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "a_room_for_tests"

    def make(files: dict[str, str]) -> str:
        for path, source in {"__init__.py": "", "base.py": BASE, **files}.items():
            file = tmp_path / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(source.replace("{room}", name))
        return name

    yield make
    for module in [key for key in sys.modules if key.split(".")[0] == name]:
        del sys.modules[module]


@pytest.fixture
def plug(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, object], None]:
    """Adds an installed entry point whose value loads as the given object, or raises it."""
    entries: list[EntryPoint] = []

    class Loaded(EntryPoint):
        def load(self) -> object:
            if isinstance(plugged[self.name], Exception):
                raise plugged[self.name]
            return plugged[self.name]

    plugged: dict[str, object] = {}

    def add(name: str, value: object) -> None:
        plugged[name] = value
        entries.append(Loaded(name, f"some.package:{name}", "a_room_for_tests"))

    monkeypatch.setattr(rooms, "_entry_points", lambda room: entries)
    return add


def base_of(room: str) -> type:
    return importlib.import_module(f"{room}.base").Lamp


def member(name: str) -> str:
    return MEMBER.replace("{name}", name)


def test_members_are_found_by_their_files_in_order(build: Build) -> None:
    room = build({"tall_lamp.py": member("Tall"), "desk/__init__.py": "", "desk/bright_one.py": member("Bright")})
    found = rooms.members(room, base_of(room))
    assert list(found) == ["desk/bright-one", "tall-lamp"]
    assert type(found["tall-lamp"]).__name__ == "Tall"


@pytest.mark.parametrize("path", ["_helper.py", "_inner/__init__.py", "_inner/thing.py"])
def test_what_starts_with_an_underscore_is_no_member(build: Build, path: str) -> None:
    room = build({"_inner/__init__.py": "", path: "X = 1\n", "lamp.py": member("One")})
    assert list(rooms.classes(room, base_of(room))) == ["lamp"]


def test_a_helper_class_with_an_underscore_does_not_count(build: Build) -> None:
    room = build({"lamp.py": member("One") + "class _Two(Lamp): ...\n"})
    assert list(rooms.classes(room, base_of(room))) == ["lamp"]


def test_a_module_without_a_member_is_refused(build: Build, refused: Refused) -> None:
    room = build({"lamp.py": "X = 1\n"})
    with refused("room/no-member"):
        rooms.classes(room, base_of(room))


def test_several_members_of_a_module_have_the_names_of_their_classes(build: Build) -> None:
    room = build({"desk/__init__.py": "", "desk/lamps.py": member("BrightOne") + "class Top1(Lamp): ...\n"})
    assert list(rooms.classes(room, base_of(room))) == ["desk/bright-one", "desk/top1"]


def test_members_of_two_modules_with_one_id_are_a_clash(build: Build, refused: Refused) -> None:
    room = build({"lamps.py": member("Tall") + "class Low(Lamp): ...\n", "tall.py": member("Tall")})
    with refused("room/clash"):
        rooms.classes(room, base_of(room))


@pytest.mark.parametrize("path", ["lamp.py", "desk/__init__.py"])
def test_a_module_that_cannot_be_imported_is_not_passed_over(build: Build, path: str) -> None:
    room = build({path: "import a_module_that_nobody_has\n"})
    with pytest.raises(ModuleNotFoundError):
        rooms.classes(room, base_of(room))


def test_an_entry_point_adds_a_member(build: Build, plug: Callable[[str, object], None]) -> None:
    room = build({"lamp.py": member("One")})
    plug("other", type("Other", (base_of(room),), {}))
    assert list(rooms.classes(room, base_of(room))) == ["lamp", "other"]


def test_an_entry_point_with_a_members_id_is_a_clash(
    build: Build, plug: Callable[[str, object], None], refused: Refused
) -> None:
    room = build({"lamp.py": member("One")})
    plug("lamp", type("Other", (base_of(room),), {}))
    with refused("room/clash"):
        rooms.classes(room, base_of(room))


def test_two_entry_points_with_one_id_are_a_clash(
    build: Build, plug: Callable[[str, object], None], refused: Refused
) -> None:
    room = build({})
    plug("lamp", type("A", (base_of(room),), {}))
    plug("lamp", type("B", (base_of(room),), {}))
    with refused("room/clash"):
        rooms.classes(room, base_of(room))


@pytest.mark.parametrize("value", [object, ModuleType("m"), 5, ImportError("no such module")])
def test_an_entry_point_that_is_no_member_is_refused(
    build: Build, plug: Callable[[str, object], None], refused: Refused, value: object
) -> None:
    room = build({})
    plug("lamp", value)
    with refused("room/no-member"):
        rooms.classes(room, base_of(room))


def test_what_is_installed_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda: asked.append(None) or EntryPoints())
    monkeypatch.setattr(sys, "path", [*sys.path, "another"])
    assert not rooms._entry_points("one.room")
    assert not rooms._entry_points("another.room")
    assert len(asked) == 1
    rooms._installed.cache_clear()

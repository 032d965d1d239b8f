"""Which commands go through their models once, so that their process collects no garbage."""

from __future__ import annotations

from onnxsmith.base import rooms
from onnxsmith.cli.commands._edit_options import Editing
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.commands.compare import Diff
from onnxsmith.cli.commands.edit import Edit
from onnxsmith.cli.commands.inspect import Inspect, View


def test_commands_of_one_pass() -> None:
    commands = rooms.classes("onnxsmith.cli.commands", Command)  # type: ignore[type-abstract]
    own = {name for name, command in commands.items() if command.is_one_pass is not Command.is_one_pass}
    editing = {name for name, command in commands.items() if issubclass(command, Editing)}
    assert own == {"diff", "inspect", "view"} | editing
    assert Edit(model="a.onnx", patch="a.toml").is_one_pass()
    assert Diff("a.onnx", "b.onnx").is_one_pass()
    assert Inspect("a.onnx").is_one_pass()
    assert View("a.onnx").is_one_pass()


def test_what_runs_for_long_collects_garbage() -> None:
    assert not View("a.onnx", serve=True).is_one_pass()
    assert not Inspect("a.onnx", costs=True).is_one_pass()
    assert not Inspect("module.py:build", program=True).is_one_pass()

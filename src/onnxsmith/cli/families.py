"""Finds the packages of commands that stand in a folder, such as those of `baseline`."""

from __future__ import annotations

import importlib
from types import ModuleType


def package(name: str) -> ModuleType:
    """Returns the package of the commands of a family. Its docstring is the help of the family."""
    return importlib.import_module(f"onnxsmith.cli.commands.{name.replace('-', '_')}")

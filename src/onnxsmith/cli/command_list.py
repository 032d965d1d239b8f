"""Lists the commands with a sentence each, for help."""

from __future__ import annotations

import importlib
import inspect
import re
from types import ModuleType

from onnxsmith.base import rooms
from onnxsmith.cli.commands.base import Command


def package(family: str) -> ModuleType:
    """Returns the package of the commands of a family, such as `baseline`. Its docstring is the help of the family."""
    return importlib.import_module(f"onnxsmith.cli.commands.{family.replace('-', '_')}")


def summaries(family: str) -> dict[str, str]:
    """Returns the first sentence of the help of each command of a family; with "", of each word after `onnxsmith`."""
    found = {}
    for id_, command in rooms.classes("onnxsmith.cli.commands", Command).items():
        folder, _, name = id_.rpartition("/")
        if folder == family:
            found[name] = _first_sentence(command)
        elif not family:
            found[folder] = _first_sentence(package(folder))
    return found


def _first_sentence(described: object) -> str:
    paragraph = (inspect.getdoc(described) or "").partition("\n\n")[0]
    return re.split(r"(?<=\.)\s", " ".join(paragraph.split()))[0]

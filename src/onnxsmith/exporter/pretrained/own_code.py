"""Finds the Python code that a saved model of transformers brings along, and refuses it unless the user trusts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxsmith.base import user_files
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.spelling import is_typed
from onnxsmith.base.words import first_few

_FILES = 5
"""Limits the files that a message names. A choice: one line."""


@dataclass(frozen=True)
class OwnCode:
    """The classes of a model that are not part of transformers.

    `classes` maps an auto class of transformers to the class in a file of the folder, `modeling_x.Model`, or in another
    repository, `owner/name--modeling_x.Model`: `auto_map` in config.json. `files` are the Python files of the folder.
    """

    place: Path
    classes: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    @property
    def named(self) -> str:
        """Names the code: the files of the folder, and the classes of other repositories."""
        elsewhere = sorted(one for one in self.classes.values() if "--" in one)
        return first_few([*self.files, *elsewhere] or sorted(self.classes.values()), _FILES)

    def is_needed(self, transformers: Any) -> bool:
        """Whether transformers has no configuration of its own for the model."""
        known: Any = getattr(transformers, "CONFIG_MAPPING", {})
        return "AutoConfig" in self.classes and _read(self.place).get("model_type") not in known

    def notes(self, *, ran: bool) -> tuple[str, ...]:
        """Says that transformers took a class of its own, if the model names code that did not run."""
        return () if ran or not self.classes else (f"Python code that the model names was not run: {self.named}",)

    def limits(self, *, ran: bool) -> tuple[str, ...]:
        """Says in the headline that the code ran."""
        return (f"made with Python code that the model names: {self.named}",) if ran and self.classes else ()

    def refusal(self) -> OnnxsmithError:
        """Returns the problem of a model that needs its own code."""
        option = "--trust-remote-code" if is_typed() else "trust_remote_code=True"
        return problem(
            "export/own-code",
            "the model needs Python code of its own, which an export does not run without your permission",
            where=str(self.place),
            why=f"auto_map names code that transformers would run: {self.named}",
            fix=f"read that code; and if you trust it, add {option}",
        )


def of_folder(config_file: Path) -> OwnCode:
    """Returns the code that a configuration names. Reads texts only."""
    named = _read(config_file).get("auto_map")
    classes = {str(auto): str(kind) for auto, kind in named.items() if kind} if isinstance(named, dict) else {}
    files = sorted(one.name for one in config_file.parent.glob("*.py")) if classes else []
    return OwnCode(config_file, classes, tuple(files))


def _read(config_file: Path) -> dict[str, Any]:
    """Returns the configuration; empty if it cannot be read, which transformers then says."""
    try:
        found = user_files.parse_json(user_files.read_utf8(config_file))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}

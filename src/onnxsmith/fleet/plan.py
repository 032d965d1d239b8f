"""Describes a plan: models, settings and environments, and the limits of a cell."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from onnxsmith.fleet.steps import Step

HERE = "here"
"""The name of the environment of the Python that runs the fleet."""


@dataclass(frozen=True)
class ModelEntry:
    """An entry of `models`: what it names, and what counts for its models only.

    `source` is a path, a pattern, `file.py:factory`, `package.module:factory`, a folder of transformers or an fsspec
    address. `options` are added to the options of a verb. `settings` limits the settings; empty: all. `depends` are
    further files whose bytes belong to the model, such as weights that a factory loads.
    """

    source: str
    name: str = ""
    options: dict[str, tuple[str, ...]] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    depends: tuple[str, ...] = ()
    where: str = ""


@dataclass(frozen=True)
class Environment:
    """The Python of a cell. Without `requirements`, `python` is an interpreter that has onnxsmith, "" for the one that
    runs the fleet. With `requirements`, uv makes an environment with these packages and this version of Python."""

    name: str = HERE
    python: str = ""
    requirements: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    """The limits of each process of a cell. `seconds` is for each step, `bytes` for private memory; 0 is no limit."""

    seconds: float = 1800.0
    bytes: int = 0


@dataclass(frozen=True)
class Plan:
    """A plan as it was read. `keep` is the folder for the files that steps write; "" removes them after the cell.
    `text` is the file's text, which the store keeps."""

    path: Path
    name: str
    models: tuple[ModelEntry, ...]
    settings: dict[str, tuple[Step, ...]]
    environments: tuple[Environment, ...]
    limits: Limits
    workers: int = 0
    keep: str = ""
    store: str = ""
    text: str = ""

    @property
    def folder(self) -> Path:
        """Returns the folder that paths of the plan are relative to."""
        return self.path.absolute().parent

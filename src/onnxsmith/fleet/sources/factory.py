"""Torch modules that a function makes."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from onnxsmith.base.problem import problem
from onnxsmith.fleet.sources.base import Model, Source

_FACTORY = re.compile(r"(?P<place>[^:]+):(?P<function>[A-Za-z_]\w*)")
_MOST_FILES = 2000
"""Limits the Python files that stand for a package. A choice: more would take longer to read than a step."""


class Factory(Source):
    """`nets.py:build` or `package.module:build`.

    The Python files in the folder of the module, and below it, belong to the model: a change of one of them gives a new
    cell. Files that they load are named by `depends`.
    """

    rank = 2

    def takes(self, text: str, folder: Path) -> bool:
        return _FACTORY.fullmatch(text) is not None and "://" not in text

    def models(self, text: str, folder: Path) -> Sequence[Model]:
        match = _FACTORY.fullmatch(text)
        assert match is not None
        file = self._file(match["place"], folder)
        if file is None:
            if match["place"].endswith(".py"):
                return []
            return [Model(text, text, is_file=False, stamp=text)]  # installed: the environment's versions stand for it
        inside = file.parent.is_relative_to(folder)
        files = tuple(str(path.relative_to(folder) if inside else path) for path in _python_files(file.parent))
        return [Model(text, text, is_file=False, files=files)]

    def _file(self, place: str, folder: Path) -> Path | None:
        """Returns the file of the module in the folder of the plan; None if it is installed, or missing."""
        if place.endswith(".py"):
            return folder / place if (folder / place).is_file() else None
        path = folder.joinpath(*place.split("."))
        return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def _python_files(start: Path) -> list[Path]:
    files = list(itertools.islice(_walked(start), _MOST_FILES + 1))
    if len(files) > _MOST_FILES:
        raise problem(
            "fleet/plan",
            "the folder of the factory has too many Python files to watch for changes",
            where=str(start),
            why=f"the folder has more than {_MOST_FILES:,} Python files, and all of them may belong to the model",
            fix="move the factory into a separate folder",
        )
    return sorted(files)


def _walked(start: Path) -> Iterator[Path]:
    """Yields the Python files below a folder, without hidden folders, caches and environments. A folder that cannot be
    read is left out: Python cannot import from it either."""
    for folder, folders, files in os.walk(start, followlinks=True):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if not _is_left_out(here / name))
        yield from (here / name for name in files if name.endswith(".py"))


def _is_left_out(folder: Path) -> bool:
    """Whether no modules of the model lie in a folder. A link to a folder above it has no others, and would not end."""
    return (
        folder.name.startswith(".")
        or folder.name in ("__pycache__", "node_modules", "site-packages")
        or (folder / "pyvenv.cfg").exists()
        or (folder.is_symlink() and folder.parent.resolve().is_relative_to(folder.resolve()))
    )

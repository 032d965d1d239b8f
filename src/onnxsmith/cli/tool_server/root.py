"""Confines the paths of a call to one folder.

A word of a command line may be a path, or have one: `x=photo.png`, `m.onnx@reference`, `file.py:factory`,
`profile:table.toml`. Which part a command takes for the path depends on the files that exist. So each part between
separators has to lie in the folder, whether it exists or not. Links are followed once, and the command gets the path
behind them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from onnxsmith.base.devices import is_device
from onnxsmith.base.problem import OnnxsmithError, problem

_SEPARATORS = re.compile("[=:@]")
_MOST_SEPARATORS = 16
"""Limits the separators of a word. A choice: the longest form, `name=model.onnx@runtime:level`, has three."""
_MOST_FILES = 20_000
"""Limits the entries of a folder that are looked at. A choice: a model folder of transformers has some dozen."""
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


@dataclass(frozen=True)
class Root:
    """The folder that paths are confined to, without links in its own path."""

    folder: Path

    def read(self, word: str) -> str:
        """Returns the word of a command line with the path in it as it is relative to the folder, behind all links.

        Raises:
            OnnxsmithError: `mcp/outside` if a part of the word is a path that leads out of the folder; `mcp/not-a-file`
                if the path is that of a pipe or a device.
        """
        for part in _parts(word):
            self._inside(part, word)
        for part in _readings(word):
            path = self.folder / part
            if part and path.exists():
                return word.replace(part, self._followed(path, word), 1)
        return word

    def written(self, word: str) -> str:
        """Returns an output path as it is relative to the folder, behind all links.

        Raises:
            OnnxsmithError: `mcp/outside` if the path leads out of the folder; `mcp/output` if the path is hidden;
                `mcp/not-a-file` if it is that of a pipe or a device.
        """
        real = self._inside(word, word)
        inner = real.relative_to(self.folder)
        if any(part.startswith(".") for part in inner.parts) or not inner.parts:
            raise problem(
                "mcp/output",
                "hidden files and folders are not written",
                where=word,
                why="tools keep settings in such files, and run programs from such folders",
                fix="give the path of a file whose name, and whose folders, do not begin with a dot",
            )
        _refuse_device(real, word)
        return _plain(os.path.relpath(real, self.folder))

    def _followed(self, path: Path, word: str) -> str:
        """Returns an existing path relative to the folder, behind all links."""
        real = Path(os.path.realpath(path))
        _refuse_device(real, word)
        if real.is_dir():
            self._refuse_links_out(real, word)
        return _plain(os.path.relpath(real, self.folder))

    def _inside(self, text: str, word: str) -> Path:
        """Returns the path behind all links. Raises if it is not in the folder."""
        if text.startswith("~"):
            raise self._outside(word, "~ stands for the home of a user")
        if os.name != "nt" and ("\\" in text or _DRIVE.match(text)):
            raise self._outside(word, "a backslash and a drive belong to paths of Windows; this is another system")
        real = Path(os.path.realpath(self.folder / text))
        if not real.is_relative_to(self.folder):
            is_link = Path(os.path.normpath(self.folder / text)).is_relative_to(self.folder)
            raise self._outside(word, f"a link leads to {real}" if is_link else f"it is {real}")
        return real

    def _refuse_links_out(self, folder: Path, word: str) -> None:
        """Raises if a link in the folder leads out of the root."""
        count = 0
        for place, folders, files in os.walk(folder):
            for name in (*folders, *files):
                count += 1
                path = Path(place, name)
                if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(self.folder):
                    raise self._outside(word, f"the link {path} leads to {os.path.realpath(path)}")
            if count > _MOST_FILES:
                raise self._outside(
                    word, f"the folder has more than {_MOST_FILES:,} files, too many to search for links"
                )

    def _outside(self, word: str, why: str) -> OnnxsmithError:
        return problem(
            "mcp/outside",
            "the path leads out of the folder of this server",
            where=word,
            why=f"{why}; the server reads and writes only in {self.folder}",
            fix="give a path in that folder; or the user starts the server with a folder that holds both",
        )


def _parts(word: str) -> Iterator[str]:
    """Yields each part of the word that begins and ends at a separator or at an end of the word."""
    cuts = [match.start() for match in _SEPARATORS.finditer(word)]
    if len(cuts) > _MOST_SEPARATORS:
        raise problem(
            "mcp/argument",
            f"the text has more than {_MOST_SEPARATORS} of the characters = : @",
            where=word[:100],
            fix="give the path of one file",
        )
    for begin, end in combinations([-1, *cuts, len(word)], 2):
        yield word[begin + 1 : end]


def _readings(word: str) -> Iterator[str]:
    """Yields the parts of the word that may be its path, in the order in which commands try them."""
    yield word
    yield word.partition("=")[2]
    yield word.rpartition("@")[0]
    yield word.rpartition(":")[0]
    yield word.partition(":")[2]


def _plain(path: str) -> str:
    """Returns a relative path that is no option and no home."""
    return os.path.join(".", path) if path.startswith(("-", "~")) else path  # noqa: PTH118 — Path drops the dot


def _refuse_device(path: Path, word: str) -> None:
    if is_device(path):
        raise problem(
            "mcp/not-a-file",
            "the path is that of a pipe or a device",
            where=word,
            why="reading a pipe or a device may wait for ever",
            fix="give the path of a file",
        )

"""Moves finished files and folders to their names."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from types import ModuleType

from onnxsmith.base.system import disk

_fcntl: ModuleType | None
try:
    import fcntl as _fcntl
except ImportError:  # Windows
    _fcntl = None


class Moving(ABC):
    """Gives a finished file or folder its name."""

    @abstractmethod
    def move(self, finished: Path, target: Path) -> None:
        """Moves a file or a folder of a hidden folder to `target`, on the same file system. A file replaces an older
        one of that name.

        Raises:
            OSError: the folder of `target` is not writable, or a folder is at `target` already.
        """


class Renamed(Moving):
    """POSIX renames a file that processes have open."""

    def move(self, finished: Path, target: Path) -> None:
        finished.rename(target)


class CopiedIfHeld(Moving):
    """Windows does not rename a file that a process has open or mapped, or the folder of such a file. A verification
    maps the weights of the new model, so that its file is held until this process ends. Then a copy gets the name. The
    original stays in the hidden folder, which the next process removes."""

    def move(self, finished: Path, target: Path) -> None:
        try:
            finished.replace(target)
        except PermissionError:
            copy = finished.with_name(f"{finished.name}.copy")
            if finished.is_dir():
                shutil.copytree(finished, copy)
            else:
                shutil.copy2(finished, copy)
                disk.HERE.flush(copy)
            copy.replace(target)


HERE: Moving = CopiedIfHeld() if _fcntl is None else Renamed()

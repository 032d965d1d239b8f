"""Keeps the names of the cases that passed on the present tree, so that a run goes on where another was stopped."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Progress:
    """A file of node ids. Its first line is a hash of the tree: on another tree, the file begins anew."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def begin(self) -> None:
        """Empties the file if it was written on another tree."""
        here = tree()
        lines = self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []
        if not here or lines[:1] != [here]:
            self.file.write_text(f"{here}\n", encoding="utf-8")

    def passed(self) -> set[str]:
        """Returns the cases that passed."""
        return set(self.file.read_text(encoding="utf-8").splitlines()[1:]) if self.file.exists() else set()

    def add(self, case: str) -> None:
        """Notes a case that passed."""
        with self.file.open("a", encoding="utf-8") as stream:
            stream.write(f"{case}\n")


def tree(root: Path = ROOT) -> str:
    """Returns a hash of all files that git knows or would add, "" outside of a checkout. The costs, which a run writes,
    do not count."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        return ""
    found = hashlib.sha256()
    for name in sorted(set(names)):
        file = root / name
        if file.is_file() and file.name != "costs.txt":
            found.update(name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()

"""Finds node and the npm package onnxruntime-web. Starts no process, because the search is done often."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from onnxsmith.base import user_files

VARIABLE = "ONNXSMITH_ONNXRUNTIME_WEB"
"""Names the environment variable for the folder of the package."""
_ENTRY = Path("dist", "ort.wasm.min.mjs")
"""Names the build of onnxruntime-web that has only the execution provider wasm."""


def node() -> str | None:
    """Returns the path of the program node, or None."""
    return shutil.which("node")


def package() -> Path | None:
    """Returns the folder of the package, or None. Looks in the folder of the environment variable, then in
    `node_modules` of the current folder and of its parents, then in the folder for all users that `npm root -g`
    prints."""
    named = os.environ.get(VARIABLE, "").strip()
    folders = [Path(named)] if named else _folders()
    return next((folder.absolute() for folder in folders if (folder / _ENTRY).is_file()), None)


def entry(folder: Path) -> Path:
    """Returns the file of the package to import."""
    return folder / _ENTRY


def version(folder: Path) -> str:
    """Returns the version of the package."""
    return str(user_files.parse_json(user_files.read_utf8(folder / "package.json"))["version"])


def _folders() -> Iterator[Path]:
    here = Path.cwd()
    for folder in (here, *here.parents):
        yield folder / "node_modules" / "onnxruntime-web"
    program = node()
    prefixes = [os.environ.get("NPM_CONFIG_PREFIX"), "/usr/local"]
    if program is not None:
        prefixes.append(str(Path(program).resolve().parent.parent))
    for prefix in prefixes:
        if prefix:
            yield Path(prefix) / "lib" / "node_modules" / "onnxruntime-web"

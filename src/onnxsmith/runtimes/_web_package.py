"""Finds node and the npm package onnxruntime-web. Starts no process: this is asked often."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "ONNXSMITH_ONNXRUNTIME_WEB"
"""The environment variable for the folder of the package."""
_ENTRY = Path("dist", "ort.wasm.min.mjs")
"""The build for the execution provider wasm alone."""


def node() -> str | None:
    """The program node, or None."""
    return shutil.which("node")


def package() -> Path | None:
    """The folder of the package: that of the environment variable; else in `node_modules` of the current folder or of
    one above it; else where npm installs for all users, as `npm root -g` says. None if it is in none of them."""
    named = os.environ.get(VARIABLE, "").strip()
    folders = [Path(named)] if named else _folders()
    return next((folder.absolute() for folder in folders if (folder / _ENTRY).is_file()), None)


def entry(folder: Path) -> Path:
    """The file of the package that is imported."""
    return folder / _ENTRY


def version(folder: Path) -> str:
    """The version of the package."""
    return str(json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"])


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

"""Says what to write in place of an entry of `models` that names no model."""

from __future__ import annotations

from pathlib import Path

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import first_few, nearest

_SHOWN = 3
"""Limits the folders that a fix lists. A choice."""


def refusal(source: str, folder: Path, where: str) -> OnnxsmithError:
    """Returns the problem of an entry without models. `folder` is the folder of the plan."""
    path = folder / source
    if path.is_dir():
        what, why = f"{source!r} is a folder, but not the folder of a transformers model", "it has no config.json"
        fix = _inside(source, path)
    elif path.is_file():
        why, fix = "it is Python code", f"name the function that makes the module: {source}:build"
        what = f"{source!r} is no model"
    else:
        what, why = f"no model is called {source!r}", f"there is no such file in {folder}"
        near = nearest(path.name, [file.name for file in _files(path.parent)])
        correct = "correct the path; paths are relative to the plan's folder"
        fix = f"write {Path(source).with_name(near).as_posix()} in place of {source}; or {correct}" if near else correct
    return problem("fleet/no-models", what, where=where, why=why, fix=fix)


def _inside(source: str, path: Path) -> str:
    """Returns what to write in place of a folder."""
    name = Path(source).as_posix()
    pattern = f"{name}/*.onnx" if any(path.glob("*.onnx")) else f"{name}/**/*.onnx"
    folders = [f"{name}/{file.parent.name}" for file in sorted(path.glob("*/config.json"))]
    ways = []
    if any(path.rglob("*.onnx")) or not folders:
        ways.append(f'write a pattern for the files in this folder: models = ["{pattern}"]')
    if folders:
        ways.append(f"name the folders of transformers models in this folder: {first_few(folders, _SHOWN)}")
    return "; or ".join(ways)


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.suffix in (".onnx", ".py")] if folder.is_dir() else []

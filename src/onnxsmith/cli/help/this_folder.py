"""Says what can be done with the files of a folder: three command lines with the names of files that are there."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from itertools import islice, zip_longest
from pathlib import Path

from onnxsmith.base import user_files
from onnxsmith.base.words import pasted, pasted_words
from onnxsmith.cli.help.situations import PURPOSE

_SHOWN = 3
"""Counts the command lines that are shown. A choice: they are read at a glance."""
_ENTRIES = 500
"""Limits the entries of the folder that are looked at. A choice: a folder of a data set has millions."""
_SOURCES, _LARGEST = 20, 100_000
"""Limit the Python files that are read, and their bytes. A choice: reading takes no noticeable time."""
_FACTORIES = ("build", "make", "create", "model", "net", "get", "load")
"""Begins the names of functions that usually return a module."""


def page(folder: Path) -> str:
    """Returns what `onnxsmith` alone prints."""
    lines = list(islice(_mixed(folder), _SHOWN))
    head = "With the files in this folder:" if lines else "No model is in this folder. Commands that need no model:"
    width = max(len(line) for line, _ in lines or _WITHOUT)
    shown = [f"  {line:<{width}}  {what}" for line, what in lines or _WITHOUT]
    return "\n".join((PURPOSE, "", head, *shown, "", "All commands: onnxsmith --help", ""))


_WITHOUT = (
    ("onnxsmith doctor", "shows the installed runtimes and versions"),
    ("onnxsmith op Conv", "shows an operator, and an example that runs"),
    ("onnxsmith export net.py:build -o net.onnx", "exports the module that build() in net.py returns"),
)
"""Command lines for a folder without models."""


def _mixed(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields the first line of each kind of file, then the second ones."""
    with os.scandir(folder) as entries:
        files = sorted(Path(one.name) for one in islice(entries, _ENTRIES) if not one.name.startswith("."))
    kinds = (_of_sources(folder, files), _of_models(files), _of_others(folder, files))
    for lines in zip_longest(*kinds):
        yield from (line for line in lines if line is not None)


def _of_models(files: list[Path]) -> Iterator[tuple[str, str]]:
    models = [one for one in files if one.suffix in (".onnx", ".onnxtxt")]
    if not models:
        return
    first = models[0]
    name, smaller = pasted(first), pasted(f"{first.stem}_simplified.onnx")
    yield f"onnxsmith simplify {name} -o {smaller}", "removes nodes that are not needed, and compares the result"
    yield f"onnxsmith view {name} -o {pasted(f'{first.stem}.html')}", "draws the model as a page"
    yield f"onnxsmith inspect {name}", "shows inputs, outputs, operators, weights and shapes"
    if len(models) == 2:
        both = pasted_words(models)
        yield f"onnxsmith compare {both}", "compares the two models on the same inputs"


def _of_sources(folder: Path, files: list[Path]) -> Iterator[tuple[str, str]]:
    for file in islice((one for one in files if one.suffix == ".py"), _SOURCES):
        for name in _factories(folder / file):
            made = pasted(f"{file.stem}.onnx")
            source = pasted(f"{file}:{name}")
            yield (
                f"onnxsmith export {source} -o {made} --dynamic auto",
                "exports the module, and compares the file with the module",
            )
            yield f"onnxsmith diagnose {source}", "names everything that prevents an export"
            return


def _factories(file: Path) -> list[str]:
    """Returns the functions of a file that may return a torch module: those that need no argument, and have the name
    of a factory."""
    try:
        if file.stat().st_size > _LARGEST or "torch" not in (text := user_files.read_utf8(file)):
            return []
        body = ast.parse(text).body
    except (OSError, ValueError, SyntaxError):
        return []
    functions = [node for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith(_FACTORIES)]
    return [one.name for one in functions if len(one.args.args) == len(one.args.defaults) and not one.args.posonlyargs]


def _of_others(folder: Path, files: list[Path]) -> Iterator[tuple[str, str]]:
    if Path("baseline.json") in files:
        yield "onnxsmith baseline check", "shows which models became worse than recorded"
    if Path("config.json") in files and _mentions(folder / "config.json", '"model_type"'):
        yield "onnxsmith export . --task auto -o model.onnx", "exports this model of transformers"
    for one in files:
        if one.suffix == ".toml" and _mentions(folder / one, "models =", "steps ="):
            yield f"onnxsmith fleet run {pasted(one)}", "runs this plan on its models"
            return


def _mentions(file: Path, *words: str) -> bool:
    try:
        return file.stat().st_size <= _LARGEST and all(one in user_files.read_utf8(file) for one in words)
    except (OSError, ValueError):
        return False

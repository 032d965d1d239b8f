"""Refuses to write over what a command reads, before any work is done.

A model is written by renaming, a report in place: either way the file that had the name is gone. Two paths are one file
by what the file system says, so that links, `..` and the case of letters make no difference.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.model.files.save import data_files, disk_problems
from onnxsmith.model.graph import walk
from onnxsmith.problem import problem


def refuse_loss(
    outputs: Iterable[str | Path | None], inputs: Iterable[Any], *, in_place: str | Path | None = None
) -> None:
    """Raises where an output is a file that an input is read from, or two outputs are one file.

    `inputs` are paths, texts of the command line (`x=photo.png`, `m.onnx@openvino`, `file.py:build`, a command), and
    loaded models, which stand for their files of weights; everything else is passed over. An output may be `in_place`:
    the model that is replaced as a whole. An output that is a folder is replaced with all that is in it.

    Raises:
        OnnxsmithError: `save/needed`.
    """
    targets = [Path(output) for output in outputs if output]
    _refuse_twice(targets)
    existing = [target for target in targets if os.path.lexists(target)]
    if not existing:
        return
    needed = list(dict.fromkeys(found for given in inputs for found in _files(given)))
    for target in existing:
        for file in needed:
            own = in_place is not None and _is_same(target, Path(in_place)) and _is_same(file, Path(in_place))
            if not own and (_is_same(target, file) or _is_in(file, target)):
                raise _needed(target, file, "the output would take the place of a file that an input is read from")
        replaced = in_place is not None and _is_same(target, Path(in_place))
        for data in [] if replaced else data_files(target):
            if any(_is_same(data, file) for file in needed):
                raise _needed(target, data, "the weights of the model there go with it, and an input reads them")


def refuse_other_than_page(html: str) -> None:
    """Raises where a report would take the place of a file that is no HTML page: a model, weights, a source file.

    Raises:
        OnnxsmithError: `save/needed`.
    """
    path = Path(html)
    if not html or not path.is_file():
        return
    with disk_problems(path), path.open("rb") as file:
        start = file.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start and not start.startswith((b"<!doctype html", b"<html")):
        raise problem(
            "save/needed",
            "the report would take the place of a file that is no HTML page",
            where=html,
            why="what is there may be needed, and a report is written again at any time",
            fix="give the report a name that ends in .html and that no file has",
        )


def _needed(target: Path, file: Path, why: str) -> Exception:
    return problem(
        "save/needed",
        f"the output is a file that is needed: {file.name}",
        where=str(target),
        why=why,
        fix="give the output another name",
    )


def _refuse_twice(targets: list[Path]) -> None:
    seen: dict[str, Path] = {}
    for target in targets:
        if target.exists() and not target.is_file() and not target.is_dir():
            continue  # a terminal or /dev/null takes any number
        real = os.path.realpath(target)
        if real in seen:
            raise problem(
                "save/needed",
                "two outputs are one file",
                where=str(target),
                why="the second would take the place of the first",
                fix="give each a name of its own",
            )
        seen[real] = target


def _files(given: Any) -> Iterator[Path]:
    """The files that an input stands for."""
    if isinstance(given, ir.Model):
        for tensor in walk.tensors(given):
            if isinstance(tensor, ir.ExternalTensor):
                yield Path(tensor.path)
    elif isinstance(given, Path):
        yield given
    elif isinstance(given, str):
        words = [given, *given.split()]
        parts = [word.partition("=")[2] for word in words]
        parts += [word.rpartition(mark)[0] for word in words for mark in "@:"]
        yield from (Path(text) for text in (*words, *parts) if text and "\0" not in text and _is_file(text))
    elif isinstance(given, list | tuple):
        for item in given:
            yield from _files(item)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # too long for a name
        return False


def _is_same(a: Path, b: Path) -> bool:
    try:
        return a.samefile(b)
    except OSError:
        return False


def _is_in(file: Path, folder: Path) -> bool:
    return folder.is_dir() and Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))

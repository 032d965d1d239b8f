"""Refuses to overwrite the inputs of a command, before any work is done.

Writing replaces the file at the output path. The file system decides whether two paths are the same file, so that
links, `..` and the case of letters make no difference.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base import devices, user_files
from onnxsmith.base.problem import problem
from onnxsmith.base.words import pasted
from onnxsmith.graph.files.save import data_files, disk_problems
from onnxsmith.graph.structure import walk


def refuse_loss(
    outputs: Iterable[str | Path | None], inputs: Iterable[Any], *, in_place: str | Path | None = None
) -> None:
    """Raises if an output is also an input file, or if two outputs are the same file.

    `inputs` are paths, command-line texts (`x=photo.png`, `m.onnx@openvino`, `file.py:build`, a command), and loaded
    models, which stand for their data files. Other objects are ignored. `in_place` is a model that the command may
    replace. An output folder stands for all files in it.

    Raises:
        OnnxsmithError: `save/needed`; `save/not-a-file` for a device or a pipe that takes no output.
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
                raise _needed(target, file, "the output would overwrite a file that an input is read from")
        replaced = in_place is not None and _is_same(target, Path(in_place))
        for data in [] if replaced else data_files(target):
            if any(_is_same(data, file) for file in needed):
                raise _needed(
                    target, data, ("replacing the model at this path would remove its data file, which an input reads")
                )


def refuse_other_than_page(html: str) -> None:
    """Raises if a report would overwrite a file that is not an HTML page: a model, weights, a source file.

    Raises:
        OnnxsmithError: `save/needed`.
    """
    if html:
        refuse_other_than(html, is_page, "an HTML page", ".html")


def is_page(start: bytes) -> bool:
    """Whether a file that begins with these bytes is an HTML page."""
    return start.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html"))


def refuse_other_than(file: str, is_own: Callable[[bytes], bool], kind: str, suffix: str = "") -> None:
    """Raises if a report would overwrite a file that is not of its kind. `is_own` judges the first bytes of the file,
    `kind` names it with its article. The fix names a file with the ending `suffix`, by default that of the file.

    Raises:
        OnnxsmithError: `save/needed`.
    """
    path = Path(file)
    if not path.is_file():
        return
    with disk_problems(path), user_files.opened(path) as opened:
        start = opened.read(1024)
    if start.strip() and not is_own(start):
        raise problem(
            "save/needed",
            f"the report would overwrite a file that is not {kind}",
            where=file,
            why="you may still need that file",
            fix=f"give the report another name, such as {pasted(free_path(path.with_suffix(suffix or path.suffix)))}",
        )


def free_path(path: Path, taken: Collection[Path] = ()) -> Path:
    """Returns the path, or the first of `m_2.onnx`, `m_3.onnx` and so on that does not exist."""
    numbered = (path.with_name(f"{path.stem}_{number}{path.suffix}") for number in itertools.count(2))
    return next(one for one in itertools.chain([path], numbered) if one not in taken and not os.path.lexists(one))


def _needed(target: Path, file: Path, why: str) -> Exception:
    return problem(
        "save/needed",
        f"the output would overwrite a needed file: {file.name}",
        where=str(target),
        why=why,
        fix=f"give the output another name, such as {pasted(free_path(target))}",
    )


def _refuse_twice(targets: list[Path]) -> None:
    seen: dict[str, Path] = {}
    for target in targets:
        devices.refuse(target)
        if devices.is_stream(target) and not devices.is_standard_output(target):
            continue  # several outputs may go to the null device
        real = os.path.realpath(target)
        if real in seen:
            raise problem(
                "save/needed",
                "two outputs are the same file",
                where=str(target),
                why="the second would overwrite the first",
                fix=f"give one of the two another name, such as {pasted(free_path(target, {target}))}",
            )
        seen[real] = target


def _files(given: Any) -> Iterator[Path]:
    """Yields the files that an input reads."""
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

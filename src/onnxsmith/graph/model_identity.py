"""Identifies the model files of a report by their hashes, so that a reader can recognise a different model."""

from __future__ import annotations

import functools
import inspect
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import DataFile, ModelFile, Report
from onnxsmith.base.report.parts.written_files import Written
from onnxsmith.base.result import Result
from onnxsmith.base.words import first_few
from onnxsmith.graph.files import digest
from onnxsmith.graph.files.load import TEXT_SUFFIXES, load
from onnxsmith.graph.files.noted import Noted, noting
from onnxsmith.graph.files.save import named_data
from onnxsmith.graph.files.specification_check import check

_P = ParamSpec("_P")
_T = TypeVar("_T", bound=Report | Result)
_SUFFIXES = {".onnx", *TEXT_SUFFIXES}
_SHOWN = 3
"""Limits the tensors that a headline names. A choice."""


def identifies(*names: str) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Makes a verb record the model files that it read and wrote in its report. An error that no code foresaw becomes
    `model/invalid` or `model/shape-conflict` if one of these files breaks the ONNX specification: such a file is the
    likely reason.

    `names` are the parameters that may be the path of a model, such as `m.onnx` or `m.onnx@openvino`; other values are
    ignored. Input files are hashed before the verb runs, because the verb may replace them.
    """

    def decorated(verb: Callable[_P, _T]) -> Callable[_P, _T]:
        signature = inspect.signature(verb)

        @functools.wraps(verb)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError:  # the call below says what is wrong, and names the verb
                given = {}
            before = read(given.get(name) for name in names)
            with noting() as notes, _blaming(before):
                done: Any = verb(*args, **kwargs)
            if isinstance(done, Result):
                report = identified(done.report, before, notes, made=done.model is not None)
                return cast(_T, replace(done, report=report))
            return cast(_T, identified(done, before, notes))

        return call

    return decorated


@contextmanager
def _blaming(files: Iterable[ModelFile]) -> Iterator[None]:
    try:
        yield
    except (OnnxsmithError, OSError, MemoryError):
        raise
    except Exception as error:
        for file in files:
            for found in check(load(file.path), where=file.path):
                raise OnnxsmithError(found) from error
        raise


def read(sources: Iterable[Any]) -> tuple[ModelFile, ...]:
    """Returns the model files among the sources of a verb, each once. Leaves out unreadable files: the verb itself
    reports them."""
    with stage("hash"):
        files = [file for source in sources for path in _paths(source) if (file := model_file(path, "read"))]
    return tuple(dict.fromkeys(files))


def identified(report: Report, before: Iterable[ModelFile], notes: Noted, *, made: bool = False) -> Report:
    """Returns the report with the files that were read, and the files that its part `Written` names. The headline gets
    the notes: names that were changed, and the parts that a new model lacks: a written file that is no copy, or a model
    that was `made` without a file."""
    before = tuple(before)
    files = [name for part in report.parts if isinstance(part, Written) for name in part.files]
    after = [file for name in files if Path(name).suffix in _SUFFIXES and (file := model_file(Path(name), "written"))]
    names = first_few(list(notes.renamed), _SHOWN)
    said = f"; renamed in bodies, because an outer graph has the same names: {names}" if names else ""
    made = (made and not files) or any(not any(file.same_graph(one) for one in before) for file in after)
    if notes.left_out and made:
        said += f"; left out: {', '.join(notes.left_out)}"
    models = tuple(dict.fromkeys((*report.models, *before, *after)))
    return replace(report, models=models, headline=f"{report.headline}{said}")


def model_file(path: Path, role: str) -> ModelFile | None:
    """Returns the file with its hashes; None if it cannot be read, is empty, or is a device or a pipe. A file that has
    not changed is not read twice."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            return None
        own, data = _hashes(path.absolute(), (about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size))
    except (OSError, ValueError):  # a ValueError is a NUL in the name
        return None
    return ModelFile(str(path), role, about.st_size, own, data) if about.st_size else None


@functools.lru_cache(maxsize=64)  # a choice: more models than one command reads
def _hashes(path: Path, _version: tuple[int, ...]) -> tuple[str, tuple[DataFile, ...]]:
    return digest.sha256(path), tuple(_data(path))


def _data(path: Path) -> Iterator[DataFile]:
    for name in named_data(path):
        file = path.parent / name
        try:
            found, covered = digest.bounded(file)
        except OSError:
            continue  # the verb refuses a model whose data is missing
        yield DataFile(name, file.stat().st_size, found, covered)


def model_path(source: str | Path) -> Path | None:
    """Returns the model file that a text such as `m.onnx` or `m.onnx@openvino` names; None if there is none."""
    for text in (str(source), str(source).rpartition("@")[0]):
        if Path(text).suffix in _SUFFIXES and _is_file(text):
            return Path(text)
    return None


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name; a null byte
        return False


def _paths(source: Any) -> Iterator[Path]:
    if isinstance(source, list | tuple | Mapping):
        for one in source.values() if isinstance(source, Mapping) else source:
            yield from _paths(one)
    elif isinstance(source, str | Path) and (found := model_path(source)) is not None:
        yield found

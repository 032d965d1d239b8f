"""Reads data from files, from a function of the user, or from a Python iterable."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onnxsmith.base import user_files
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import several
from onnxsmith.exporter import factory
from onnxsmith.graph.files.load import near_files
from onnxsmith.precision.data.base import Kind, Reading, Sample
from onnxsmith.verification.inputs.input_files import IMAGES, read_image, read_npz

LABEL = ("label", "labels")
"""Names of the array with labels, unless the model has an input of that name."""


class Arrays(Kind):
    """An `.npz` whose arrays have the samples along their first axis, or a folder of `.npz` files, one for each sample.
    An array `label` or `labels` has the labels."""

    rank = 2
    form = (
        "an .npz with samples along the first axis, or a folder with an .npz for each sample (labels: an array label)"
    )

    def reads(self, given: Any) -> bool:
        if not isinstance(given, str | Path):
            return False
        path = Path(given)
        return path.suffix == ".npz" or (path.is_dir() and next(path.glob("*.npz"), None) is not None)

    def samples(self, given: Any, reading: Reading) -> Iterator[Sample]:
        path = Path(given)
        ports = {port.name for port in reading.interface.inputs}
        if path.is_dir():
            for file in sorted(path.glob("*.npz")):
                arrays = read_npz(file)
                label = _taken(arrays, ports)
                yield Sample(reading.feeds(arrays, str(file)), label, file.name)
            return
        arrays = read_npz(path)
        labels = _taken(arrays, ports)
        counts = {name: len(array) if array.ndim else 0 for name, array in arrays.items()}
        counts |= {} if labels is None else {"label": len(labels)}
        if len(set(counts.values())) != 1:
            raise problem(
                "quantize/labels" if labels is not None and len(set(counts.values())) == 2 else "quantize/data",
                "the arrays do not have the same number of samples",
                where=str(path),
                why=", ".join(f"{name}: {count}" for name, count in counts.items()) or "it is empty",
                fix="along the first axis, each array needs one entry for each sample",
            )
        for index in range(next(iter(counts.values()))):
            name = f"{path.name}[{index}]"
            item = {key: array[index] for key, array in arrays.items()}
            yield Sample(reading.feeds(item, name), None if labels is None else labels[index], name)


def _taken(arrays: dict[str, Any], ports: set[str]) -> Any:
    """Removes the labels from the arrays, and returns them."""
    name = next((one for one in LABEL if one in arrays and one not in ports), None)
    return arrays.pop(name) if name is not None else None


LABELS = "labels.csv"
"""A table in the folder, with a line `file,label` for each image. A header line is optional."""


class Images(Kind):
    """A folder of images.

    The labels come from `labels.csv` if there is one. Else the label of an image is the name of its folder, if all
    folder names are numbers, or the position of the folder in alphabetical order. Without such folders there are no
    labels. Without preprocessing an image is scaled to the size of the input, as in `--input image.png`.
    """

    rank = 1
    form = "a folder of images (labels: labels.csv, or one folder a class)"

    def reads(self, given: Any) -> bool:
        return isinstance(given, str | Path) and Path(given).is_dir() and next(_files(Path(given)), None) is not None

    def samples(self, given: Any, reading: Reading) -> Iterator[Sample]:
        folder = Path(given)
        files = sorted(_files(folder))
        table = _table(folder)
        classes = _classes({file.parent.name for file in files})
        in_classes = any(file.parent != folder for file in files)
        _refuse_stale(table, {file.relative_to(folder).as_posix() for file in files}, folder)
        for file in files:
            name = file.relative_to(folder).as_posix()
            label = table.get(name) if table else classes[file.parent.name] if in_classes else None
            if table and label is None:
                raise problem(
                    "quantize/labels",
                    f"{LABELS} has no label for {name}",
                    where=str(folder / LABELS),
                    fix=f"add a line: {name},LABEL",
                )
            item = file if reading.prepare is not None else read_image(file, reading.port)
            yield Sample(reading.feeds(item, str(file)), label, name)


def _classes(names: set[str]) -> dict[str, int]:
    """Returns the label of each folder: its name if all names are numbers, else its position in alphabetical order."""
    if all(name.isdecimal() for name in names):
        return {name: int(name) for name in names}
    return {name: number for number, name in enumerate(sorted(names))}


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.suffix.lower() in IMAGES)


def _table(folder: Path) -> dict[str, Any]:
    file = folder / LABELS
    if not file.is_file():
        return {}
    try:
        lines = io.StringIO(user_files.read_utf8(file), newline="")
        return {row[0]: _label(row[1]) for row in csv.reader(lines) if len(row) > 1}
    except (OSError, ValueError, csv.Error) as error:
        raise problem(
            "quantize/labels",
            f"{LABELS} cannot be read",
            where=str(file),
            why=str(error),
            fix="write it in UTF-8, with a line FILE,LABEL for each image",
        ) from error


def _refuse_stale(table: dict[str, Any], names: set[str], folder: Path) -> None:
    """Refuses labels of missing images. The first line may be a header."""
    stale = [name for number, name in enumerate(table) if name not in names and number]
    if stale:
        raise problem(
            "quantize/labels",
            f"{LABELS} has a label for {stale[0]}, which is not in the folder",
            where=str(folder / LABELS),
            why=f"{several(len(stale), 'line')} of {len(table)} have no image; the folder has "
            f"{several(len(names), 'image')}",
            fix="remove the lines, or add the images",
        )


def _label(text: str) -> int | str:
    return int(text) if text.strip().lstrip("-").isdecimal() else text


class Lines(Kind):
    """A file with an object in JSON on each line: values by input name, and `label`. A value is a number, a list, or
    the path of an image or of a `.npy`, from the folder of the file. With preprocessing, the function gets the object
    without the label. Paths in the object stay as they are written. It is called in the working directory of the
    command."""

    rank = 3
    form = 'a .jsonl with {"INPUT": value or file, "label": …} on each line'

    def reads(self, given: Any) -> bool:
        return isinstance(given, str | Path) and Path(given).suffix in (".jsonl", ".ndjson")

    def samples(self, given: Any, reading: Reading) -> Iterator[Sample]:
        path = Path(given)
        for number, line in enumerate(_lines(path), 1):
            if line.strip():
                yield _sample(line, path, number, reading)


def _lines(path: Path) -> Iterator[str]:
    try:
        with user_files.opened(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig") as lines:
            yield from lines
    except (OSError, UnicodeDecodeError) as error:
        raise problem(
            "quantize/data",
            "the lines cannot be read",
            where=str(path),
            why=str(error),
            fix=near_files(path) or "give the path of a text file in UTF-8, with an object in JSON on each line",
        ) from error


def _sample(line: str, path: Path, number: int, reading: Reading) -> Sample:
    name = f"{path.name}:{number}"
    try:
        record = user_files.parse_json(line)
    except ValueError as error:
        raise problem("quantize/data", "a line is not JSON", where=f"{path}:{number}", why=str(error),
            fix=f"write {_example(reading)} on one line",
        ) from error  # fmt: skip
    if not isinstance(record, dict):
        raise problem(
            "quantize/data", "a line is not an object", where=f"{path}:{number}", fix=f"write {_example(reading)}"
        )
    label = record.pop("label", None)
    if reading.prepare is not None:
        return Sample(reading.feeds(record, name), label, name)
    ports = {port.name: port for port in reading.interface.inputs}
    try:
        arrays = {key: _value(value, ports.get(key), path.parent) for key, value in record.items()}
    except OnnxsmithError as error:
        raise error.at(f"{path}:{number}") from error
    return Sample(reading.feeds(arrays, name), label, name)


def _example(reading: Reading) -> str:
    """Returns the form of a line for the inputs of the model."""
    names = [port.name for port in reading.interface.required()] if reading.prepare is None else ["ITEM"]
    return f"{{{', '.join(f'{json.dumps(name)}: …' for name in (*names, _KEY))}}}"


def _value(value: Any, port: Any, folder: Path) -> Any:
    if isinstance(value, str):
        file = folder / value
        if file.suffix.lower() in IMAGES and port is not None:
            return read_image(file, port)
        if file.suffix == ".npy":
            return read_npz(file)[""]
        return np.array(value, dtype=object)
    array = np.asarray(value)
    if port is not None and array.dtype.kind in "fiub":
        wanted = {"float": np.float32, "double": np.float64, "float16": np.float16, "bool": np.bool_}.get(port.dtype)
        return array.astype(wanted or (port.dtype if port.dtype.startswith(("int", "uint")) else array.dtype))
    return array


_PAIR = 2
_KEY = "label"
"""The entry of a record that holds its label, unless the model has an input of that name."""


class Function(Kind):
    """`file.py:function`, a function, or an iterable. Each item is `(arrays by input name, label)`, or the arrays
    alone; these may have an entry `label`. With preprocessing, an item has the argument of the user's function in place
    of the arrays. A function is called again for each pass over the data. An iterable that can be used only once is
    read into a list."""

    rank = 4
    form = "file.py:function that yields (arrays by input name, label)"

    def reads(self, given: Any) -> bool:
        if isinstance(given, str):
            return factory.is_target(given)
        return callable(given) or (isinstance(given, Iterable) and not isinstance(given, bytes | Mapping))

    def samples(self, given: Any, reading: Reading) -> Iterator[Sample]:
        named = given if isinstance(given, str) else getattr(given, "__name__", type(given).__name__)
        made: Any = factory.function(given) if isinstance(given, str) else given
        for number, item in enumerate(_items(made, named)):
            arrays, label = item if isinstance(item, tuple) and len(item) == _PAIR else (item, None)
            name = f"{named}[{number}]"
            if label is None and reading.prepare is None and _is_labelled(arrays, reading):
                label = arrays[_KEY]
                arrays = {key: value for key, value in arrays.items() if key != _KEY}
            yield Sample(reading.feeds(arrays, name), label, name)


def _is_labelled(arrays: Any, reading: Reading) -> bool:
    inputs = {port.name for port in reading.interface.inputs}
    return isinstance(arrays, Mapping) and _KEY in arrays and _KEY not in inputs


def _items(given: Callable[[], Iterable[Any]] | Iterable[Any], named: str) -> Iterator[Any]:
    """Yields the items. An error in the user's code becomes a problem that names the line."""
    try:
        yield from given() if callable(given) else given
    except OnnxsmithError:
        raise
    except Exception as error:
        raise problem(
            "quantize/data",
            "the function that yields the data failed",
            where=factory.user_line(error) or named,
            why=f"{type(error).__name__}: {error}",
            fix="correct the function at this line; to test it, call it in Python",
        ) from error

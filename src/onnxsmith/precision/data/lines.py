"""A `.jsonl` file: one sample a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.precision.data.base import Kind, Reading, Sample
from onnxsmith.verification.inputs.input_files import IMAGES, read_image, read_npz


class Lines(Kind):
    """A file with an object in JSON on each line: values by input name, and `label`. A value is a number, a list, or
    the path of an image or of a `.npy`, from the folder of the file. With preprocessing the function gets the object,
    without its label and with paths as they are written; it is called in the folder that the command runs in."""

    rank = 3
    form = 'a .jsonl with {"INPUT": value or file, "label": …} on each line'

    def reads(self, given: Any) -> bool:
        return isinstance(given, str | Path) and Path(given).suffix in (".jsonl", ".ndjson")

    def samples(self, given: Any, reading: Reading) -> Iterator[Sample]:
        path = Path(given)
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _sample(line, path, number, reading)


def _sample(line: str, path: Path, number: int, reading: Reading) -> Sample:
    name = f"{path.name}:{number}"
    try:
        record = json.loads(line)
    except ValueError as error:
        raise problem("quantize/data", "a line is not JSON", where=f"{path}:{number}", why=str(error),
            fix='write {"INPUT": …, "label": …} on one line',
        ) from error  # fmt: skip
    if not isinstance(record, dict):
        raise problem(
            "quantize/data", "a line is not an object", where=f"{path}:{number}", fix='write {"INPUT": …, "label": …}'
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

"""Arrays in `.npz` files: a file with all samples, or a folder with one file for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onnxsmith.base.problem import problem
from onnxsmith.precision.data.base import Kind, Reading, Sample
from onnxsmith.verification.inputs.input_files import read_npz

LABEL = ("label", "labels")
"""Names of the array that holds labels, unless the model has an input of that name."""


class Arrays(Kind):
    """An `.npz` whose arrays have the samples along their first axis, or a folder of `.npz` files, one for each sample.
    An array `label` or `labels` holds what is expected."""

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
                fix="give each array one entry for each sample along the first axis",
            )
        for index in range(next(iter(counts.values()))):
            name = f"{path.name}[{index}]"
            item = {key: array[index] for key, array in arrays.items()}
            yield Sample(reading.feeds(item, name), None if labels is None else labels[index], name)


def _taken(arrays: dict[str, Any], ports: set[str]) -> Any:
    """Removes the labels from the arrays, and returns them."""
    name = next((one for one in LABEL if one in arrays and one not in ports), None)
    return arrays.pop(name) if name is not None else None

"""A folder of images; the folders in it are classes."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onnxsmith.base.problem import problem
from onnxsmith.base.words import several
from onnxsmith.precision.data.base import Kind, Reading, Sample
from onnxsmith.verification.inputs.input_files import IMAGES, read_image

LABELS = "labels.csv"
"""A table in the folder with a line `file,label` for each image, with a head or without."""


class Images(Kind):
    """A folder of images.

    The label is what `labels.csv` says; else the name of the folder that the image lies in, if all of these names are
    numbers, or its place among them in alphabetical order; without such folders there is none. Without preprocessing an
    image is scaled to the size of the input, as in `--input image.png`.
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
    """The label of each folder: its name if all names are numbers, else its place in alphabetical order."""
    if all(name.isdigit() for name in names):
        return {name: int(name) for name in names}
    return {name: number for number, name in enumerate(sorted(names))}


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.suffix.lower() in IMAGES)


def _table(folder: Path) -> dict[str, Any]:
    file = folder / LABELS
    if not file.is_file():
        return {}
    with file.open(newline="", encoding="utf-8") as lines:
        return {row[0]: _label(row[1]) for row in csv.reader(lines) if len(row) > 1}


def _refuse_stale(table: dict[str, Any], names: set[str], folder: Path) -> None:
    """Raises for labels of images that are not there; the first line may be a head."""
    stale = [name for number, name in enumerate(table) if name not in names and number]
    if stale:
        raise problem(
            "quantize/labels",
            f"{LABELS} has a label for {stale[0]}, which is not in the folder",
            where=str(folder / LABELS),
            why=f"{several(len(stale), 'line')} of {len(table)} without an image; "
            f"there are {several(len(names), 'image')}",
            fix="remove the lines, or add the images",
        )


def _label(text: str) -> int | str:
    return int(text) if text.strip().lstrip("-").isdigit() else text

"""Magika's model, which tells the type of a file from 2048 bytes, on files of Python and of installed packages."""

from __future__ import annotations

import hashlib
import json
import shutil
import sysconfig
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

NAME = "files"
METRIC = "top1"
BETTER = "higher"
TYPES = {
    ".py": "python", ".pyc": "pythonbytecode", ".c": "c", ".cpp": "cpp", ".hpp": "cpp", ".html": "html",
    ".css": "css", ".js": "javascript", ".json": "json", ".toml": "toml", ".yaml": "yaml", ".xml": "xml", ".svg": "svg",
    ".png": "png", ".jpg": "jpeg", ".gif": "gif", ".ttf": "ttf", ".zip": "zip", ".gz": "gzip",
    ".so": "elf", ".exe": "pebin", ".sh": "shell", ".bat": "batch", ".csv": "csv", ".md": "markdown", ".rst": "rst",
    ".npy": "npy", ".npz": "npz", ".onnx": "onnx", ".tiff": "tiff", ".bmp": "bmp", ".po": "po", ".f90": "fortran",
    ".proto": "proto", ".pdf": "pdf", ".ico": "ico", ".ini": "ini", ".jinja": "jinja",
}  # fmt: skip
"""What a file is by its name, in the model's words."""
MOST = 25
"""Files of one type."""
LEAST = 64
"""Bytes of the smallest file: in fewer there is too little to see."""
HALF, BLOCK, PADDING = 1024, 4096, 256
"""Bytes of the start and of the end, of which blanks are cut off in a block, and the number for a missing byte."""
TEST = 0.75


def _package() -> Path:
    return next((Path(sysconfig.get_path("purelib")) / "magika" / "models").glob("standard_*"))


def prepare(folder: Path) -> Path:
    """Copy the model out of the package."""
    path = folder / "files.onnx"
    if not path.exists():
        shutil.copy(_package() / "model.onnx", path)
    return path


@cache
def _labels() -> list[str]:
    return json.loads((_package() / "config.min.json").read_text(encoding="utf-8"))["target_labels_space"]


@cache
def _files() -> list[tuple[Path, str]]:
    """Files and their types, in an order that has nothing to do with either; the same where the same is installed."""
    roots = {Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")}
    known = set(_labels())
    found: dict[str, dict[str, Path]] = defaultdict(dict)
    for root in roots:
        for path in root.rglob("*"):
            label = TYPES.get(path.suffix)
            if label in known and path.is_file() and path.stat().st_size >= LEAST:
                found[label][_order(str(path.relative_to(root)))] = path
    chosen = [one for label, paths in sorted(found.items()) for one in _different(paths, label)]
    return [(path, label) for _, path, label in sorted(chosen)]


def _different(paths: dict[str, Path], label: str) -> list[tuple[str, Path, str]]:
    """The first files of a type of which the model sees different bytes: packages hold copies of each other's files."""
    kept: dict[bytes, tuple[str, Path, str]] = {}
    for key, path in sorted(paths.items()):
        if len(kept) < MOST:
            kept.setdefault(_feed(path).tobytes(), (key, path, label))
    return list(kept.values())


def _order(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _feed(path: Path) -> np.ndarray:
    """The bytes that the model sees, int32 [1, 2048], as Magika takes them from a file."""
    data = path.read_bytes()
    start, end = data[:BLOCK].lstrip()[:HALF], data[-BLOCK:].rstrip()[-HALF:]
    values = np.full(2 * HALF, PADDING, np.int32)
    values[: len(start)] = np.frombuffer(start, np.uint8)
    values[2 * HALF - len(end) :] = np.frombuffer(end, np.uint8)
    return values[None]


def _items(test: bool) -> Iterator[tuple[dict[str, np.ndarray], int]]:
    files = _files()
    cut = int(TEST * len(files))
    for path, label in files[:cut] if test else files[cut:]:
        yield {"bytes": _feed(path)}, _labels().index(label)


def samples() -> Iterator[tuple[dict[str, np.ndarray], int]]:
    """Some 500 files, and the numbers of their types."""
    return _items(True)


def calibration() -> Iterator[tuple[dict[str, np.ndarray], int]]:
    """Some 160 other files."""
    return _items(False)


def decode(outputs: dict[str, np.ndarray]) -> int:
    """The type of the highest score."""
    return int(outputs["target_label"][0].argmax())

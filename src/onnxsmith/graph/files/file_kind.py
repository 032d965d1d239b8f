"""Recognises files that are not ONNX models, because the fix depends on the kind of file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onnxsmith.base import user_files
from onnxsmith.base.problem import OnnxsmithError, problem

_EXPORT = "export it first: `onnxsmith export file.py:factory -o model.onnx`"
_SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (b"version https://git-lfs", "a Git LFS pointer, not the model itself", "run `git lfs pull`"),
    (b"PK\x03\x04", "a zip archive, as torch.save writes", _EXPORT),
    (b"\x80\x02", "a pickle, as old torch.save wrote", _EXPORT),
    (b"\x80\x04", "a pickle", _EXPORT),
    (b"\x80\x05", "a pickle", _EXPORT),
    (b"ORTM", "an onnxruntime .ort file", "use the .onnx file from which this file was made"),  # at byte 4, like TFL3
    (b"TFL3", "a TensorFlow Lite file", "convert it with tf2onnx"),
    (b"\x1f\x8b", "a gzip archive", "unpack it"),
    (b"\x89HDF", "an HDF5 file", "convert it with the tool of the framework that wrote it"),
)

_SHOWN = 3
"""Limits the models that a fix names."""
_MODEL_FIELDS = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}
"""Maps the field numbers of `ModelProto` to wire types, from onnx.proto."""


def not_a_model(data: bytes, path: Path) -> OnnxsmithError:
    """Returns the error for bytes that do not parse as a model: another kind of file, a truncated model, or garbage."""
    package = _package(path.parent) if path.name == _PACKAGE else None
    if package is not None:
        return _package_error(path.parent, package)
    for start, kind, fix in _SIGNATURES:
        if data[4:8] == start or data.startswith(start):
            return _is(kind, fix, path)
    if data[:512].lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return _is("a web page", "download the file itself, not the page about it", path)
    if data[8:10] == b'{"':
        return _is(
            ("a safetensors file, which contains weights without a graph"),
            "export the torch module to which the weights belong",
            path,
        )
    known, missing = _walk(data)
    if known and missing > 0:
        return problem(
            "model/truncated",
            f"the file ends early: {len(data):,} bytes are there, at least {missing:,} are missing",
            where=str(path),
            why="a copy, download or write was interrupted",
            fix="copy, download or export it again",
        )
    if known and missing == 0:
        return problem(
            "model/no-graph",
            "the file has no usable graph",
            where=str(path),
            why="the file begins like a model, but the graph in it is missing or damaged",
            fix="export the model again",
        )
    return problem(
        "model/garbage",
        "this is not an ONNX model",
        where=str(path),
        why=f"it begins with {data[:12]!r}",
        fix=f"give the path of an .onnx file{f'; here lie {listed}' if (listed := _listed(path.parent)) else ''}",
    )


def is_too_deep(error: Exception) -> bool:
    """Whether protobuf refused a message because of its nesting depth."""
    return "MaxDepth" in str(error)


def too_deep(where: str) -> OnnxsmithError:
    """Returns the error for a model whose branches and bodies are nested deeper than protobuf reads."""
    return problem(
        "model/invalid",
        "the branches and bodies of the model are nested too deep",
        where=where,
        why="protobuf for Python reads messages that are nested 100 deep, so about 30 If, Loop or Scan nodes in each "
        "other",
        fix="export the model again with fewer conditions in each other, for example with torch.where in their place",
    )


def _listed(folder: Path) -> str:
    return ", ".join(repr(str(one)) for one in _models(folder)[:_SHOWN])


def _models(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.onnx")) or sorted(folder.glob("*/*.onnx"))
    except OSError:
        return []


def models_in(folder: Path) -> str:
    """Returns the advice to take a model in this folder; nothing if none lies there."""
    found = _models(folder)
    shown = [repr(str(one)) for one in found[:_SHOWN]]
    more = f" or one of {len(found) - len(shown):,} more" if len(found) > len(shown) else ""
    return (
        f"write {', or '.join(shown)}{more}: {'this is a model' if len(found) == 1 else 'these are models'}"
        if shown
        else ""
    )


_PACKAGE, _COMPONENT = "manifest.json", "component.json"
"""Are the files in which onnxruntime's model packages list their variants."""
_FORMAT = 1
"""Is the major version of the package format whose variants can be listed."""


def no_file(path: Path) -> OnnxsmithError:
    """Returns the error for a path that exists, and is not a file."""
    found = _package(path)
    if found is not None:
        return _package_error(path, found)
    return problem(
        "model/not-a-file",
        "this is not a file",
        where=str(path),
        fix=models_in(path) or "give the path of the .onnx file itself",
    )


def _package(folder: Path) -> dict[str, Any] | None:
    """Returns the manifest of a model package of onnxruntime; None if the folder is none."""
    held = _json(folder, folder / _PACKAGE)
    return held if isinstance(held, dict) and {"schema_version", "components"} <= set(held) else None


def _package_error(folder: Path, manifest: dict[str, Any]) -> OnnxsmithError:
    version = str(manifest["schema_version"])
    is_known = version.partition(".")[0] == str(_FORMAT)
    variants = list(_variants(folder, manifest["components"]))
    files = [file for _, file in variants if file is not None and file.is_file()]
    said = [_variant_said(folder, name, file) for name, file in variants]
    listed = f"its variants are: {'; '.join(said)}" if said else "it lists no variants"
    return problem(
        "model/package",
        "this is a model package of onnxruntime, which holds several models"
        if is_known or said
        else f"this is a model package of onnxruntime in format {version}",
        where=str(folder),
        why=listed if is_known else f"its format {version} is newer than {_FORMAT}; {listed}",
        fix=f"give the file of one variant: {str(files[0])!r}"
        if files
        else models_in(folder)
        or "copy the whole package again: none of the model files that its manifest names is there",
    )


def _variant_said(folder: Path, name: str, file: Path | None) -> str:
    if file is None:
        return name
    shown = Path(os.path.relpath(file, folder))
    return f"{name} ({shown.as_posix()}{'' if file.is_file() else ', which is missing'})"


def _variants(folder: Path, components: Any) -> Iterator[tuple[str, Path | None]]:
    """Yields the name of each variant of a package with its model file, as far as the manifest has the known form."""
    for body in components.values() if isinstance(components, dict) else ():
        place, held = folder, body
        if isinstance(body, str):  # the component is described in a file of its own
            file = folder / body
            file = file / _COMPONENT if file.is_dir() else file
            place, held = file.parent, _json(folder, file)
        listed = held.get("variants") if isinstance(held, dict) else None
        for name, variant in listed.items() if isinstance(listed, dict) else ():
            yield str(name), _variant_file(folder, place, str(name), variant)


def _variant_file(folder: Path, place: Path, name: str, variant: Any) -> Path | None:
    """Returns the model file of a variant, for the executor `ort`; None if the variant does not name one."""
    try:
        directory = place / str(variant.get("variant_directory", name))
        info = variant["executor_info"]["ort"]
        info = _json(folder, directory / info) if isinstance(info, str) else info
        return directory / str(info["model_file"])
    except (AttributeError, KeyError, TypeError):
        return None


def _json(folder: Path, file: Path) -> Any:
    """Returns the content of a JSON file of a package; None if it cannot be read, or lies outside of the package."""
    try:
        is_inside = Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))
        return user_files.parse_json(user_files.read_utf8(file)) if is_inside else None
    except (OSError, ValueError):
        return None


def _is(kind: str, fix: str, path: Path) -> OnnxsmithError:
    return problem("model/garbage", "this is not an ONNX model", where=str(path), why=f"it is {kind}", fix=fix)


def _walk(data: bytes) -> tuple[int, int]:
    """Returns (number of top-level fields, bytes missing at the end); (0, -1) if a model has no such field."""
    position, known = 0, 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if _MODEL_FIELDS.get(number) != wire:
            return 0, -1
        value, position = _varint(data, position)
        known += 1
        if wire == 2:  # length-delimited: the varint is the length
            position += value
    return known, position - len(data)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:  # a varint has at most 64 bits
            break
    return 0, position + 1

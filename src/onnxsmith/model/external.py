"""External data: only from the model's own folder, and only where it is whole.

A model names files to read. One that came from elsewhere could name `/etc/passwd` (CVE-2025-51480, CVE-2026-27489 are
of this kind), so a location is followed only to a regular file inside the folder of the model, links resolved.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import onnx
import onnx_ir as ir

from onnxsmith.model.structure import subgraphs
from onnxsmith.problem import problem


def check(proto: onnx.ModelProto, path: Path) -> None:
    """Raises the first problem of the tensors that `proto`, read from `path`, keeps in other files."""
    folder = path.absolute().parent
    sizes: dict[str, int] = {}
    for tensor in tensors(proto):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            _check_tensor(tensor, folder, sizes, path)


def tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every tensor message of a model: initializers and attributes, of subgraphs and functions too."""
    yield from _graph_tensors(proto.graph)
    for function in proto.functions:
        yield from _node_tensors(function.node)


def _graph_tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: object) -> Iterator[onnx.TensorProto]:
    for node in nodes:  # type: ignore[attr-defined]
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                yield attribute.t
            elif attribute.type == onnx.AttributeProto.TENSORS:
                yield from attribute.tensors
        for inner in subgraphs(node):
            yield from _graph_tensors(inner)


def _check_tensor(tensor: onnx.TensorProto, folder: Path, sizes: dict[str, int], path: Path) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    where = f"{path}, tensor {tensor.name!r}, location {location!r}"
    if location not in sizes:
        sizes[location] = _size(location, folder, where)
    try:
        offset = int(entries.get("offset") or 0)
        expected = _nbytes(tensor)
        length = int(entries["length"]) if entries.get("length") else expected
    except ValueError as error:
        raise problem(
            "model/external-damaged",
            "the reference to external data makes no sense",
            where=where,
            why=str(error),
        ) from error
    if offset < 0 or length != expected or offset + length > sizes[location]:
        raise problem(
            "model/external-damaged",
            f"external data does not fit: {expected:,} bytes are needed, the reference says {length:,} at offset {offset:,}, "
            f"the file has {sizes[location]:,}",
            where=where,
            why="the data file is cut off, or belongs to another version of the model",
            fix="copy or export the model and its data file again, together",
        )


def _nbytes(tensor: onnx.TensorProto) -> int:
    if any(dim < 0 for dim in tensor.dims):
        raise ValueError(f"negative dimension in {list(tensor.dims)}")
    return math.ceil(ir.DataType(tensor.data_type).bitwidth * math.prod(tensor.dims) / 8)


def _size(location: str, folder: Path, where: str) -> int:
    if not location:
        raise problem(
            "model/external-damaged",
            "external data without a location",
            where=where,
            fix="export the model again",
        )
    posix = PurePosixPath(location.replace("\\", "/"))
    if posix.is_absolute() or Path(location).is_absolute() or ".." in posix.parts or ":" in posix.parts[0]:
        raise _outside(where, "the location is absolute or climbs out of the folder")
    target = folder / location
    real = Path(os.path.realpath(target))
    if not real.is_relative_to(os.path.realpath(folder)):
        raise _outside(where, f"a link leads to {real}")
    if not real.exists():
        raise problem(
            "model/external-missing",
            "the file with the weights is missing",
            where=where,
            why="the model keeps weights in a second file, which has to lie beside it",
            fix=f"copy {location!r} into {folder}",
        )
    if not real.is_file():
        raise problem("model/external-damaged", "the location of the weights is not a file", where=where)
    if real.stat().st_nlink > 1:
        raise problem(
            "model/external-outside",
            "external data that is a hard link is refused",
            where=where,
            why="a hard link can be the same file as one outside the model's folder",
            fix="make a copy of its own: `cp DATA DATA.copy && mv DATA.copy DATA`",
        )
    return real.stat().st_size


def _outside(where: str, why: str) -> Exception:
    return problem(
        "model/external-outside",
        "external data outside the model's folder is refused",
        where=where,
        why=f"{why}; a model could read any file of this machine that way",
        fix="copy the data file beside the model (`cp -L` follows links) and refer to it by its bare name",
    )

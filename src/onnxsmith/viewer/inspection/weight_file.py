"""Writes the weights of a model to a file that other programs read: `.safetensors` or `.npz`.

Both formats hold the values in row-major order, low byte first.
"""

from __future__ import annotations

import sys
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base import devices, folders
from onnxsmith.base.folders import OwnPath
from onnxsmith.base.limits import refuse_missing
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.words import first_few, pasted, several
from onnxsmith.graph.files import array_files
from onnxsmith.graph.files.array_files import free_key, member
from onnxsmith.graph.files.save import disk_problems
from onnxsmith.graph.reading.exact_text import dtype_name, flat
from onnxsmith.graph.reading.weights import Held, held
from onnxsmith.viewer.inspection.tables import SMALLEST

_OTHER = {".npz": ".safetensors", ".safetensors": ".npz"}
_RESERVED = "__metadata__"
"""Is the key in the header of a safetensors file that is no tensor."""


@dataclass(frozen=True)
class WeightFile:
    """Notes what changed when the file was written: tensors that the file lacks, and tensors with another name or
    dtype."""

    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def check_target(path: Path) -> None:
    """Checks the path of a file to write. Must be called before the model is read.

    Raises:
        OnnxsmithError: `save/no-folder`, `save/not-a-file`, `bundle/suffix`.
    """
    devices.refuse(path)
    refuse_missing(path.absolute().parent)
    if path.suffix not in _OTHER or path.is_dir():
        raise problem(
            "bundle/suffix",
            "weights are written as .safetensors or .npz",
            where=str(path),
            fix=f"`onnxsmith inspect MODEL --weights {pasted(path.with_suffix('.safetensors'))}`",
        )


def write_weights(model: ir.Model, path: Path, where: str) -> WeightFile:
    """Writes all initializers, including those of branches, bodies and external data, and constants of 16 elements or
    more.

    Names are kept, unless the name of an entry of an `.npz` would be a path out of a folder: `/a/b` becomes `a/b`. If a
    name occurs in several graphs, the name of the graph is put before it: `If_3/then_branch/w`. Integers of 2 or 4 bits
    become integers of 8 bits. Some dtypes exist only in the other format; tensors of these dtypes are refused. Tensors
    with a dtype that no format has are left out and named.

    Raises:
        OnnxsmithError: `inspect/weights-missing`, `inspect/weights-dtype`, `save/failed`.
    """
    found = [item for item in held(model) if not (item.constant and item.tensor is not None and _small(item.tensor))]
    _refuse_missing(found, where)
    tensors = [(item, item.tensor) for item in found if item.tensor is not None]
    kept = [(item, tensor) for item, tensor in tensors if holds(path.suffix, tensor)]
    lost = [(item, tensor) for item, tensor in tensors if not holds(path.suffix, tensor)]
    if lost and all(holds(_OTHER[path.suffix], tensor) for _, tensor in tensors):
        raise OnnxsmithError(_without_dtype(lost, path, f"--weights {pasted(path.with_suffix(_OTHER[path.suffix]))}"))
    names, renamed = _names([item for item, _ in kept], path.suffix)
    with disk_problems(path), folders.replacing(path) as file:
        try:
            write(file, dict(zip(names, (tensor for _, tensor in kept), strict=True)))
        except ValueError as error:
            raise problem(
                "save/failed",
                "the weights could not be read",
                where=where,
                why=str(error),
                fix="export the model again; nothing was written",
            ) from error
    notes = _notes(renamed, [item.name for item, tensor in kept if is_widened(tensor.dtype)], len(kept), path)
    return WeightFile(
        (
            _without_dtype(
                lost, path, "read the weights from the model in Python: onnx_ir.load(PATH).graph.initializers[NAME]"
            ),
        )
        if lost
        else (),
        notes,
    )


def _small(tensor: ir.TensorProtocol) -> bool:
    return tensor.size < SMALLEST


def _refuse_missing(found: Iterable[Held], where: str) -> None:
    missing = [item.name for item in found if item.missing]
    if missing:
        raise problem(
            "inspect/weights-missing",
            f"the values of {several(len(missing), 'tensor')} are missing, so no weights were written",
            where=f"{where}: {first_few(missing, 3)}",
            fix="give the path of the .onnx file, with its data files beside it",
        )


def _without_dtype(lost: Sequence[tuple[Held, ir.TensorProtocol]], path: Path, fix: str) -> Problem:
    dtypes = ", ".join(dict.fromkeys(dtype_name(tensor.dtype) for _, tensor in lost))
    return Problem(
        "inspect/weights-dtype",
        f"{path.suffix} cannot store {several(len(lost), 'tensor')} of {dtypes}",
        where=first_few([item.name for item, _ in lost], 3),
        why=f"a {path.suffix} file has no such dtype",
        fix=fix,
    )


def _names(items: Sequence[Held], suffix: str) -> tuple[list[str], list[str]]:
    """Returns a unique key for each tensor, and the names that are not kept."""
    counts = Counter(item.name for item in items)
    used: set[str] = {_RESERVED, ""}
    keys, renamed = [], []
    for item in items:
        unique = counts[item.name] == 1 or not item.scope.path
        wish = item.name if unique else f"{item.scope.path}/{item.name}"
        key = free_key(member(wish) if suffix == ".npz" else wish, used)
        keys.append(key)
        renamed += [item.name] if key != item.name else []
    return keys, renamed


def _notes(renamed: Sequence[str], widened: Sequence[str], count: int, path: Path) -> tuple[str, ...]:
    texts = [f"{several(count, 'tensor')} in {path}"]
    if renamed:
        shown = first_few(renamed, 3)
        why = "because the original name was not unique, or was a path"
        texts.append(f"{several(len(renamed), 'tensor')} renamed, {why}: {shown}")
    if widened:
        texts.append(f"stored as 8-bit integers: {first_few(widened, 3)}")
    return tuple(texts)


_PIECE = 1 << 20
"""Counts the elements in one piece. A choice: 8 MiB at most."""
_WIDENED = {"INT2": "INT8", "INT4": "INT8", "UINT2": "UINT8", "UINT4": "UINT8"}
"""Maps integer dtypes of few bits, which both formats lack, to the dtypes that replace them."""
_CODES = {
    **{name.upper(): code for name, code in array_files.SAFETENSORS_CODES.items()},
    "FLOAT8E8M0": "F8_E8M0", "FLOAT8E4M3FNUZ": "F8_E4M3FNUZ", "FLOAT8E5M2FNUZ": "F8_E5M2FNUZ",
    "FLOAT4E2M1": "F4", "COMPLEX64": "C64",
}  # fmt: skip
_PACKED = "FLOAT4E2M1"
"""Names the dtype with two elements in a byte, the first in the low bits, as in ONNX."""
_NOT_NUMPY = {"BFLOAT16", _PACKED, *(name for name in _CODES if name.startswith("FLOAT8"))}
_HELD = {
    ".safetensors": {*_CODES, *_WIDENED},
    ".npz": {*_CODES, *_WIDENED, "COMPLEX128"} - _NOT_NUMPY,
}


def holds(suffix: str, tensor: ir.TensorProtocol) -> bool:
    """Whether the format has a dtype with the same values. A tensor of 4-bit floats also has to fill its last byte."""
    name = tensor.dtype.name
    return name in _HELD[suffix] and not (name == _PACKED and tensor.size % 2)


def is_widened(dtype: ir.DataType) -> bool:
    """Whether the values are stored in a wider integer dtype."""
    return dtype.name in _WIDENED


def write(path: OwnPath, tensors: Mapping[str, ir.TensorProtocol]) -> None:
    """Writes tensors by name, in the format of the suffix. This format must have the dtypes of all tensors.

    Raises:
        OSError, ValueError: when values cannot be read or written, or when their number does not match the shape.
    """
    if path.suffix == ".npz":
        _write_npz(path, tensors)
    else:
        _write_safetensors(path, tensors)


def _write_safetensors(path: OwnPath, tensors: Mapping[str, ir.TensorProtocol]) -> None:
    head: dict[str, Any] = {}
    end = 0
    for name, tensor in tensors.items():
        size = tensor.size * _stored(tensor).itemsize
        begin, end = end, end + (size // 2 if tensor.dtype.name == _PACKED else size)
        code = _CODES[_WIDENED.get(tensor.dtype.name, tensor.dtype.name)]
        head[name] = {"dtype": code, "shape": list(tensor.shape.numpy()), "data_offsets": [begin, end]}
    with path.open("wb") as file:
        file.write(array_files.safetensors_start(head))
        for tensor in tensors.values():
            _copy(tensor, file)


def _write_npz(path: OwnPath, tensors: Mapping[str, ir.TensorProtocol]) -> None:
    with array_files.new_npz(path) as archive:
        for name, tensor in tensors.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # a fixed date: equal weights give equal files
            with archive.open(entry, "w", force_zip64=True) as file:
                shape = tuple(tensor.shape.numpy())
                about = {"descr": _stored(tensor).str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_2_0(file, about)
                _copy(tensor, file)


def _copy(tensor: ir.TensorProtocol, file: Any) -> None:
    """Copies the values. Afterwards unmaps a file of external data, if the file was not mapped before."""
    mapped_here = isinstance(tensor, ir.ExternalTensor) and tensor.raw is None
    done = _copied(tensor, file)
    if done != tensor.size:
        raise ValueError(f"the tensor {tensor.name!r} has {done:,} values, but its shape needs {tensor.size:,}")
    if mapped_here and isinstance(tensor, ir.ExternalTensor):
        tensor.release()


def _copied(tensor: ir.TensorProtocol, file: Any) -> int:
    """Copies the values, and returns their number. No view of the tensor outlives the call."""
    done = 0
    for piece in _pieces(tensor):
        done += piece.size
        codes = piece.view(np.uint8)
        file.write((codes[::2] & 15 | codes[1::2] << 4 if tensor.dtype.name == _PACKED else codes).data)
    return done


def _pieces(tensor: ir.TensorProtocol) -> Iterator[np.ndarray[Any, Any]]:
    elements, dtype = flat(tensor), _stored(tensor)
    for start in range(0, elements.size, _PIECE):
        piece = elements[start : start + _PIECE]
        yield np.ascontiguousarray(piece if piece.dtype == dtype else piece.astype(dtype))


def _stored(tensor: ir.TensorProtocol) -> np.dtype[Any]:
    """Returns the numpy dtype of the stored values, low byte first."""
    wide = _WIDENED.get(tensor.dtype.name)
    dtype = np.dtype((ir.DataType[wide] if wide else tensor.dtype).numpy())
    return dtype if sys.byteorder == "little" or dtype.isbuiltin != 1 else dtype.newbyteorder("<")

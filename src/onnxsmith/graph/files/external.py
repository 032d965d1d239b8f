"""Reads and writes external data: only files in the model's own folder, and only complete ones.

A model names the files to read. A model from elsewhere could name `/etc/passwd` (as in CVE-2025-51480 and
CVE-2026-27489). So a location must lead, with links resolved, to a regular file inside the model's folder.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import mmap
import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import onnx
import onnx_ir as ir

from onnxsmith.base import user_files
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import pasted, shortened
from onnxsmith.graph.files import tensor_validation
from onnxsmith.graph.structure import carried_fields, name_validation, sparse, walk
from onnxsmith.graph.structure.file_change import message_change
from onnxsmith.graph.structure.model_copy import SMALL, own_values

EXTERNAL_FROM = 1024
"""Limits the bytes of tensors that stay in the model file, so that shapes and scalars need no second read. The same as
onnx's default (`size_threshold` of `convert_model_to_external_data`)."""
_PIECE = 2**20
"""Sets the bytes that are read at once. A choice."""
_KEPT = "onnxsmith.kept"
"""Marks a tensor whose file was removed. Another file may have its name by now, so only the mapping may be read."""

_KEYS = frozenset({"location", "offset", "length", "checksum", "basepath"})
"""Lists the keys of external data that the specification defines, and `basepath`, which onnx writes."""
_LONGEST = 40
"""Limits the characters of an invalid number that is shown. A choice."""
_NODES_PER_TENSOR = 10
"""Sets how few tensors are few: a message of its own takes about 1 KB, and a node in a message 0.4 KB."""

_IF_WEIGHTS = "only if it contains the weights of this model, replace the link by a copy"
"""Advises without a command: a pasted one could copy a private file into the folder of a model from elsewhere."""


def check(outside: Iterable[onnx.TensorProto], path: Path | None, where: str) -> None:
    """Raises the first problem of the external tensors of a message that was read from `path`.

    Refuses all external data if `path` is None, because then there is no folder to look in.
    """
    folder = path.absolute().parent if path is not None else None
    sizes: dict[str, int] = {}
    for tensor in outside:
        _check_tensor(tensor, folder, sizes, where)


def read(
    proto: onnx.ModelProto,
    path: Path | None,
    kinds: name_validation.Kinds | None = None,
    outside: Iterable[onnx.TensorProto] | None = None,
) -> ir.Model:
    """Makes a model from a checked message. The message belongs to the model from then on. External tensors get the
    folder of `path`. `kinds` says what the nodes hold, and `outside` which tensors are external, if that is known."""
    for external in tensor_validation.tensors(proto) if outside is None else outside:
        _drop_unknown_keys(external)
    model = carried_fields.from_proto(proto, kinds or name_validation.kinds_in(proto))
    holders: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for holder in holders:
        if "ai.onnx" in holder.opset_imports:  # another name of the default domain; onnx-ir gives nodes the name ""
            holder.opset_imports[""] = holder.opset_imports.pop("ai.onnx")
    for tensor in walk.tensors(model):
        if isinstance(tensor, ir.ExternalTensor) and path is not None:
            tensor.base_dir = path.absolute().parent
        elif isinstance(tensor, ir.serde.TensorProtoTensor):
            del tensor.raw.metadata_props[:]  # onnx-ir keeps a copy, and would write each entry twice
    for value in walk.initializers(model):
        _declare(value)
    _release(model)
    return model


def _drop_unknown_keys(tensor: onnx.TensorProto) -> None:
    """Drops the keys of other programs, such as `prepacked_0`, because onnx warns of them. A filter for the warning
    would be one of the process: it could stay after two threads that read files at the same time."""
    for place in reversed(range(len(tensor.external_data))):
        if tensor.external_data[place].key not in _KEYS:
            del tensor.external_data[place]


def _release(model: ir.Model) -> None:
    """Copies the tensors out of the message if they are few and small. A single tensor keeps the whole message in
    memory, with all nodes."""
    inside = [one for one in walk.tensors(model) if isinstance(one, ir.serde.TensorProtoTensor)]
    if len(inside) * _NODES_PER_TENSOR <= len(model.graph) and all(one.nbytes <= SMALL for one in inside):
        own_values(model)


def _declare(value: ir.Value) -> None:
    """Gives an initializer the dtype and shape of its tensor if a declaration without a type hides them. torch writes
    declarations that have metadata only."""
    tensor = value.const_value
    if tensor is not None and value.dtype in (None, ir.DataType.UNDEFINED):
        value.type, value.shape = ir.TensorType(tensor.dtype), ir.Shape(tensor.shape.numpy())


def in_memory(model: ir.Model, *, up_to: int | None = None) -> ir.Model:
    """Returns a copy of `model` without external data, or `model` itself if it has none. Values stay mapped until read.

    With `up_to`, initializers of more bytes stay external. Tensors in attributes are always copied: data files are for
    initializers.
    """

    def stays(tensor: ir.TensorProtocol) -> bool:
        if not isinstance(tensor, ir.ExternalTensor):
            return True
        return up_to is not None and tensor.nbytes > up_to and _KEPT not in tensor.meta

    if all(map(stays, walk.initializer_tensors(model))) and not any(
        isinstance(tensor, ir.ExternalTensor) for tensor in walk.attribute_tensors(model)
    ):
        return model
    copy = model.clone()
    for value in walk.initializers(copy):
        if value.const_value is not None and not stays(value.const_value):
            value.const_value = _loaded(value.const_value)
    holders: list[ir.Node | ir.Function] = [*walk.all_nodes(copy), *copy.functions.values()]
    for holder in holders:
        for name, attribute in holder.attributes.items():
            holder.attributes[name] = _without_external(attribute)
    return copy


def move_out(model: ir.Model, data: Path) -> None:
    """Writes the large initializers of `model` to the file `data`, and makes the model refer to that file."""
    large = [value for value in walk.initializers(model) if _outside_size(value) > EXTERNAL_FROM]
    old = [value.const_value for value in large if value.const_value is not None]
    if not old:
        return
    new = ir.external_data.convert_tensors_to_external(old, data.parent, data.name)
    for value, before, after in zip(large, old, new, strict=True):
        after.doc_string = before.doc_string
        after.metadata_props.update(before.metadata_props)
        value.const_value = after


def _outside_size(value: ir.Value) -> int:
    """Returns the bytes of the value in a data file; 0 for strings and sparse tensors, which the format keeps in the
    model."""
    tensor = value.const_value
    if tensor is None or tensor.dtype == ir.DataType.STRING or sparse.message_of(tensor) is not None:
        return 0
    return tensor.nbytes


def digest(tensor: onnx.TensorProto, folder: Path, *, whole_up_to: int) -> bytes:
    """Returns the SHA-256 of the bytes of a checked external tensor, whose file is in `folder`; the bytes themselves if
    there are at most `whole_up_to`. Reads them piece by piece."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    left: int = tensor_validation.nbytes(tensor)
    found = hashlib.sha256()
    with user_files.opened(Path(folder, entries["location"])) as file:
        file.seek(int(entries.get("offset") or 0))
        if left <= whole_up_to:
            return file.read(left)
        while piece := file.read(min(left, _PIECE)):
            found.update(piece)
            left -= len(piece)
    return found.digest()


def forget_pages(tensor: ir.TensorProtocol | None) -> None:
    """Gives the memory of a mapped tensor back to the system, if the system can take it. The next read maps its file
    again. Pages that were read count as memory of the process."""
    raw = tensor.raw if isinstance(tensor, ir.ExternalTensor) else None
    if raw is not None and hasattr(raw, "madvise"):
        raw.madvise(mmap.MADV_DONTNEED)


def is_same_place(one: ir.TensorProtocol, other: ir.TensorProtocol) -> bool:
    """Whether both tensors will read the same bytes of the same file. A tensor that is mapped may have an older file of
    the name."""
    if not isinstance(one, ir.ExternalTensor) or not isinstance(other, ir.ExternalTensor):
        return False
    first, second = ((os.path.realpath(each.path), each.offset, each.length) for each in (one, other))
    return first == second and one.raw is None and other.raw is None


def keep(files: set[str]) -> None:
    """Memory-maps every tensor of this process that reads one of `files`, before these files are removed.

    A memory mapping outlives the name of its file. Other models of the caller may read the same files, so the tensors
    are found through the garbage collector.
    """
    for tensor in [found for found in gc.get_objects() if type(found) is ir.ExternalTensor] if files else []:
        if os.path.realpath(tensor.path) in files:
            with contextlib.suppress(OSError, ValueError):  # the tensor was unreadable before, too
                tensor.numpy()
                tensor.meta[_KEPT] = True


def _without_external(attribute: ir.Attr) -> ir.Attr:
    if attribute.is_ref() or attribute.type not in (ir.AttributeType.TENSOR, ir.AttributeType.TENSORS):
        return attribute
    if attribute.type == ir.AttributeType.TENSOR:
        return ir.AttrTensor(attribute.name, _loaded(attribute.as_tensor()), doc_string=attribute.doc_string)
    loaded = [_loaded(tensor) for tensor in attribute.as_tensors()]
    return ir.AttrTensors(attribute.name, loaded, doc_string=attribute.doc_string)


def _loaded(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    """Returns the tensor as an in-memory tensor. If numpy has the dtype, the values are mapped, not read."""
    if not isinstance(tensor, ir.ExternalTensor):
        return tensor
    loaded = ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=tensor.name, doc_string=tensor.doc_string)
    loaded.metadata_props.update(tensor.metadata_props)
    return loaded


def _check_tensor(tensor: onnx.TensorProto, folder: Path | None, sizes: dict[str, int], where: str) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    where = f"{where}, tensor {tensor.name!r}, location {location!r}"
    if folder is None:
        raise problem(
            "model/external-missing",
            "the weights are in another file, but a model in memory does not know the folder of this file",
            where=where,
            fix="load the model from its path, or read its weights first: onnx.load_external_data_for_model",
        )
    if location not in sizes:
        sizes[location] = _size(location, folder, where)
    try:
        offset = _whole(entries.get("offset") or "0")
        expected = tensor_validation.nbytes(tensor)
        length = _whole(entries["length"]) if entries.get("length") else expected
    except (ValueError, TypeError) as error:
        raise problem(
            "model/external-damaged",
            "the reference to external data is invalid",
            where=where,
            why=str(error),
            fix="export the model again",
        ) from error
    if offset < 0 or length != expected or offset + length > sizes[location]:
        raise problem(
            "model/external-damaged",
            f"external data does not fit: {expected:,} bytes are needed, the reference says {length:,} "
            f"at offset {offset:,}, the file has {sizes[location]:,}",
            where=where,
            why="the data file is incomplete, or belongs to another version of the model",
            fix="copy or export the model and its data file again, together",
        )


def _whole(text: str) -> int:
    """Returns the number. Unlike `int`, accepts only the digits 0 to 9: readers of the format differ in the others."""
    if not re.fullmatch("-?[0-9]+", text):
        raise ValueError(f"{shortened(text, _LONGEST)!r} is not a whole number")
    return int(text)


def _size(location: str, folder: Path, where: str) -> int:
    posix = PurePosixPath(location.replace("\\", "/"))
    if not posix.parts or "\0" in location:
        raise problem(
            "model/external-damaged",
            "the external data of a tensor has no location",
            where=where,
            fix="export the model again",
        )
    if posix.is_absolute() or Path(location).is_absolute() or ".." in posix.parts or ":" in posix.parts[0]:
        change = message_change(
            where,
            f"[setattr(e, 'value', {posix.name!r}) for t in m.graph.initializer for e in t.external_data "
            f"if e.key == 'location' and e.value == {location!r}]",
        )
        fix = (
            f"copy the file {posix.name!r} into the folder {str(folder.absolute())!r}, "
            f"and refer to it by its bare name: {change}"
        )
        raise _outside(where, "the location is absolute or climbs out of the folder", fix)
    real = Path(os.path.realpath(folder / location))
    if not real.is_relative_to(os.path.realpath(folder)):
        fix = f"look at {str(real)!r}; {_IF_WEIGHTS}"
        raise _outside(where, f"a link leads to {real}", fix)
    try:
        facts = real.stat()
    except OSError as error:
        raise problem(
            "model/external-missing",
            "the file with the weights is missing",
            where=where,
            why=f"the model keeps weights in a second file, which must be in the model's folder ({error.strerror})",
            fix=_renamed(folder, location) or f"copy {location!r} into the folder {str(folder.absolute())!r}",
        ) from error
    if not real.is_file():
        raise problem(
            "model/external-damaged",
            "the location of the weights is not a file",
            where=where,
            fix=f"replace {str(real)!r} by the data file",
        )
    if facts.st_nlink > 1:
        raise problem(
            "model/external-outside",
            "external data that is a hard link is refused",
            where=where,
            why="a hard link can point to a file outside the model's folder",
            fix=f"look at {str(real)!r}; {_IF_WEIGHTS}",
        )
    return facts.st_size


def _renamed(folder: Path, location: str) -> str:
    """Returns the advice to give a data file in the folder the name that the model looks for; nothing if none lies
    there. A model that was renamed together with its data file still looks for the old name."""
    found = [one for one in sorted(folder.iterdir()) if one.suffix in (".data", ".bin", ".weight") and one.is_file()]
    if len(found) != 1:
        return ""
    name = f"if {found[0].name!r} contains the weights, rename it to the name that the model expects"
    return f"{name}: `mv {_short(found[0])} {_short(folder / location)}`"


def _short(path: Path) -> str:
    """Returns the path as a command has it: relative, if it is in the current folder."""
    return pasted(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _outside(where: str, why: str, fix: str) -> OnnxsmithError:
    return problem(
        "model/external-outside",
        "external data outside the model's folder is refused",
        where=where,
        why=f"{why}; a model could read any file of this machine that way",
        fix=fix,
    )

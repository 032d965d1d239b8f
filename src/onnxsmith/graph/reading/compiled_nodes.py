"""Reads the nodes that an execution provider has compiled: onnxruntime's `EPContext`.

Attributes: the schema of `com.microsoft::EPContext` in onnxruntime, and
https://onnxruntime.ai/docs/execution-providers/EP-Context-Design.html. The compiled code itself is never read.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import onnx_ir as ir

from onnxsmith.base.printable import one_line
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.compiled_nodes import CompiledNode, CompiledNodes
from onnxsmith.graph.files.load import load
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import Signature, signature

_DOMAIN, _OPERATOR = "com.microsoft", "EPContext"
NAME = f"{_DOMAIN}::{_OPERATOR}"
"""Is the operator of a compiled node, as reports write it."""
_FITS = "beside the model, with the same inputs and outputs"


def of_model(model: ir.Model, path: Path | None) -> CompiledNodes | None:
    """Returns what the compiled nodes say about themselves; None for a model without any. `path` is the model's file:
    files that the nodes name are looked for in its folder, by their names only."""
    nodes = [node for node in walk.all_nodes(model) if is_compiled(node)]
    if not nodes:
        return None
    left = Counter(walk.op_name(node) for node in walk.all_nodes(model) if not is_compiled(node))
    source = next((text for node in nodes if (text := _text(node, "onnx_model_filename"))), "")
    folder = None if path is None else path.absolute().parent
    state = _state(source, path, signature(model)) if source else ""
    return CompiledNodes(
        tuple(_described(node, folder) for node in nodes),
        dict(left.most_common()),
        source,
        state,
        str(path.parent / _name(source)) if path is not None and state == _FITS else "",
    )


def whose(model: ir.Model, target: str) -> bool:
    """Whether the model has code that was compiled for a target."""
    return any(is_compiled(node) and is_for(node, target) for node in walk.all_nodes(model))


def is_for(node: ir.Node, target: str) -> bool:
    """Whether the provider that compiled the node may be that of a target: `QNNExecutionProvider` and `qnn`."""
    name = provider_key(_text(node, "source"))
    return bool(name) and target.replace("-", "").startswith(_ALSO_CALLED.get(name, name))


def provider_key(provider: str) -> str:
    """Returns the name of a provider in its short form: `qnn` for `QNNExecutionProvider`, and for `QNN`."""
    return provider.lower().removesuffix("executionprovider")


_ALSO_CALLED = {"nvtensorrtrtx": "tensorrtrtx"}
"""Maps a provider to the beginning of its targets, if it is called otherwise."""


def is_compiled(node: ir.Node) -> bool:
    """Whether the node holds code that an execution provider compiled."""
    return node.domain == _DOMAIN and node.op_type == _OPERATOR


def _described(node: ir.Node, folder: Path | None) -> CompiledNode:
    content = _bytes(node, "ep_cache_context")
    file, nbytes, missing = "", None, ""
    if _number(node, "embed_mode", 1) == 1:
        is_reference = not content and _number(node, "main_context", 1) == 0  # the code is in the main node
        nbytes = None if is_reference else len(content)
    elif content:
        file = content.decode(errors="replace")
        nbytes, missing = _stored(file, folder)
    return CompiledNode(
        walk.node_label(node),
        _text(node, "source"),
        _text(node, "ep_sdk_version"),
        _text(node, "hardware_architecture"),
        _text(node, "partition_name"),
        file,
        nbytes,
        missing,
    )


def _stored(name: str, folder: Path | None) -> tuple[int | None, str]:
    """Returns the size of a file in the folder, or the reason for which it is not known."""
    if folder is None:
        return None, ""
    found = _beside(name, folder)
    if found is None:
        return None, f"its code is in {one_line(name)}, outside of the folder of the model; it was not looked for"
    if not found.is_file():
        return None, f"its code is in {one_line(name)}, which is not there: no provider can load the model"
    return found.stat().st_size, ""


def _beside(name: str, folder: Path) -> Path | None:
    """Returns the path of a file in the folder or below it; None for another place."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts or "\0" in name or parts[0].startswith("/") or ":" in parts[0] or ".." in parts:
        return None
    found = folder.joinpath(*parts)
    return found if Path(os.path.realpath(found)).is_relative_to(os.path.realpath(folder)) else None


def _state(source: str, path: Path | None, own: Signature) -> str:
    """Says whether the model from which this one was compiled is there, and fits."""
    found = None if path is None else _beside(_name(source), path.absolute().parent)
    if found is None or not found.is_file() or (path is not None and found.samefile(path)):
        return "not beside the model"
    try:
        ports = list(_ports(signature(load(found))))
    except OnnxsmithError as error:
        return f"beside the model, but it cannot be read: {error.problem.id}"
    mine = list(_ports(own))
    if [port[:2] for port in ports] != [port[:2] for port in mine] or not all(
        _takes(one[2], other[2]) for one, other in zip(ports, mine, strict=True)
    ):
        return "beside the model, but it has other inputs or outputs"
    return _FITS


def _name(source: str) -> str:
    """Returns the name of a file without its folders, which may be those of another machine."""
    return PurePosixPath(source.replace("\\", "/")).name


def _takes(source: Sizes, compiled: Sizes) -> bool:
    """Whether a port of the source may have the sizes of the compiled model, which often fixes open ones."""
    if source is None or compiled is None:
        return True
    pairs = zip(source, compiled, strict=False)
    return len(source) == len(compiled) and all(isinstance(x, str) or isinstance(y, str) or x == y for x, y in pairs)


Sizes = tuple[int | str, ...] | None


def _ports(one: Signature) -> Iterator[tuple[str, str, Sizes]]:
    yield from ((port.name, port.dtype, port.shape) for port in (*one.required(), *one.outputs))


def _number(node: ir.Node, name: str, default: int) -> int:
    found = node.attributes.get(name)
    return found.value if found is not None and found.type is ir.AttributeType.INT else default


def _text(node: ir.Node, name: str) -> str:
    return _bytes(node, name).decode(errors="replace")


def _bytes(node: ir.Node, name: str) -> bytes:
    found = node.attributes.get(name)
    if found is None or found.is_ref() or found.type is not ir.AttributeType.STRING:
        return b""
    return found.value if isinstance(found.value, bytes) else str(found.value).encode(errors="surrogateescape")

"""The outline of a model: a short line for each node and for each use of a weight, without the values of weights.

With it, a later check names what changed: the first node that differs, and the weights with other values. A weight is
known by where it is used, not by its name.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base import user_files
from onnxsmith.base.words import shortened
from onnxsmith.gate.baselines.digests import of_each_node, tensor_digest, weight_of
from onnxsmith.graph.reading.exact_text import attribute_text
from onnxsmith.graph.structure import provenance, walk

NODES = 4000
"""Limits the nodes of an outline. A choice: a line takes about 40 bytes in the file."""
WEIGHTS = 2000
"""Limits the uses of weights in an outline. A choice, as above."""
BLOCKS = 1024
"""Sets the most blocks of a weight. A choice: the values of a small weight have a checksum each."""
_CHECKED = 2**18
"""Limits the bytes of the checksums of a model. A choice: 256 KiB; later weights have none."""
_LARGEST = 2**26
"""Limits the bytes of a weight that has checksums. A choice: reading more a second time takes too long."""
_KEY = 12
"""Counts the hexadecimal digits of a key. A choice: two of 4,000 nodes have one key in a model of 35 million."""
_TEXT = 40
"""Limits the characters of an attribute. A choice: what a line of a report shows."""


@dataclass(frozen=True)
class NodeLine:
    """A node: a key of what it computes, its operator, its name, its torch module, and its attributes as texts.
    `in_branch` says that it lies in a branch of an If, so that not every input reaches it."""

    key: str
    op: str
    name: str
    module: str
    attributes: dict[str, str]
    in_branch: bool = False


@dataclass(frozen=True)
class WeightUse:
    """A weight at one place. `key` is that of the place: the node and the position of the operand. `node` names it.
    `checks` has a checksum for each block, two bytes long; `total` is the sum of the values, `norm` the root of the sum
    of their squares; both are None unless all values are finite numbers."""

    key: str
    name: str
    node: str
    digest: str
    size: int
    checks: str = ""
    total: float | None = None
    norm: float | None = None


@dataclass(frozen=True)
class Outline:
    """Holds the lines of a model, in the order of the file, and the version of each operator set."""

    opsets: dict[str, int]
    nodes: tuple[NodeLine, ...]
    weights: tuple[WeightUse, ...]


def outline(model: ir.Model, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> Outline:
    """Makes the outline of a model. `inputs` and `outputs` are the recorded names, whose order counts (`digests`)."""
    seen = of_each_node(model, inputs, outputs)
    conditions = (node for node in walk.all_nodes(model) if walk.op_name(node) == "If")
    branches = {inner for node in conditions for inner in walk.inside(node)}
    nodes = tuple(_node(node, digest, node in branches) for node, digest in seen[:NODES])
    known: dict[int, WeightUse] = {}
    weights: list[WeightUse] = []
    left = _CHECKED
    for key, value, tensor, label in _uses(seen, model):
        if id(tensor) not in known:
            known[id(tensor)] = _weight(tensor, has_checks=left > 0 and tensor.nbytes <= _LARGEST)
            left -= len(known[id(tensor)].checks)
        one = known[id(tensor)]
        weights.append(WeightUse(key, value.name or "", label, one.digest, one.size, one.checks, one.total, one.norm))
        if len(weights) == WEIGHTS:
            break
    used = {node.domain for node in walk.all_nodes(model)}
    return Outline({name: one for name, one in model.opset_imports.items() if name in used}, nodes, tuple(weights))


def _node(node: ir.Node, digest: str, in_branch: bool) -> NodeLine:
    plain = [one for one in node.attributes.values() if one.is_ref() or not walk.holds_subgraphs(one)]
    texts = {one.name: shortened(attribute_text(one), _TEXT) for one in sorted(plain, key=lambda held: held.name)}
    name, module = walk.node_label(node), provenance.of(node).module
    return NodeLine(digest[:_KEY], walk.op_name(node), name, module, texts, in_branch)


def _uses(
    seen: Sequence[tuple[ir.Node, str]], model: ir.Model
) -> Iterator[tuple[str, ir.Value, ir.TensorProtocol, str]]:
    """Yields each use of a weight: the key of its place, the weight, and the node."""
    for node, digest in seen:
        for at, value in enumerate(node.inputs):
            tensor = weight_of(value)
            if tensor is not None and value is not None:
                yield f"{digest[:_KEY]}.{at}", value, tensor, f"{walk.op_name(node)} {walk.node_label(node)}"
    for at, value in enumerate(model.graph.outputs):
        tensor = weight_of(value)
        if tensor is not None:
            yield f"output.{at}", value, tensor, "an output"


def _weight(tensor: ir.TensorProtocol, *, has_checks: bool) -> WeightUse:
    digest, size = tensor_digest(tensor)[: 2 * _KEY], math.prod(tensor.shape.numpy())
    if not has_checks or tensor.dtype == ir.DataType.STRING or not size:
        return WeightUse("", "", "", digest, size)
    values = np.ascontiguousarray(tensor.numpy()).reshape(-1)
    checks = b"".join(zlib.crc32(block.tobytes()).to_bytes(4, "little")[:2] for block in blocks(values))
    total = norm = None
    if tensor.dtype.is_floating_point():
        wide = values.astype(np.float64)
        if np.isfinite(wide).all():
            total, norm = float(wide.sum()), float(np.sqrt(np.square(wide).sum()))
    return WeightUse("", "", "", digest, size, base64.b64encode(checks).decode(), total, norm)


def blocks(values: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """Yields the blocks of a flat array, `BLOCKS` at most."""
    step = -(-len(values) // BLOCKS)
    for at in range(0, len(values), step):
        yield values[at : at + step]


_LARGEST = 2**28
"""Limits the bytes of an outline that is read, of which more are cut off. A choice: large models have some 100,000
nodes, of 100 bytes each."""


def to_bytes(made: Outline) -> bytes:
    """Returns the outline as it is stored: compressed JSON."""
    data = [made.opsets, [astuple(one) for one in made.nodes], [astuple(one) for one in made.weights]]
    return zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 9)


def from_bytes(stored: bytes) -> Outline | None:
    """Returns the outline that `to_bytes` stored; None for bytes that this version cannot read: an outline only names
    what other digests show."""
    try:
        opsets, nodes, weights = user_files.parse_json(zlib.decompressobj().decompress(stored, _LARGEST))
        return Outline(opsets, tuple(NodeLine(*one) for one in nodes), tuple(WeightUse(*one) for one in weights))
    except (zlib.error, ValueError, TypeError):
        return None

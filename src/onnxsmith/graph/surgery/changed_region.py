"""Finds where two graphs differ, and makes small models of the differing parts.

Two tensors are equal to the bit if the same operators compute them, with the same attributes, from equal tensors. Each
tensor gets a number: equal numbers mean such an equal computation. Where a tensor of the candidate and its counterpart
in the reference have different numbers, the two are a pair to compare, and count as equal further down. If the tensors
of every pair are equal, so are all outputs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from onnxsmith.base.folders import OwnPath
from onnxsmith.graph.files import external
from onnxsmith.graph.files.load import from_proto
from onnxsmith.graph.structure import walk

_Number = tuple[int, int]
"""Is the number of a computation, and which of its results a tensor is."""
_MOST = 64
"""Limits the pairs of a region. A choice: each pair is one more output of a run, and many changes are a change of the
whole."""
_SHORT = 64
"""Limits the bytes that are compared as they are; of more, the SHA-256 digest is compared. A choice."""
_UNREPEATABLE = walk.RANDOM | {"Dropout"}
_BODIES = {onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS}


@dataclass(frozen=True)
class Region:
    """Holds the differing parts of two graphs.

    `given` are the tensors of the reference from which both sides compute the parts. `pairs` maps tensors of the
    candidate to their counterparts in the reference, to compare. Without pairs, all outputs are the same computation.
    """

    pairs: Mapping[str, str]
    given: tuple[str, ...]
    _reference: _Graph
    _candidate: _Graph

    @property
    def nodes(self) -> tuple[int, int]:
        """Counts the nodes of both parts."""
        return len(self._reference.inside), len(self._candidate.inside)

    def prefix(self, file: OwnPath) -> tuple[Path | ir.Model, list[str]]:
        """Returns the part of the reference that computes the given and the compared tensors from the graph inputs, and
        the names of these tensors. Writes it to the file, unless weights are in data files elsewhere."""
        graph = self._reference
        wanted = dict.fromkeys([*self.given, *self.pairs.values()])
        outputs = [name for name in wanted if name not in graph.inputs]
        made = graph.model_of([graph.node(index) for index in graph.needed(outputs)], outputs)
        if any(map(_is_external, made.graph.initializer)):
            return graph.read_in(made), outputs
        file.write_bytes(made.SerializeToString())
        return file, outputs

    def parts(self, like: Mapping[str, Any]) -> tuple[ir.Model, ir.Model]:
        """Returns both parts as models with equal inputs and outputs. `like` has an array for each tensor of the
        reference that is given or compared."""
        names = {name: _free(f"{name}.given", self._reference.made, self._candidate.made) for name in self.given}
        inputs = [_port(new, like[name]) for name, new in names.items()]
        outputs = [_port(name, like[name]) for name in self.pairs.values()]
        return (
            self._reference.part(names, dict.fromkeys(self.pairs.values(), ""), inputs, outputs),
            self._candidate.part(names, self.pairs, inputs, outputs),
        )

    def renamed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the given tensors in `values`, under the names of the inputs of both parts."""
        return {_free(f"{name}.given", self._reference.made, self._candidate.made): values[name] for name in self.given}


def find(
    reference: onnx.ModelProto,
    candidate: onnx.ModelProto,
    outputs: Mapping[str, str],
    inputs: Mapping[str, str],
    known: Mapping[str, str],
    folders: tuple[Path | None, Path | None] = (None, None),
) -> Region | None:
    """Finds the region in which two graphs differ. `outputs`, `inputs` and `known` map names of outputs, inputs and any
    tensors of the candidate to names in the reference. `folders` hold the data files of the two graphs.

    Returns None if a part cannot be compared alone: it draws random numbers, it has branches, bodies or functions,
    whose conditions need inputs of their own, weights are in files of an unknown folder, or more than 64 tensors would
    have to be compared.
    """
    table: dict[object, int] = {}
    try:
        ours = _Graph(reference, table, {name: name for name in outputs.values()}, folders[0])
        theirs = _Graph(candidate, table, inputs, folders[1])
        ours.number(reference.graph.node)
        needed = (theirs.node(index) for index in theirs.needed(outputs))
        pairs = theirs.number(needed, ours, {**known, **outputs})
        if any(theirs.numbers.get(name, 0) != ours.numbers.get(old, 1) for name, old in outputs.items()):
            return None
        names = {number: name for name, number in reversed(ours.numbers.items())}
        given = dict.fromkeys(names[number] for number in theirs.enclose(pairs, names))
        given |= dict.fromkeys(names[one] for one in ours.enclose(pairs.values(), set(theirs.numbers.values())))
    except _AloneError:
        return None
    for graph in (ours, theirs):
        graph.given = {name: names[number] for name, number in graph.read().items() if number in names}
    return Region(pairs, tuple(given), ours, theirs)


class _AloneError(Exception):
    """Says that a part of a graph cannot be compared alone."""


class _Graph:
    """Holds one graph, the numbers of its tensors, and the nodes of its part."""

    def __init__(
        self, model: onnx.ModelProto, table: dict[object, int], inputs: Mapping[str, str], folder: Path | None
    ) -> None:
        self._model, self._table, self._folder = model, table, folder
        self.made = {name: index for index, node in enumerate(model.graph.node) for name in node.output if name}
        """Maps each result of a node to the index of the node. An object for each node would take more memory than the
        graph."""
        self._stored = {tensor.name: tensor for tensor in model.graph.initializer}
        self._versions = {_domain(one.domain): one.version for one in model.opset_import}
        self._functions = {(_domain(one.domain), one.name) for one in model.functions}
        self._whole = (
            *sorted(self._versions.items()),
            *sorted(one.SerializeToString(deterministic=True) for one in model.functions),
        )
        """Is the context of nodes with bodies and of calls, whose operators have versions, too."""
        self.inputs = {port.name for port in model.graph.input}
        self.numbers: dict[str, _Number] = {}
        self.inside: set[int] = set()
        """Holds the indices of the nodes of the part."""
        self.given: dict[str, str] = {}
        """Maps tensors that the part reads to the reference's names of equal tensors."""
        if model.graph.sparse_initializer:
            raise _AloneError
        for name, tensor in self._stored.items():
            key = ("tensor", *_content(tensor, folder))
            self._name(name, ("default", inputs.get(name, name), key) if name in self.inputs else key)
        for name in self.inputs - set(self._stored):
            self._name(name, ("input", inputs.get(name, name)))

    def _name(self, name: str, key: object) -> None:
        self.numbers[name] = (self._table.setdefault(key, len(self._table)), 0)

    def number(
        self, nodes: Iterable[onnx.NodeProto], other: _Graph | None = None, known: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Numbers the results of nodes. A result whose counterpart in the `other` graph, as `known` names it, has
        another number, gets that number. Returns these results with their counterparts."""
        pairs: dict[str, str] = {}
        table, numbers, known = self._table, self.numbers, known or {}
        for node in nodes:
            key = self._key(node)
            at = table.setdefault(key, len(table))
            for index, name in enumerate(node.output):
                if not name:
                    continue
                number = (at, index)
                old = known.get(name, "")
                if other is not None and old in other.made and other.numbers[old] != number:
                    number = other.numbers[old]
                    pairs[name] = old
                    if len(pairs) > _MOST:
                        raise _AloneError
                numbers[name] = number
        return pairs

    def _key(self, node: onnx.NodeProto) -> object:
        domain, kind, attributes = _domain(node.domain), node.op_type, list(node.attribute)
        if not domain and kind == "Constant" and len(attributes) == 1 and attributes[0].name == "value":
            return ("tensor", *_content(attributes[0].t, self._folder))
        if not domain and kind in _UNREPEATABLE:
            raise _AloneError
        context: object = self._versions.get(domain)
        if (attributes and _is_whole(node)) or (domain, kind) in self._functions:
            if any(_draws(body) for body in (*_bodies(node), *(one.node for one in self._model.functions))):
                raise _AloneError
            read = sorted({name for body in _bodies(node) for name in _read(body)} & self.numbers.keys())
            context = (*self._whole, *((name, self.numbers[name]) for name in read))
        head = (domain, kind, node.overload, context)
        return (
            self._table.setdefault(head, len(self._table)),
            *map(self.numbers.get, node.input),
            *map(bool, node.output),
            *sorted([_short(one.SerializeToString(deterministic=True)) for one in attributes]),
        )

    def node(self, index: int) -> onnx.NodeProto:
        """Returns a node of the graph."""
        found: onnx.NodeProto = self._model.graph.node[index]
        return found

    def needed(self, outputs: Iterable[str]) -> list[int]:
        """Returns the indices of the nodes that compute these tensors, in the order of the graph."""
        wanted, found = set(outputs), []
        nodes = self._model.graph.node
        for index, node in zip(reversed(range(len(nodes))), reversed(nodes), strict=True):
            if not wanted.isdisjoint(node.output):
                found.append(index)
                wanted.update(node.input)
                if _is_whole(node):
                    wanted.update(name for body in _bodies(node) for name in _read(body))
        return found[::-1]

    def read(self) -> dict[str, _Number]:
        """Returns the tensors that the nodes of the part read, with their numbers."""
        names = {name for index in self.inside for name in self.node(index).input}
        return {name: self.numbers[name] for name in names if name in self.numbers}

    def enclose(self, names: Iterable[str], shared: Container[_Number]) -> Iterator[_Number]:
        """Collects the nodes that compute the named tensors from tensors that both graphs have, whose numbers are
        `shared`. Yields the numbers of these tensors, without constants."""
        waiting = [self.made[name] for name in names]
        while waiting:
            index = waiting.pop()
            if index in self.inside:
                continue
            node = self.node(index)
            if _is_whole(node) or (_domain(node.domain), node.op_type) in self._functions:
                raise _AloneError
            self.inside.add(index)
            for name in filter(None, node.input):
                if self._is_constant(name):
                    continue
                if self.numbers[name] in shared:
                    yield self.numbers[name]
                else:
                    waiting.append(self.made[name])

    def _is_constant(self, name: str) -> bool:
        if name not in self.made:
            return name in self._stored
        made = self.node(self.made[name])
        return made.op_type == "Constant" and not made.domain

    def model_of(self, nodes: list[onnx.NodeProto], outputs: Iterable[str]) -> onnx.ModelProto:
        """Returns a model of some nodes, with all inputs of the graph, and with outputs whose types the file does not
        say."""
        read = {name for node in nodes for name in node.input}
        read |= {name for node in nodes if _is_whole(node) for body in _bodies(node) for name in _read(body)}
        made = self._empty()
        made.graph.node.extend(nodes)
        made.graph.input.extend(self._model.graph.input)
        made.graph.initializer.extend(tensor for name, tensor in self._stored.items() if name in read)
        made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
        return made

    def part(
        self,
        names: Mapping[str, str],
        compared: Mapping[str, str],
        inputs: list[onnx.ValueInfoProto],
        outputs: list[onnx.ValueInfoProto],
    ) -> ir.Model:
        """Returns the part as a model. `names` maps given tensors to the inputs of the model; `compared` maps tensors
        of the graph to the outputs."""
        made = self._empty()
        constants: dict[str, None] = {}
        for node in map(self.node, sorted(self.inside)):
            new = made.graph.node.add()
            new.CopyFrom(node)
            for index, name in enumerate(node.input):
                if name and self._is_constant(name):
                    constants[name] = None
                elif self.given.get(name) in names:
                    new.input[index] = names[self.given[name]]
            for index, name in enumerate(node.output):
                new.output[index] = compared.get(name) or name
        for name in constants:
            if name in self._stored:
                made.graph.initializer.append(self._stored[name])
            else:
                made.graph.node.insert(0, self.node(self.made[name]))
        made.graph.input.extend(inputs)
        made.graph.output.extend(outputs)
        return self.read_in(made)

    def read_in(self, made: onnx.ModelProto) -> ir.Model:
        """Returns the model of a message, whose weights may be in the data files of the graph."""
        path = None if self._folder is None else self._folder / "part.onnx"
        return from_proto(made, where="the changed part", path=path)

    def _empty(self) -> onnx.ModelProto:
        made = onnx.ModelProto(ir_version=max(self._model.ir_version, walk.FIRST_WITH_CONSTANTS))
        made.opset_import.extend(self._model.opset_import)
        made.functions.extend(self._model.functions)
        made.graph.name = "part"
        return made


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def _is_whole(node: onnx.NodeProto) -> bool:
    """Whether a node has branches or bodies."""
    return len(node.attribute) > 0 and any(one.type in _BODIES for one in node.attribute)


def _bodies(node: onnx.NodeProto) -> Iterator[Any]:
    """Yields the nodes of each branch and body of a node, also of those inside others."""
    for one in node.attribute:
        for graph in (one.g, *one.graphs) if one.type in _BODIES else ():
            yield graph.node
            for inner in graph.node:
                yield from _bodies(inner)


def _read(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    for node in nodes:
        yield from node.input


def _draws(nodes: Iterable[onnx.NodeProto]) -> bool:
    return any(node.op_type in _UNREPEATABLE for node in nodes)


def _content(tensor: onnx.TensorProto, folder: Path | None) -> tuple[object, ...]:
    """Returns a key of a stored tensor: equal keys mean equal dtype, shape and bits."""
    if _is_external(tensor):
        if folder is None:
            raise _AloneError
        return (tensor.data_type, tuple(tensor.dims), external.digest(tensor, folder, whole_up_to=_SHORT))
    if tensor.HasField("raw_data"):
        return (tensor.data_type, tuple(tensor.dims), _short(tensor.raw_data))
    bare = onnx.TensorProto()
    bare.CopyFrom(tensor)
    for field in ("name", "doc_string", "metadata_props"):
        bare.ClearField(field)
    return ("typed", _short(bare.SerializeToString(deterministic=True)))


def _is_external(tensor: onnx.TensorProto) -> bool:
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def _short(content: bytes) -> bytes:
    return content if len(content) <= _SHORT else hashlib.sha256(content).digest()


def _port(name: str, array: Any) -> onnx.ValueInfoProto:
    """Returns the declaration of a tensor with the dtype and the rank of an array."""
    dtype = ir.DataType.STRING if array.dtype.kind in "OSU" else ir.DataType.from_numpy(array.dtype)
    return onnx.helper.make_tensor_value_info(name, int(dtype), [None] * array.ndim)


def _free(name: str, *taken: Mapping[str, object]) -> str:
    while any(name in held for held in taken):
        name += "'"
    return name

"""Makes strings from a graph's vocabulary, as words and n-grams, and maps for operators of ai.onnx.ml.

Strings outside the vocabulary say nothing about the weights of a text model. So the search follows an input to the
nodes that look strings up, through nodes that change the case or split strings. If a node splits the strings, an
element is a text of a few words.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.structure.signature import Port
from onnxsmith.verification.inputs.input_readers import Owners, Reader, readers

_VOCABULARIES = ("keys_strings", "classlist_strings", "cats_strings", "string_vocabulary", "keys_tensor")
_TAKE_ANY = {"LabelEncoder", "CategoryMapper", "Equal"}
"""Lists the operators that are defined for a string outside their vocabulary."""
_MOST = 1 << 14
"""Limits the entries of a vocabulary that are read. A choice."""
_WORDS = 6
"""Limits the entries in one text. A choice."""
_STRANGE = "onnx"
"""Holds a word outside the vocabulary, used where the graph accepts unknown words."""

Gram = tuple[str, ...]


@dataclass(frozen=True)
class Texts:
    """Holds words or n-grams as `grams`. With a `joint`, an element is several entries joined by it. Without a `joint`,
    each word is an element."""

    grams: tuple[Gram, ...] = (("a",), ("onnx",), ("Straße",), ("42",), ("",))
    joint: str | None = None
    strange: bool = False
    """Whether one word of several should be outside the vocabulary."""

    def drawn(self, rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Draws an array of strings."""
        made = np.empty(int(np.prod(shape)), dtype=object)
        if self.joint is not None:
            made[:] = [self.joint.join(self._words(rng, int(rng.integers(1, _WORDS + 1)))) for _ in made]
            return made.reshape(shape)
        width = shape[-1] if shape else 1
        for start in range(0, made.size, max(width, 1)):
            words = itertools.islice(self._stream(rng), width)
            made[start : start + width] = list(words)
        if self.strange and made.size > 1:
            made[int(rng.integers(made.size))] = _STRANGE
        return made.reshape(shape)

    def _words(self, rng: np.random.Generator, count: int) -> list[str]:
        return [word for _ in range(count) for word in self.grams[int(rng.integers(len(self.grams)))]]

    def _stream(self, rng: np.random.Generator) -> Iterator[str]:
        while True:
            yield from self._words(rng, 1) or [""]


def texts(value: ir.Value, inside: Owners | None = None) -> Texts:
    """Returns strings that a label encoder or vectoriser knows. If the graph parses strings as numbers, returns numbers
    as text; else a few ordinary words."""
    grams: dict[Gram, None] = {}
    joint, swaps, strange = None, False, False
    for reader in readers(value, inside, through=_onward):
        joint = _joint(reader.node) if joint is None else joint
        swaps |= _changes_case(reader.node)
        strange |= reader.node.op_type in _TAKE_ANY
        grams |= dict.fromkeys(_known(reader))
    if not grams:
        return Texts(joint=joint)
    found = list(itertools.islice(grams, _MOST))
    found += [tuple(word.swapcase() for word in gram) for gram in found] if swaps else []
    return Texts((*found, (_STRANGE,)) if joint is not None else tuple(found), joint, strange)


def _changes_case(node: ir.Node) -> bool:
    return node.op_type == "StringNormalizer" and node.attributes.get_string("case_change_action", "NONE") != "NONE"


def _onward(node: ir.Node, index: int) -> list[ir.Value]:
    """Returns the outputs that pass strings on, whole or split."""
    return [node.outputs[0]] if node.op_type in ("StringNormalizer", "Tokenizer", "StringSplit") and index == 0 else []


def _joint(node: ir.Node) -> str | None:
    """Returns the separator at which the node splits texts; None if the node does not split texts."""
    if node.op_type == "StringSplit":
        return node.attributes.get_string("delimiter", "") or " "
    if node.op_type != "Tokenizer":
        return None
    separators = node.attributes.get_strings("separators", [])
    return separators[0] if separators else " "


def _known(reader: Reader) -> list[Gram]:
    """Returns the entries of the node's vocabulary."""
    node = reader.node
    held = node.attributes
    if node.op_type == "TfIdfVectorizer" and "pool_strings" in held:
        return _grams(held["pool_strings"].as_strings(), held.get_ints("ngram_counts", [0]))
    for name in _VOCABULARIES:
        found = held.get(name)
        if found is None or found.is_ref():
            continue
        if found.type == ir.AttributeType.STRINGS:
            return [(text,) for text in found.as_strings()]
        if found.type == ir.AttributeType.TENSOR:
            return _of_tensor(found.as_tensor())
    if node.op_type == "StringNormalizer":
        return [(text,) for text in held.get_strings("stopwords", [])]
    if node.op_type == "Equal":
        value = node.inputs[1 - reader.index]
        other = const_tensor(value) if value is not None else None
        return _of_tensor(other) if other is not None else []
    if node.op_type == "Cast" and (to := held.get_int("to", 0)) != ir.DataType.STRING.value:
        numbers = ("1.5", "-2.25", "3") if ir.DataType(to).is_floating_point() else ("1", "2", "3")
        return [(number,) for number in numbers]
    return []


def _of_tensor(tensor: ir.TensorProtocol) -> list[Gram]:
    if tensor.dtype != ir.DataType.STRING or tensor.size > _MOST:
        return []
    found = (item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item) for item in tensor.numpy().flat)
    return [(text,) for text in found]


def _grams(pool: Sequence[str], starts: Sequence[int]) -> list[Gram]:
    """Returns the entries of a pool: `starts[n]` is where the entries of n + 1 words begin."""
    found: list[Gram] = []
    for length, (start, end) in enumerate(itertools.pairwise([*starts, len(pool)]), start=1):
        found += [tuple(pool[at : at + length]) for at in range(start, end - length + 1, length)]
    return found


_MAP_VOCABULARIES = ("string_vocabulary", "int64_vocabulary")
_SOME = 0.75
"""Sets the share of the known keys that a map has. A choice."""
_FEW = 4
"""Counts the keys of a map if the graph knows no keys. A choice."""

Keys = tuple[str, ...] | tuple[int, ...]


def map_keys(value: ir.Value, inside: Owners | None = None) -> Keys:
    """Returns the keys that the map's readers look up. If a reader makes an array of the map, returns the numbers up to
    the array's length."""
    for reader in readers(value, inside):
        for name in _MAP_VOCABULARIES:
            attribute = reader.node.attributes.get(name)
            if attribute is not None and not attribute.is_ref():
                return tuple(attribute.value)
        if reader.node.op_type == "CastMap":
            return tuple(range(max(reader.node.attributes.get_int("max_map", 1), _FEW)))
    return ()


def drawn_map(port: Port, known: Keys, rng: np.random.Generator) -> list[Any]:
    """Draws a map as two arrays: some of the keys in order, and their values."""
    pool = sorted(known) or (["a", "b", "onnx"] if port.keys == "string" else list(range(_FEW)))
    kept = rng.random(len(pool)) < _SOME
    kept[int(rng.integers(len(pool)))] = True
    chosen = [key for key, is_kept in zip(pool, kept, strict=True) if is_kept]
    return [np.array(chosen, object if port.keys == "string" else np.int64), _values(port, len(chosen), rng)]


def _values(port: Port, count: int, rng: np.random.Generator) -> Any:
    if port.dtype == "string":
        return Texts((("1.5",), ("-2.25",), ("3",))).drawn(rng, (count,))
    kind = ir.DataType[port.dtype.upper()]
    if kind.is_integer():
        return rng.integers(0, 2 * _FEW, count).astype(kind.numpy())
    return rng.standard_normal(count).astype(kind.numpy())

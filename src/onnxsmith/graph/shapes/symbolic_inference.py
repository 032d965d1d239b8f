"""Infers shapes with symbols: every shape that follows from the graph inputs.

The engine is onnx-shape-inference, an alpha release. It is therefore pinned and covered by a contract test, and a
failure of the engine is a note, never a failure of the caller."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache

import onnx_ir as ir

from onnxsmith.base.garbage_collection import no_collection
from onnxsmith.base.seams import shape_engine
from onnxsmith.base.words import first_few
from onnxsmith.graph.shapes import declared_names, dims, expressions, polynomials, sound_shapes, standard_inference
from onnxsmith.graph.shapes.polynomials import Poly, UnreadableError
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import is_symbol
from onnxsmith.graph.structure.walk import node_label, op_name

_SHOWN = 3
"""Limits the nodes that a note names. A choice: one line."""
_LONGEST = 200
"""Limits the characters of a reason. A choice: some errors repeat a whole node."""


def inferred(model: ir.Model) -> tuple[ir.Model, str | None]:
    """Returns a copy of `model` (weights shared) with inferred shapes, and a note if inference failed, else None.

    Declared dimensions without a meaning (`?`, -1) are unknown in the copy. `model` is not changed.
    """
    copy = cloned(model)
    return copy, infer_in_place(copy)


def inferred_doubting(model: ir.Model) -> ir.Model:
    """Returns a copy of `model` with inferred shapes, like `inferred`, without two kinds of declarations that files
    often have wrong: expressions inside the graph, whose parentheses may be lost, and the shapes of outputs. `model` is
    not changed."""
    copy = cloned(model)
    for value in (value for node in walk.all_nodes(copy) for value in node.outputs if value.shape is not None):
        known = [None if isinstance(dim, ir.SymbolicDim) and not _is_name(dim) else dim for dim in value.shape or ()]
        value.shape = None if value.is_graph_output() else ir.Shape(known)
    infer_in_place(copy)
    return copy


def _is_name(dim: ir.SymbolicDim) -> bool:
    return dim.value is not None and is_symbol(dim.value)


def inferred_outputs(model: ir.Model) -> dict[str, ir.Shape]:
    """Infers the shapes of the graph outputs from the inputs alone, without the shapes that the model declares for
    results. Leaves out outputs whose rank is unknown. `model` is not changed."""
    outputs = inferred_alone(model).graph.outputs
    return {value.name or "": value.shape for value in outputs if value.shape is not None}


def inferred_alone(model: ir.Model) -> ir.Model:
    """Returns a copy of `model` with the shapes and dtypes that follow from the inputs alone, without those that the
    model declares for the results of nodes. `model` is not changed."""
    copy = cloned(model)
    for value in (value for node in walk.all_nodes(copy) for value in node.outputs):
        value.shape = None
        if isinstance(value.type, ir.TensorType):
            value.type = None
    infer_in_place(copy)
    return copy


def infer_in_place(model: ir.Model, *, elements: bool = False) -> str | None:
    """Infers shapes like `inferred`, but in the model itself, which nobody else may use; returns a note if inference
    failed. With `elements`, the values of sequences get the shapes of their elements."""
    _forget_nameless(model)
    return infer(model, elements=elements)


def infer(model: ir.Model, *, elements: bool = False) -> str | None:
    """Infers shapes in `model` itself, and returns a note if inference failed, else None. Use it after a change to a
    copy made by `inferred`: known shapes stay, and new symbols get unused names. If the engine fails on a node, onnx's
    inference is tried. If that fails, too, the results are unknown, and so is everything that depends on them."""
    failures = _Failures(model)
    defaults = {v: v.const_value for graph in walk.graphs(model) for v in graph.inputs if v.const_value is not None}
    try:
        for value in defaults:
            value.const_value = None  # a default: the caller may replace it, so no shape may depend on it
        context = sound_shapes.context(model, elements=elements)
        context.failed, context.untyped = failures.add, failures.complete
        with no_collection(), without_odd_names(model), shape_engine.walking():
            context.reserve_symbol_names(dims.used_names(model))
            shape_engine.walk(
                context, model.graph, model_functions=model.functions, inference_cache={}, op_function_cache={}
            )
            declared_names.adopt(context, model)
    except Exception as error:  # noqa: BLE001 — an alpha engine may raise anything; what it found so far stays
        return f"only some shapes are known: {type(error).__name__}: {error}"
    finally:
        for value, tensor in defaults.items():
            value.const_value = tensor
    return failures.note()


class _Failures:
    """The nodes whose inference failed, with the reasons."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._reasons: dict[str, str] = {}

    def add(self, node: ir.Node, error: Exception) -> None:
        """Tries onnx's own inference on a node, and notes the node if that finds no shape either."""
        try:
            self._by_standard(node)
        except standard_inference.RefusedError as refused:
            error = refused
        if any(value.name and value.shape is None for value in node.outputs):
            named = f"{op_name(node)} {node_label(node)}".strip()
            source = error.__cause__ or error
            reason = str(getattr(source, "message", "") or source)
            self._reasons.setdefault(named, " ".join(reason.split())[:_LONGEST])

    def complete(self, node: ir.Node) -> None:
        """Tries onnx's own inference on a node for which the engine has no rule, such as an operator's form in an old
        opset."""
        with suppress(standard_inference.RefusedError):
            self._by_standard(node)

    def _by_standard(self, node: ir.Node) -> None:
        version = self._model.opset_imports.get(node.domain)
        if version is not None and not walk.has_subgraphs(node):
            for value, found in standard_inference.infer(node, version).items():
                standard_inference.adopt(value, found)

    def note(self) -> str | None:
        """Returns one line with the failed nodes and the reasons; None if there are none."""
        if not self._reasons:
            return None
        shown = first_few([f"{named} ({reason})" for named, reason in self._reasons.items()], _SHOWN)
        return f"shapes that depend on {shown} are unknown, because their inference failed"


def _forget_nameless(model: ir.Model) -> None:
    inputs = (value for graph in walk.graphs(model) for value in graph.inputs)
    outputs = (value for node in walk.all_nodes(model) for value in node.outputs)
    for value in itertools.chain(inputs, outputs):
        shape = value.shape
        if shape is None or all(sound_shapes.is_sound(dim) for dim in shape):
            continue
        value.shape = ir.Shape([dim if sound_shapes.is_sound(dim) else None for dim in shape])


# Renames dimensions with odd names, such as `batch size` or `50%`, while shapes are inferred.
# ONNX allows any text as the name of a dimension. Shape inference parses the text as an expression, and fails if it
# is not an expression.

_PLAIN = re.compile(r"[^\W\d][\w.]*")


@contextmanager
def without_odd_names(model: ir.Model) -> Iterator[None]:
    """Replaces each text that is not an expression by a name made of its letters and digits. Restores the texts after
    the block; in new expressions, such as `2*batch_size`, the name stays."""
    values = [value for value in walk.values_of(walk.graphs(model)) if value.shape is not None]
    texts = dict.fromkeys(dims.texts(model))
    odd = [text for text in texts if not is_expression(text)]
    if not odd:
        yield
        return
    names: dict[str, str] = {}
    for text in odd:
        name = wish = re.sub(r"\W+", "_", text).strip("_") or "dim"
        name = wish = wish if wish[0].isalpha() else f"dim_{wish}"
        number = 1
        while name in texts or name in names.values():
            number += 1
            name = f"{wish}_{number}"
        names[text] = name
    _rename(values, names)
    try:
        yield
    finally:
        _rename(list(walk.values_of(walk.graphs(model))), {name: text for text, name in names.items()})


@lru_cache(maxsize=4096)
def is_expression(text: str) -> bool:
    """Whether shape inference can read the text: a name, or an expression over names."""
    if _PLAIN.fullmatch(text) or _is_simple(text):
        return True
    try:
        ir.SymbolicDim(text).free_symbols()
    except (ValueError, TypeError, AttributeError, RecursionError):
        return False
    return True


_NOT_SIMPLE = re.compile(r"ceiling|\d\.|\*\*|%|(?<!/)/(?!/)")
"""Matches ceilings, numbers with a point, powers, remainders and fractions."""


def _is_simple(text: str) -> bool:
    """Whether the text is an expression of names, whole numbers, sums, products, maxima, minima, and quotients that
    are rounded down. Most expressions of files are. onnx-ir imports sympy to read an expression, and this takes longer
    than most inferences."""
    if not text.isascii() or _NOT_SIMPLE.search(text):
        return False
    try:
        expressions.read(text, {"//": _quotient, **dict.fromkeys(("Max", "Min", "max", "min"), _unknown)})
    except (UnreadableError, RecursionError):
        return False
    return True


def _quotient(terms: Sequence[Poly]) -> Poly:
    divisor = terms[1]
    if not polynomials.as_constant(divisor) and (not polynomials.is_name(divisor) or divisor == _UNKNOWN):
        raise UnreadableError  # a divisor that may always be zero
    return _UNKNOWN


_UNKNOWN = polynomials.name("unknown")


def _unknown(_: Sequence[Poly]) -> Poly:
    return _UNKNOWN


def _rename(values: list[ir.Value], names: dict[str, str]) -> None:
    for value in values:
        shape = value.shape
        if shape is None or not any(isinstance(dim, ir.SymbolicDim) and dim.value in names for dim in shape):
            continue
        value.shape = ir.Shape(
            [names.get(dim.value or "", dim) if isinstance(dim, ir.SymbolicDim) else dim for dim in shape]
        )

"""Infers shapes and known integers of a model that is being rewritten: first of the whole model, then of changed parts.

Shapes follow from the graph inputs. The declared shapes of intermediate values are not used, because no runtime checks
them; except those of results of unknown operators (other domains). A declared shape that contradicts the inferred shape
is noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import onnx_ir as ir

from onnxsmith.base.seams import shape_engine
from onnxsmith.graph.shapes import declared_dims, known_integers, sound_shapes, symbols
from onnxsmith.graph.shapes.dims import written
from onnxsmith.graph.shapes.inference_reuse import Alike
from onnxsmith.graph.shapes.single_node import canonical, rule_for
from onnxsmith.graph.shapes.sound_flow import LoopStates
from onnxsmith.graph.shapes.symbols import Element
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.value_replacement import DECLARED

_MOST_NOTES = 10
"""Limits the notes in a report. A choice: nobody reads more."""
_MOST_TURNS = 4
"""Limits the attempts to find stable shapes for a loop's state, each with fewer known dimensions. A choice. After the
last, all dimensions are unknown."""


@dataclass
class Part:
    """Some nodes of a model as a graph that the engine can walk over."""

    nodes: Iterable[ir.Node]
    initializers: Mapping[str, ir.Value] = field(default_factory=lambda: MappingProxyType({}))
    inputs: tuple[ir.Value, ...] = ()

    def __iter__(self) -> Iterator[ir.Node]:
        return iter(self.nodes)


@dataclass(frozen=True)
class _Known:
    """The known facts about a value."""

    shape: ir.Shape | None
    type: ir.TypeProtocol | None
    integers: tuple[Element | None, ...] | None


class Inference:
    """The inferred shapes of one model, with its branches and loop bodies. Shapes inside functions are unknown, because
    they differ between calls."""

    def __init__(self, model: ir.Model, before: Inference | None = None) -> None:
        """Infers the model. `before` is an earlier inference of the same model before rewrites, whose results for nodes
        and least sizes of the inputs still hold."""
        self.notes: list[str] = []
        self.alike: Alike = before.alike if before is not None else Alike()
        self._model = model
        self._context = sound_shapes.context(model)
        self._context.corrects_dtypes = True
        self._caches: dict[str, Any] = {"inference_cache": {}, "op_function_cache": {}}
        self._defaults = [value for value in model.graph.inputs if value.is_initializer()]
        self._covered = set(walk.main_graphs(model))
        self._states = LoopStates(self._context)
        self._least: dict[str, int] = before._lasting() if before is not None else {}
        self._assumed = symbols.assumption(self._least)
        declared = {value: value.meta.get(DECLARED) for node in walk.nodes(model.graph) for value in node.outputs}
        for graph in walk.main_graphs(model):
            self._forget(graph)
        self._context.reserve_symbol_names(declared_dims.separate(model))
        with self._inferring():
            self._enter(model.graph)
            for node in model.graph:
                self._infer(node)
        while self._note_least():
            self.refresh(model.graph)
        self._contradictions(declared)

    def refresh(self, stale: Iterable[ir.Node]) -> bool:
        """Infers `stale` nodes again, and their readers if a result has new facts, in one walk down the graph.

        Known facts stay: a dimension may become a number or an expression, but never unknown. Returns whether there are
        new facts.
        """
        waiting = set(stale)
        found = False
        if not waiting:
            return found
        with self._inferring():
            for node in walk.nodes(self._model.graph):
                if node in waiting and self._may_learn(node) and self._again(node):
                    found = True
                    for value in node.outputs:
                        waiting.update(value.consumers())
        return found

    def _may_learn(self, node: ir.Node) -> bool:
        """Whether a result of the node has an unknown part, or a dimension whose name inference made up."""
        for value in node.outputs:
            if value.shape is None or value.dtype is None:
                return True
            if any(not isinstance(dim, int) and self._is_vague(dim) for dim in value.shape):
                return True
            if len(value.shape) <= 1 and value.dtype.is_integer() and None in (known_integers.noted(value) or (None,)):
                return True
        return walk.has_subgraphs(node)

    def _is_vague(self, dim: ir.SymbolicDim) -> bool:
        return dim.value is None or self._context.is_generated_symbol(dim.value)

    def add(self, nodes: Iterable[ir.Node]) -> None:
        """Infers new nodes, in order; nodes of functions stay unknown."""
        with self._inferring():
            for node in nodes:
                if node.graph in self._covered:
                    self._infer(node)

    def adding(self) -> AbstractContextManager[None]:
        """Prepares the engine once for all calls of `add` inside the block."""
        return shape_engine.walking()

    def replace(self, old: ir.Value, new: ir.Value) -> bool:
        """Merges the facts about `old` into those about its replacement `new`. Returns whether the readers of `new`
        should be inferred again."""
        before = _known(old)
        return self._merge(new, before, _known(new)) != before

    def assumed(self) -> AbstractContextManager[None]:
        """Makes `symbols` assume, inside the block, the least sizes at which the model runs without an error."""
        return symbols.assuming(self._assumed)

    @contextmanager
    def _inferring(self) -> Iterator[None]:
        """Prepares for inference inside the block: silences the engine, assumes the least sizes, and hides the defaults
        of inputs, which the caller may replace."""
        defaults = [(value, value.const_value) for value in self._defaults]
        for value, _ in defaults:
            value.const_value = None
        try:
            with shape_engine.walking(), self.assumed():
                yield
        finally:
            for value, tensor in defaults:
                value.const_value = tensor

    def _infer(self, node: ir.Node) -> None:
        if not walk.has_subgraphs(node) and self._plain(node):
            return
        bodies = list(_loop_bodies(node))
        for body in bodies:
            self._states.enter(node, body)
        self._process([node])
        for body in bodies:
            for _ in range(_MOST_TURNS):
                if not self._states.loosen(body):
                    break
                self._clear((node, *walk.nodes(body)))
                self._process([node])
            else:
                self._give_up(node, body)

    def _plain(self, node: ir.Node) -> bool:
        """Infers a node without branches with the engine's rule; returns whether there is a rule. Does the same as the
        engine's walk over a graph, without its overhead."""
        return self.alike.infer(self._context, node, self._failed)

    def _note_least(self) -> bool:
        """Notes the least sizes at which the model runs without an error. Returns whether a least size is new."""
        found = dict(self._least)
        for node in self._model.graph:
            for dim in () if node.domain else not_empty(node):
                for name, least in symbols.needed(dim).items():
                    found[name] = max(least, found.get(name, 0))
        new, self._least = found != self._least, found
        if new:
            self._assumed = symbols.assumption(found)
        return new

    def _lasting(self) -> dict[str, int]:
        """Returns the least sizes by names of the file. Names that inference makes up stand for other dimensions in the
        next inference."""
        return {name: least for name, least in self._least.items() if not self._context.is_generated_symbol(name)}

    def _process(self, nodes: Sequence[ir.Node], graph: ir.Graph | None = None) -> None:
        part: Any = Part(nodes) if graph is None else Part(nodes, graph.initializers, tuple(graph.inputs))
        try:
            shape_engine.walk(self._context, part, model_functions=self._model.functions, **self._caches)
        except Exception as error:  # noqa: BLE001 — as above
            self._failed(error)
        for node in nodes:
            for value in node.outputs:
                value.shape = canonical(value.shape)

    def _failed(self, error: Exception) -> None:
        self._note(f"shapes: {type(error).__name__}: {error}")

    def _enter(self, graph: ir.Graph) -> None:
        """Notes the types of initializers, and names the nameless dimensions of inputs."""
        for value in graph.initializers.values():
            if value.type is None and value.const_value is not None:
                value.type = ir.TensorType(value.const_value.dtype)
        self._process((), graph)

    def _forget(self, graph: ir.Graph) -> None:
        for value in graph.inputs:
            value.shape = declared_dims.sound(value.shape)
        for node in graph:
            known = self._is_known(node)
            for value in node.outputs:
                declared = value.shape
                self._clear_value(value)
                value.shape = None if known else declared_dims.sound(declared)
            for body in walk.subgraphs(node) if walk.has_subgraphs(node) else ():
                # the first two inputs of a Loop's body, counter and condition, are scalars by definition
                for value in list(body.inputs)[2 if node.op_type == "Loop" else 0 :]:
                    value.shape = None

    def _is_known(self, node: ir.Node) -> bool:
        if node.op_identifier() in self._model.functions:
            return True
        return not node.domain or rule_for(self._context, node) is not None

    def _give_up(self, node: ir.Node, body: ir.Graph) -> None:
        for value in body.inputs:
            value.shape = None
        self._clear((node, *walk.nodes(body)))
        self._process([node])

    def _clear(self, nodes: Iterable[ir.Node]) -> None:
        for node in nodes:
            for value in node.outputs:
                self._clear_value(value)

    def _clear_value(self, value: ir.Value) -> None:
        value.shape = None
        self._context.forget(value)

    def _again(self, node: ir.Node) -> bool:
        before = [_known(value) for value in node.outputs]
        self._clear([node])
        self._infer(node)
        pairs = zip(node.outputs, before, strict=True)
        found = [self._merge(value, old, _known(value)) != old for value, old in pairs]
        return any(found)

    def _merge(self, value: ir.Value, old: _Known, new: _Known) -> _Known:
        """Keeps the better fact for each dimension. Of two equally good facts keeps the older, so that `refresh`
        ends."""
        shape = old.shape if old.shape is not None else new.shape
        if old.shape is not None and new.shape is not None and len(old.shape) == len(new.shape):
            dims = [self._better(a, b) for a, b in zip(old.shape, new.shape, strict=True)]
            shape = old.shape if dims == list(old.shape) else ir.Shape(dims)
        value.shape = shape
        value.type = old.type if old.type is not None else new.type
        integers = _merged_integers(old.integers, new.integers)
        if integers is not None and (integers != new.integers or shape != new.shape):
            known_integers.note(self._context, value, list(integers))
        return _Known(value.shape, value.type, integers)

    def _better(self, old: int | ir.SymbolicDim, new: int | ir.SymbolicDim) -> int | ir.SymbolicDim:
        # a number is the best fact about a dimension, then a name or expression of the file
        if isinstance(old, int) or isinstance(new, int):
            return old if isinstance(old, int) else new
        return new if self._is_vague(old) and not self._is_vague(new) else old

    def _contradictions(self, declared: Mapping[ir.Value, ir.Shape | None]) -> None:
        for value, said in declared.items():
            if said is not None and value.shape is not None and not declared_dims.agree(said, value.shape):
                self._note(f"the file declares {value.name} as {said}, but its operator computes {value.shape}")

    def _note(self, text: str) -> None:
        if len(self.notes) < _MOST_NOTES and text not in self.notes:
            self.notes.append(text)


def _known(value: ir.Value) -> _Known:
    found = known_integers.noted(value)
    return _Known(value.shape, value.type, None if found is None else tuple(found))


def _merged_integers(
    old: tuple[Element | None, ...] | None, new: tuple[Element | None, ...] | None
) -> tuple[Element | None, ...] | None:
    """Keeps a number for each element if there is one, otherwise the older fact."""
    if old is None or new is None or len(old) != len(new):
        return old if old is not None else new
    return tuple(b if a is None or isinstance(b, int) else a for a, b in zip(old, new, strict=True))


def _loop_bodies(node: ir.Node) -> Iterator[ir.Graph]:
    return walk.subgraphs(node) if node.op_type == "Loop" and not node.domain else iter(())


# Finds dimensions that must be above 0, because the model fails otherwise.


def not_empty(node: ir.Node) -> Iterator[Element]:
    """Yields dimensions that are above 0 whenever the node does not fail.

    A Conv's window must fit, so its spatial results are not empty. A Reshape cannot compute its -1 beside an empty
    dimension: with `allowzero` the specification forbids this, though onnxruntime makes the dimension 1.
    """
    if node.op_type not in ("Conv", "Reshape"):
        return
    value = node.outputs[0] if node.outputs else None
    if value is None or value.shape is None:
        return
    dims = written(value.shape)
    if node.op_type == "Conv":
        yield from (dim for dim in dims[2:] if isinstance(dim, str))
    target = known_integers.elements(node.inputs[1]) if node.op_type == "Reshape" and len(node.inputs) > 1 else None
    if target is not None and -1 in target and len(target) == len(dims):
        pairs = zip(dims, target, strict=True)
        yield from (dim for dim, element in pairs if isinstance(dim, str) and element != -1)

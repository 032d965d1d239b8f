"""Holds the state of a model during an edit: the original names of its values, and the values that edits change on
purpose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeVar

import onnx_ir as ir

from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.seams.metadata import metadata_props
from onnxsmith.base.settings import Verify
from onnxsmith.editor.near_shapes import Declared, inferred_near, is_known
from onnxsmith.editor.node_selectors import Selecting
from onnxsmith.editor.size_dependence import sized_by
from onnxsmith.graph.shapes.dims import MADE, names_of
from onnxsmith.graph.shapes.symbolic_inference import infer
from onnxsmith.graph.shapes.symbols import canonical
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.graph.surgery.names import fix_symbols, fixed_shape
from onnxsmith.verification.inputs.generate import Feed

_T = TypeVar("_T")
_CALL = "Broadcast("


def _plain(dim: int | ir.SymbolicDim) -> int | ir.SymbolicDim:
    """Returns a dimension without a call that only the shape engine knows, if it has a value without one."""
    text = dim.value if isinstance(dim, ir.SymbolicDim) else None
    if text is None or _CALL not in text:
        return dim
    found = canonical(text)
    return found if isinstance(found, int) else ir.SymbolicDim(None if _CALL in found else found)


def _made_of(dim: int | ir.SymbolicDim) -> set[str]:
    """Returns the names of the shape engine in a dimension."""
    text = dim.value if isinstance(dim, ir.SymbolicDim) else None
    return set(MADE.findall(text or ""))


@dataclass(frozen=True)
class _Declared:
    """Holds the file's declaration of a value, because inference overwrites the declaration."""

    type: ir.TypeProtocol | None
    shape: ir.Shape | None
    metadata: dict[str, str]

    @classmethod
    def of(cls, value: ir.Value) -> _Declared:
        shape = value.shape.copy() if value.shape is not None else None
        return cls(value.type, shape, dict(metadata_props(value)))

    def fixed(self, sizes: Mapping[str, int]) -> _Declared:
        """Returns the declaration with sizes in place of symbols."""
        return self if self.shape is None else replace(self, shape=fixed_shape(self.shape, sizes))


class Also(Protocol):
    """Makes a further comparison: adds its findings about the pair (the original, the edited model) to the part.
    `given` are the user's inputs."""

    def __call__(
        self,
        part: Verification,
        pair: tuple[Path | ir.Model, Path | ir.Model],
        settings: Verify,
        given: Sequence[Feed] = (),
    ) -> Verification: ...


@dataclass
class Work:
    """Holds the state of an edit.

    `changed` maps values whose numbers an edit changes on purpose to the step that does so. Values that depend on
    changed values are not compared. `original` maps the values of the main graph to their names in the original model.
    `outputs` and `inputs` map the names of graph outputs and inputs to their names in the original, None for new
    outputs and inputs. `adapt_reference` and `adapt_candidate` change copies of the two models before they are
    compared, where their interfaces differ. `also` are further comparisons, for models that were found equal.
    `rewritten` names the nodes that changed with the opset. `processing` names the processing that the steps put in.
    """

    model: ir.Model
    changed: dict[ir.Value, str] = field(default_factory=dict)
    original: dict[ir.Value, str] = field(default_factory=dict)
    inputs: dict[str, str | None] = field(default_factory=dict)
    outputs: dict[str, str | None] = field(default_factory=dict)
    adapt_reference: list[Callable[[ir.Model], ir.Model]] = field(default_factory=list)
    adapt_candidate: list[Callable[[ir.Model], ir.Model]] = field(default_factory=list)
    also: list[Also] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)
    processing: set[str] = field(default_factory=set)
    step: str = ""
    _declared: dict[ir.Value, _Declared] = field(default_factory=dict)
    _known: dict[ir.Value, tuple[ir.TypeProtocol | None, ir.Shape | None]] = field(default_factory=dict)
    _inferred: bool = False
    _ports: dict[str, ir.Shape] = field(default_factory=dict)
    _sizes_stand: bool = True
    _reshaped: set[ir.Value] = field(default_factory=set)
    _resized: set[ir.Value] = field(default_factory=set)
    _restored: dict[ir.Value, ir.Shape | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph = self.model.graph
        values = (*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs))
        self.original = {value: value.name for value in values if value.name}
        self.inputs = {value.name or "": value.name or "" for value in graph.inputs}
        self.outputs = {value.name or "": value.name or "" for value in graph.outputs}
        self._ports = {value.name or "": value.shape.copy() for value in graph.outputs if value.shape is not None}

    @property
    def find(self) -> Selecting:
        """Finds nodes and tensors by selectors."""
        return Selecting(self.model)

    @property
    def is_adapted(self) -> bool:
        """Whether the comparison needs changed copies of the models, or further comparisons."""
        return bool(self.adapt_reference or self.adapt_candidate or self.also)

    @property
    def names(self) -> Names:
        """Makes new names that no value has."""
        return Names(self.model)

    def opsets(self, node: ir.Node) -> Mapping[str, int]:
        """Returns the opsets in force at a node: the opsets of the function that contains the node, or of the model."""
        if self.model.functions and node.graph is not None:
            path = walk.around(self.model, graph_of(node))
            for function in self.model.functions.values():
                if path and path[0] is function.graph:
                    return function.opset_imports
        return self.model.opset_imports

    def change(self, *values: ir.Value) -> None:
        """Notes that the current step changes the numbers of these values on purpose."""
        self.changed.update(dict.fromkeys(values, self.step))
        self._inferred = False

    def reshape(self, *values: ir.Value) -> None:
        """Notes that the declared shapes of these values, and of values that depend on them, may be wrong now."""
        self._reshaped.update(values)
        self._inferred = False

    def forget_shape(self, output: str) -> None:
        """Notes that the original's shape of this output is no longer valid, because its axes have another order."""
        self._ports.pop(output, None)

    def resize_by(self, *values: ir.Value) -> None:
        """Notes that the numbers of these values may have changed, and with them the shapes computed from these
        numbers."""
        sized = sized_by(self.model, values)
        self._resized.update(sized)
        self.reshape(*sized)

    def restore_shape(self, output: ir.Value, shape: ir.Shape | None) -> None:
        """Notes that this output has the shape again that it had before an earlier edit."""
        self._restored[output] = shape

    def fix_symbols(self, sizes: Mapping[str, int]) -> None:
        """Replaces names that no graph input has any more by their sizes, in every declared shape."""
        dims = [dim for value in self.model.graph.inputs for dim in value.shape or ()]
        free = {name: size for name, size in sizes.items() if not any(_is_called(dim, name) for dim in dims)}
        if not free:
            return
        fix_symbols(self.model, free)
        self._declared = {value: one.fixed(free) for value, one in self._declared.items()}
        self._known = {
            value: (type_, shape if shape is None else fixed_shape(shape, free))
            for value, (type_, shape) in self._known.items()
        }
        self._ports = {name: fixed_shape(shape, free) for name, shape in self._ports.items()}

    def resize(self) -> None:
        """Notes that the output sizes declared in the original may be wrong now."""
        self._sizes_stand = False

    def infer(self) -> None:
        """Infers the types and shapes of all values, so that new nodes can be checked. `finish` removes the inferred
        types and shapes."""
        if self._inferred:
            return
        self._forget_stale()
        for graph in walk.graphs_and_functions(self.model):
            for value in (*graph.inputs, *(value for node in graph for value in node.outputs)):
                self._declared.setdefault(value, _Declared.of(value))
        infer(self.model)
        self._inferred = True

    def allow_constants(self) -> None:
        """Raises the IR version if the old one requires constants to be graph inputs."""
        if not walk.has_own_initializers(self.model):
            was, self.model.ir_version = self.model.ir_version, walk.FIRST_WITH_CONSTANTS
            self.notes.append(
                f"IR version {was} → {self.model.ir_version}: before version 4, every constant also has to be a "
                "graph input"
            )

    def move_originals(self, name: str, now: str) -> None:
        """Notes that the tensor `name` has the name `now` in the adapted original."""
        self.original.update({value: now for value, old in self.original.items() if old == name})

    def declare(self, value: ir.Value) -> None:
        """Declares the current type and shape of a value in the file."""
        metadata = self._declared[value].metadata if value in self._declared else {}
        self._declared[value] = replace(_Declared.of(value), metadata=metadata)

    def metadata(self, value: ir.Value) -> dict[str, str]:
        """Returns the metadata that the file has for a value, without what inference notes there."""
        return dict(self._declared[value].metadata if value in self._declared else metadata_props(value))

    def set_metadata(self, value: ir.Value, texts: Mapping[str, str]) -> None:
        """Gives a value this metadata, and declares its type: a file has both in one place."""
        self.infer()
        self._declared[value] = replace(_Declared.of(value), metadata=dict(texts))

    def know(self, values: Iterable[ir.Value]) -> None:
        """Infers the types and shapes of these values, so that new nodes that read them can be checked."""
        if self._inferred:
            return
        lacking = [one for one in dict.fromkeys(values) if not is_known(one.type, one.shape)]
        nodes = [node for one in lacking if (node := one.producer()) is not None]
        found = None if self.changed or self._reshaped else inferred_near(self.model, nodes, self._declaration)
        if found is None or len(nodes) < len(lacking):
            self.infer()
            return
        for value, (type_, shape) in found.items():
            self._declared.setdefault(value, _Declared.of(value))
            value.type, value.shape = type_, shape

    def _declaration(self, value: ir.Value) -> Declared:
        """Returns the type and shape that the file declares for a value."""
        declared = self._declared.get(value)
        return (value.type, value.shape) if declared is None else (declared.type, declared.shape)

    def _stands(self) -> bool:
        """Whether every declared shape holds after the steps: the results of new and changed nodes have the declared
        shapes, and no numbers changed on which other shapes depend. New values get the inferred types and shapes."""
        start = {*self.changed, *self._reshaped}
        if not self._sizes_stand or sized_by(self.model, self.changed):
            return False
        nodes = dict.fromkeys(
            node
            for value in start
            for node in ([value.producer()] if value.producer() is not None else [use.node for use in value.uses()])
            if node is not None
        )
        found: dict[ir.Value, Declared] | None = {}
        while nodes and set(found or ()) < {value for node in nodes for value in node.outputs if value.name}:
            found = inferred_near(self.model, nodes, self._declaration)
            if found is None:
                return False
            for value, (type_, shape) in found.items():
                declared = self._declaration(value)
                if value not in self.original or not is_known(*declared):
                    nodes |= dict.fromkeys(use.node for use in value.uses())
                elif declared != (type_, shape):
                    return False
        for value, (type_, shape) in (found or {}).items():
            if value not in self.original:
                value.type, value.shape = type_, shape
                self._declared.pop(value, None)
        return True

    def finish(self) -> bool:
        """Makes the declared shapes correct again. These are the original's shapes if no step affects the value, else
        the inferred shapes. Returns whether some of the original's shapes may have changed."""
        stands = self._stands()
        stale = set() if stands else self._forget_stale()
        if any(value.type is None or value.shape is None for value in {*stale, *self.model.graph.outputs}):
            self._inferred = False
            self.infer()
        for value, declared in self._declared.items():
            if metadata_props(value) != declared.metadata:
                value.metadata_props.clear()
                value.metadata_props.update(declared.metadata)
            if value not in stale:
                value.type, value.shape = declared.type, declared.shape
        self._complete_outputs()
        self._keep_declared(stale)
        if not stands:
            self._forget_made_names()
        for value, shape in self._restored.items():
            value.shape = shape
        for value in {*stale, *self._declared}:
            if value.type is None:  # a value without a type may not be declared
                value.shape = None
                value.metadata_props.clear()
        return bool(stale)

    def _forget_made_names(self) -> None:
        """Leaves open what only the shape engine has names for, such as `_d0 - 4` or `Broadcast(a, b)`. A reader does
        not know them."""
        given = {name for value in self.model.graph.inputs for name in names_of(value.shape)}
        for value in walk.values(self.model):
            dims = [_plain(dim) for dim in value.shape or ()]
            made = [_made_of(dim) - given for dim in dims]
            if value.shape is not None and (any(made) or dims != list(value.shape)):
                value.shape = ir.Shape([None if name else dim for name, dim in zip(made, dims, strict=True)])

    def _complete_outputs(self) -> None:
        """Restores the type and rank of outputs for which inference finds none, because the specification requires
        both. Also restores the sizes of outputs, unless a step may have changed them."""
        unknown = [
            value
            for value in self.model.graph.outputs
            if value in self._known and (value.type is None or value.shape is None)
        ]
        reshaped = {one for one in self.changed if one in self._known and one.shape != self._known[one][1]}
        sized = self._resized | sized_by(self.model, self.changed, reshaped) if unknown else set()
        for value in unknown:
            type_, shape = self._known[value]
            value.type = value.type if value.type is not None else type_
            if value.shape is None and shape is not None:
                value.shape = ir.Shape([None] * len(shape)) if value in sized else shape

    def _keep_declared(self, stale: set[ir.Value]) -> None:
        """Keeps declared output shapes where inference knows less, and notes which declarations were lost."""
        affected = self.affected()
        names = {
            dim.value for one in self.model.graph.inputs for dim in one.shape or () if isinstance(dim, ir.SymbolicDim)
        }
        inputs = {name for name in names if name}
        befores = {
            value: self._ports.get(self.outputs.get(value.name or "") or "") for value in self.model.graph.outputs
        }
        shared = unequal([(shape, value.shape) for value, shape in befores.items()])
        for value, before in befores.items():
            if value not in stale or before is None or value.shape is None:
                continue
            changed = value in affected or value in self._resized
            if not changed or self.original.get(value) == self.outputs.get(value.name or ""):
                # A name on several axes says that they are equal, which a change may have made wrong.
                taken = inputs | shared if changed else inputs
                value.shape = kept_shape(before, value.shape, inputs, taken, sizes=self._sizes_stand and not changed)
            assert value.shape is not None
            lost = lost_sizes(before, value.shape, inputs)
            if lost:
                self.notes.append(
                    f"the shape of {value.name} is now declared as {value.shape} (before: {before}): {lost}"
                )

    def _forget_stale(self) -> set[ir.Value]:
        """Removes the declared types and shapes of values that may have changed; returns these values."""
        stale = depending(self.model, {*self.changed, *self._reshaped})
        inputs = {value for graph in walk.graphs(self.model) for value in graph.inputs}
        for value in stale:
            if value not in inputs and value.const_value is None and not value.is_initializer():
                if value.type is not None:
                    self._known.setdefault(value, (value.type, self._shape(value)))
                if not _is_odd(value):
                    value.type = None
                value.shape = None
        return stale

    def _shape(self, value: ir.Value) -> ir.Shape | None:
        """Returns a value's shape; the declared one where inference, which went on from other shapes, found none."""
        declared = self._declared.get(value)
        return value.shape if value.shape is not None or declared is None else declared.shape

    def become(self, model: ir.Model, *, inlines: bool = False) -> None:
        """Replaces the model by a converted copy, in which values are recognised by name. Notes which functions were
        inlined, unless the step `inlines` on purpose."""
        self.notes += [] if inlines else opset_conversion.inlined_functions(self.model, model)
        old = {value.name or "": self.original.get(value) for value in self.original}
        changed = {value.name or "": step for value, step in self.changed.items()}
        reshaped, resized = ({value.name for value in held} for held in (self._reshaped, self._resized))
        declared, known = _by_name(self._declared), _by_name(self._known)
        self.model = model
        graph = model.graph
        values = [*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs)]
        self.original = {value: name for value in values if (name := old.get(value.name or ""))}
        self.changed = {value: changed[value.name] for value in values if value.name in changed}
        self._reshaped = {value for value in values if value.name and value.name in reshaped}
        self._resized = {value for value in values if value.name and value.name in resized}
        inner = [value for body in walk.nested(graph) for node in body for value in node.outputs]
        self._known = {value: known[value.name] for value in values if value.name in known}
        self._declared = {value: declared[value.name] for value in (*values, *inner) if value.name in declared}
        for value in (*graph.inputs, *graph.outputs):  # a part of the model may start and end where nothing is declared
            if value in self._declared and self._declared[value].type is None:
                del self._declared[value]
        self._inferred = False

    def affected(self) -> set[ir.Value]:
        """Returns the values that depend on a changed value."""
        return depending(self.model, set(self.changed))


def _is_called(dim: int | ir.SymbolicDim, name: str) -> bool:
    return isinstance(dim, ir.SymbolicDim) and dim.value == name


def _by_name(held: Mapping[ir.Value, _T]) -> dict[str | None, _T]:
    """Returns the entries by the names of their values, without names that several values share."""
    counts = Counter(value.name for value in held)
    return {value.name: one for value, one in held.items() if value.name and counts[value.name] == 1}


def graph_of(node: ir.Node) -> ir.Graph:
    """Returns the graph of a node; for a node in a function, the function's graph."""
    graph: ir.Graph | ir.Function | None = node.graph
    assert graph is not None, "the node was removed"
    return graph.graph if isinstance(graph, ir.Function) else graph


def dims(tensor: ir.TensorProtocol) -> tuple[int, ...]:
    """Returns the shape of a stored tensor."""
    return tuple(int(size) for size in tensor.shape)  # type: ignore[arg-type]  # it is static


def depending(model: ir.Model, start: set[ir.Value]) -> set[ir.Value]:
    """Returns the values of `start` and all that depend on them, through bodies and functions."""
    found = set(start)
    if not found:
        return found
    touched = set()
    for identifier, function in model.functions.items():
        if any(value in found for node in walk.nodes(function) for value in node.outputs):
            touched.add(identifier)
    for identifier, function in model.functions.items():  # functions that call a changed function
        if any(node.op_identifier() in touched for node in walk.nodes(function)):
            touched.add(identifier)
    for node in walk.all_nodes(model) if touched else ():
        if node.op_identifier() in touched:
            found.update(node.outputs)
    _spread(model.graph, found)
    return found


def _is_odd(value: ir.Value) -> bool:
    """Whether the value is a list, an optional or a map: inference cannot find such a type again."""
    return value.type is not None and not isinstance(value.type, ir.TensorType)


def _spread(graph: ir.Graph, found: set[ir.Value]) -> bool:
    """Adds the values that depend on `found`, in node order. Returns whether a node or output of the graph depends on
    it."""
    some = False
    for node in graph:
        reads = any(value in found for value in node.inputs if value is not None)
        for inner in walk.subgraphs(node):
            if reads:
                found.update(inner.inputs)
            reads = _spread(inner, found) or reads
        if reads or any(value in found for value in node.outputs):
            found.update(node.outputs)
            some = True
    return some or any(value in found for value in graph.outputs)


_NAME = re.compile(r"[A-Za-z_]\w*")


def kept_shape(
    declared: ir.Shape | None, inferred: ir.Shape | None, inputs: set[str], taken: set[str], *, sizes: bool
) -> ir.Shape | None:
    """Returns the inferred shape. A dimension for which inference only made up a name is replaced by the declared
    dimension.

    `inputs` are the names of the input dimensions. A number, or an expression of these names, is known and stays as
    inferred. A declared name that is `taken` is not kept: for example, an input dimension has this name, so the name
    would claim that both are equal. With `sizes`, declared numbers are kept too.
    """
    if declared is None or inferred is None or len(declared) != len(inferred):
        return inferred
    dims = [
        old if _is_vague(new, inputs) and _may_stay(old, taken, sizes) else new
        for old, new in zip(declared, inferred, strict=True)
    ]
    return inferred if dims == list(inferred) else ir.Shape(dims)


def _is_vague(dim: int | ir.SymbolicDim, inputs: set[str]) -> bool:
    """Whether the dimension is neither a number nor an expression of input dimensions only."""
    if isinstance(dim, int):
        return False
    return dim.value is None or not set(_NAME.findall(dim.value)) <= inputs


def _may_stay(dim: int | ir.SymbolicDim, taken: set[str], sizes: bool) -> bool:
    return sizes if isinstance(dim, int) else dim.value is not None and dim.value not in taken


def lost_sizes(declared: ir.Shape, now: ir.Shape, inputs: set[str]) -> str:
    """Returns why a declared number or name was replaced by a name that inference made up; "" if none was replaced."""
    if len(declared) != len(now):
        return ""
    for old, new in zip(declared, now, strict=True):
        if old != new and _is_vague(new, inputs) and (isinstance(old, int) or old.value is not None):
            return "the size depends on values of tensors, and the edit may have changed them"
    return ""


def unequal(shapes: Iterable[tuple[ir.Shape | None, ir.Shape | None]]) -> set[str]:
    """Returns the names that several declared axes share, if these axes are not known to be equal now. `shapes` has
    pairs: the declared shape of an output, and its shape now."""
    found: dict[str, list[int | ir.SymbolicDim | None]] = {}
    for declared, now in shapes:
        known = now if now is not None and len(now) == len(declared or ()) else [None] * len(declared or ())
        for old, new in zip(declared or (), known, strict=True):
            if isinstance(old, ir.SymbolicDim) and old.value is not None:
                found.setdefault(old.value, []).append(new)
    return {name for name, dims in found.items() if len(dims) > 1 and not _all_equal(dims)}


def _all_equal(dims: list[int | ir.SymbolicDim | None]) -> bool:
    first = dims[0].value if isinstance(dims[0], ir.SymbolicDim) else dims[0]
    return first is not None and all(dim == dims[0] for dim in dims)

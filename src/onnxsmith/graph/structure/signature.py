"""Describes the signature of a model as plain data: names, dtypes and dimensions of its inputs and outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from onnxsmith.graph.structure import carried_fields, dim_ranges, dim_relations
from onnxsmith.graph.structure.dim_ranges import Range

Dim = int | str
"""Is a size, or a symbolic dimension: a name (`batch`) or an expression over names (`3*height`)."""


@dataclass(frozen=True)
class Port:
    """One graph input or output.

    `dtype` is the ONNX name in lower case (`float`, `int64`, `bfloat16`), `undefined` if the file has no type. `kind`
    is `tensor`, `sequence`, `optional`, `sparse`, or `map` for maps and lists of maps. `shape` is None if the rank is
    unknown; a dimension without a name is called `<port>.<axis>`. `default` is true if an initializer gives a default
    value. For a map, `keys` is the dtype of its keys and `dtype` the dtype of its values. `many` is true for a list of
    maps and an optional sequence."""

    name: str
    dtype: str
    shape: tuple[Dim, ...] | None
    kind: str = "tensor"
    default: bool = False
    keys: str = ""
    many: bool = False

    def __str__(self) -> str:
        dims = "?" if self.shape is None else ",".join(str(dim) for dim in self.shape)
        text = f"{self.dtype}[{dims}]"
        if self.keys:
            text = f"map({self.keys}, {self.dtype})"
            return f"sequence({text})" if self.many else text
        if self.many:
            text = f"sequence({text})"
        return text if self.kind == "tensor" else f"{self.kind}({text})"

    def renamed(self, name: str) -> Port:
        """Returns the port under another name."""
        dims = self.shape and tuple(
            f"{name}.{axis}" if dim == f"{self.name}.{axis}" else dim for axis, dim in enumerate(self.shape)
        )
        return replace(self, name=name, shape=dims)


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a model, in the file's order.

    `ranges` are the sizes for which the model is meant, by the name of the dimension. `relations` are the expressions
    of the names that follow from other names; in the shapes, the expressions stand in place of these names."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    ranges: Mapping[str, Range] = field(default_factory=dict, compare=False)
    relations: Mapping[str, str] = field(default_factory=dict, compare=False)

    def symbols(self) -> tuple[str, ...]:
        """Returns the free symbols in the dimensions of the required inputs, in order of first appearance.

        A name that appears only inside an expression (`N` in `2*N`) counts, too.
        """
        found: dict[str, None] = {}
        for port in self.required():
            for axis, dim in enumerate(port.shape or ()):
                if isinstance(dim, str):
                    nameless = dim == f"{port.name}.{axis}"
                    found |= dict.fromkeys([dim] if nameless or is_symbol(dim) else _names_in(dim))
        return tuple(found)

    def related(self, relations: Mapping[str, str]) -> Signature:
        """Returns the signature with expressions of other dimensions in place of the names that follow from them. Skips
        an expression with a name that no input has."""
        if not relations:
            return self
        names = set(self.symbols()) - set(relations)
        known = {name: text for name, text in relations.items() if names.issuperset(_names_in(text))}

        def under(ports: tuple[Port, ...]) -> tuple[Port, ...]:
            return tuple(
                port
                if port.shape is None
                else replace(
                    port, shape=tuple(known.get(dim, dim) if isinstance(dim, str) else dim for dim in port.shape)
                )
                for port in ports
            )

        return replace(
            self, inputs=under(self.inputs), outputs=under(self.outputs), relations={**self.relations, **known}
        )

    def required(self) -> tuple[Port, ...]:
        """Returns the inputs without a default."""
        return tuple(port for port in self.inputs if not port.default)


_EXPRESSION = re.compile(r"[-+*/%()]")
_HYPHENED = re.compile(r"[^\W\d]\w*(-[^\W\d]\w*)+")
_NAME = re.compile(r"[^\W\d][\w.]*(?![\w.]|\s*\()")


def is_symbol(dim: str) -> bool:
    """Whether a dimension is a single free symbol, such as `N`, `x.0` or `batch-size`, not an expression such as
    `2*N`."""
    return _EXPRESSION.search(dim) is None or _HYPHENED.fullmatch(dim) is not None


def _names_in(expression: str) -> list[str]:
    """Returns the names in an expression without function names: `h` in `floor(h/2 - 1) + 1`."""
    return _NAME.findall(expression)


def names_something(dim: str) -> bool:
    """Whether the text of a dimension is a name or an expression, unlike `?`, `-1` or an empty text."""
    return any(character.isalpha() for character in dim)


def signature(model: ir.Model) -> Signature:
    """Returns the signature of a model. A dimension that follows from others by the file's metadata is written as their
    expression, `32 - seq` for `past`."""
    graph = model.graph
    names = set(graph.initializers)
    found = Signature(
        inputs=tuple(_port(value, default=value.name in names) for value in graph.inputs),
        outputs=tuple(_port(value) for value in graph.outputs),
        ranges=dim_ranges.ranges(model),
    )
    return found.related(dim_relations.relations(model))


def _port(value: ir.Value, *, default: bool = False) -> Port:
    type_, kind, many, keys = value.type, "tensor", False, ""
    dtype = value.dtype.name.lower() if value.dtype is not None else "undefined"
    if isinstance(type_, ir.OptionalType):
        kind, many = "optional", isinstance(type_.elem_type, ir.SequenceType)
    elif isinstance(type_, ir.SequenceType):
        kind = "sequence"
    elif isinstance(type_, ir.SparseTensorType):
        kind = "sparse"
    elif carried_fields.odd_type(value) is not None:
        kind = "map"
        keys, dtype, many = carried_fields.map_types(value) or ("", dtype, False)
    name = value.name or ""
    shape = None if value.shape is None else tuple(_dim(dim, name, axis) for axis, dim in enumerate(value.shape))
    return Port(name, dtype, shape, kind, default, keys, many)


def _dim(dim: int | ir.SymbolicDim, name: str, axis: int) -> Dim:
    if isinstance(dim, int):
        return dim if dim >= 0 else f"{name}.{axis}"
    return dim.value if dim.value is not None and names_something(dim.value) else f"{name}.{axis}"

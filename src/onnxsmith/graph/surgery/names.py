"""Renames graph inputs, graph outputs and symbolic dimensions to the names that the user knows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from onnxsmith.graph.shapes.dims import evaluate, names_in
from onnxsmith.graph.shapes.symbols import canonical
from onnxsmith.graph.structure import dim_ranges, dim_relations, walk
from onnxsmith.graph.structure.fresh import Names, unused
from onnxsmith.graph.structure.signature import is_symbol


def rename_ports(model: ir.Model, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Names the graph's inputs and outputs, in order. Renames other values that have one of these names.

    A value that is an output twice, or an input or initializer that is an output, gets an Identity, because two names
    need two values.
    """
    graph = model.graph
    separate_outputs(model)
    wanted = dict(zip((*graph.inputs, *graph.outputs), (*inputs, *outputs), strict=True))
    taken = set(wanted.values())
    names = {value.name for value in _values(model)}
    for value in list(_values(model)):  # a list, because renaming an initializer changes the graph's dictionary
        if value.name in taken and wanted.get(value) != value.name:
            value.name = unused(f"{value.name}_inner", names | taken)
            names.add(value.name)
    for value, name in wanted.items():
        value.name = name


def fix_symbols(model: ir.Model, sizes: Mapping[str, int]) -> None:
    """Gives symbolic dimensions sizes, inside expressions too: with {n: 2}, `3*n` becomes 6. A dimension that follows
    from them by the file's metadata gets its size too."""
    if not sizes:
        return
    left: dict[str, str] = {}
    for name, text in dim_relations.relations(model).items():
        size = evaluate(text, sizes)
        if name not in sizes and size is not None:
            sizes = {**sizes, name: size}
        elif name not in sizes:
            left[name] = text
    dim_relations.record(model, left)
    dim_ranges.record(model, {name: one for name, one in dim_ranges.ranges(model).items() if name not in sizes})
    for value in _values(model):
        if value.shape is not None and not value.shape.is_static():
            value.shape = fixed_shape(value.shape, sizes)


def take_over_sizes(model: ir.Model, *sources: ir.Model) -> None:
    """Gives the model the relations and ranges that its sources have for the dimensions of its inputs. A dimension of
    two sources gets the sizes that both allow."""
    named = {dim.value for value in model.graph.inputs for dim in value.shape or () if isinstance(dim, ir.SymbolicDim)}
    relations: dict[str, str] = {}
    ranges: dict[str, dim_ranges.Range] = {}
    for source in sources:
        relations |= {name: text for name, text in dim_relations.relations(source).items() if name in named}
        for name, one in dim_ranges.ranges(source).items():
            both = ranges.get(name, one).both(one)
            if name in named and both is not None:
                ranges[name] = both
    dim_relations.record(model, relations)
    dim_ranges.record(model, ranges)


def fixed_shape(shape: ir.Shape, sizes: Mapping[str, int]) -> ir.Shape:
    """Returns the shape with sizes in place of the symbols that have one, inside expressions too: with {n: 2}, `n + m`
    becomes `m + 2`."""
    return ir.Shape([dim if isinstance(dim, int) else _fixed(dim, sizes) for dim in shape])


def _fixed(dim: ir.SymbolicDim, sizes: Mapping[str, int]) -> int | ir.SymbolicDim:
    size = evaluate(dim.value, sizes)
    if size is not None or dim.value is None:
        return dim if size is None else size
    known = [name for name in names_in(dim.value) if name in sizes]
    if not known or is_symbol(dim.value):
        return dim
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, known)) + r")\b")
    return ir.SymbolicDim(str(canonical(pattern.sub(lambda match: str(sizes[match[1]]), dim.value))))


def prefix_names(model: ir.Model, prefix: str) -> None:
    """Puts a prefix before the names of tensors, nodes, graph inputs and outputs, also in branches and bodies.

    Symbolic dimensions and the contents of local functions keep their names.
    """
    if not prefix:
        return
    for value in dict.fromkeys(_values(model)):  # a copy, because renaming an initializer changes the dictionary
        value.name = f"{prefix}{value.name}" if value.name else value.name
    for node in walk.nodes(model.graph):
        node.name = f"{prefix}{node.name}" if node.name else node.name


def _operand(name: str) -> str:
    return f"({name})" if " " in name else name


def separate_outputs(model: ir.Model) -> list[str]:
    """Gives each output of the graph a value of its own, by an Identity where it needs one: behind an input, an
    initializer, and an output that is listed again. Returns the names of the outputs."""
    graph = model.graph
    seen: set[ir.Value] = set()
    names: Names | None = None
    for index, value in enumerate(graph.outputs):
        if value in seen or value.is_graph_input() or value.is_initializer():
            names = names or Names(model)
            node = ir.node("Identity", [value])
            graph.append(node)
            copy = node.outputs[0]
            copy.type, copy.shape, copy.name = value.type, value.shape, names.free(f"{value.name}_output_{index}")
            graph.outputs[index] = copy
        else:
            seen.add(value)
    return [value.name or "" for value in graph.outputs]


def _values(model: ir.Model) -> Iterator[ir.Value]:
    return walk.values_of(walk.main_graphs(model))


def rename_symbols(model: ir.Model, new: Mapping[str, str]) -> None:
    """Renames symbolic dimensions, inside expressions too: with {s0: height}, `3*s0` becomes `3*height`."""
    if not new:
        return
    pattern = re.compile(r"\b(" + "|".join(re.escape(name) for name in sorted(new, key=len, reverse=True)) + r")\b")
    dim_relations.rename(model, lambda text: new.get(text) or pattern.sub(lambda match: _operand(new[match[1]]), text))
    dim_ranges.rename(model, lambda name: new.get(name, name))
    for value in _values(model):
        shape = value.shape
        if shape is None or shape.is_static():
            continue
        dims = [
            new.get(dim.value) or pattern.sub(lambda match: _operand(new[match[1]]), dim.value)
            if isinstance(dim, ir.SymbolicDim) and dim.value is not None
            else dim
            for dim in shape
        ]
        value.shape = ir.Shape(dims)

"""Makes a model from a branch or a body, and puts a part of that model back into the branch or body."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned


def body_model(model: ir.Model, body: ir.Graph) -> ir.Model:
    """Returns a copy of a branch or a body as a model of its own, weights shared.

    Its inputs are the inputs of the body, and the values that the body captures from the graphs around it. Captured
    constants become initializers. Functions and opsets are those of the model.
    """
    copy, graph = _copied(model, body)
    inputs, outputs = list(graph.inputs), list(graph.outputs)
    nodes, weights = list(graph), list(graph.initializers.values())
    own = {*inputs, *weights, *(value for node in walk.nodes(graph) for value in node.outputs)}
    for inner in walk.nested(graph):
        own |= {*inner.inputs, *inner.initializers.values()}
    stand_ins: dict[ir.Value, ir.Value] = {}
    for node in walk.nodes(graph):
        for index, value in enumerate(node.inputs):
            if value is not None and value not in own:
                node.replace_input_with(index, stand_ins.setdefault(value, _stand_in(value)))
    for inner in walk.nested(graph):
        for index, value in enumerate(inner.outputs):
            if value not in own:
                inner.outputs[index] = stand_ins.setdefault(value, _stand_in(value))
    outputs = [value if value in own else stand_ins.setdefault(value, _stand_in(value)) for value in outputs]
    graph.inputs.clear()
    graph.outputs.clear()
    graph.initializers.clear()
    graph.remove(nodes)
    weights += [value for value in stand_ins.values() if value.const_value is not None]
    inputs += [value for value in stand_ins.values() if value.const_value is None]
    main = ir.Graph(
        inputs, outputs, nodes=nodes, initializers=weights, opset_imports=dict(copy.opset_imports), name=body.name
    )
    functions = list(copy.functions.values())
    return ir.Model(main, ir_version=copy.ir_version, producer_name=copy.producer_name, functions=functions)


def with_part(model: ir.Model, body: ir.Graph, part: ir.Model) -> tuple[ir.Model, list[ir.Value]]:
    """Returns a copy of `model` in which `part` replaces nodes of the body, and the values of its outputs there.

    `part` was cut out of `body_model(model, body)`. Its inputs have the names of the tensors that it reads, its outputs
    the names of the tensors that they replace.
    """
    copy, graph = _copied(model, body)
    seen = _visible(copy, graph)
    grafted = cloned(part)
    inputs, outputs = list(grafted.graph.inputs), list(grafted.graph.outputs)
    nodes, weights = list(grafted.graph), list(grafted.graph.initializers.values())
    grafted.graph.inputs.clear()
    grafted.graph.outputs.clear()
    grafted.graph.initializers.clear()
    grafted.graph.remove(nodes)
    for value in inputs:
        value.replace_all_uses_with(seen[value.name or ""])
    wanted = {value.name or "": value for value in outputs}
    old = {name: seen[name] for name in wanted}
    for value in (*weights, *(value for node in nodes for value in node.outputs)):
        value.name = f"{value.name}.part" if value.name else value.name
    for one in (one for node in nodes for one in (node, *walk.inside(node))):
        one.name = f"{one.name}.part" if one.name else one.name  # a runtime refuses two nodes of one name
    for inner in (inner for node in nodes for inner in walk.subgraphs(node)):
        _rename_inner(inner)
    for value in weights:
        graph.register_initializer(value)
    for name, value in old.items():
        value.replace_all_uses_with(wanted[name], replace_graph_outputs=True)
    # at the end for now, because the outputs' readers are anywhere: sorting moves them up
    graph.extend(nodes)
    graph.sort()
    return copy, list(wanted.values())


def _rename_inner(graph: ir.Graph) -> None:
    for inner in (graph, *walk.nested(graph)):
        own = dict.fromkeys((*inner.inputs, *inner.initializers.values()))
        for value in (*own, *(value for node in inner for value in node.outputs)):
            value.name = f"{value.name}.part" if value.name else value.name


def _copied(model: ir.Model, body: ir.Graph) -> tuple[ir.Model, ir.Graph]:
    """Returns a copy of the model, and the body in it."""
    copy = cloned(model)
    place = next(at for at, graph in enumerate(walk.graphs(model)) if graph is body)
    return copy, list(walk.graphs(copy))[place]


def _visible(model: ir.Model, graph: ir.Graph) -> dict[str, ir.Value]:
    """Returns the values that nodes of the graph can read, by name: its own, and those of the graphs around it."""
    found: dict[str, ir.Value] = {}
    for around in walk.around(model, graph):
        for value in (*around.inputs, *around.initializers.values(), *(one for node in around for one in node.outputs)):
            found[value.name or ""] = value
    return found


def _stand_in(value: ir.Value) -> ir.Value:
    """Returns a value with the name, type and shape of a captured one, and its tensor if it is a constant."""
    tensor = None if value.is_graph_input() else const_tensor(value)
    type_ = value.type if value.type is not None or tensor is None else ir.TensorType(tensor.dtype)
    shape = value.shape if tensor is None else ir.Shape(list(tensor.numpy().shape))
    return ir.Value(name=value.name, type=type_, shape=shape, const_value=tensor)

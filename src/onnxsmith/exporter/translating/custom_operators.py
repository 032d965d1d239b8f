"""Writes the operators that a user registered as nodes, with model-local functions that compute them."""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch
from torch.export import Dim

from onnxsmith.base.problem import problem
from onnxsmith.base.seams.base import replaced
from onnxsmith.base.seams.torch import translator
from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.exporter.translating.overloads import overloads
from onnxsmith.exporter.translating.register import Registration, registered
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned

_USE = "onnxsmith.use"
_REFERENCE = ".reference.onnx"
PLUGIN = "onnxsmith.plugin"
"""Marks, as a key of the metadata, a node that is delivered without its function. The value holds the operator's name,
inputs and attributes."""


@dataclass(frozen=True)
class _Use:
    """One call of a registered operator in a trace."""

    registration: Registration
    leaves: tuple[Any, ...]
    rebuild: Callable[[Sequence[Any]], tuple[Any, Any]]
    attributes: Mapping[str, Any]

    def arguments(self, tensors: Iterable[Any]) -> tuple[Any, Any]:
        """Returns the arguments of the call with these in place of its tensors."""
        given = iter(tensors)
        return self.rebuild([next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves])

    @property
    def key(self) -> str:
        """Returns a key that is equal for calls that can share one function."""
        return repr((self.registration.domain, self.registration.name, [_described(leaf) for leaf in self.leaves]))


@dataclass
class Uses:
    """The calls of registered operators in one capture. `applied` are the registered translations that it used, by
    target; `composed` are the notes of `composed_operators`."""

    seen: list[_Use] = field(default_factory=list)
    applied: dict[Any, Registration] = field(default_factory=dict)
    composed: tuple[str, ...] = ()

    def table(self) -> dict[Any, Callable[..., Any]]:
        """Maps each operator to its translation, as a table of decompositions."""
        named = [(one, one.target) for one in registered() if isinstance(one.target, str) and not one.writers]
        return {op: self.translated(one) for one, target in named for op in overloads(target)}

    def writers(self) -> dict[Any, Sequence[Callable[..., Any]]]:
        """Maps each operator to the functions that write its nodes."""
        found: dict[Any, Sequence[Callable[..., Any]]] = {}
        for one in registered():
            if one.writers and not isinstance(one.target, type):
                ops = overloads(one.target) if isinstance(one.target, str) else [one.target]
                found |= dict.fromkeys(ops, one.writers)
        return found

    @contextmanager
    def applying(self) -> Iterator[None]:
        """Runs the translation of a registered autograd function in place of its calls in the block."""
        with ExitStack() as stack:
            for one in registered():
                if isinstance(one.target, type):
                    stack.enter_context(replaced(one.target, "apply", self.translated(one)))
            yield

    def translated(self, registration: Registration) -> Callable[..., Any]:
        """Returns the translation itself, or a function that writes one node, depending on the registration's
        `deliver`."""
        computes = registration.deliver == "operators" and not registration.writers

        def translation(*args: Any, **kwargs: Any) -> Any:
            self.applied[registration.target] = registration
            if computes:
                return registration.decompose(*args, **kwargs)
            return self._node(registration, args, kwargs)

        return translation

    def meet(self, operators: Iterable[Any]) -> None:
        """Notes that registered functions write the nodes of these operators."""
        found = set(operators)
        for one in registered():
            ops = overloads(one.target) if isinstance(one.target, str) else [one.target]
            if one.writers and not found.isdisjoint(ops):
                self.applied[one.target] = one

    def _node(self, registration: Registration, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bound = registration.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        # In the order of the operator's schema, which is the order of the node's inputs.
        leaves, given = pytree.tree_flatten((bound.args, bound.kwargs))
        results, spec = pytree.tree_flatten(registration.decompose(*bound.args, **bound.kwargs))
        attributes = {} if registration.writers else _attributes(registration, bound)
        self.seen.append(
            _Use(registration, tuple(leaves), lambda values: pytree.tree_unflatten(values, given), attributes)
        )
        outputs = torch.onnx.ops.symbolic_multi_out(
            f"{registration.domain}::{registration.name}",
            _tensors(bound),
            {},  # the attributes are kept in `_Use`: torch accepts no empty lists
            dtypes=[result.dtype for result in results],
            shapes=[list(result.shape) for result in results],
            version=1,
            metadata_props={_USE: str(len(self.seen) - 1)},
        )
        return pytree.tree_unflatten(list(outputs), spec)

    def attach(self, model: ir.Model, opset: int | None) -> None:
        """Adds the functions that the nodes call; calls with different attributes or sizes get different functions."""
        made: dict[str, str] = {}
        taken = {(one.registration.domain, one.registration.name) for one in self.seen if _is_plugin(one)}
        for node in list(walk.all_nodes(model)):
            index = node.metadata_props.pop(_USE, None)
            if index is None:
                continue
            use = self.seen[int(index)]
            if use.registration.writers:
                _write(node, use, model)
                continue
            if use.key not in made:
                made[use.key] = _free_name(use, taken)
                taken.add((use.registration.domain, made[use.key]))
                function = _function(use, made[use.key], opset)
                model.functions[function.identifier()] = function
                for domain, version in function.opset_imports.items():
                    model.opset_imports.setdefault(domain, version)
            _call(node, made[use.key], use)


def _write(node: ir.Node, use: _Use, model: ir.Model) -> None:
    """Replaces the node of a call by the nodes that the registered function writes for it."""
    args, kwargs = use.arguments(value for value in node.inputs if value is not None)
    with translator.recording(model.opset_imports[""]) as recorder:
        found = use.registration.writers[0](*args, **kwargs)
    outputs = list(found) if isinstance(found, list | tuple) else [found]
    assert node.graph is not None
    ir.convenience.replace_nodes_and_values(
        node.graph, node, [node], recorder.nodes, list(node.outputs)[: len(outputs)], outputs
    )
    for one in recorder.nodes:
        model.opset_imports.setdefault(one.domain, 1)


def _is_plugin(use: _Use) -> bool:
    return use.registration.deliver == "plugin"


def _free_name(use: _Use, taken: Container[tuple[str, str]]) -> str:
    """Returns a free name for a function. The function of a plugin must not have the node's name, under which runtimes
    look for a kernel."""
    own = f"{use.registration.name}_reference" if _is_plugin(use) else use.registration.name
    names = itertools.chain([own], (f"{own}_{number}" for number in itertools.count(2)))
    return next(name for name in names if (use.registration.domain, name) not in taken)


def _call(node: ir.Node, function: str, use: _Use) -> None:
    """Turns a node into a call of the function. The function takes only the present inputs and holds attributes as
    constants."""
    if _is_plugin(use):
        given = [value is not None for value in node.inputs]
        kinds = {name: _kind(use, name) for name, value in use.attributes.items() if value == []}
        plugin = {"name": node.op_type, "inputs": given, "attributes": use.attributes, "empty": kinds}
        node.metadata_props[PLUGIN] = json.dumps(plugin)
    there = [value for value in node.inputs if value is not None]
    node.resize_inputs(len(there))
    for index, value in enumerate(there):
        node.replace_input_with(index, value)
    node.op_type = function
    node.attributes.clear()


def _kind(use: _Use, argument: str) -> str:
    """Returns the attribute type of an empty list, from the operator's declaration; INTS if it declares none."""
    declared = str(use.registration.signature.parameters[argument].annotation)
    return "FLOATS" if "float" in declared else "STRINGS" if "str" in declared else "INTS"


def _described(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        sizes = [size if _is_fixed(size) else "?" for size in leaf.shape]
        return str(leaf.dtype), sizes
    return leaf


def _tensors(bound: inspect.BoundArguments) -> list[torch.Tensor | None]:
    """Returns the node's inputs, in the operator's order. A missing optional input in the middle is None."""
    found: list[torch.Tensor | None] = []
    for value in bound.arguments.values():
        if isinstance(value, torch.Tensor) or value is None:
            found.append(value)
        elif isinstance(value, list | tuple) and any(isinstance(item, torch.Tensor) for item in value):
            found += value
    while found and found[-1] is None:
        found.pop()
    return found


def _attributes(registration: Registration, bound: inspect.BoundArguments) -> dict[str, Any]:
    """Returns the arguments that are not tensors: a number, a text, or a list of them."""
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        leaves = pytree.tree_leaves(value)
        if any(isinstance(leaf, torch.SymInt | torch.SymFloat | torch.SymBool) for leaf in leaves):
            raise problem(
                "register/dynamic-attribute",
                f"argument {name!r} of {registration.name} depends on a dynamic size, but becomes an attribute, "
                "which has to be constant",
                where=f"{registration.domain}::{registration.name}",
                fix='pass this argument as a tensor, or register the operator with deliver="operators"',
            )
        if value is None or any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            continue
        if not leaves and "Tensor" in str(registration.signature.parameters[name].annotation):
            continue  # an empty list of tensors is an input, not an attribute
        plain = [int(leaf) if isinstance(leaf, bool) else leaf for leaf in leaves]
        if not all(isinstance(leaf, int | float | str) for leaf in plain):
            plain = [str(leaf) for leaf in plain]  # a dtype or a device has no attribute type
        found[name] = plain if isinstance(value, list | tuple) else plain[0]
    return found


class _Body(torch.nn.Module):
    """A translation as a module that takes the tensors of one call."""

    def __init__(self, use: _Use) -> None:
        super().__init__()
        self._use = use

    def forward(self, *tensors: torch.Tensor) -> Any:
        args, kwargs = self._use.arguments(tensors)
        return tuple(pytree.tree_leaves(self._use.registration.decompose(*args, **kwargs)))


def _function(use: _Use, name: str, opset: int | None) -> ir.Function:
    tensors = [leaf for leaf in use.leaves if isinstance(leaf, torch.Tensor)]
    examples = tuple(torch.zeros([_hint(size) for size in tensor.shape], dtype=tensor.dtype) for tensor in tensors)
    axes = tuple(
        {axis: Dim.DYNAMIC for axis, size in enumerate(tensor.shape) if not _is_fixed(size)} for tensor in tensors
    )
    program = torch.export.export(_Body(use), examples, dynamic_shapes={"tensors": axes}, strict=False)
    translated = torch.onnx.export(program, opset_version=opset, verbose=False)
    assert translated is not None
    graph = translated.model.graph
    for value in list(graph.initializers.values()):
        constant = ir.Node("", "Constant", [], [ir.AttrTensor("value", value.const_value)], num_outputs=1)  # type: ignore[arg-type]
        ir.convenience.replace_all_uses_with(value, constant.outputs[0], replace_graph_outputs=True)
        first = next(iter(graph), None)
        graph.insert_before(first, constant) if first is not None else graph.append(constant)
    graph.initializers.clear()
    function = ir.Function(use.registration.domain, name, "", graph=graph, attributes=[])
    function.opset_imports.update(translated.model.opset_imports)
    return function


def _is_fixed(size: Any) -> bool:
    return isinstance(size, int)


def _hint(size: Any) -> int:
    if _is_fixed(size):
        return int(size)
    found = size.node.hint
    return int(found) if found is not None else 3  # a choice: any size but 0 and 1, which torch treats as constants


def has_plugins(model: ir.Model) -> bool:
    """Whether the model has a node that needs a kernel from a plugin."""
    return any(PLUGIN in node.metadata_props for node in walk.all_nodes(model))


def reference(target: Path) -> Path:
    """Returns the path of the model with plugins as functions, beside the model at `target` with plugin nodes."""
    return target.with_suffix(_REFERENCE)


def bare(model: ir.Model) -> ir.Model:
    """Returns the model for runtimes that have the plugins: one node for each plugin call, without functions. A model
    without plugins is returned unchanged."""
    if not has_plugins(model):
        return model
    copy = cloned(model)
    for node in walk.all_nodes(copy):
        said = node.metadata_props.pop(PLUGIN, None)
        if said is None:
            continue
        plugin = json.loads(said)
        there = iter(list(node.inputs))
        node.resize_inputs(len(plugin["inputs"]))
        for index, given in enumerate(plugin["inputs"]):
            node.replace_input_with(index, next(there) if given else None)
        copy.functions.pop(node.op_identifier(), None)
        node.op_type = plugin["name"]
        for name, value in plugin["attributes"].items():
            kind = ir.AttributeType[plugin["empty"][name]] if name in plugin["empty"] else None
            node.attributes[name] = ir.convenience.convert_attribute(name, value, kind)
    return copy


def runnable(model: ir.Model) -> ir.Model:
    """Returns the model with every plugin as a function, which every runtime can run."""
    if not has_plugins(model):
        return model
    copy = cloned(model)
    for node in walk.all_nodes(copy):
        node.metadata_props.pop(PLUGIN, None)
    return copy


def notes(model: ir.Model, files: Iterable[str], *, verified: bool) -> Iterator[str]:
    """Yields a note about each kind of plugin node. `files` are the written files, the model's own first."""
    *_, beside = ["", *(file for file in list(files)[1:] if file.endswith(_REFERENCE))]
    with_function = "the model with its translation as a function"
    more = ""
    if beside:
        more = f"; {beside} is {with_function}{', which was verified' if verified else ''}"
    elif verified:
        more = f"; the verified model is {with_function}"
    said = (node.metadata_props.get(PLUGIN) for node in walk.all_nodes(model))
    for name in sorted({json.loads(text)["name"] for text in said if text}):
        yield f"{name} is a plugin: to run this file, a runtime needs a kernel for {name}{more}"

"""Makes a torch module a side of a comparison by layer: traced once, then run operation by operation.

The module is traced and decomposed as in an export, so that its operations are those that the exporter wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import getitem
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.exporter.tracing.flat_module import own_name
from onnxsmith.exporter.tracing.program_operations import Operations
from onnxsmith.exporter.tracing.recurrent_layers import MADE
from onnxsmith.graph.structure import provenance
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes.base import Array, Feeds, Value
from onnxsmith.runtimes.torch_eager import to_array, to_tensor
from onnxsmith.verification.by_layer.side_outline import Outline, Step, Type, kind_of
from onnxsmith.verification.by_layer.tap import Tap, Values
from onnxsmith.verification.rounding import Rounding


class FxTap(Tap):
    """The tensors of an exported program. `signature` names its inputs and outputs, in the program's order."""

    def __init__(self, operations: Operations, signature: Signature, label: str) -> None:
        exported = operations.program
        self.label = label
        self.signature = signature
        self._program = exported
        self._renumbered = operations.renumbered
        self._nodes = list(exported.graph.nodes)
        self._given_to = _placeholders(exported, [port.name for port in signature.inputs])
        self._by_name = _called(operations, signature, self._given_to)
        self.outline = self._outlined()
        self._double: tuple[Mapping[str, Any], ...] | None = None

    def values(self, feeds: Feeds, names: Collection[str]) -> Values:
        return self.forced(feeds, {}, names)

    def forced(self, feeds: Feeds, given: Mapping[str, Value], names: Collection[str]) -> Values:
        return self._run(feeds, given, names, self._constants(), wide=False)

    def exact(self, feeds: Feeds, given: Mapping[str, Value], name: str) -> Value:
        try:
            return self._run(feeds, given, [name], self._doubled(), wide=True)[name]
        except Exception:  # noqa: BLE001 — an operator without a float64 kernel may raise anything
            return None

    def roundings(self, cuts: Collection[str], names: Collection[str]) -> Mapping[str, Rounding]:
        return {}

    def weights(self, step: Step) -> list[Array]:
        held = self._constants()
        own = next((node for node in self._nodes if node.name == step.label), None)
        names = {other.name for other in own.all_input_nodes} if own is not None else set()
        return [to_array(held[name]) for name in sorted(names & held.keys()) if held[name].is_floating_point()]

    def _run(
        self,
        feeds: Feeds,
        given: Mapping[str, Value],
        names: Collection[str],
        constants: Mapping[str, Any],
        *,
        wide: bool,
    ) -> Values:
        needed = self._needed(names, given)
        given_here = {node: given[name] for name, node in self._by_name.items() if name in given}
        runner = _Runner(self._program.graph_module, given_here, {self._by_name[name] for name in names}, needed, wide)
        leaves = [
            constants[name] if name in constants else to_tensor(feeds[self._given_to[name]])
            for name in (node.name for node in self._nodes if node.op == "placeholder")
        ]
        with torch.no_grad():
            runner.run(*[_wide(leaf) if wide else leaf for leaf in leaves])
        return {name: runner.kept[self._by_name[name]] for name in names}

    def _needed(self, names: Collection[str], given: Mapping[str, Value]) -> set[str]:
        """Returns the operations that `names` depend on, with the tensors in `given` known."""
        needed: set[str] = set()
        queue = [self._by_name[name] for name in names]
        by_node = {node.name: node for node in self._nodes}
        known = {self._by_name[name] for name in given if name in self._by_name}
        while queue:
            name = queue.pop()
            if name in needed:
                continue
            needed.add(name)
            queue += [other.name for other in by_node[name].all_input_nodes if other.name not in known]
        return needed

    def _constants(self) -> dict[str, Any]:
        held = {**self._program.state_dict, **self._program.constants}
        return {
            spec.arg.name: held[spec.target]
            for spec in self._program.graph_signature.input_specs
            if spec.kind is not InputKind.USER_INPUT and spec.target in held
        }

    def _doubled(self) -> Mapping[str, Any]:
        if self._double is None:
            self._double = ({name: _wide(value) for name, value in self._constants().items()},)
        return self._double[0]

    def _outlined(self) -> Outline:
        names: dict[str, list[str]] = {}
        for name, node in self._by_name.items():
            names.setdefault(node, []).append(name)
        steps: list[Step] = []
        hidden: set[str] = set()
        types: dict[str, Type] = {}
        inputs = [self._given_to.get(node.name) for node in self._nodes if node.op == "placeholder"]
        for node in self._nodes:
            if node.op in ("placeholder", "output", "get_attr"):
                continue
            own = names.get(node.name, [node.name])
            read = [
                name
                for other in node.all_input_nodes
                for name in (names.get(other.name) or [self._given_to.get(other.name, other.name)])[:1]
                if other.op not in ("get_attr",)
                and not (other.op == "placeholder" and other.name not in self._given_to)
            ]
            origin = "" if node.name in self._renumbered else node.name
            learned = sum(_learned(other) for other in node.all_input_nodes if other.name not in self._given_to)
            steps.append(_step(node, tuple(read), tuple(own), origin, learned))
            value = node.meta.get("val")
            if isinstance(value, torch.Tensor):
                types.update(dict.fromkeys(own, _type(value)))
            else:
                hidden.update(own)
        outputs = tuple(port.name for port in self.signature.outputs)
        given = tuple(name for name in inputs if name is not None)
        return Outline(tuple(steps), given, outputs, frozenset(hidden), types)


class _Runner(torch.fx.Interpreter):
    """Runs only the needed operations, with given values inserted, and keeps the requested tensors."""

    def __init__(
        self, module: Any, given: Mapping[str, Value], kept: Collection[str], needed: Collection[str], wide: bool
    ) -> None:
        super().__init__(module, garbage_collect_values=True)
        self._given = given
        self._asked = kept
        self._needed = needed
        self._wide = wide
        self.kept: dict[str, Value] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        if n.op == "output":
            return None
        if n.op != "placeholder" and n.name not in self._needed and n.name not in self._given:
            return None
        computed = n.op == "placeholder" or n.name in self._needed
        result = super().run_node(n) if computed else None
        if n.name in self._asked:
            self.kept[n.name] = to_array(result)
        if n.name in self._given:
            value = to_tensor(self._given[n.name])
            return _wide(value) if self._wide else value if result is None else value.to(result.dtype)
        return result

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if self._wide:
            args, kwargs = pytree.tree_map(_wide_dtype, (args, kwargs))
        return super().call_function(target, args, kwargs)


_NARROW = (torch.float32, torch.float16, torch.bfloat16)


def _wide(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.dtype in _NARROW else value


def _wide_dtype(value: Any) -> Any:
    return torch.float64 if value in _NARROW and isinstance(value, torch.dtype) else value


def _placeholders(exported: ExportedProgram, inputs: Sequence[str]) -> dict[str, str]:
    """Maps the placeholder of each user input to the input's name."""
    users = [spec.arg.name for spec in exported.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    return dict(zip(users, inputs, strict=False))


def _called(operations: Operations, signature: Signature, inputs: Mapping[str, str]) -> dict[str, str]:
    """Maps the name of each tensor to its node. An output has the output's name; any other tensor has its own name,
    with a `%` in front if another tensor has that name."""
    exported = operations.program
    given_out = exported.graph_signature.user_outputs
    ports = {
        port.name: str(name) for port, name in zip(signature.outputs, given_out, strict=False) if name not in inputs
    }
    taken = {*ports, *inputs.values()}
    taken |= operations.renumbered
    inner = [node.name for node in exported.graph.nodes if node.op not in ("placeholder", "output")]
    own = {f"%{name}" if name in taken else name: name for name in inner if name not in ports.values()}
    return {**own, **{port: name for port, name in ports.items() if name in inner}}


def _step(node: torch.fx.Node, inputs: tuple[str, ...], outputs: tuple[str, ...], origin: str, learned: int) -> Step:
    scopes = [path for path, _ in node.meta.get("nn_module_stack", {}).values()]
    return Step(
        label=node.name,
        op=str(node.target),
        inputs=tuple(dict.fromkeys(inputs)),
        outputs=outputs,
        key=str(node.args[1]) if node.target is getitem else "",
        module=own_name(scopes[-1]) if scopes else "",
        source=provenance.user_line(node.meta.get("stack_trace") or ""),
        origin="" if MADE in node.meta else origin,
        kind="" if MADE in node.meta else str(node.target),
        weights=learned,
        moves=is_move(node.target),
    )


def _learned(node: torch.fx.Node) -> int:
    """Counts the elements of a weight; 0 for a computed tensor."""
    value = node.meta.get("val") if node.op in ("placeholder", "get_attr") else None
    known = isinstance(value, torch.Tensor) and all(isinstance(size, int) for size in value.shape)
    return value.numel() if isinstance(value, torch.Tensor) and known else 0


_PUT_TOGETHER = {"aten::cat", "aten::stack", "aten::clone", "aten::lift_fresh", "aten::constant_pad_nd", "aten::copy_"}


def is_move(target: Any) -> bool:
    """Whether an operation only moves its inputs: a view, a copy, or a concatenation."""
    schema = getattr(target, "_schema", None)
    return schema is not None and (bool(target.is_view) or schema.name in _PUT_TOGETHER)


def _type(value: torch.Tensor) -> Type:
    shape = tuple(int(size) if isinstance(size, int) else None for size in value.shape)
    return Type(kind_of(str(value.dtype).removeprefix("torch.")), shape)

"""`insert`, `remove`, `replace`, `wire`, `set`: change nodes, their operands and their attributes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.base.words import first_few, several
from onnxsmith.editor.edited_model import Work, depending, graph_of
from onnxsmith.editor.following_dtypes import Following
from onnxsmith.editor.graph_cleanup import called_functions, remove_uncalled
from onnxsmith.editor.match_replacement import replace_all
from onnxsmith.editor.node_placement import home_of, node_after, operand, operand_index, operators, readers
from onnxsmith.editor.places import ALL, places
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.operators import attributes as checked
from onnxsmith.graph.operators.tensor import Tensor
from onnxsmith.graph.patterns.pattern import Pattern
from onnxsmith.graph.patterns.pattern_conversion import pattern_of, replacement_of
from onnxsmith.graph.structure import captures, schema, walk
from onnxsmith.graph.structure.value_replacement import can_be_output
from onnxsmith.graph.surgery.node_insertion import release

HERE = "$"


@dataclass(frozen=True)
class Insert(Step):
    """Inserts a node of operator `op` (`Clip`, `com.microsoft::Gelu`) behind the tensor `after`, or in front of the
    operand `input` (0) of the node `before`. Behind a tensor, all its readers read the first result, and a graph output
    keeps its name: the first result gets it. In front of an operand, only the node `before` reads the result.

    `operands` are names of tensors, numbers, lists and arrays for constants, and "" for a left-out operand; "$" is the
    tensor itself. Without "$" the tensor is the first operand, followed by `operands`. `attributes` are checked against
    the schema. `name` names the node, `outputs` its results. With `same` the outputs must keep their numbers.
    """

    first = ("op",)

    op: str
    after: Any = None
    before: Any = None
    input: int | str = 0
    operands: list[Any] | tuple[Any, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None
    outputs: Any = None
    same: bool = False

    def apply(self, work: Work) -> str:
        if (self.after is None) == (self.before is None):
            raise problem(
                "edit/step-argument",
                "insert needs one of after and before",
                why="`after` is a tensor, `before` a node",
                fix='write after = "relu_1_out"',
            )
        if self.after is not None:
            value = work.find.tensor(self.after)
            graph, users = home_of(work, value), readers(value)
            try:
                made = self._made(work, value, graph, node_after(graph, value))
            except OnnxsmithError as error:
                raise _behind_the_adapter(error, value) from error.__cause__
            for node, index in users:
                node.replace_input_with(index, made)
            self._as_output(work, graph, value, made)
            place = f"behind {self.after if isinstance(self.after, str) else value.name}"
        else:
            node = work.find.node(self.before)
            index = operand_index(work, node, self.input)
            read = node.inputs[index] if index < len(node.inputs) else None
            if read is None or node.graph is None:
                raise problem(
                    "edit/no-operand",
                    f"{walk.node_label(node)} has no tensor as operand {self.input!r}",
                    fix="choose an operand that is there",
                )
            made = self._made(work, read, graph_of(node), node)
            node.replace_input_with(index, made)
            place = f"in front of {walk.node_label(node)}"
        if not self.same:
            work.change(made)
        return f"{self.op} {place}"

    def _made(self, work: Work, value: ir.Value, graph: ir.Graph, before: ir.Node | None) -> ir.Value:
        operands = [one if _is_here(one) else self._operand(work, one) for one in self.operands]
        reads = [value, *(one for one in operands if isinstance(one, ir.Value))]
        make = operators(work, graph, before, f"{self.op} behind {value.name}", reads)
        given = [make.tensor(value) if _is_here(one) else one for one in operands]
        if not any(_is_here(one) for one in self.operands):
            given = [make.tensor(value), *given]
        made = make.node(self.op, *given, name=self.name, outputs=self._names(work, value), **self.attributes)
        first = made[0] if isinstance(made, tuple) else made
        if not isinstance(first, Tensor):
            raise problem("edit/step-argument", f"the first result of {self.op} is left out", fix="name it in outputs")
        return first.value

    def _names(self, work: Work, value: ir.Value) -> Any:
        """Returns the names of the results. The first name may be that of the graph output that the result replaces."""
        if self.after is None or not value.is_graph_output() or value.is_graph_input():
            return self.outputs
        if self.outputs == value.name:
            return None
        if isinstance(self.outputs, list | tuple) and self.outputs and self.outputs[0] == value.name:
            return [work.names.free(f"{value.name}_result"), *self.outputs[1:]]
        return self.outputs

    def _operand(self, work: Work, one: Any) -> Any:
        if isinstance(one, str):
            return work.find.tensor(one) if one else None
        return one.value if hasattr(one, "value") and not isinstance(one, ir.Value) else one

    def _as_output(self, work: Work, graph: ir.Graph, value: ir.Value, made: ir.Value) -> None:
        """Makes the result the graph output in place of the tensor, under the tensor's name."""
        if not any(one is value for one in graph.outputs):
            return
        for index, one in enumerate(graph.outputs):
            if one is value:
                graph.outputs[index] = made
        name = value.name or ""
        if value.is_graph_input():
            if graph is work.model.graph:  # one name cannot be an input and another value's
                work.outputs[made.name or ""] = work.outputs.pop(name, None)
            return
        given = self.outputs[0] if isinstance(self.outputs, list | tuple) else self.outputs
        if isinstance(given, str) and given != name:
            work.notes.append(f"the first result is called {name}, not {given}: a graph output keeps its name")
        value.name = work.names.free(f"{name}_before_{self.op.rpartition(':')[2].lower()}")
        made.name = name


def _is_here(one: Any) -> bool:
    return isinstance(one, str) and one == HERE


def _behind_the_adapter(error: OnnxsmithError, value: ir.Value) -> OnnxsmithError:
    """Returns the error. If only a Cast or Transpose of an earlier step reads the input, the fix names the tensor
    behind this node."""
    uses = list(value.uses())
    node = uses[0].node if len(uses) == 1 else None
    if not value.is_graph_input() or node is None or node.op_type not in ("Cast", "Transpose"):
        return error
    name = node.outputs[0].name
    fix = f'{value.name} is read only by a {node.op_type}; to insert behind that node, write after = "{name}"'
    return OnnxsmithError(replace(error.problem, fix=fix))


_SAME = frozenset({"Identity"})
"""Lists the operators whose removal changes no number."""


@dataclass(frozen=True)
class Remove(Step):
    """Removes the selected `node`, or all selected nodes. Readers of the result read the operand `keep` instead (a
    number from 0, or a name in the schema). `keep` may be left out if only one operand is not a constant, or if the
    node has one operand. A graph output keeps its name. Constants that nothing reads any more are removed too. If the
    operand has another dtype, as for a Cast, the nodes behind compute in that dtype, as far as their operators allow.
    Graph outputs keep their dtype, so a Cast back has to be among the removed nodes. With `same` the outputs must keep
    their numbers."""

    first = ("node",)

    node: Any
    keep: int | str | None = None
    same: bool = False

    def apply(self, work: Work) -> str:
        nodes = work.find.nodes(self.node)
        labels = [f"{walk.node_label(node)} ({walk.op_name(node)})" for node in nodes]
        for node in nodes:
            self._refuse_read(node)
        stands = self._stand_ins(work, nodes)
        self._follow_dtypes(work, nodes, stands)
        for node in nodes:
            self._remove(work, node, stands)
        return first_few(labels, 3)

    def _refuse_read(self, node: ir.Node) -> None:
        used = _used(node)
        if len(used) > 1 or (used and used[0] is not node.outputs[0]):
            raise problem(
                "edit/several-results",
                f"{walk.node_label(node)} cannot be removed: other results than its first are read",
                why=f"{', '.join(value.name or '' for value in used)} are also read, but one operand cannot replace "
                "several results",
                fix=f"first connect the nodes that read them to other tensors: {_wiring(node)}",
            )

    def _stand_ins(self, work: Work, nodes: list[ir.Node]) -> dict[ir.Value, ir.Value]:
        """Returns the tensor that replaces each node's result once all the nodes are gone."""
        operands = {node.outputs[0]: self._operand(work, node) for node in nodes if _used(node)}

        def last(value: ir.Value) -> ir.Value:
            while value in operands:
                value = operands[value]
            return value

        return {value: last(value) for value in operands}

    def _follow_dtypes(self, work: Work, nodes: list[ir.Node], stands: dict[ir.Value, ir.Value]) -> None:
        """Lets the nodes behind take another dtype, and notes this in the report."""
        if any(value.dtype is None or value.dtype != new.dtype for value, new in stands.items()):
            work.infer()
        following = Following(work, dict.fromkeys(nodes), stands)
        following.run()
        said = following.said()
        if said:
            work.notes.append(said)
            work.reshape(*following.new)

    def _remove(self, work: Work, node: ir.Node, stands: dict[ir.Value, ir.Value]) -> None:
        graph = node.graph
        assert graph is not None
        value = next((one for one in _used(node) if one in stands), None)
        if value is not None:
            new = stands[value]
            same = self.same or (node.op_type in _SAME and not node.domain)
            readers = [use.node for use in value.uses()]
            # The operand keeps its numbers; those of its new readers change.
            if not same:
                work.change(*(one for reader in readers for one in reader.outputs))
            else:
                work.reshape(*(one for reader in readers for one in reader.outputs))
            self._as_output(work, node, value, new, same=same)
            value.replace_all_uses_with(new)  # the readers that are left
        operands = [one for one in dict.fromkeys(node.inputs) if one is not None]
        captures.release(node)
        graph.remove(node, safe=True)
        for one in operands:
            release(one)

    def _operand(self, work: Work, node: ir.Node) -> ir.Value:
        if self.keep is not None:
            index = operand_index(work, node, self.keep)
            found = node.inputs[index] if index < len(node.inputs) else None
            if found is not None:
                return found
        computed = [one for one in node.inputs if one is not None and const_tensor(one) is None]
        if self.keep is None and len(dict.fromkeys(computed)) == 1:
            return computed[0]
        read = [one for one in dict.fromkeys(node.inputs) if one is not None]
        if self.keep is None and len(read) == 1:
            return read[0]
        raise problem(
            "edit/no-operand",
            f"which operand of {walk.node_label(node)} should replace its result?",
            why=f"it reads {', '.join(one.name or '' for one in computed) or 'constants only'}",
            fix="add keep = 0, the number of the operand",
        )

    def _as_output(self, work: Work, node: ir.Node, value: ir.Value, new: ir.Value, *, same: bool) -> None:
        if not value.is_graph_output():
            return
        inner = graph_of(node)
        if same and can_be_output(new, inner):
            value.replace_all_uses_with(new, replace_graph_outputs=True)
            value.name, new.name = work.names.free(f"{value.name}_removed"), value.name
            new.type, new.shape = new.type or value.type, new.shape if new.shape is not None else value.shape
            work.declare(new)  # an output has a type in the file
            return
        work.notes.append(
            f"an Identity computes the output {value.name}, so that both {new.name} and the output keep their names"
        )
        made = operators(work, inner, None, f"removal of {walk.node_label(node)}", [new]).Identity(new).value
        made.type, made.shape, name = new.type, new.shape, value.name
        for index, one in enumerate(inner.outputs):
            if one is value:
                inner.outputs[index] = made
        value.name = work.names.free(f"{name}_removed")
        made.name = name
        if not same:
            work.change(made)


def _wiring(node: ir.Node) -> str:
    """Returns the steps, but for their tensor, after which nothing reads the further results of a node."""
    uses = [use for value in node.outputs[1:] for use in value.uses()]
    steps = [f'do = "wire", node = "{walk.node_label(use.node)}", input = {use.idx}, tensor = …' for use in uses]
    outputs = [f'do = "drop-output", output = "{value.name}"' for value in node.outputs[1:] if value.is_graph_output()]
    return first_few([*steps, *outputs], 3, "; ")


def _used(node: ir.Node) -> list[ir.Value]:
    return [value for value in node.outputs if value.uses() or value.is_graph_output()]


@dataclass(frozen=True)
class Replace(Step):
    """Replaces every match of the pattern `find` by the operators of `by`. Both are ONNX text with variables, or, in
    Python, functions of operators. `by` reads variables of `find` and intermediate results of `find`, and has as many
    results; a result may be a variable. `where` has conditions on the names in `find`, `{x = {dtype = "float32", rank =
    2}}`. `count` is the required number of matches, or "all". The outputs must keep their numbers, unless `changes`
    says that they change on purpose. Nodes of a match that other nodes read stay."""

    first = ("find", "by")

    find: str | Pattern | Callable[..., Any]
    by: str | Pattern | Callable[..., Any]
    where: Mapping[str, Any] = field(default_factory=dict)
    count: int | str = ALL
    changes: bool = False

    def __post_init__(self) -> None:
        for name, read in (("find", pattern_of), ("by", replacement_of)):
            given = getattr(self, name)
            if callable(given):
                with contextlib.suppress(OnnxsmithError):  # a pattern that text cannot express is not recorded
                    object.__setattr__(self, name, read(given).text())

    def apply(self, work: Work) -> str:
        pattern, by = pattern_of(self.find), replacement_of(self.by)
        if len(pattern.outputs) != len(by.outputs):
            raise problem(
                "edit/replacement",
                f"`find` has {several(len(pattern.outputs), 'result')}, but `by` has {len(by.outputs)}",
                why="each result of the pattern needs a result that replaces it",
                fix="name the results in the same order: (x) => (y, z)",
            )
        if self.where:
            work.infer()  # dtypes and shapes that the file does not declare
        said = " ".join(self.find.split()) if isinstance(self.find, str) else pattern.name
        called = called_functions(work.model)
        matches = places(work.model, pattern, self.where, self.count, said)
        labels = first_few([walk.node_label(match.node) for match in matches], 3)
        new = replace_all(work, matches, by)
        if self.changes:
            work.change(*new)
        work.reshape(*new)
        remove_uncalled(work.model, called)
        return f"in {several(len(matches), 'place')}: {labels}"


@dataclass(frozen=True)
class Wire(Step):
    """Lets `node` read `tensor` as its operand `input` (a number from 0, or a name in the schema, such as "B").
    `tensor` is the name of a tensor, a number, list or array for a constant, or "" to leave an optional operand out.
    With `same` the outputs must keep their numbers."""

    first = ("node", "input", "tensor")

    node: Any
    input: int | str
    tensor: Any
    same: bool = False

    def apply(self, work: Work) -> str:
        node = work.find.node(self.node)
        index = operand_index(work, node, self.input)
        value = operand(work, node, index, self.tensor)
        if value is not None and value in depending(work.model, set(node.outputs)):
            raise problem(
                "edit/cycle",
                f"{walk.node_label(node)} would depend on its own result",
                why=f"{value.name!r} is computed from the node's result",
                fix="choose a tensor that does not depend on the node",
            )
        while len(node.inputs) <= index:
            node.resize_inputs(len(node.inputs) + 1)
        old = node.inputs[index]
        node.replace_input_with(index, value)
        if not self.same:
            work.change(*node.outputs)
        else:
            work.reshape(*node.outputs)
        names = (one.name if one is not None else "nothing" for one in (old, value))
        return f"{walk.node_label(node)}, operand {self.input}: {' → '.join(str(name) for name in names)}"


@dataclass(frozen=True)
class Set(Step):
    """Sets `attributes` of the selected `node`, or of all selected nodes: `{ axis = 1 }`. An empty text removes an
    attribute, so that its default applies. With `same` the outputs must keep their numbers."""

    first = ("node", "attributes")

    node: Any
    attributes: Mapping[str, Any] = field(default_factory=dict)
    same: bool = False

    def apply(self, work: Work) -> str:
        nodes = work.find.nodes(self.node)
        for node in nodes:
            self._set(work, node)
        listed = ", ".join(
            f"{name} = {'removed' if _gone(value) else value}" for name, value in self.attributes.items()
        )
        return f"{_labels(nodes)}: {listed}"

    def _set(self, work: Work, node: ir.Node) -> None:
        version = work.opsets(node).get(node.domain, 1)
        known = schema.find(node.op_type, node.domain, version)
        kept = {name: one for name, one in node.attributes.items() if name not in self.attributes}
        new = {name: value for name, value in self.attributes.items() if not _gone(value)}
        # Without a schema, the old attribute tells the type of its new value.
        if known is None:
            guessed = {
                name: ir.Attr(name, node.attributes[name].type, value) if name in node.attributes else value
                for name, value in new.items()
            }
            made = checked.made(walk.op_name(node), None, guessed, walk.node_label(node))
        else:
            own = {name: one for name, one in kept.items() if name in known.attributes and not one.is_ref()}
            odd = [one for name, one in kept.items() if name not in own]
            made = [*checked.made(walk.op_name(node), known, {**own, **new}, walk.node_label(node)), *odd]
            kept = {}
        node.attributes.clear()
        for one in (*kept.values(), *made):
            node.attributes.add(one)
        if not self.same:
            work.change(*node.outputs)
        else:
            work.reshape(*node.outputs)


def _gone(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value)


def _labels(nodes: list[ir.Node]) -> str:
    return first_few([walk.node_label(node) for node in nodes], 3)

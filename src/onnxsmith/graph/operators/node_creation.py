"""Makes nodes at one place of a model: checks a call, adds the node, infers its results. Undoes everything on an
error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import onnx_ir as ir

from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import problem
from onnxsmith.graph.operators import attributes, results
from onnxsmith.graph.operators.function_attributes import Parameter
from onnxsmith.graph.operators.insertion_point import Place
from onnxsmith.graph.operators.lists import joined
from onnxsmith.graph.operators.naming import Naming
from onnxsmith.graph.operators.operand_types import Typed, typed
from onnxsmith.graph.operators.operands import Operand, assigned, is_tensor
from onnxsmith.graph.operators.sizes.size_checks import check as check_sizes
from onnxsmith.graph.operators.tensor import Tensor
from onnxsmith.graph.operators.user_line import user_line
from onnxsmith.graph.shapes.incremental_inference import Growing
from onnxsmith.graph.shapes.standard_inference import RefusedError
from onnxsmith.graph.structure import schema as schemas
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.schema import Schema

if TYPE_CHECKING:
    from onnxsmith.graph.operators.operator_methods import Operators

LINE = "onnxsmith.line"
"""Is the key of a node's `meta` that holds the user's line that made it."""


class Maker:
    """Makes nodes at the end of a graph, or before a node. Its subclass `Operators` has the methods that users call."""

    def __init__(
        self,
        model: ir.Model,
        graph: ir.Graph | ir.Function | None = None,
        before: ir.Node | None = None,
        *,
        blame: Callable[[], str] = user_line,
        other_opset: str = "build with opset={}",
    ) -> None:
        self._model = model
        self._blame, self._other_opset = blame, other_opset
        self._places = [Place.of(model, graph, before)]
        self._naming = Naming(model, self._places[0])
        self._growing = Growing(model)
        self._made: list[ir.Node] = []
        self._bodies: list[ir.Graph] = []

    def at(self, graph: ir.Graph | ir.Function | None = None, before: ir.Node | None = None) -> None:
        """Sets the place of the next nodes."""
        self._places = [Place.of(self._model, graph, before)]
        self._naming.enter(self._places[0])

    @property
    def opset(self) -> int:
        """The model's opset of ONNX's own domain."""
        return self._place.opsets.get("", 0)

    @property
    def made(self) -> Sequence[ir.Node]:
        """All nodes made so far, in order."""
        return tuple(self._made)

    def blame(self) -> str:
        """Returns the `file:line` of the user's code that made the current call."""
        return self._blame()

    def begin(self) -> str:
        """Begins a call that changes the model; returns the `file:line` of the user's code."""
        return self._blame()

    @property
    def outputs(self) -> Sequence[ir.Value]:
        """The outputs of the model."""
        return self._model.graph.outputs

    @property
    def is_inside(self) -> bool:
        """Whether new nodes go into a branch, a body or a function."""
        return self._place.graph is not self._model.graph

    def exact_name(self, name: str, *, scoped: bool = False) -> str:
        """Reserves this name.

        Raises:
            OnnxsmithError: `build/name` if it is taken.
        """
        return self._naming.exact(name, self.blame(), scoped=scoped)

    def handle(self, value: ir.Value) -> Tensor:
        """Returns the handle of a value."""
        return Tensor(value, self._whole)

    @property
    def _whole(self) -> Operators:
        """Returns this object typed as `Operators`, its actual class."""
        return cast("Operators", self)

    def readable(self, given: Any, what: str) -> Tensor:
        """Returns the handle of a tensor that can be read here.

        Raises:
            OnnxsmithError: `build/tensor` if it cannot.
        """
        value = self._value(what, Operand("the tensor", given, None), self.blame())
        assert value is not None
        return self.handle(value)

    @contextmanager
    def inside(self, graph: ir.Graph) -> Iterator[None]:
        """Makes nodes in a branch or body of a node that will be made here."""
        self._places.append(self._place.inside(graph))
        self._bodies.append(graph)
        try:
            yield
        finally:
            self._places.pop()

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Makes nodes in the body of a function, which reads nothing of the graph and has names of its own."""
        places, naming, made = self._places, self._naming, len(self._made)
        self._places = [Place.of_function(places[-1].opsets)]
        self._naming = Naming(ir.Model(self._places[0].graph, ir_version=10), self._places[0])
        try:
            yield
        finally:
            self._places, self._naming = places, naming
            del self._made[made:]

    def mark(self) -> tuple[int, int, int]:
        """Returns the current state, for `take_back`."""
        return len(self._made), self._naming.count(), len(self._bodies)

    def take_back(self, mark: tuple[int, int, int]) -> None:
        """Frees the names since the mark, and detaches the branches and bodies traced since then."""
        made, names, bodies = mark
        del self._made[made:]
        self._naming.drop_after(names)
        for graph in self._bodies[bodies:]:
            for node in walk.nodes(graph):
                for index in range(len(node.inputs)):
                    node.replace_input_with(index, None)
        del self._bodies[bodies:]

    def free_name(self, wish: str) -> str:
        """Reserves a name."""
        return self._naming.free(wish)

    def new_dim(self) -> ir.SymbolicDim:
        """Returns a dimension of unknown size, with a new name."""
        return self._growing.new_dim()

    def call(
        self, op: str, operands: Sequence[Any], keywords: Mapping[str, Any], name: str | None, outputs: Any
    ) -> Any:
        """Makes a node of ONNX's own domain."""
        return self._call(op, "", operands, keywords, name, outputs)

    @property
    def _place(self) -> Place:
        return self._places[-1]

    def _schema(self, op: str, domain: str) -> Schema | None:
        return schemas.find(op, domain, self._place.opsets.get(domain, 1))

    def _call(
        self, op: str, domain: str, given: Sequence[Any], keywords: Mapping[str, Any], name: str | None, outputs: Any
    ) -> Any:
        where = self.begin()
        shown = f"{domain}::{op}" if domain else op
        schema = self._schema(op, domain)
        with self.atomic():
            operands, left = assigned(shown, schema, given, keywords, where)
            operands = [replace(operand, given=self._joined(operand.given)) for operand in operands]
            values = [self._value(shown, operand, where) for operand in operands]
            types = typed(shown, operands, values, where)
            first = values[0].shape if values and values[0] is not None else None
            attrs = attributes.made(shown, schema, left, where, rank=None if first is None else len(first))
            wishes = results.wished(shown, schema, outputs, types, attrs, where)
            base = self._naming.exact(name, where) if name is not None else self._naming.free(op.lower())
            names = results.named(wishes, schema, base, self._naming, where)
            inputs = [self._input(one, operand, base) for one, operand in zip(types, operands, strict=True)]
            made = [ir.Value(name=one) for one in names]
            for value, wish in zip(made, wishes, strict=True):
                if isinstance(wish, str):
                    value.meta[results.EXPLICIT] = True
            node = ir.Node(domain, op, inputs, attrs, outputs=made, name=base)
            node.meta[LINE] = where
            self._place.add(node)
            self.infer(node)
            self._made.append(node)
        handles = tuple(self.handle(value) if value.name else None for value in made)
        return handles[0] if len(handles) == 1 else handles

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """If the block fails, undoes everything that it made."""
        mark, naming = self.mark(), self._naming
        try:
            with self._place.undone_on_error():
                yield
        except BaseException:
            assert naming is self._naming
            self.take_back(mark)
            raise

    def infer(self, node: ir.Node) -> None:
        """Checks the sizes of a node's operands, and infers the types and shapes of its results.

        Raises:
            OnnxsmithError: `build/shape`.
        """
        version = self._place.opsets.get(node.domain, 1)
        where = node.meta.get(LINE, "")
        if not any(attribute.is_ref() for attribute in node.attributes.values()):  # the value is known only in a call
            check_sizes(node, version, where)
        try:
            self._growing.infer(node, version)
        except RefusedError as error:
            told = [
                f"{self._label(node, index)} {self.handle(value)!r}" for index, value in enumerate(node.inputs) if value
            ]
            raise problem(
                "build/shape",
                f"{node.op_type} does not fit its operands: {error}",
                where=where,
                why="; ".join(told),
                fix=f"give {node.op_type} operands of shapes that fit; x.shape shows a tensor's",
            ) from error

    def _label(self, node: ir.Node, index: int) -> str:
        schema = self._schema(node.op_type, node.domain)
        return schema.input_name(index) if schema is not None else f"operand {index}"

    def _value(self, op: str, operand: Operand, where: str) -> ir.Value | None:
        """Returns the value of an operand that is a tensor of the graph and can be read here; None for other
        operands."""
        if not is_tensor(operand.given):
            return None
        value: ir.Value = operand.given.value if isinstance(operand.given, Tensor) else operand.given
        if value.graph is not None and any(value.graph is place.graph for place in self._visible()):
            return value
        why = "this tensor belongs to another model"
        if isinstance(operand.given, Tensor) and operand.given._home is self:
            why = "this tensor was made inside a branch or a body that has ended"
        raise problem(
            "build/tensor",
            f"{op}: {operand.label} is {value.name!r}, which cannot be read here",
            where=where,
            why=why,
            fix="return it from the branch or the body, and use the result of g.If, g.Loop or g.Scan"
            if "branch" in why
            else "make an input for it with g.input, or build both in one model",
        )

    def _visible(self) -> Iterator[Place]:
        """Yields the places whose values a node here can read, the innermost first."""
        for place in reversed(self._places):
            yield place
            yield from place.around

    def _input(self, one: Typed, operand: Operand, base: str) -> ir.Value | None:
        if one is None or isinstance(one, ir.Value):
            return one
        return self._place.constant(
            one, operand.given, lambda: self._naming.free(f"{base}.{operand.label}", scoped=False)
        )

    def _joined(self, given: Any) -> Any:
        """Makes one tensor from a list with tensors in it, such as `[g.Shape(x)[0], -1]`, or from a function's
        attribute."""
        if isinstance(given, Parameter):
            return self.call("Constant", (), given.as_constant(), None, None)
        return joined(self._whole, given) if isinstance(given, list | tuple) else given

    @contextmanager
    def _importing(self, op: str, domain: str) -> Iterator[None]:
        """Imports the domain, in the newest version that has the operator. Removes the import if the block fails."""
        is_new = domain not in self._place.opsets
        is_new_in_model = domain not in self._model.opset_imports
        if is_new:
            version = schemas.last_alive(op, domain) or schemas.domains().get(domain, 1)
            self._place.opsets[domain] = version
            self._model.opset_imports.setdefault(domain, version)
        try:
            yield
        except BaseException:
            if is_new:
                del self._place.opsets[domain]
            if is_new_in_model:
                self._model.opset_imports.pop(domain, None)
            raise

    def _refuse_unknown(self, op: str, domain: str) -> None:
        """Refuses an operator that the opset lacks. An operator of a domain without schemas is taken as it is."""
        version = self._place.opsets.get(domain, 1)
        known = schemas.operators(domain, version)
        if op in known or (not known and domain) or any(i[:2] == (domain, op) for i in self._model.functions):
            return
        since = schemas.versions(op, domain)
        shown, name = (f"{domain}::{op}", domain) if domain else (op, "opset")
        if since and since[0] > version:
            why, fix = f"the operator appeared in {name} {since[0]}", self._other_opset.format(since[0])
        elif since:
            later = schemas.first_alive(op, domain, version)
            last = later or schemas.last_alive(op, domain)
            other = f'build with imports={{"{domain}": {last}}}' if domain else self._other_opset.format(last)
            why = (
                f"{name} {last} has this operator again"
                if later
                else (f"{name} {last} was the last with this operator")
            )
            fix = _REPLACED.get(op, other)
        else:
            near = _similar(op, known)
            why = f"{name} {version} has {len(known)} operators"
            in_build = self._other_opset.startswith("build ")
            if op.lower() in _FORMULAS and not domain:
                fix = f"write {_FORMULAS[op.lower()].replace('@', 'g.' if in_build else '')}"
            elif near:
                fix = f"write {near}"
            elif in_build:
                fix = f'write it with operators of {name} {version}; or, for another domain, g.node("domain::{op}", …)'
            else:
                fix = (
                    f"write it with operators of {name} {version}; or, for an operator of your runtime, write its "
                    f"domain, my.domain.{op}, and do not run the model: --no-verify, in Python verify=False"
                )
        raise problem(
            "build/operator", f"there is no operator {shown} in {name} {version}", where=self.blame(), why=why, fix=fix
        )


_REPLACED = {
    "Upsample": "use g.Resize(x, scales=[…])",
    "Scatter": "use g.ScatterElements",
}
"""Maps deprecated operators to their replacements."""
_FORMULAS = {
    "silu": "@Mul(x, @Sigmoid(x))", "relu6": "@Clip(x, 0.0, 6.0)", "square": "@Mul(x, x)",
    "rsqrt": "@Reciprocal(@Sqrt(x))", "logsigmoid": "@Neg(@Softplus(@Neg(x)))",
}  # fmt: skip
"""Maps functions of torch that are no operators, in small letters, to operators. `@` stands for the builder."""
_ALIKE = 0.8
"""The least likeness of a mistyped operator, by difflib. A choice: below it Foo is Floor, and Silu is Selu."""


def _similar(op: str, known: Iterable[str]) -> str | None:
    """Returns the operator that is meant: one of the same letters, one that the name begins or that begins the name, or
    the most similar one; None if none is."""
    wanted = op.lower().replace("_", "")
    small = {one.lower(): one for one in known}
    same = [one for one in small if sorted(one) == sorted(wanted)]
    close = same or near_names(wanted, small, 1, _ALIKE)
    if not close and len(wanted) >= _LONG_ENOUGH:
        longer = [one for one in small if one.startswith(wanted)]
        shorter = [one for one in small if wanted.startswith(one) and len(one) >= _LONG_ENOUGH]
        close = sorted(longer, key=len)[:1] or sorted(shorter, key=len)[-1:]
    return small[close[0]] if close else None


_LONG_ENOUGH = 4
"""The fewest letters by which a name may begin another. A choice."""

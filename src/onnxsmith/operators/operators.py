"""Operators as methods: each call checks its arguments and makes one node at one place of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import onnx_ir as ir

from onnxsmith.model.graph import schema as schemas
from onnxsmith.model.graph.schema import Schema
from onnxsmith.model.shapes.growing import Growing
from onnxsmith.model.shapes.standard_inference import RefusedError
from onnxsmith.operators import attributes, constants, dtypes, results, sizes
from onnxsmith.operators.lists import joined
from onnxsmith.operators.naming import Naming
from onnxsmith.operators.operand_types import Typed, typed
from onnxsmith.operators.operands import Operand, assigned, is_tensor, nearest
from onnxsmith.operators.places import Place
from onnxsmith.operators.tensor import Tensor
from onnxsmith.operators.user_line import user_line
from onnxsmith.problem import problem

LINE = "onnxsmith.line"
"""Key of a node's `meta`: the user's line that made it."""


class Operators:
    """Makes nodes in a model: `g.Relu(x)`, `g.Conv(x, w, pads=[1, 1, 1, 1])`, `g.node("com.microsoft::Gelu", x)`.

    Every operator of the model's opset is a method. Operands are tensors of the graph (handles or `ir.Value`), numpy
    arrays, Python numbers and lists, which become constants of the dtype that the operator demands, and None for a
    missing optional operand. Operands and attributes can be given by the names of the schema. The result is a `Tensor`,
    or a tuple if the operator has several results. `name` names the node; `outputs` is the number of results or a list
    of their names.

    Nodes are made at the end of `graph` (the main graph by default), or before the node `before`. `graph` may be a
    branch, a body, or a function. A refused call changes nothing.
    """

    def __init__(
        self,
        model: ir.Model,
        graph: ir.Graph | ir.Function | None = None,
        before: ir.Node | None = None,
        *,
        blame: Callable[[], str] = user_line,
    ) -> None:
        self._model = model
        self._blame = blame
        self._places = [Place.of(model, graph, before)]
        self._naming = Naming(model, self._places[0])
        self._growing = Growing(model)
        self._made: list[ir.Node] = []

    def at(self, graph: ir.Graph | ir.Function | None = None, before: ir.Node | None = None) -> None:
        """Moves the place of the next nodes."""
        self._places = [Place.of(self._model, graph, before)]
        self._naming.enter(self._places[0])

    @property
    def opset(self) -> int:
        """The opset of ONNX's own domain."""
        return self._place.opsets.get("", 0)

    @property
    def made(self) -> Sequence[ir.Node]:
        """The nodes that were made, in order."""
        return tuple(self._made)

    def tensor(self, value: ir.Value | str) -> Tensor:
        """A handle of a value of the graph, or of the value with this name in the graph or around it.

        Raises:
            OnnxsmithError: `build/tensor` if there is none.
        """
        found = self._place.find(value) if isinstance(value, str) else value
        if found is None:
            near = nearest(str(value), self._place.names())
            raise problem(
                "build/tensor",
                f"there is no tensor {value!r} here",
                where=self.blame(),
                fix=f"write {near!r}" if near else "`onnxsmith inspect MODEL --tensors` lists the names",
            )
        return Tensor(found, self)

    def weight(self, name: str, array: Any) -> Tensor:
        """Adds a constant with a name of its own: an initializer, in a function a Constant node. The array is copied.

        Raises:
            OnnxsmithError: `build/name` if the name is taken, `build/constant` if the value cannot be a tensor.
        """
        where = self.blame()
        if constants.is_array(array):
            tensor = constants.of_array(array, f"the weight {name!r}", where)
        else:
            operand = Operand(name, array, None)
            tensor = typed("weight", [operand], [None], where)[0]  # type: ignore[assignment]
        return Tensor(self._place.constant(tensor, None, lambda: self._naming.exact(name, where)), self)

    def constant(self, value: Any, dtype: Any = None) -> Tensor:
        """Adds a constant: an array, or a Python number or list as `dtype` (float32, int64, bool or string if None)."""
        where = self.blame()
        if dtype is not None and constants.is_python(value):
            tensor = constants.of_python(value, dtypes.read(dtype, where), "the constant", where)
        else:
            tensor = typed("constant", [Operand("value", value, None)], [None], where)[0]  # type: ignore[assignment]
        if dtype is not None and tensor.dtype != dtypes.read(dtype, where):
            tensor = constants.of_array(tensor.numpy().astype(dtypes.read(dtype, where).numpy()), "the constant", where)
        return Tensor(self._place.constant(tensor, None, lambda: self._naming.free("constant")), self)

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Puts `name.` before the names of everything made inside the block."""
        with self._naming.scope(name):
            yield

    def declare(self, tensor: Tensor, dtype: Any, shape: Sequence[int | str | None] | None) -> None:
        """Sets the type of a value of which nothing is known.

        Raises:
            OnnxsmithError: `build/type` if its dtype is known and another one.
        """
        where = self.blame()
        wanted = dtypes.read(dtype, where)
        value = tensor.value
        if value.dtype is not None and value.dtype != wanted:
            raise problem(
                "build/type",
                f"{tensor.name} is of {tensor.dtype}, not {dtypes.shown(wanted)}",
                where=where,
                why="its operator decides its dtype",
                fix=f'convert it: g.Cast({tensor.name}, to="{dtypes.shown(wanted)}")',
            )
        value.type = ir.TensorType(wanted)
        if shape is not None and value.shape is None:
            value.shape = ir.Shape(list(shape))

    def blame(self) -> str:
        """The user's `file:line`."""
        return self._blame()

    def __getattr__(self, op: str) -> Callable[..., Any]:
        if op.startswith("_"):
            raise AttributeError(op)
        self._refuse_unknown(op, "")

        def make(*operands: Any, name: str | None = None, outputs: Any = None, **keywords: Any) -> Any:
            return self._call(op, "", operands, keywords, name, outputs)

        make.__name__ = op
        return make

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *schemas.operators("", self.opset)})

    def node(self, op: str, *operands: Any, name: str | None = None, outputs: Any = None, **keywords: Any) -> Any:
        """Makes a node of any domain, `domain::Operator`, or a call of a function of the model. Imports the domain.

        Without a schema nothing is known of the operands, attributes and results: Python's types decide, there is one
        result if `outputs` does not say otherwise, and its type is unknown (see `Tensor.declare`).
        """
        domain, _, op_type = op.rpartition("::")
        domain = "" if domain == "ai.onnx" else domain
        self._import(domain)
        self._refuse_unknown(op_type, domain)
        return self._call(op_type, domain, operands, keywords, name, outputs)

    @property
    def _place(self) -> Place:
        return self._places[-1]

    def _schema(self, op: str, domain: str) -> Schema | None:
        return schemas.find(op, domain, self._place.opsets.get(domain, 1))

    def _call(
        self, op: str, domain: str, given: Sequence[Any], keywords: Mapping[str, Any], name: str | None, outputs: Any
    ) -> Any:
        where = self.blame()
        shown = f"{domain}::{op}" if domain else op
        schema = self._schema(op, domain)
        with self.atomic():
            operands, left = assigned(shown, schema, given, keywords, where)
            operands = [replace(operand, given=self._joined(operand.given)) for operand in operands]
            values = [self._value(shown, operand, where) for operand in operands]
            types = typed(shown, operands, values, where)
            attrs = attributes.made(shown, schema, left, where)
            wishes = results.wished(shown, schema, outputs, attrs, where)
            base = self._naming.exact(name, where) if name is not None else self._naming.free(op.lower())
            names = results.named(wishes, schema, base, self._naming, where)
            inputs = [self._input(one, operand, base) for one, operand in zip(types, operands, strict=True)]
            made = [ir.Value(name=one) for one in names]
            node = ir.Node(domain, op, inputs, attrs, outputs=made, name=base)
            node.meta[LINE] = where
            self._place.add(node)
            self.infer(node)
            self._made.append(node)
        handles = tuple(Tensor(value, self) if value.name else None for value in made)
        return handles[0] if len(handles) == 1 else handles

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Takes back everything that the block made if it fails."""
        count = len(self._made)
        try:
            with self._naming.undone_on_error(), self._place.undone_on_error():
                yield
        except BaseException:
            del self._made[count:]
            raise

    def infer(self, node: ir.Node) -> None:
        """Checks the sizes of a node's operands, and infers the types and shapes of its results.

        Raises:
            OnnxsmithError: `build/shape`.
        """
        version = self._place.opsets.get(node.domain, 1)
        where = node.meta.get(LINE, "")
        sizes.check(node, version, where)
        try:
            self._growing.infer(node, version)
        except RefusedError as error:
            told = [
                f"{self._label(node, index)} {Tensor(value, self)!r}"
                for index, value in enumerate(node.inputs)
                if value
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
        """The operand if it is a value that a node here can read."""
        if not is_tensor(operand.given):
            return None
        value: ir.Value = operand.given.value if isinstance(operand.given, Tensor) else operand.given
        if value.graph is not None and any(value.graph is place.graph for place in self._visible()):
            return value
        why = "it belongs to another model"
        if isinstance(operand.given, Tensor) and operand.given._home is self:
            why = "it was made inside a branch or a body, which has ended"
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
        """The places whose values can be read here, the innermost first."""
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
        """Makes one tensor of a list with tensors in it: `[g.Shape(x)[0], -1]`."""
        return joined(self, given) if isinstance(given, list | tuple) else given

    def _import(self, domain: str) -> None:
        if domain not in self._place.opsets:
            newest = schemas.domains().get(domain, 1)
            self._place.opsets[domain] = newest
            self._model.opset_imports.setdefault(domain, newest)

    def _refuse_unknown(self, op: str, domain: str) -> None:
        """Refuses an operator that the opset lacks. An operator of a domain without schemas is taken as it is."""
        version = self._place.opsets.get(domain, 1)
        known = schemas.operators(domain, version)
        if op in known or (not known and domain) or any(i[:2] == (domain, op) for i in self._model.functions):
            return
        since = schemas.versions(op, domain)
        shown, name = (f"{domain}::{op}", domain) if domain else (op, "opset")
        if since and since[0] > version:
            why, fix = f"it appeared in {name} {since[0]}", f"build with opset={since[0]} or later"
        elif since:
            why, fix = f"it was taken away; its last version is {since[-1]}", _REPLACED.get(op, "use another operator")
        else:
            near = nearest(op, known)
            why = f"{name} {version} has {len(known)} operators"
            fix = f"write {near}" if near else 'for another domain, g.node("domain::Operator", …)'
        raise problem(
            "build/operator", f"there is no operator {shown} in {name} {version}", where=self.blame(), why=why, fix=fix
        )


_REPLACED = {
    "Upsample": "use g.Resize(x, scales=[…])",
    "Scatter": "use g.ScatterElements",
}
"""What took the place of a deprecated operator."""

"""Operators as methods: each call checks its arguments and makes one node at one place of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.words import nearest
from onnxsmith.graph.operators import constant_tensors, control_flow, dtypes
from onnxsmith.graph.operators.function_attributes import Parameter
from onnxsmith.graph.operators.functions import LocalFunction
from onnxsmith.graph.operators.node_creation import LINE as LINE
from onnxsmith.graph.operators.node_creation import Maker
from onnxsmith.graph.operators.operand_types import typed
from onnxsmith.graph.operators.operands import Operand
from onnxsmith.graph.operators.tensor import Tensor
from onnxsmith.graph.structure import schema as schemas
from onnxsmith.graph.structure import walk


class Operators(Maker):
    """Makes nodes in a model: `g.Relu(x)`, `g.Conv(x, w, pads=[1, 1, 1, 1])`, `g.node("com.microsoft::Gelu", x)`.

    Every operator of the model's opset is a method. Operands are tensors of the graph (handles or `ir.Value`), numpy
    arrays, Python numbers and lists, or None for a missing optional operand. Python numbers and lists become constants
    of the dtype that the operator demands. Operands and attributes can be given by their names in the schema. The
    result is a `Tensor`, or a tuple if the operator has several results. `name` names the node; `outputs` is the number
    of results or a list of their names.

    Nodes are made at the end of `graph` (the main graph by default), or before the node `before`. `graph` may be a
    branch, a body, or a function. A refused call changes nothing.
    """

    def tensor(self, value: ir.Value | str) -> Tensor:
        """Returns a handle of a value, given itself or by its name in this graph or an outer graph.

        Raises: OnnxsmithError: `build/tensor` if there is no such value.
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
        """Adds a constant with a given name: an initializer, or a Constant node in a function. Copies the array.

        Raises:
            OnnxsmithError: `build/name` if the name is taken, `build/constant` if the value cannot be a tensor.
        """
        where = self.begin()
        if constant_tensors.is_array(array):
            tensor = constant_tensors.of_array(array, f"the weight {name!r}", where)
        else:
            operand = Operand(name, array, None)
            tensor = typed("weight", [operand], [None], where)[0]  # type: ignore[assignment]
        return Tensor(self._place.constant(tensor, None, lambda: self._naming.exact(name, where)), self)

    def constant(self, value: Any, dtype: Any = None) -> Tensor:
        """Adds a constant: an array, or a Python number or list as `dtype` (by default float32, int64, bool or
        string)."""
        where = self.begin()
        if isinstance(value, Parameter):
            made: Tensor = self.call("Constant", (), value.as_constant(), None, None)
            return made if dtype is None else self.call("Cast", (made,), {"to": dtype}, None, None)
        if dtype is not None and constant_tensors.is_python(value):
            tensor = constant_tensors.of_python(value, dtypes.read(dtype, where), "the constant", where)
        else:
            tensor = typed("constant", [Operand("value", value, None)], [None], where)[0]  # type: ignore[assignment]
        if dtype is not None and tensor.dtype != dtypes.read(dtype, where):
            tensor = constant_tensors.of_array(
                tensor.numpy().astype(dtypes.read(dtype, where).numpy()), "the constant", where
            )
        return Tensor(self._place.constant(tensor, None, lambda: self._naming.free("constant")), self)

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Puts `name.` before the names of everything made inside the block."""
        with self._naming.scope(name):
            yield

    def declare(self, tensor: Tensor, dtype: Any, shape: Sequence[int | str | None] | None) -> None:
        """Sets the type of a value whose type is unknown.

        Raises: OnnxsmithError: `build/type` if its dtype is known and differs.
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
        dims = None if shape is None else list(shape)
        known = tensor.shape
        if known is not None and dims is not None and not _agree(known, dims):
            raise problem(
                "build/type",
                f"{tensor.name} has the shape {list(known)}, not {dims}",
                where=where,
                why="its operator decides its shape",
                fix="leave the declaration out",
            )
        value.type = ir.TensorType(wanted)
        if dims is not None and value.shape is None:
            value.shape = ir.Shape(dims)

    def __getattr__(self, op: str) -> Callable[..., Any]:
        if not op[:1].isupper() and op.lower() not in {one.lower() for one in schemas.operators("", self.opset)}:
            raise AttributeError(f"{type(self).__name__} has no attribute {op!r}", name=op, obj=self)
        self._refuse_unknown(op, "")

        def make(*operands: Any, name: str | None = None, outputs: Any = None, **keywords: Any) -> Any:
            return self._call(op, "", operands, keywords, name, outputs)

        make.__name__ = op
        return make

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *schemas.operators("", self.opset)})

    def node(self, op: str, *operands: Any, name: str | None = None, outputs: Any = None, **keywords: Any) -> Any:
        """Makes a node of any domain, `domain::Operator`, or a call of a function of the model. Imports the domain.

        Without a schema, Python types decide the types of attributes. The node has one result unless `outputs` says
        otherwise, and its type is unknown (see `Tensor.declare`).
        """
        domain, _, op_type = op.rpartition("::")
        domain = "" if domain == "ai.onnx" else domain
        with self._importing(op_type, domain):
            self._refuse_unknown(op_type, domain)
            return self._call(op_type, domain, operands, keywords, name, outputs)

    def If(self, cond: Any, then: Any, orelse: Any, *, name: str | None = None, outputs: Any = None) -> Any:  # noqa: N802
        """Makes an If. `then` and `orelse` are functions without parameters; both return the same number of tensors."""
        return control_flow.branch(self, cond, then, orelse, name, outputs)

    def Loop(  # noqa: N802
        self, n: Any, cond: Any, *states: Any, body: Any = None, name: str | None = None, outputs: Any = None
    ) -> Any:
        """Makes a Loop: at most `n` iterations (None: no limit) while `cond` (None: true).

        `body(iteration, condition, *states)` returns the condition to go on, the new states, and then any number of
        tensors that are stacked over the iterations. The results are the last states and the stacks.
        """
        if body is None and states and callable(states[-1]):
            states, body = states[:-1], states[-1]
        return control_flow.loop(self, n, cond, states, body, name, outputs)

    def Scan(  # noqa: N802
        self, *operands: Any, body: Any = None, name: str | None = None, outputs: Any = None, **attributes: Any
    ) -> Any:
        """Makes a Scan over the last `num_scan_inputs` operands; the operands before them are states.

        `body(*states, *elements)` returns the new states, and then any number of tensors that are stacked.
        """
        if body is None and operands and callable(operands[-1]):
            operands, body = operands[:-1], operands[-1]
        return control_flow.scan(self, operands, body, attributes, name, outputs)

    def function(self, name: str, python: Callable[..., Any]) -> LocalFunction:
        """Makes a model-local function, `domain::Name`, from a Python function of tensors. Call the result like the
        Python function.

        Raises:
            OnnxsmithError: `build/function` if the name has no domain, or is defined already.
        """
        domain, _, op = name.rpartition("::")
        if not domain or not op or schemas.operators(domain, schemas.domains().get(domain, 1)):
            raise problem(
                "build/function",
                f"{name!r} cannot be a function of the model",
                where=self.blame(),
                why="a function of the model needs its own domain, which the standard does not define",
                fix=f'write g.function("my.domain::{op or "Name"}", …)',
            )
        if any(key[:2] == (domain, op) for key in self._model.functions):
            raise problem(
                "build/function", f"the function {name} is defined already", where=self.blame(), fix="take another name"
            )
        return LocalFunction(self, domain, op, python)

    def define(self, function: ir.Function) -> None:
        """Adds a function to the model, with the opsets that its nodes use."""
        used = {node.domain for node in walk.nodes(function)} | {""}
        function.opset_imports.update({domain: self._place.opsets[domain] for domain in sorted(used)})
        self._model.functions[function.identifier()] = function


def _agree(known: Sequence[int | str | None], dims: Sequence[Any]) -> bool:
    """Whether a declared shape agrees with the known shape."""
    return len(known) == len(dims) and all(
        a == b or not (isinstance(a, int) and isinstance(b, int)) for a, b in zip(known, dims, strict=True)
    )

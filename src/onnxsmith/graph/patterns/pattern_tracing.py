"""Makes a pattern by tracing a Python function: calls it once, with an object whose methods are operators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import EllipsisType
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.patterns.pattern import (
    Absent,
    Anything,
    AttributeVariable,
    Either,
    Exact,
    Kind,
    Number,
    Numbers,
    Operand,
    Pattern,
    PatternNode,
    Rest,
    Result,
    Variable,
    Wanted,
)
from onnxsmith.graph.patterns.pattern_validation import checked, invalid
from onnxsmith.graph.structure import schema

CONSTANT_PREFIX = "c_"
"""Begins the names of variables that stand for constants."""


class Const:
    """Annotation of a parameter that stands for a constant: `def find(op, x, scale: Const)`."""


class Scalar:
    """Annotation of a parameter that stands for a constant with one element."""


_KINDS = {"Const": Kind.CONSTANT, "Scalar": Kind.SCALAR}


def near(value: float, rel: float = 1e-6) -> Number:
    """Returns a constant with one element that equals `value` within the relative tolerance `rel`."""
    return Number(value, rel)


def variable(name: str, kind: Kind = Kind.VALUE) -> Variable:
    """Returns a variable; a name that begins with `c_` makes it a constant."""
    if kind is Kind.VALUE and name.startswith(CONSTANT_PREFIX):
        kind = Kind.CONSTANT
    return Variable(name, kind)


def from_function(function: Callable[..., Any], *, is_replacement: bool = False) -> Pattern:
    """Makes a pattern, or a replacement, from a function. Its first parameter is the object with the operators; the
    other parameters are variables.

    Raises:
        OnnxsmithError: a `pattern/…` problem.
    """
    name = getattr(function, "__name__", "find")
    where = f"the {'replacement' if is_replacement else 'pattern'} {name}"
    given = list(inspect.signature(function).parameters.values())
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not given or any(one.kind not in plain for one in given):
        raise invalid(
            "the function does not begin with a parameter for the operators, or has *args or keyword-only parameters",
            where,
            "write def find(op, x): return op.Relu(x)",
        )
    ops = Ops(where)
    parameters = [variable(one.name, _kind(one.annotation)) for one in given[1:]]
    variables = [one for one in parameters if one.name != "_"]
    try:
        answer = function(ops, *(one if one in variables else Anything() for one in parameters))
    except OnnxsmithError:
        raise
    except Exception as error:
        raise problem(
            "pattern/function",
            "the function of the pattern failed",
            where=where,
            why=f"{type(error).__name__}: {error}",
            fix=_fix(error),
        ) from error
    found = answer if isinstance(answer, tuple | list) else (answer,)
    outputs = tuple(ops.operand(one) for one in found)
    allowed = Result | Either | Variable if is_replacement else Result | Either
    bad = next((one for one in outputs if not isinstance(one, allowed)), None)
    if bad is not None or not outputs:
        raise invalid("the function does not return results of operators", where, "return op.NAME(…)")
    used = dict.fromkeys((*variables, *ops.declared))
    made = Pattern(tuple(ops.nodes), outputs, tuple(used), name)  # type: ignore[arg-type]
    return checked(made, where, is_replacement=is_replacement)


def _fix(error: Exception) -> str:
    """Returns the fix for an error in the function of a pattern."""
    name = str(error).removeprefix("op.").partition(":")[0]
    if isinstance(error, AttributeError) and name.isidentifier():
        names = {one.lower(): one for one in schema.every_name("")}
        return (
            f"write op.{names[name.lower()]}" if name.lower() in names else "write the name of an operator: op.Relu(x)"
        )
    if isinstance(error, TypeError):
        return "call operators only: op.Mul(x, 2.0), not x * 2.0"
    return "correct the function; it is called once, with variables in place of tensors"


def _kind(annotation: Any) -> Kind:
    name = (
        annotation.strip("'\"").rpartition(".")[2]
        if isinstance(annotation, str)
        else getattr(annotation, "__name__", "")
    )
    return _KINDS.get(name, Kind.VALUE)


class Ops:
    """The operators of a pattern: `op.Relu(x)` makes a node. Operands are variables, results, numbers, lists, arrays,
    None for an operand that must be left out, and `...` for any further operands. Keywords are attributes."""

    def __init__(self, where: str) -> None:
        self.nodes: list[PatternNode] = []
        self.declared: list[Variable] = []
        self._where = where

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name[:1].isupper():
            raise AttributeError(f"op.{name}: operators begin with a capital; others are op.node, op.any, op.maybe, "
                                 "op.either, op.constant, op.scalar, op.attribute")  # fmt: skip
        return lambda *operands, **attributes: self.node(name, *operands, **attributes)

    def node(self, name: str, *operands: Any, outputs: int | None = None, **attributes: Any) -> Any:
        """Makes a node: `op.node("com.microsoft::Gelu", x)`. Returns its result, or a tuple of results if `outputs` or
        the schema says so."""
        domain, _, op_type = name.rpartition("::")
        domain = "" if domain == "ai.onnx" else domain
        number = outputs if outputs is not None else _number_of_results(op_type, domain)
        given = list(operands)
        wanted: dict[str, Wanted] = {}
        for key, value in attributes.items():
            operand = isinstance(value, Variable | Result | Either | Anything)
            place = _place(op_type, domain, key) if operand else None
            if operand and place is None:
                raise invalid(f"{name} has no operand {key!r}", self._where, f"give a value: {key}=1")
            if place is None:
                wanted[key] = self._wanted(as_dtype(key, value, self._where), f"{key} of {name}")
            else:
                given += [None] * (place + 1 - len(given))
                given[place] = value
        return self._added(op_type, domain, given, wanted, number)

    def any(self, *operands: Any, outputs: int = 1) -> Any:
        """Makes a node of any operator, with these as its first operands."""
        return self._added("", "", operands, {}, outputs)

    def maybe(self, name: str, operand: Any, *operands: Any, **attributes: Any) -> Either:
        """Makes an optional node: a choice between the node and its first operand."""
        return self.either(self.node(name, operand, *operands, **attributes), operand)

    def either(self, *operands: Any) -> Either:
        """Makes a choice between these operands; the first that matches counts."""
        return Either(tuple(self.operand(one) for one in operands))

    def constant(self, name: str) -> Variable:
        """Returns a variable that stands for a constant."""
        return self._declare(Variable(name, Kind.CONSTANT))

    def scalar(self, name: str) -> Variable:
        """Returns a variable that stands for a constant with one element."""
        return self._declare(Variable(name, Kind.SCALAR))

    def anything(self) -> Anything:
        """Returns an operand that matches any value."""
        return Anything()

    def attribute(self, name: str = "") -> AttributeVariable:
        """Returns an attribute of any value. Attributes with the same name must have equal values."""
        return AttributeVariable(name)

    def operand(self, given: Any) -> Operand:
        """Converts a Python object to an operand."""
        if isinstance(given, EllipsisType):
            return Rest()
        if given is None or isinstance(given, Variable | Number | Numbers | Exact | Anything | Rest | Result | Either):
            return given
        if isinstance(given, bool | int | float):
            return Number(given)
        if isinstance(given, list | tuple) and all(isinstance(one, bool | int | float) for one in given):
            return Numbers(tuple(given))
        if isinstance(given, np.ndarray | np.generic | ir.TensorProtocol | str):
            return exact(given)
        raise invalid(
            f"{given!r} is no operand",
            self._where,
            "give a variable, a result, a number, a list of numbers, an array, None or ...",
        )

    def _declare(self, made: Variable) -> Variable:
        self.declared.append(made)
        return made

    def _added(self, op_type: str, domain: str, operands: Any, wanted: Mapping[str, Wanted], number: int) -> Any:
        literal = constant_node(op_type, domain, wanted) if not operands else None
        if literal is not None:
            return literal
        inputs = tuple(self.operand(one) for one in operands)
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        index = len(self.nodes)
        stem = (op_type or "any").lower()
        names = tuple(f"{stem}_{index}" if number == 1 else f"{stem}_{index}_{n}" for n in range(number))
        self.nodes.append(PatternNode(op_type, domain, inputs, tuple(wanted.items()), names))
        results = tuple(Result(index, n) for n in range(number))
        return results[0] if number == 1 else results

    def _wanted(self, value: Any, what: str) -> Wanted:
        if value is None:
            return Absent()
        if isinstance(value, AttributeVariable | Absent | Number | Exact | str):
            return value
        if isinstance(value, ir.DataType):
            return int(value)
        if isinstance(value, bool | np.bool_ | np.integer | int):
            return int(value)
        if isinstance(value, float | np.floating):
            return float(np.float32(value))  # as attributes are stored
        if isinstance(value, list | tuple):
            return tuple(self._wanted(one, what) for one in value)
        if isinstance(value, np.ndarray | ir.TensorProtocol):
            return exact(value)
        raise invalid(f"{what} is {value!r}, no value of an attribute", self._where, "give a number, a text or a list")


def exact(given: Any) -> Exact:
    """Returns the constant with the dtype, shape and elements of an array or tensor."""
    if isinstance(given, ir.TensorProtocol):
        return Exact(given.dtype, tuple(given.shape.numpy()), tuple(given.numpy().ravel().tolist()))
    array = np.asarray(given)
    if array.dtype.kind in "UOS":
        texts = tuple(one if isinstance(one, bytes) else str(one).encode() for one in array.ravel().tolist())
        return Exact(ir.DataType.STRING, array.shape, texts)
    return Exact(ir.DataType.from_numpy(array.dtype), array.shape, tuple(array.ravel().tolist()))


def as_dtype(attribute: str, value: Any, where: str) -> Any:
    """Returns the number of a dtype if the attribute holds one and the value names it: "float16", `np.float16`.

    Raises:
        OnnxsmithError: `build/dtype`.
    """
    from onnxsmith.graph.operators import dtypes  # imported late: rules read patterns without it
    from onnxsmith.graph.operators.attributes import OF_DTYPES

    is_name = not (value is None or isinstance(value, AttributeVariable | Absent | Number | int | float | np.integer))
    return int(dtypes.read(value, where)) if attribute in OF_DTYPES and is_name else value


def constant_node(op_type: str, domain: str, wanted: Mapping[str, Wanted]) -> Exact | None:
    """Returns the constant that a `Constant` node of a pattern holds; None for other nodes, or if an attribute is a
    variable."""
    if (op_type, domain) != ("Constant", "") or len(wanted) != 1:
        return None
    ((name, value),) = wanted.items()
    if name == "value":
        return value if isinstance(value, Exact) else None
    dtype = _HELD.get(name)
    if dtype is None or isinstance(value, AttributeVariable | Absent | Number | Exact):
        return None
    values = value if isinstance(value, tuple) else (value,)
    texts = tuple(one.encode() if isinstance(one, str) else one for one in values)
    return Exact(dtype, (len(texts),) if name.endswith("s") else (), texts)


_HELD = {
    **dict.fromkeys(("value_float", "value_floats"), ir.DataType.FLOAT),
    **dict.fromkeys(("value_int", "value_ints"), ir.DataType.INT64),
    **dict.fromkeys(("value_string", "value_strings"), ir.DataType.STRING),
}


def _newest(op_type: str, domain: str) -> schema.Schema | None:
    versions = schema.versions(op_type, domain)
    return schema.find(op_type, domain, versions[-1]) if versions else None


def _number_of_results(op_type: str, domain: str) -> int:
    found = _newest(op_type, domain)
    return 1 if found is None else max(1, sum(not one.optional and not one.variadic for one in found.outputs))


def _place(op_type: str, domain: str, name: str) -> int | None:
    found = _newest(op_type, domain)
    names = [one.name for one in found.inputs] if found is not None else []
    return names.index(name) if name in names else None

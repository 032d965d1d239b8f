"""Recognises translations that write ONNX nodes themselves, and wraps them for torch's exporter.

There are two kinds: functions of onnxscript, as `custom_translation_table` of `torch.onnx.export` takes them, and
symbolics of torch's older exporter, which `torch.onnx.register_custom_op_symbolic` took: `symbolic(g, x, …)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnxsmith.base.problem import problem
from onnxsmith.base.seams.torch import translator

_GRAPHS = ("g", "graph", "graph_context", "graphcontext")
"""Lists the names of a symbolic's first parameter, in torch's documentation and in its own symbolics."""


def is_onnxscript(translation: Any) -> bool:
    """Whether the function is one of onnxscript, or a Python function that calls operators of an onnxscript opset."""
    if _is_of_onnxscript(translation):
        return True
    plain = inspect.unwrap(translation) if callable(translation) else translation
    code = getattr(plain, "__code__", None)
    if code is None:
        return False
    seen = inspect.getclosurevars(plain)
    return "onnxscript" in code.co_names or any(map(_is_of_onnxscript, {**seen.globals, **seen.nonlocals}.values()))


def _is_of_onnxscript(value: Any) -> bool:
    kinds = value.__mro__ if isinstance(value, type) else type(value).__mro__
    module = getattr(value, "__name__", "") if inspect.ismodule(value) else ""
    return module.split(".")[0] == "onnxscript" or any(kind.__module__.split(".")[0] == "onnxscript" for kind in kinds)


def is_symbolic(translation: Any, count: int) -> bool:
    """Whether the function has the form of a symbolic of an operator with so many arguments: the graph comes first."""
    if not inspect.isfunction(translation):
        return False
    parameters = list(inspect.signature(translation).parameters.values())
    open_ended = any(one.kind == one.VAR_POSITIONAL for one in parameters)
    if not parameters or (len(parameters) != count + 1 and not open_ended):
        return False
    first = parameters[0]
    return first.name.lower() in _GRAPHS or "GraphContext" in str(first.annotation)


def as_writer(symbolic: Callable[..., Any], signature: inspect.Signature, name: str) -> Callable[..., Any]:
    """Wraps the symbolic as a function that torch's exporter calls with the operator's arguments: values for tensors,
    Python numbers for all others."""
    plain, kinds = _plain(symbolic)

    def write(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = [_wrapped(value) for value in (*bound.args, *bound.kwargs.values())]
        graph = Graph()
        given = [_as(kind, value, graph) for kind, value in zip(kinds, values, strict=False)] if kinds else values
        try:
            return _unwrapped(plain(graph, *given))
        except (AttributeError, TypeError, NotImplementedError, AssertionError, RuntimeError) as error:
            raise problem(
                "register/symbolic",
                f"the symbolic function of {name} uses a part of torch's older exporter that no longer exists",
                where=f"{getattr(plain, '__qualname__', plain)}",
                why=f"{type(error).__name__}: {error}"[:300],
                fix="in the symbolic function, make all nodes with g.op; or compute the operator with PyTorch's "
                f"operators: onnxsmith.register({name!r}, lambda {', '.join(signature.parameters)}: …)",
            ) from error

    write.__name__ = getattr(plain, "__name__", "symbolic")
    return write


def _plain(symbolic: Callable[..., Any]) -> tuple[Callable[..., Any], Sequence[str]]:
    """Returns the function under the decorator `parse_args`, with the kinds of its arguments; without the decorator,
    the function itself."""
    found: Any = symbolic
    while not hasattr(found, "_arg_descriptors") and hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    while hasattr(found, "__wrapped__"):  # the decorator copied the attribute to its wrapper
        found = found.__wrapped__
    return found, getattr(found, "_arg_descriptors", ())


def _as(kind: str, value: Any, graph: Graph) -> Any:
    """Converts an argument as `parse_args` does: kind "v" is a value, other kinds are Python values."""
    if kind == "v":
        return value if value is None or isinstance(value, Value) else graph.op("Constant", value_t=torch.tensor(value))
    if kind == "t" and not isinstance(value, Value | None):
        return torch.tensor(value)
    if kind in ("i", "b") and isinstance(value, bool | int):
        return int(value) if kind == "i" else bool(value)
    return list(value) if kind in ("is", "fs") and value is not None else value


class Value:
    """A value of the graph with the methods of `torch._C.Value` that symbolics use."""

    def __init__(self, value: ir.Value) -> None:
        self.value = value

    def type(self) -> Type:
        """Returns the type, as far as it is known."""
        return Type(self.value)

    def setType(self, _: Any) -> Value:  # noqa: N802 — torch's name
        """Does nothing, because the trace has determined the types."""
        return self

    def debugName(self) -> str:  # noqa: N802
        """Returns the name."""
        return self.value.name or ""


class Type:
    """The type of a value with the methods of `torch._C.TensorType` that symbolics use."""

    def __init__(self, value: ir.Value) -> None:
        self._value = value

    def dim(self) -> int | None:
        """Returns the rank; None if it is unknown."""
        return len(self._value.shape) if self._value.shape is not None else None

    def sizes(self) -> list[int | None] | None:
        """Returns the sizes; None for a dynamic axis."""
        if self._value.shape is None:
            return None
        return [size if isinstance(size, int) else None for size in self._value.shape]

    def scalarType(self) -> str | None:  # noqa: N802
        """torch's old name of the dtype: `Float`, `Long`."""
        return _SCALARS.get(self._value.dtype) if self._value.dtype is not None else None

    def with_sizes(self, _: Any) -> Type:
        """Returns the type unchanged, because the trace has determined the sizes."""
        return self

    def with_dtype(self, _: Any) -> Type:
        """Returns the type unchanged, because the trace has determined the dtype."""
        return self


_SCALARS = {
    ir.DataType.FLOAT: "Float", ir.DataType.DOUBLE: "Double", ir.DataType.FLOAT16: "Half",
    ir.DataType.BFLOAT16: "BFloat16", ir.DataType.INT64: "Long", ir.DataType.INT32: "Int", ir.DataType.INT16: "Short",
    ir.DataType.INT8: "Char", ir.DataType.UINT8: "Byte", ir.DataType.BOOL: "Bool",
}  # fmt: skip


class Graph:
    """The graph that a symbolic writes to."""

    @property
    def opset(self) -> int:
        """The version of the default operator set."""
        return int(translator.recorder().opset.version)

    def op(self, name: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node. `name` may have a domain (`com.microsoft::Gelu`). The last letter of an attribute's name is its
        kind: `alpha_f`, `axis_i`, `value_t`, `mode_s`."""
        domain, _, kind = name.rpartition("::")
        node = ir.Node(
            "" if domain in ("onnx", "ai.onnx") else domain,
            kind,
            [self._input(one) for one in inputs],
            [_attribute(key, value) for key, value in attributes.items() if value is not None],
            num_outputs=outputs,
        )
        translator.recorder().nodes.append(node)
        found = tuple(Value(output) for output in node.outputs)
        return found if outputs > 1 else found[0]

    def _input(self, given: Any) -> ir.Value | None:
        if given is None:
            return None
        if isinstance(given, Value | ir.Value):
            return _bare(given)
        made: Value = self.op("Constant", value_t=torch.as_tensor(given))
        made.value.dtype = ir.DataType.from_numpy(torch.as_tensor(given).numpy().dtype)
        return made.value


_KINDS: Mapping[str, tuple[Any, Any, Any]] = {
    "f": (float, ir.AttrFloat32, ir.AttrFloat32s),
    "i": (int, ir.AttrInt64, ir.AttrInt64s),
    "s": (str, ir.AttrString, ir.AttrStrings),
}


def _attribute(key: str, value: Any) -> ir.Attr:
    name, _, kind = key.rpartition("_")
    if kind in ("t", "z"):
        return ir.AttrTensor(name, ir.tensor(torch.as_tensor(value).detach().numpy()))
    if kind in _KINDS:
        convert, single, several = _KINDS[kind]
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        made: ir.Attr = several(name, [convert(one) for one in value]) if is_list else single(name, convert(value))
        return made
    raise TypeError(f"attribute {key!r} has no kind: its name ends in _i, _f, _s or _t")


def _wrapped(value: Any) -> Any:
    if isinstance(value, ir.Value):
        return Value(value)
    return [_wrapped(one) for one in value] if isinstance(value, list | tuple) else value


def _bare(value: Any) -> ir.Value:
    found: ir.Value = value.value if isinstance(value, Value) else value
    return found


def _unwrapped(result: Any) -> Any:
    return tuple(map(_bare, result)) if isinstance(result, list | tuple) else _bare(result)

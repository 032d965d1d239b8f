"""Runs onnx-shape-inference with rules of onnxsmith, without changing it for other code in the process.

The library's engine reads one registry for the whole process and writes known integers through its context. Here each
context has its own registry, which starts as a copy of the library's, and a walk over a graph uses that registry.
During a walk, and only then, expressions of dimensions may call additional functions.

Compared with onnx-shape-inference 0.4.0 and onnx-ir 1.1 by tests/contracts/test_shape_inference.py. If a private name
is gone, fewer shapes are known (those of function calls and of bodies of Scan, or dimensions from expressions or from
declarations of outputs), but none is wrong.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from typing import Any

import onnx_ir as ir
from onnx_shape_inference import (
    SYM_DATA_KEY,
    OpShapeInferenceRegistry,
    OpUsageError,
    ShapeInferenceContext,
    ShapeInferenceError,
    registry,
)

from onnxsmith.base import deferred_imports
from onnxsmith.base.seams.base import added, private
from onnxsmith.base.seams.constant_tensors import const_tensor

__all__ = [
    "SYM_DATA_KEY",
    "Context",
    "Rules",
    "bind_scan",
    "library_rules",
    "walk",
    "walking",
]

Infer = Callable[[Any, ir.Node], None]
_LOG = logging.getLogger("onnx_shape_inference")
_MOST_READ = 64
"""Largest number of elements of a constant that is read as a shape. A choice: far above the rank of any tensor."""
_TABLES = ("onnx_ir._symbolic_shapes:_ALLOWED_FUNCTIONS", "onnx_shape_inference._symbolic_shapes:ALLOWED_FUNCTIONS")
_CALLED = "onnx_shape_inference._functions:infer_function_call_output_shapes"
_STANDARD = "onnx_shape_inference._functions:infer_via_op_schema_function"
_RESOLVED = "onnx_shape_inference._functions:_resolve_ref_attrs"
_SCAN = "onnx_shape_inference._engine:_propagate_types_to_scan_body"
_NAME = re.compile(r"[^\W\d][\w.]*(?![\w.]|\s*\()")
REACHES = (*_TABLES, _CALLED, _STANDARD, _RESOLVED, _SCAN)


class Rules(OpShapeInferenceRegistry):  # type: ignore[misc]  # the library has no types
    """A registry of shape inference functions by domain, operator and version."""

    def copy(self) -> Rules:
        """Returns a registry with the same rules; rules added to it do not change this one."""
        made = Rules()
        for domain, op_type, versions in self.iter_supported():
            for version in versions:
                rule = self.get(domain, op_type, version)
                assert rule is not None
                made.register(domain, op_type, version)(rule)
        return made


def library_rules() -> Rules:
    """Returns a new registry with a copy of the library's rules."""
    registry.collect()
    made: Rules = Rules.copy(registry)
    return made


class Context(ShapeInferenceContext):  # type: ignore[misc]
    """The state of one inference by `rules`. `enter` binds the inputs of a node's bodies.

    The library's rules cannot record known integers here, and do not read long constants. The rules of onnxsmith record
    integers instead, because they know when integers wrap around.

    If `failed` is set, it is called with each node whose inference raised an error, and the walk goes on. Without it,
    the error is raised. If `untyped` is set, it is called with each node whose results have no type after its rule.
    """

    def __init__(self, opset_imports: Mapping[str, int], rules: Rules, enter: Infer, **options: Any) -> None:
        super().__init__(opset_imports, **options)
        self.rules = rules
        self.enter = enter
        self.failed: Callable[[ir.Node, Exception], None] | None = None
        self.untyped: Callable[[ir.Node], None] | None = None
        self.corrects_dtypes = False
        """Whether the dtype that a rule gives replaces another dtype that the file declares for an intermediate."""
        self.names_made = 0
        """How many dimensions got a new name."""
        self._symbolic_values: dict[ir.Value, Any]  # the library looks up known integers here
        if not hasattr(self, "_symbolic_values"):
            self._symbolic_values = {}

    def create_child(self, opset_imports: Mapping[str, int] | None = None, *, resolved_attrs: Any = None) -> Context:
        """Returns a context for the body of a function; both contexts share one allocator of dimension names."""
        made = Context(
            opset_imports if opset_imports is not None else self.opset_imports,
            self.rules,
            self.enter,
            policy=self.policy,
            resolved_attrs=resolved_attrs,
            allocator=getattr(self, "_allocator", None),
        )
        made.failed, made.untyped = self.failed, self.untyped
        return made

    def set_symbolic_value(self, value: ir.Value, data: Any) -> None:
        """Records nothing: only `hold` records integers."""

    def get_symbolic_value(self, value: ir.Value) -> Any:
        """Returns the known integers and dimensions in a value; None if they are unknown."""
        tensor = const_tensor(value)
        return None if tensor is not None and tensor.size > _MOST_READ else super().get_symbolic_value(value)

    def hold(self, value: ir.Value, data: list[int | ir.SymbolicDim]) -> None:
        """Records the known integers in a value, for the library's rules. Unlike the library, makes no tensor of
        them."""
        self._symbolic_values[value] = data

    def held(self, value: ir.Value) -> Any:
        """Returns the integers that `hold` recorded for a value; None if there are none."""
        return self._symbolic_values.get(value)

    def _maybe_record_anchor_equality(self, existing_dim: Any, inferred_dim: Any) -> None:
        """Records that a declared dimension has the size of another expression. The library's method does the same,
        with sympy."""
        declared, found = getattr(existing_dim, "value", None), getattr(inferred_dim, "value", None)
        if declared is None or found is None or declared == found:
            return
        if not all(self.is_generated_symbol(name) for name in _NAME.findall(declared)):
            self.add_symbolic_equality(found, declared)

    def set_dtype(self, value: ir.Value, dtype: ir.DataType) -> bool:
        """Sets the dtype of a value if it has none; see `corrects_dtypes`."""
        is_wrong = value.dtype not in (None, dtype) and type(value.type) is ir.TensorType
        if is_wrong and self.corrects_dtypes and not value.is_graph_output():
            value.type = ir.TensorType(dtype)  # a new one: other values may share the old one
            return True
        changed: bool = super().set_dtype(value, dtype)
        return changed

    def name_anonymous_dims(self, value: ir.Value) -> bool:
        """Gives dimensions without a name new names. Most shapes have none; the library's method takes ten times as
        long to see that."""
        shape = value.shape
        if shape is None or all(isinstance(dim, int) or dim.value is not None for dim in shape.dims):
            return False
        changed: bool = super().name_anonymous_dims(value)
        return changed

    def new_symbolic_dim(self) -> ir.SymbolicDim:
        """Returns a dimension with a new name."""
        self.names_made += 1
        made: ir.SymbolicDim = super().new_symbolic_dim()
        return made

    def forget(self, value: ir.Value) -> None:
        """Forgets the known integers in a value."""
        value.metadata_props.pop(SYM_DATA_KEY, None)
        self._symbolic_values.pop(value, None)


_HERE = threading.local()
"""Whether this thread is inside `walking`."""


@contextmanager
def walking() -> Iterator[None]:
    """Allows calls of `walk` while the block runs: expressions may hold `Broadcast`, `Max` and `Min`, and the library
    logs nothing. A nested block of the same thread does nothing, and costs nothing."""
    if getattr(_HERE, "walks", False):
        yield
        return
    with ExitStack() as stack:
        for table in _TABLES:
            add = partial(_add_expressions, stack, table)
            stack.enter_context(deferred_imports.when_loaded(table.partition(":")[0], add))
        stack.callback(_LOG.setLevel, _LOG.level)
        _LOG.setLevel(logging.CRITICAL)
        stack.callback(setattr, _HERE, "walks", False)
        _HERE.walks = True
        yield


def _add_expressions(stack: ExitStack, path: str) -> None:
    table = private(path)
    if table is not None:
        stack.enter_context(added(table, _expressions()))


@cache
def _expressions() -> Mapping[str, Any]:
    """Returns functions that sympy leaves unevaluated: sympy's own Max and Min assume that every dimension is at least
    1."""
    import sympy

    made: dict[str, Any] = {"Broadcast": sympy.Function("Broadcast", integer=True, nonnegative=True)}
    for name in ("Max", "Min"):
        made[name] = made[name.lower()] = sympy.Function(name, integer=True)
    return made


def walk(
    context: Context,
    graph: Any,
    *,
    model_functions: Mapping[Any, ir.Function] | None = None,
    active_functions: frozenset[Any] | None = None,
    inference_cache: dict[Any, Any] | None = None,
    op_function_cache: dict[Any, Any] | None = None,
    warn_on_missing: bool = False,
) -> bool:
    """Infers the nodes of a graph in order, by the context's rules. Must be called inside `walking`. Returns whether a
    shape or type changed. An error of a rule is raised as the library's ShapeInferenceError."""
    functions: dict[str, Any] = {
        "process_graph_fn": walk,
        "warn_on_missing": warn_on_missing,
        "model_functions": model_functions,
        "active_functions": active_functions,
        "inference_cache": inference_cache,
    }
    modified = _enter(context, graph)
    for node in graph:
        # Bodies go first: the rules of If, Loop and Scan read the types of their outputs.
        before = [(value.shape, value.type) for value in node.outputs]
        try:
            context.enter(context, node)
            for inner in _graphs(node):
                modified |= walk(
                    context,
                    inner,
                    model_functions=model_functions,
                    active_functions=active_functions,
                    inference_cache=inference_cache,
                    op_function_cache=op_function_cache,
                )
            for value in node.inputs:
                if value is not None:
                    context.name_anonymous_dims(value)
            _infer(context, node, functions, op_function_cache)
            if context.untyped is not None and any(value.name and value.type is None for value in node.outputs):
                context.untyped(node)
        except Exception as error:
            if context.failed is None:
                raise
            context.failed(node, error)
        modified = modified or any(
            new.shape != shape or new.type != type_ for new, (shape, type_) in zip(node.outputs, before, strict=True)
        )
    return modified


def _enter(context: Context, graph: Any) -> bool:
    """Sets the shapes of initializers and names the anonymous dimensions of inputs."""
    modified = False
    for value in graph.initializers.values():
        tensor = const_tensor(value)
        if tensor is not None and value.shape != tensor.shape:
            value.shape, modified = tensor.shape, True
    for value in graph.inputs:
        modified |= context.name_anonymous_dims(value)
    return modified


def _graphs(node: ir.Node) -> Iterator[ir.Graph]:
    """Yields the branches or the body of a node. `graph.structure.walk` is on a floor above and cannot be used here."""
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH and not attribute.is_ref():
            yield attribute.as_graph()


def _infer(
    context: Context, node: ir.Node, functions: dict[str, Any], op_function_cache: dict[Any, Any] | None
) -> None:
    """Infers one node by its rule, else as a call of a model-local function, else by the operator's function body in
    the standard."""
    version = context.get_opset_version(node.domain)
    rule = context.rules.get(node.domain, node.op_type, version)
    if rule is not None:
        _by_rule(context, node, rule)
        return
    local = functions["model_functions"]
    if local is not None and node.op_identifier() in local:
        given = {name: value for name, value in functions.items() if name != "model_functions"}
        if (called := private(_CALLED)) is not None:
            called(context, node, local, **given)
        return
    if (standard := private(_STANDARD)) is not None:
        standard(context, node, opset_version=version, op_function_cache=op_function_cache, **functions)


def _by_rule(context: Context, node: ir.Node, rule: Infer) -> None:
    try:
        if context.resolved_attrs and any(attribute.is_ref() for attribute in node.attributes.values()):
            if (resolved := private(_RESOLVED)) is not None:
                with resolved(node, context.resolved_attrs):
                    rule(context, node)
        else:
            rule(context, node)
    except (OpUsageError, ShapeInferenceError):
        raise
    except Exception as error:
        raise ShapeInferenceError(
            node_name=node.name,
            op_type=node.op_type,
            domain=node.domain,
            message=f"Shape inference failed for {node.domain}::{node.op_type}",
        ) from error


def bind_scan(context: Any, node: ir.Node) -> None:
    """Gives the inputs of a Scan's body the dtypes and shapes of the node's inputs."""
    bind = private(_SCAN)
    if bind is not None:
        bind(context, node)

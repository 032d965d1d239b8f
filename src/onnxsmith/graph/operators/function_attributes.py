"""Handles attributes of a model-local function. While the body is traced, a `Parameter` stands for each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.structure import walk

PARAMETER = "onnxsmith.parameter"
"""Is the key of an attribute's `meta` that holds the name of the function's attribute to which it refers."""


@dataclass(frozen=True, eq=False)
class Parameter:
    """An attribute of the traced function. `value` is its value in the traced call."""

    name: str
    value: Any

    def as_constant(self) -> dict[str, Any]:
        """Returns the attribute of a Constant node that refers to the parameter."""
        value = self.value
        several = isinstance(value, list | tuple)
        first = next(iter(value), 0) if several else value
        kind = "string" if isinstance(first, str) else "float" if isinstance(first, float) else "int"
        if isinstance(value, np.ndarray | ir.TensorProtocol):
            return {"value": self}
        return {f"value_{kind}s" if several else f"value_{kind}": self}


def given_to(python: Callable[..., Any], keywords: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Returns the attributes of a call: the keywords, and the defaults of the keyword-only parameters of `python`.

    Raises: OnnxsmithError: `build/attribute` if `python` has no such parameter, or a parameter has no value.
    """
    try:
        known = inspect.signature(python).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature
        return dict(keywords)
    only = {one.name: one.default for one in known if one.kind is one.KEYWORD_ONLY}
    more = any(one.kind is one.VAR_KEYWORD for one in known)
    unknown = [name for name in keywords if name not in only and not more]
    missing = [name for name, default in only.items() if name not in keywords and default is inspect.Parameter.empty]
    if unknown:
        raise _refused(f"the function has no attribute {unknown[0]!r}", f"write def f(x, *, {unknown[0]}): …", where)
    if missing:
        raise _refused(f"the attribute {missing[0]!r} has no value", f"add {missing[0]}=… to the call", where)
    found = {name: default for name, default in only.items() if default is not None}
    return {name: value for name, value in {**found, **keywords}.items() if value is not None}


def _refused(what: str, fix: str, where: str) -> OnnxsmithError:
    why = "the attributes of a function are the parameters behind the star of the Python function"
    return problem("build/attribute", what, where=where, why=why, fix=fix)


def refer(graph: ir.Graph) -> None:
    """Turns the attributes that came from a parameter into references to the function's attribute."""
    for node in walk.nodes(graph):
        for name, attribute in list(node.attributes.items()):
            if PARAMETER in attribute.meta:
                node.attributes[name] = ir.RefAttr(name, attribute.meta[PARAMETER], attribute.type)

"""The parameters of a module's `forward`."""

from __future__ import annotations

import inspect
from typing import Any


def signature(forward: Any) -> inspect.Signature:
    """Returns the signature of a method. For a method that TorchScript compiled, builds it from the schema."""
    try:
        return inspect.signature(forward)
    except ValueError:
        schema = getattr(forward, "schema", None)
        if schema is None:
            raise
        return inspect.Signature([_parameter(one) for one in schema.arguments if one.name != "self"])


def _parameter(argument: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    default = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
    return inspect.Parameter(argument.name, kind, default=default)
